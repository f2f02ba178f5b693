"""Debounced starts: the calls of one window come to one start, with the body of the last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, cast

from korak.core.opening import Opening
from korak.errors import Invalid, Issue, Problem
from korak.model import JsonObject
from korak.starting import Started, Wish, count_seconds, refuse_duration
from korak.store import inbox
from korak.store.database import Runner, Session
from korak.store.inbox import Window
from korak.store.starts import Start
from korak_api.operations import Answer, Call
from korak_api.parameters import refuse
from korak_api.rendering import show_time

DEBOUNCE: Final[JsonObject] = {
    "type": "object",
    "description": "Start once no call under this key has come for `wait`, `max_wait` after the first at the latest.",
    "properties": {
        "key": {"type": "string", "minLength": 1, "maxLength": 191},
        "wait": {"$ref": "#/$defs/duration"},
        "max_wait": {"$ref": "#/$defs/duration"},
    },
    "required": ["key", "wait"],
    "additionalProperties": False,
}


async def debounce(call: Call, wish: Wish, *, find: Callable[[Call, Started], Awaitable[Answer]]) -> Answer:
    """Put a start off. It is checked now; one that its Idempotency-Key has started already is answered by `find`."""
    if "wait" in call.query:
        raise refuse("wait", "a debounced start has no instance yet")
    async with call.resources.database.transaction() as connection:
        runner = Session(connection)
        [opened] = await call.resources.opener.open(runner, [wish], call.now)
        if isinstance(opened, Problem):
            raise opened
        known = await _find(runner, opened, call)
        if known is None:
            due_at = await inbox.debounce(runner, _get_window(call, wish, opened), call.now)
            return Answer({"due_at": show_time(due_at)}, 202)
    return await find(call, known)


async def _find(runner: Runner, opened: Opening, call: Call) -> Started | None:
    if opened.digest is None:
        return None
    rows = await runner.fetch("starts_known", keys=[opened.digest], now=call.now)
    if not rows:
        return None
    start = Start(rows[0]["instance_ulid"], False, has_other_body=rows[0]["fingerprint"] != opened.fingerprint)
    return Started(start, 0, None)


def _get_window(call: Call, wish: Wish, opened: Opening) -> Window:
    given = cast("dict[str, Any]", call.body["debounce"])
    zone = opened.version.plan.settings.timezone
    wait = count_seconds(given["wait"], call.now, zone, pointer="/debounce/wait")
    if wait < 0:
        raise refuse_duration("It isn't negative", pointer="/debounce/wait")
    most = None
    if given.get("max_wait") is not None:
        most = count_seconds(given["max_wait"], call.now, zone, pointer="/debounce/max_wait")
        if most < wait:
            raise refuse_duration("It isn't shorter than wait", pointer="/debounce/max_wait")
    _check_key(given["key"])
    return Window(
        owner_scope=call.owner_scope,
        name=wish.key,
        key=given["key"],
        body={name: value for name, value in call.body.items() if name != "debounce"},
        due_at=call.now + timedelta(seconds=wait),
        latest_at=None if most is None else call.now + timedelta(seconds=most),
        fingerprint=wish.fingerprint,
        digest=opened.digest,
        starter_id=wish.starter,
    )


def _check_key(key: str) -> None:
    if not key.strip():
        issue = Issue("invalid_value", "/debounce/key", {"detail": "It isn't blank"})
        raise Invalid("invalid_request", issues=[issue])
