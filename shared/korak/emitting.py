"""Events as they are emitted: checked, with the time for which they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from korak.model import JsonObject
from korak.starting import count_seconds, refuse_duration
from korak.store.emits import Emit

NAME: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 191}
"""The name of an event or a signal, and the id that its sender gives it."""

LONGEST: Final = timedelta(days=30)
"""How long an event may be kept."""

MEMBERS: Final[Mapping[str, JsonObject]] = {
    "payload": {"type": "object"},
    "id": NAME,
    "ttl": {"$ref": "#/$defs/duration"},
}
"""What the body of an emit may say besides the event's name, wherever it comes from."""


def read_emit(body: JsonObject, name: str, owner_scope: str, now: datetime, *, source_id: str, ttl: timedelta) -> Emit:
    """The event of a body that fits `MEMBERS`; `source_id` and `ttl` are for one that doesn't say.

    Raises Invalid (`invalid_duration`, at /ttl).
    """
    given = cast("dict[str, Any]", body)
    return Emit(
        owner_scope=owner_scope,
        name=name,
        payload=given.get("payload", {}),
        source_id=given.get("id") or source_id,
        created_at=now,
        expires_at=now + (_read_ttl(given["ttl"], now) if given.get("ttl") is not None else ttl),
    )


def _read_ttl(written: Any, now: datetime) -> timedelta:
    ttl = timedelta(seconds=count_seconds(written, now, "UTC", pointer="/ttl"))
    if not timedelta() <= ttl <= LONGEST:
        raise refuse_duration(f"an event is kept for {LONGEST.days} days at most", pointer="/ttl")
    return ttl
