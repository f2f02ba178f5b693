"""What one evaluation carries, and how it can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from korak.graphs.paths import Roots

WORK = 250_000
"""Units of work of one evaluation: about one a node that is visited, more for long text and lists."""


class Failure(Exception):
    """Internal: an operator or a function can't be applied. `&&`, `||`, `all` and `exists` may do without it."""


class Exhausted(Exception):
    """Internal: the evaluation would cost more than `WORK`. Nothing absorbs it."""


class Frame:
    """The roots, the variables of the macros around, and the work that is left."""

    __slots__ = ("left", "roots", "slots")

    def __init__(self, roots: Roots, slots: int) -> None:
        self.roots: Roots = roots
        self.slots: list[Any] = [None] * slots
        self.left: int = WORK

    def spend(self, units: int) -> None:
        """Take `units` of work. Raises Exhausted."""
        self.left -= units
        if self.left < 0:
            raise Exhausted

    def weigh(self, value: Any) -> None:
        """Spend what it costs to look at all of `value`."""
        if type(value) is str:
            self.spend(len(value) >> 8)
        elif type(value) is list or type(value) is dict:
            self._weigh_members(value)

    def _weigh_members(self, value: Any) -> None:
        pending: list[Any] = [value]
        while pending:
            inner = pending.pop()
            if type(inner) is list:
                self.spend(len(inner))
                pending.extend(inner)
            elif type(inner) is dict:
                self.spend(len(inner))
                pending.extend(inner.values())
            elif type(inner) is str:
                self.spend(len(inner) >> 8)


Node: TypeAlias = Callable[[Frame], Any]
"""A compiled expression."""
