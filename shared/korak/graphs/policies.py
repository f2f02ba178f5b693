"""How often, how long and how urgent: the retry, timeout and priority members of a node or of the settings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from korak.graphs.contracts import RetryPolicy
from korak.graphs.durations import compile_duration
from korak.model import Json, JsonObject, Priority

JITTER = 0.1
"""The jitter of a retry that names none (RT-2)."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def read_retry(raw: Json) -> RetryPolicy | None:
    """A written retry; an empty `backoff` stands for the engine's default one. None where nothing is written."""
    if raw is None:
        return None
    written = cast("JsonObject", raw)
    return RetryPolicy(
        max_attempts=cast("int", written["max_attempts"]),
        backoff=tuple(cast("list[Json]", written.get("backoff") or [])),
        jitter=cast("float", written.get("jitter", JITTER)),
    )


def read_seconds(raw: Json) -> float | None:
    """A written duration as seconds, a month as January's; None where nothing is written. Raises Malformed."""
    if raw is None:
        return None
    return (compile_duration(raw).after(_EPOCH, "UTC") - _EPOCH).total_seconds()


def read_priority(raw: Json) -> int | None:
    """A written priority as the database has it; None where nothing is written."""
    return None if raw is None else int(Priority[cast("str", raw).upper()])
