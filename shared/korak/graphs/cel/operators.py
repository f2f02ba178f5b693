"""What CEL's operators do here: integers and fractions mix, `/` is exact, decimals are for money."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from korak.graphs import ordering
from korak.graphs.cel.frame import Failure, Frame
from korak.graphs.hygiene import LARGEST, SMALLEST

Operator: TypeAlias = Callable[[Frame, Any, Any], Any]

MONEY: Final = decimal.Context(
    prec=34,
    Emax=6144,
    Emin=-6143,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
"""IEEE 754 decimal128."""

_NUMBERS = frozenset({int, float})
_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "list",
    dict: "map",
    Decimal: "decimal",
    datetime: "timestamp",
    timedelta: "duration",
}


def name_of(value: Any) -> str:
    """What the type of `value` is called in a message."""
    return _NAMES.get(type(value), "value")


def check_number(value: float) -> float:
    """`value`, where JSON can carry it."""
    if type(value) is int:
        if not SMALLEST <= value <= LARGEST:
            raise Failure("the number needs more than 64 bits")
    elif not math.isfinite(value):
        raise Failure("the number is too large")
    return value


def to_decimal(value: Any) -> Decimal:
    """A number as the decimal that is written the same."""
    return value if type(value) is Decimal else Decimal(repr(value))


def _mix(left: Any, right: Any) -> str:
    """How two operands meet: as numbers, as decimals, or by their types."""
    kinds = {type(left), type(right)}
    if kinds <= _NUMBERS:
        return "number"
    return "decimal" if Decimal in kinds and kinds <= _NUMBERS | {Decimal} else "other"


def _refuse(sign: str, left: Any, right: Any) -> Failure:
    return Failure(f"{name_of(left)} {sign} {name_of(right)} is not defined")


def _money(operation: Callable[[Decimal, Decimal], Decimal], left: Any, right: Any) -> Decimal:
    try:
        return operation(to_decimal(left), to_decimal(right))
    except decimal.DecimalException:
        raise Failure("the decimal can't be computed") from None


def add(frame: Frame, left: Any, right: Any) -> Any:
    """Numbers, text, lists, an instant and a span, two spans."""
    match _mix(left, right):
        case "number":
            return check_number(left + right)
        case "decimal":
            return _money(MONEY.add, left, right)
    if type(left) is type(right) and type(left) in (str, list):
        frame.spend((len(left) + len(right)) >> (0 if type(left) is list else 6))
        return left + right
    if {type(left), type(right)} in ({timedelta}, {timedelta, datetime}):
        return _move(lambda: left + right)
    raise _refuse("+", left, right)


def subtract(frame: Frame, left: Any, right: Any) -> Any:
    """Numbers, two instants, an instant and a span, two spans."""
    match _mix(left, right):
        case "number":
            return check_number(left - right)
        case "decimal":
            return _money(MONEY.subtract, left, right)
    if type(left) in (datetime, timedelta) and type(right) in (timedelta, type(left)):
        return _move(lambda: left - right)
    raise _refuse("-", left, right)


def _move(operation: Callable[[], Any]) -> Any:
    try:
        return operation()
    except OverflowError:
        raise Failure("the time is out of range") from None


def multiply(frame: Frame, left: Any, right: Any) -> Any:
    """Numbers."""
    match _mix(left, right):
        case "number":
            return check_number(left * right)
        case "decimal":
            return _money(MONEY.multiply, left, right)
    raise _refuse("*", left, right)


def divide(frame: Frame, left: Any, right: Any) -> Any:
    """Numbers, exactly: 1 / 2 is 0.5, and 4 / 2 is 2."""
    kind = _mix(left, right)
    if kind != "other" and right == 0:
        raise Failure("division by zero")
    if kind == "decimal":
        return _money(MONEY.divide, left, right)
    if kind == "other":
        raise _refuse("/", left, right)
    if type(left) is int and type(right) is int and left % right == 0:
        return check_number(left // right)
    try:
        return check_number(left / right)
    except OverflowError:
        raise Failure("the number is too large") from None


def remain(frame: Frame, left: Any, right: Any) -> Any:
    """The rest of a division that truncates: its sign is the left one's."""
    kind = _mix(left, right)
    if kind != "other" and right == 0:
        raise Failure("division by zero")
    if kind == "decimal":
        return _money(MONEY.remainder, left, right)
    if kind == "other":
        raise _refuse("%", left, right)
    if type(left) is int and type(right) is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return check_number(math.fmod(left, right))


def negate(value: Any) -> Any:
    """A number or a span with the other sign."""
    if type(value) in _NUMBERS:
        return check_number(-value)
    if type(value) in (Decimal, timedelta):
        return -value
    raise Failure(f"-{name_of(value)} is not defined")


def equal(frame: Frame, left: Any, right: Any) -> bool:
    """Equality of any two values; different types aren't equal, but all numbers are of one."""
    if _mix(left, right) == "decimal":
        return to_decimal(left) == to_decimal(right)
    frame.weigh(left)
    return ordering.equal(left, right)


def differ(frame: Frame, left: Any, right: Any) -> bool:
    """The opposite of `equal`."""
    return not equal(frame, left, right)


def _order(frame: Frame, sign: str, left: Any, right: Any) -> tuple[Any, Any]:
    match _mix(left, right):
        case "number":
            return left, right
        case "decimal":
            return to_decimal(left), to_decimal(right)
    if type(left) is not type(right) or type(left) not in (str, bool, datetime, timedelta):
        raise _refuse(sign, left, right)
    frame.weigh(left)
    return left, right


def less(frame: Frame, left: Any, right: Any) -> bool:
    """Numbers, text by code point, bools, instants or spans: two of one kind, as in all four comparisons."""
    first, second = _order(frame, "<", left, right)
    return bool(first < second)


def less_or_equal(frame: Frame, left: Any, right: Any) -> bool:
    """See `less`."""
    first, second = _order(frame, "<=", left, right)
    return bool(first <= second)


def greater(frame: Frame, left: Any, right: Any) -> bool:
    """See `less`."""
    first, second = _order(frame, ">", left, right)
    return bool(first > second)


def greater_or_equal(frame: Frame, left: Any, right: Any) -> bool:
    """See `less`."""
    first, second = _order(frame, ">=", left, right)
    return bool(first >= second)


def contain(frame: Frame, left: Any, right: Any) -> bool:
    """Whether `left` is a member of the list, or a key of the map, `right`."""
    if type(right) is list:
        frame.spend(len(right))
        return any(equal(frame, left, member) for member in right)
    if type(right) is dict:
        return type(left) is str and left in right
    raise _refuse("in", left, right)


BY_RULE: Final[dict[str, Operator]] = {
    "addition_add": add,
    "addition_sub": subtract,
    "multiplication_mul": multiply,
    "multiplication_div": divide,
    "multiplication_mod": remain,
    "relation_eq": equal,
    "relation_ne": differ,
    "relation_lt": less,
    "relation_le": less_or_equal,
    "relation_gt": greater,
    "relation_ge": greater_or_equal,
    "relation_in": contain,
}
"""The operators by the names of the grammar's rules."""
