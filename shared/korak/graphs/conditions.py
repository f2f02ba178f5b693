"""Conditions: all, any, not, a comparison, or an expression that gives a bool (DESIGN 6; spec 16)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from korak.errors import Issue
from korak.graphs import ordering, paths
from korak.graphs.expressions import Expression, ExpressionFailed, compile_expression
from korak.graphs.paths import Malformed, Reference, Roots, Unresolved
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject

T = TypeVar("T")

MAX_DEPTH: Final = 16
MAX_TERMS: Final = 500


class Condition(ABC):
    """A compiled condition."""

    __slots__ = ()

    @abstractmethod
    def holds(self, roots: Roots) -> bool:
        """Whether it is true now.

        Raises MissingValue for a path that leads nowhere, but in is_null, not_null and refs with a default;
        ExpressionFailed from an expression; Unresolved("type_mismatch") for two values that an op can't compare.
        """

    def references(self) -> tuple[Reference, ...]:
        """The paths that are read, with pointers from the raw condition on."""
        return tuple(self.walk(""))

    @abstractmethod
    def walk(self, pointer: str) -> Iterator[Reference]:
        """The paths that are read by the condition at `pointer`."""


@dataclass(frozen=True, slots=True)
class All(Condition):
    """Every term holds; true without terms. A term after the first false one isn't looked at."""

    terms: tuple[Condition, ...]

    def holds(self, roots: Roots) -> bool:
        """See the base."""
        return all(term.holds(roots) for term in self.terms)

    def walk(self, pointer: str) -> Iterator[Reference]:
        """See the base."""
        for index, term in enumerate(self.terms):
            yield from term.walk(f"{pointer}/all/{index}")


@dataclass(frozen=True, slots=True)
class Any(Condition):
    """Some term holds; false without terms. A term after the first true one isn't looked at."""

    terms: tuple[Condition, ...]

    def holds(self, roots: Roots) -> bool:
        """See the base."""
        return any(term.holds(roots) for term in self.terms)

    def walk(self, pointer: str) -> Iterator[Reference]:
        """See the base."""
        for index, term in enumerate(self.terms):
            yield from term.walk(f"{pointer}/any/{index}")


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The term doesn't hold."""

    term: Condition

    def holds(self, roots: Roots) -> bool:
        """See the base."""
        return not self.term.holds(roots)

    def walk(self, pointer: str) -> Iterator[Reference]:
        """See the base."""
        yield from self.term.walk(f"{pointer}/not")


@dataclass(frozen=True, slots=True)
class Cel(Condition):
    """An expression that must give a bool."""

    expression: Expression

    def holds(self, roots: Roots) -> bool:
        """See the base."""
        result = self.expression.evaluate(roots)
        if not isinstance(result, bool):
            raise ExpressionFailed(self.expression.text, "a condition gives a bool")
        return result

    def walk(self, pointer: str) -> Iterator[Reference]:
        """See the base."""
        for reference in self.expression.references():
            yield Reference(reference.path, reference.has_default, f"{pointer}/cel")


@dataclass(frozen=True, slots=True)
class NullTest(Condition):
    """`is_null` and `not_null`: a missing path is null."""

    ref: Value
    is_wanted: bool

    def holds(self, roots: Roots) -> bool:
        """See the base."""
        return (self.ref.resolve(roots) is None) is self.is_wanted

    def walk(self, pointer: str) -> Iterator[Reference]:
        """See the base: a null test allows for a missing path."""
        for reference in self.ref.walk(pointer):
            yield Reference(reference.path, True, reference.pointer)


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """A path's value against another value."""

    ref: Value
    op: str
    value: Value

    def holds(self, roots: Roots) -> bool:
        """See the base."""
        return _OPS[self.op](self.ref.resolve(roots, strict=True), self.value.resolve(roots, strict=True))

    def walk(self, pointer: str) -> Iterator[Reference]:
        """See the base."""
        yield from self.ref.walk(pointer)
        yield from self.value.walk(f"{pointer}/value")


def _differs(left: Json, right: Json) -> bool:
    return not ordering.equal(left, right)


def _ordered(op: str, test: Callable[[int], bool]) -> Callable[[Json, Json], bool]:
    def compare(left: Json, right: Json) -> bool:
        if left is None or right is None:
            return False
        order = ordering.compare(left, right)
        if order is None:
            raise _mismatch(op, left, right)
        return test(order)

    return compare


def _is_in(left: Json, right: Json) -> bool:
    if not isinstance(right, list):
        raise _mismatch("in", left, right)
    return any(ordering.equal(left, member) for member in right)


def _contains(left: Json, right: Json) -> bool:
    if left is None:
        return False
    if isinstance(left, list):
        return any(ordering.equal(member, right) for member in left)
    return _on_text("contains", str.__contains__)(left, right)


def _on_text(op: str, test: Callable[[str, str], bool]) -> Callable[[Json, Json], bool]:
    def compare(left: Json, right: Json) -> bool:
        if left is None or right is None:
            return False
        if not (isinstance(left, str) and isinstance(right, str)):
            raise _mismatch(op, left, right)
        return test(left, right)

    return compare


def _mismatch(op: str, left: Json, right: Json) -> Unresolved:
    kinds = f"{type(left).__name__} and {type(right).__name__}"
    return Unresolved(detail=f"The op {op} can't compare {kinds}.")


_OPS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "eq": ordering.equal,
    "neq": _differs,
    "gt": _ordered("gt", lambda order: order > 0),
    "gte": _ordered("gte", lambda order: order >= 0),
    "lt": _ordered("lt", lambda order: order < 0),
    "lte": _ordered("lte", lambda order: order <= 0),
    "in": _is_in,
    "not_in": lambda left, right: not _is_in(left, right),
    "contains": _contains,
    "starts_with": _on_text("starts_with", str.startswith),
    "ends_with": _on_text("ends_with", str.endswith),
}
OPS: Final = frozenset({*_OPS, "is_null", "not_null"})
"""The ops of a comparison. An order with null is false; with two types that have no order it is a type_mismatch."""


def compile_condition(raw: Json) -> Condition:
    """The condition that `raw` writes. Raises Malformed: "invalid_condition", or the code of what stands inside."""
    return _Compiler().compile(raw, 0)


class _Compiler:
    """One compilation, which counts its terms."""

    def __init__(self) -> None:
        self._terms = 0

    def compile(self, raw: Json, depth: int) -> Condition:
        self._terms += 1
        if depth > MAX_DEPTH or self._terms > MAX_TERMS:
            raise _malformed(f"A condition is nested {MAX_DEPTH} deep and has {MAX_TERMS} terms at most.")
        if not isinstance(raw, dict):
            raise _malformed("A condition is an object with all, any, not, cel, or ref and op.")
        if "ref" in raw or "op" in raw:
            return _compile_comparison(raw)
        if len(raw) != 1:
            raise _malformed("A condition is an object with exactly one of all, any, not, cel, or with ref and op.")
        return self._compile_only(raw, depth)

    def _compile_only(self, raw: JsonObject, depth: int) -> Condition:
        ((key, inner),) = raw.items()
        match key:
            case "all":
                return All(self._compile_terms(key, inner, depth))
            case "any":
                return Any(self._compile_terms(key, inner, depth))
            case "not":
                return Not(self._compile_at(inner, depth, key))
            case "cel":
                return Cel(_at(lambda: compile_expression(inner), "/cel"))
            case _:
                raise _malformed(f"{key[:40]!r} is no condition: use all, any, not, cel, or ref and op.", key)

    def _compile_terms(self, key: str, inner: Json, depth: int) -> tuple[Condition, ...]:
        if not isinstance(inner, list):
            raise _malformed(f"{key} takes a list of conditions.", key)
        return tuple(self._compile_at(term, depth, key, index) for index, term in enumerate(inner))

    def _compile_at(self, raw: Json, depth: int, *at: str | int) -> Condition:
        return _at(lambda: self.compile(raw, depth + 1), paths.pointer(at))


def _compile_comparison(raw: JsonObject) -> Condition:
    op = raw.get("op")
    if not isinstance(op, str) or op not in OPS:
        raise _malformed(f"op is one of {', '.join(sorted(OPS))}.", "op")
    if "ref" not in raw:
        raise _malformed("A comparison needs a ref.")
    if unknown := sorted(set(raw) - {"ref", "default", "op", "value"}):
        raise _malformed(f"{unknown[0][:40]!r} is no member of a comparison.", unknown[0])
    ref = compile_value({key: raw[key] for key in ("ref", "default") if key in raw})
    if op in ("is_null", "not_null"):
        if raw.get("value") is not None:
            raise _malformed(f"{op} takes no value.", "value")
        return NullTest(ref, op == "is_null")
    if "value" not in raw:
        raise _malformed(f"{op} needs a value.")
    return Comparison(ref, op, _compile_operand(op, raw["value"]))


def _compile_operand(op: str, raw: Json) -> Value:
    value = _at(lambda: compile_value(raw), "/value")
    if op in ("in", "not_in") and value.is_literal and not isinstance(value.resolve({}), list):
        raise _malformed(f"{op} takes a list.", "value")
    return value


def _at(compile_inner: Callable[[], T], pointer: str) -> T:
    try:
        return compile_inner()
    except Malformed as error:
        raise error.at(pointer) from None


def _malformed(detail: str, *at: str | int) -> Malformed:
    return Malformed(Issue("invalid_condition", paths.pointer(at), {"detail": detail}))
