"""The functions and methods that an expression may call."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

import orjson

from korak.graphs import durations, instants, patterns
from korak.graphs.cel.frame import Failure, Frame
from korak.graphs.cel.operators import MONEY, check_number, name_of, to_decimal
from korak.graphs.paths import Malformed

Function: TypeAlias = Callable[..., Any]
"""Takes the frame and the arguments, the receiver of a method first."""

_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?")
_SPAN = re.compile(r"-?(?=[0-9])(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,10}(?:\.[0-9]{1,9})?)s)?")


def _want(kind: type, function: str, *values: Any) -> None:
    for value in values:
        if type(value) is not kind:
            raise Failure(f"{function} is not defined for {name_of(value)}")


def _numeral(text: str) -> str:
    if _NUMBER.fullmatch(text) is None:
        raise Failure("the text is no number")
    return text


def size(frame: Frame, value: Any) -> int:
    """The characters of a text, the members of a list or map."""
    if type(value) not in (str, list, dict):
        raise Failure(f"size is not defined for {name_of(value)}")
    return len(value)


def to_int(frame: Frame, value: Any) -> float:
    """A number without its fraction, a text's number, the Unix time of an instant."""
    if type(value) is datetime:
        return int(value.timestamp())
    number = to_double(frame, value) if type(value) not in (int, str, Decimal) else value
    if type(number) is str:
        number = MONEY.create_decimal(_numeral(number))
    if type(number) is Decimal and number.adjusted() > 20:
        raise Failure("the number needs more than 64 bits")
    return check_number(int(number))


def to_double(frame: Frame, value: Any) -> float:
    """A number, decimal or text as a JSON number with a fraction."""
    if type(value) is str:
        return check_number(float(_numeral(value)))
    if type(value) not in (int, float, Decimal):
        raise Failure(f"double is not defined for {name_of(value)}")
    return check_number(float(value))


def to_string(frame: Frame, value: Any) -> str:
    """Text as it is; a number, bool, decimal, instant or span as it is written."""
    if type(value) is str:
        return value
    if type(value) in (int, float, bool):
        return orjson.dumps(value).decode()
    if type(value) is Decimal:
        return format(value, "f")
    if type(value) is datetime:
        return instants.render(value)
    if type(value) is timedelta:
        return f"{write_span(value)}s"
    raise Failure(f"string is not defined for {name_of(value)}")


def write_span(value: timedelta) -> float:
    """The seconds of a span, whole ones as an integer."""
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def to_bool(frame: Frame, value: Any) -> bool:
    """A bool, or the text true or false."""
    if type(value) is bool:
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise Failure(f"bool is not defined for this {name_of(value)}")


def to_money(frame: Frame, value: Any) -> Decimal:
    """A decimal of 34 digits: `decimal("1.10")`, or a number as it is written."""
    if type(value) is str:
        return MONEY.create_decimal(_numeral(value))
    if type(value) in (int, float, Decimal):
        return to_decimal(value)
    raise Failure(f"decimal is not defined for {name_of(value)}")


def to_timestamp(frame: Frame, value: Any) -> datetime:
    """An instant from ISO 8601 with an offset, or from Unix seconds."""
    if type(value) is datetime:
        return value
    if type(value) in (int, float):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (OverflowError, ValueError, OSError):
            raise Failure("the time is out of range") from None
    _want(str, "timestamp", value)
    instant = instants.parse(value)
    if instant is None:
        raise Failure("the text is no ISO 8601 date and time with an offset")
    return instant


def to_duration(frame: Frame, value: Any) -> timedelta:
    """A span from `1h30m5s`, from ISO 8601 without months, or from seconds."""
    if type(value) is timedelta:
        return value
    if type(value) is str and (match := _SPAN.fullmatch(value)):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return -span if value.startswith("-") else span
    if type(value) not in (str, int, float):
        raise Failure(f"duration is not defined for {name_of(value)}")
    try:
        duration = durations.compile_duration(value, signed=True)
    except Malformed:
        raise Failure("it is no duration") from None
    if duration.seconds is None:
        raise Failure("months have no exact length")
    return duration.exact


def matches(frame: Frame, text: Any, pattern: Any) -> bool:
    """Whether the RE2 pattern is found in the text."""
    _want(str, "matches", text, pattern)
    frame.spend(100 + (len(text) >> 3))
    try:
        return patterns.compile_pattern(pattern).matches(text)
    except Malformed as error:
        raise Failure(error.message) from None


def starts_with(frame: Frame, text: Any, start: Any) -> bool:
    """Whether the text begins so."""
    _want(str, "startsWith", text, start)
    return bool(text.startswith(start))


def ends_with(frame: Frame, text: Any, end: Any) -> bool:
    """Whether the text ends so."""
    _want(str, "endsWith", text, end)
    return bool(text.endswith(end))


def contains(frame: Frame, text: Any, part: Any) -> bool:
    """Whether the text holds the part."""
    _want(str, "contains", text, part)
    frame.spend(len(text) >> 6)
    return part in text


def _cased(change: Callable[[str], str], name: str) -> Function:
    def apply(frame: Frame, text: Any) -> str:
        _want(str, name, text)
        frame.spend(len(text) >> 6)
        return change(text)

    return apply


def _field(read: Callable[[datetime], int], name: str) -> Function:
    def apply(frame: Frame, instant: Any, timezone: Any = "UTC") -> int:
        _want(datetime, name, instant)
        try:
            return read(instant.astimezone(durations.get_zone(timezone)))
        except (Malformed, OverflowError):
            raise Failure("the time zone is unknown") from None

    return apply


FUNCTIONS: Final[dict[str, tuple[Function, int, int]]] = {
    "size": (size, 1, 1),
    "int": (to_int, 1, 1),
    "uint": (to_int, 1, 1),
    "double": (to_double, 1, 1),
    "string": (to_string, 1, 1),
    "bool": (to_bool, 1, 1),
    "decimal": (to_money, 1, 1),
    "timestamp": (to_timestamp, 1, 1),
    "duration": (to_duration, 1, 1),
    "matches": (matches, 2, 2),
}
"""Name to function and the least and most arguments."""

METHODS: Final[dict[str, tuple[Function, int, int]]] = {
    "size": (size, 1, 1),
    "matches": (matches, 2, 2),
    "startsWith": (starts_with, 2, 2),
    "endsWith": (ends_with, 2, 2),
    "contains": (contains, 2, 2),
    "lowerAscii": (_cased(lambda text: text.encode().lower().decode(), "lowerAscii"), 1, 1),
    "upperAscii": (_cased(lambda text: text.encode().upper().decode(), "upperAscii"), 1, 1),
    "trim": (_cased(str.strip, "trim"), 1, 1),
    "getFullYear": (_field(lambda at: at.year, "getFullYear"), 1, 2),
    "getMonth": (_field(lambda at: at.month - 1, "getMonth"), 1, 2),
    "getDate": (_field(lambda at: at.day, "getDate"), 1, 2),
    "getDayOfMonth": (_field(lambda at: at.day - 1, "getDayOfMonth"), 1, 2),
    "getDayOfWeek": (_field(lambda at: at.isoweekday() % 7, "getDayOfWeek"), 1, 2),
    "getDayOfYear": (_field(lambda at: at.timetuple().tm_yday - 1, "getDayOfYear"), 1, 2),
    "getHours": (_field(lambda at: at.hour, "getHours"), 1, 2),
    "getMinutes": (_field(lambda at: at.minute, "getMinutes"), 1, 2),
    "getSeconds": (_field(lambda at: at.second, "getSeconds"), 1, 2),
}
"""Like `FUNCTIONS`, the receiver counted."""
