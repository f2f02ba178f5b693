"""What the API answers of holds and queues, as types."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

HoldKind: TypeAlias = Literal["definition", "step_type", "queue"]


class Hold(TypedDict):
    """What is held, whose (None: the application's), why and until when; `released_at` once it is over."""

    kind: HoldKind
    name: str
    owner: str | None
    reason: str | None
    until: str | None
    held_at: str
    released_at: str | None
    actor: dict[str, Any] | None


class Queue(TypedDict):
    """A queue: how many ids its broker may hold, what of it waits, who serves it, and its hold.

    `backlog` is ready and not sent, `sent` is sent and not claimed, `held` is what holds keep.
    """

    name: str
    bound: int
    backlog: int
    sent: int
    held: int
    consumers: int
    hold: dict[str, Any] | None
