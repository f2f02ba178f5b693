"""CEL expressions over a run's roots: bounded in length, depth and work, with JSON's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from korak.graphs.cel import compiling, parsing
from korak.graphs.cel.frame import Exhausted, Failure, Frame
from korak.graphs.cel.functions import to_string, write_span
from korak.graphs.paths import Reference, Roots, Unresolved
from korak.model import Json

MAX_DEPTH: Final = 64
"""How deep the result may be nested."""


class ExpressionFailed(Unresolved):
    """Internal: an expression has no result: a type that doesn't fit, a division by zero, too much work. Permanent."""

    code = "expression_error"

    def __init__(self, expression: str, why: str) -> None:
        super().__init__(expression=expression[:200], why=why)


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; equal where the text is."""

    text: str
    program: compiling.Program = field(repr=False, compare=False)

    def evaluate(self, roots: Roots) -> Json:
        """The result as JSON: a decimal and an instant as a string, a span as seconds.

        Raises MissingValue where a key isn't there and `has()` didn't ask, else ExpressionFailed.
        """
        frame = Frame(roots, self.program.slots)
        try:
            return _export(frame, self.program.code(frame), 0)
        except Failure as failure:
            raise ExpressionFailed(self.text, str(failure)) from None
        except Exhausted:
            raise ExpressionFailed(self.text, "it takes too much work") from None
        except ArithmeticError:
            raise ExpressionFailed(self.text, "a number is out of range") from None

    def references(self) -> tuple[Reference, ...]:
        """The paths that are read, longest forms; those that `has()` asks for, and what lies below, have a default."""
        return tuple(Reference(path, self._is_tested(path), "") for path in self.program.reads)

    def _is_tested(self, path: tuple[str | int, ...]) -> bool:
        return any(path[: len(tested)] == tested for tested in self.program.tests)


def compile_expression(text: object) -> Expression:
    """Raises Malformed, "invalid_expression" or for a constant pattern "invalid_pattern"."""
    if not isinstance(text, str):
        raise parsing.malformed("An expression is a string.")
    return _compile(text)


@lru_cache(maxsize=2048)
def _compile(text: str) -> Expression:
    return Expression(text, compiling.compile_source(parsing.parse(text)))


def _export(frame: Frame, value: Any, depth: int) -> Json:
    if value is None or type(value) in (bool, int, float):
        return value  # type: ignore[no-any-return]  # just looked
    if type(value) in (list, dict):
        if depth == MAX_DEPTH:
            raise Failure(f"the result is nested more than {MAX_DEPTH} deep")
        frame.spend(len(value))
        if type(value) is list:
            return [_export(frame, member, depth + 1) for member in value]
        return dict(_export_members(frame, value, depth + 1))
    if type(value) is timedelta:
        return write_span(value)
    if type(value) is str:
        frame.weigh(value)
        return value
    if type(value) in (Decimal, datetime):
        return to_string(frame, value)
    raise Failure(f"{type(value).__name__} is no JSON")


def _export_members(frame: Frame, members: dict[str, Any], depth: int) -> Iterator[tuple[str, Json]]:
    for key, value in members.items():
        yield key, _export(frame, value, depth)
