"""Durations and times that stand in a config as values: read when a step parks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from korak.errors import StepFailed
from korak.graphs.durations import compile_duration
from korak.graphs.paths import Malformed
from korak.model import Json
from korak.steps.waits import Due

LONGEST = 40

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""What a written duration is tried on."""


def read_duration(raw: Json, *, pointer: str, now: datetime, timezone: str) -> datetime:
    """When a duration that begins `now` is over. Raises `invalid_input`."""
    try:
        return compile_duration(raw).after(now, timezone)
    except (Malformed, OverflowError, ValueError) as error:
        raise StepFailed("invalid_input", pointer=pointer, detail=_say(error, "a duration is expected")) from error


def read_time(raw: Json, *, pointer: str, timezone: str) -> datetime:
    """An ISO 8601 time or date; one without an offset is a wall clock's in `timezone`. Raises `invalid_input`."""
    try:
        if not isinstance(raw, str) or len(raw) > LONGEST:
            raise ValueError("not a time")
        time = datetime.fromisoformat(raw)
        return (time if time.tzinfo else time.replace(tzinfo=ZoneInfo(timezone))).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise StepFailed("invalid_input", pointer=pointer, detail="an ISO 8601 time is expected") from error


def read_due(raw: Json, *, pointer: str, now: datetime, timezone: str) -> Due:
    """A duration as it is written, or a time (WT-12). Raises `invalid_input`."""
    if isinstance(raw, str) and raw[:1].isdigit():
        return read_time(raw, pointer=pointer, timezone=timezone)
    read_duration(raw, pointer=pointer, now=now, timezone=timezone)
    return raw


def at_least(raw: Json, floor: timedelta, *, pointer: str, now: datetime, timezone: str) -> Json:
    """A duration, or `floor` in seconds where it is shorter. Raises `invalid_input`."""
    is_shorter = read_duration(raw, pointer=pointer, now=now, timezone=timezone) < now + floor
    return floor.total_seconds() if is_shorter else raw


def _say(error: Any, expected: str) -> str:
    return error.message if isinstance(error, Malformed) else expected
