"""Who is asked about together, and who waits in line alone: what was passed over twice waits for a lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

PATIENCE = 5.0
"""Seconds that what was passed over twice waits for its instance's lock."""

PASSES = 2


class Skippable(Protocol):
    """Something that may be passed over because others hold its instance."""

    skips: int


T = TypeVar("T", bound=Skippable)


def arrange(batch: Sequence[T], get_instance: Callable[[T], int]) -> Iterator[tuple[list[T], float | None]]:
    """The parts of a batch, each with its patience: first all together, then one instance a part."""
    together = [one for one in batch if one.skips < PASSES]
    if together:
        yield together, None
    alone: dict[int, list[T]] = {}
    for one in batch:
        if one.skips >= PASSES:
            alone.setdefault(get_instance(one), []).append(one)
    for part in alone.values():
        yield part, PATIENCE
