"""The deadline of a run: it stands still while the run is paused, with what is left, and begins anew with a retry."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from korak.core.draft import Draft
from korak.core.rows import Instance

DEADLINE: Final = "deadline"
"""The part of a run's bookkeeping that tells how many seconds a pause has left of its time."""

MOST: Final = 100 * 366 * 86_400.0
"""Seconds that a run has at most."""


def stop(draft: Draft) -> None:
    """The run is paused: keep what is left."""
    instance = draft.instance
    if instance.deadline_at is not None:
        draft.set_walk(DEADLINE, {"left": max(0.0, (instance.deadline_at - draft.now).total_seconds())})
        instance.deadline_at = None


def go_on(draft: Draft) -> None:
    """It is resumed: what was left is what it has, and one that began paused has its whole time."""
    instance, left = draft.instance, get_left(draft.instance)
    if instance.deadline_at is None and left is not None:
        instance.deadline_at = draft.now + timedelta(seconds=left)
        _forget(draft)


def begin_anew(draft: Draft) -> None:
    """It is open again after its end: it has its whole time, from its resume on where it is paused."""
    instance = draft.instance
    _forget(draft)
    if instance.deadline_seconds is not None and instance.paused_at is None:
        instance.deadline_at = draft.now + timedelta(seconds=instance.deadline_seconds)


def get_left(instance: Instance) -> float | None:
    """The seconds that a run has from its resume on; None where it has no deadline."""
    whole, kept = instance.deadline_seconds, (instance.walk or {}).get(DEADLINE)
    left = kept.get("left") if isinstance(kept, dict) else None
    if not isinstance(left, (int, float)):
        return whole
    return min(max(0.0, left), MOST if whole is None else whole)


def get_whole(instance: Instance) -> float:
    """The seconds that a run with a deadline has in all."""
    whole = instance.deadline_seconds
    if whole is None and instance.deadline_at is not None:
        whole = (instance.deadline_at - (instance.started_at or instance.created_at)).total_seconds()
    return whole or 0.0


def _forget(draft: Draft) -> None:
    if draft.get_walk(DEADLINE):
        draft.set_walk(DEADLINE, {})
