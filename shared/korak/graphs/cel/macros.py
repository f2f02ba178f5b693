"""all, exists, exists_one, map and filter over a list, or over the keys of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from korak.graphs.cel.frame import Failure, Frame, Node
from korak.graphs.cel.operators import name_of
from korak.graphs.paths import MissingValue


@dataclass(frozen=True, slots=True)
class Macro:
    """One use of a macro: what it goes over, the slot of its variable, its bodies, and what a round costs."""

    target: Node
    slot: int
    bodies: tuple[Node, ...]
    cost: int

    def rounds(self, frame: Frame) -> Iterator[Any]:
        """Each member, set as the variable; work is taken for each round before it."""
        value = self.target(frame)
        if type(value) not in (list, dict):
            raise Failure(f"a macro is not defined for {name_of(value)}")
        for member in value:
            frame.spend(self.cost)
            frame.slots[self.slot] = member
            yield member


def as_bool(value: Any) -> bool:
    """`value`, where it is a bool."""
    if type(value) is not bool:
        raise Failure(f"a bool is expected, not {name_of(value)}")
    return value


def _decide(macro: Macro, frame: Frame, decisive: bool) -> bool:
    """Whether any round gives `decisive`: an error counts only where no other round decides."""
    failure: Failure | MissingValue | None = None
    for _ in macro.rounds(frame):
        try:
            if as_bool(macro.bodies[0](frame)) is decisive:
                return True
        except (Failure, MissingValue) as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return False


def _all(macro: Macro, frame: Frame) -> bool:
    return not _decide(macro, frame, False)


def _exists(macro: Macro, frame: Frame) -> bool:
    return _decide(macro, frame, True)


def _exists_one(macro: Macro, frame: Frame) -> bool:
    return sum(as_bool(macro.bodies[0](frame)) for _ in macro.rounds(frame)) == 1


def _filter(macro: Macro, frame: Frame) -> list[Any]:
    return [member for member in macro.rounds(frame) if as_bool(macro.bodies[0](frame))]


def _map(macro: Macro, frame: Frame) -> list[Any]:
    *tests, body = macro.bodies
    return [body(frame) for _ in macro.rounds(frame) if all(as_bool(test(frame)) for test in tests)]


MACROS: Final[dict[str, tuple[Callable[[Macro, Frame], Any], tuple[int, ...]]]] = {
    "all": (_all, (2,)),
    "exists": (_exists, (2,)),
    "exists_one": (_exists_one, (2,)),
    "filter": (_filter, (2,)),
    "map": (_map, (2, 3)),
}
"""Name to what it does and how many arguments it may have."""
