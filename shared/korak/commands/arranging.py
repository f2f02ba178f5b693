"""The steps of an instance in the order in which a person reads them: what a container holds stands below it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from korak.model import StepStatus

Step: TypeAlias = Mapping[str, Any]

MOST: Final = 20
"""Bodies of one container that are shown. Of more, those that ask for a look are, and the rest is counted."""

CONTAINERS: Final = frozenset({"parallel", "for_each", "scope"})
FEW: Final = 3
"""Attempts that rewinds have left behind and that are shown one by one; more of them are one line."""

SAMPLE: Final = 5
"""Bodies that have settled and are shown where not all of a container's are."""

LIVES: Final = frozenset({StepStatus.QUEUED, StepStatus.RUNNING, StepStatus.WAITING})
OPEN: Final = "open"
COUNTED: Final[Mapping[str, str]] = {"running": OPEN, "pending": "to come"}
"""How bodies are called that a container counts and in which something lives, or nothing has begun."""

SETTLED: Final = frozenset({StepStatus.COMPLETED, StepStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Rest:
    """Bodies of a container that aren't shown: how deep they lie, and how many there are by the status of each."""

    depth: int
    counts: Mapping[str, int]


@dataclass(slots=True)
class _Body:
    """What one container holds under one path."""

    steps: list[Step] = field(default_factory=list)
    status: str = ""
    """How it stands: as its newest step does, unless something in it still asks for a look."""


def arrange(steps: Sequence[Step], most: int = MOST) -> list[Step | Rest]:
    """All steps, given in the order in which they began; of a container with more than `most` bodies not all of them.

    A step of a body belongs to the newest container that had begun in the body around it: one token runs in a body, so
    there is no other.
    """
    bodies, roots = _sort(steps)
    return list(_walk(roots, bodies, 0, most))


def part(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """What stands, and what rewinds have left behind: what they took back or cancelled, with all that it holds."""
    moments = {step["undone_at"] for step in steps if step.get("undone_at")}
    if not moments:
        return list(steps), []
    outer = [step for step in steps if not step.get("branch")]
    gone = [step for step in outer if step.get("undone_at") or _is_cancelled_at(step, moments)]
    gone_ids = {id(step) for step in gone}
    holders = [step for step in outer if step.get("type") in CONTAINERS]
    begun = [_get_begin(step) for step in holders]
    for step in steps:
        at = bisect_right(begun, _get_begin(step)) if step.get("branch") else 0
        if at and id(holders[at - 1]) in gone_ids:
            gone.append(step)
    gone_ids = {id(step) for step in gone}
    return [step for step in steps if id(step) not in gone_ids], gone


def _is_cancelled_at(step: Step, moments: Collection[str]) -> bool:
    return step["status"] == StepStatus.CANCELLED and step.get("finished_at") in moments


def _sort(steps: Sequence[Step]) -> tuple[dict[int, dict[str, _Body]], list[Step]]:
    """The bodies of each container, by its identity and their paths, and what stands in none."""
    by_path: defaultdict[str | None, list[Step]] = defaultdict(list)
    for step in steps:
        by_path[step.get("branch")].append(step)
    owners = {path: _find_owners(inside) for path, inside in by_path.items()}
    bodies: defaultdict[int, dict[str, _Body]] = defaultdict(dict)
    roots: list[Step] = []
    for step in steps:
        path = step.get("branch")
        begun, around = owners.get(None if path is None else _get_path_around(path), ([], []))
        if path is None or not around:
            roots.append(step)
            continue
        at = bisect_right(begun, _get_begin(step))
        body = bodies[id(around[max(at - 1, 0)])].setdefault(path, _Body())
        body.steps.append(step)
        body.status = _get_standing(body, step)
    return bodies, roots


def _find_owners(inside: Sequence[Step]) -> tuple[list[str], list[Step]]:
    found = [step for step in inside if step.get("type") in CONTAINERS] or list(inside)
    return [_get_begin(step) for step in found], found


def _get_path_around(path: str) -> str | None:
    return path.rpartition("/")[0] or None


def _get_begin(step: Step) -> str:
    return str(step.get("created_at") or "")


def _get_standing(body: _Body, step: Step) -> str:
    """A failed attempt is forgotten once there is another; what still lives isn't."""
    return body.status if body.status in LIVES and step["status"] not in LIVES else str(step["status"])


def _walk(
    steps: Sequence[Step], bodies: Mapping[int, Mapping[str, _Body]], depth: int, most: int
) -> Iterator[Step | Rest]:
    for step in steps:
        yield step
        held = bodies.get(id(step), {})
        counts = _count(step, held)
        shown = _choose(held, most, counts.total())
        for path, body in held.items():
            if path in shown:
                yield from _walk(body.steps, bodies, depth + 1, most)
        rest = counts - _count_shown(step, [held[path] for path in shown])
        if rest:
            yield Rest(depth + 1, rest)


def _count(step: Step, held: Mapping[str, _Body]) -> Counter[str]:
    """All bodies by how they stand: as the container counts them, where it says so, else as those that are known do."""
    told: Mapping[str, int] = step.get("bodies") or {}
    if not told:
        return Counter(body.status for body in held.values())
    return Counter({COUNTED.get(status, status): count for status, count in told.items()})


def _count_shown(step: Step, shown: Iterable[_Body]) -> Counter[str]:
    """The same of those that are shown, in the words of the container."""
    is_told = bool(step.get("bodies"))
    return Counter(OPEN if is_told and body.status in LIVES else body.status for body in shown)


def _choose(held: Mapping[str, _Body], most: int, total: int) -> set[str]:
    """The paths of those that are shown: what has failed comes first, then what lives."""
    if total <= most:
        return set(held)
    asking = [path for path in held if held[path].status not in SETTLED]
    asking.sort(key=lambda path: held[path].status in LIVES)
    settled = [path for path in held if held[path].status in SETTLED]
    return {*asking[:most], *settled[: min(SAMPLE, max(0, most - len(asking)))]}
