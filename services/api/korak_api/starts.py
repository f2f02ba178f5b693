"""The route that starts instances."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import Any, cast

from ulid import ULID

from korak.errors import Invalid, NotFound
from korak.graphs.hygiene import canonical
from korak.model import JsonObject, Priority
from korak.owners.roles import Verb
from korak_api.asking import get_view
from korak_api.operations import Answer, Body, Call, Operation
from korak_api.parameters import WAIT, refuse
from korak_api.problems import StartRefused
from korak_api.requests import read_header
from korak_api.standing import show_instance, view_changes
from korak_api.starting import Started, Wish

MAX_KEY = 191
"""Characters of an Idempotency-Key."""

PRIORITIES = tuple(priority.name.lower() for priority in Priority)

START = Body(
    {
        "input": {"type": "object", "description": "What the trigger's `inputs` ask for."},
        "labels": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 191}, "maxItems": 20},
        "priority": {"enum": list(PRIORITIES)},
        "version": {
            "type": ["integer", "string"],
            "description": "Its number, or the checksum of its graph.",
            "minimum": 1,
            "maximum": 2**31 - 1,
            "pattern": "^[0-9a-f]{64}$",
        },
        "execution_timeout": {"$ref": "#/$defs/duration"},
    },
    unserved=frozenset({"id", "on_open", "on_closed", "subject", "on_behalf_of", "run_timeout", "debounce"}),
)


async def start(call: Call) -> Answer:
    """POST /v1/definitions/{key}/start."""
    wish = _get_wish(call)
    seconds = read_wait(call)
    with ExitStack() as stack:
        watch = stack.enter_context(call.resources.waiter.watch(wish.ulid, is_new=True)) if seconds else None
        started = await call.resources.starts.start(wish)
        _refuse(call, started)
        if seconds and not started.start.is_created:
            watch = stack.enter_context(call.resources.waiter.watch(started.start.ulid))
        if watch is not None:
            await watch.wait(seconds)
    shown = await _show(call, started, is_stale=bool(seconds))
    body: JsonObject = {"instance": shown, "created": started.start.is_created}
    if started.start.has_other_body:
        body["input_differs"] = True
    return Answer(body, 201 if started.start.is_created else 200)


def read_wait(call: Call) -> float:
    """For how long a request waits for an end."""
    seconds = float(call.query.get("wait", 0.0))
    most = call.resources.settings.api.wait_max
    if seconds > most:
        raise refuse("wait", f"it is {most:g} seconds at most")
    return seconds


def _get_wish(call: Call) -> Wish:
    body = cast("dict[str, Any]", call.body)
    priority = body.get("priority")
    return Wish(
        ulid=str(ULID.from_datetime(call.now)),
        owner=call.reach.owner,
        key=call.path["key"],
        version=body.get("version"),
        input=body.get("input", {}),
        fingerprint=hashlib.sha256(canonical(body)).hexdigest(),
        labels=tuple(body.get("labels", ())),
        priority=None if priority is None else int(Priority[priority.upper()]),
        execution_timeout=body.get("execution_timeout"),
        starter=call.credential.user,
        trigger_key=read_header("Idempotency-Key", call.headers.get("idempotency-key"), MAX_KEY),
    )


def _refuse(call: Call, started: Started) -> None:
    start = started.start
    if start.refusal is not None:
        raise StartRefused(start.ulid, start.refusal.limit, start.refusal.retry_after)
    if start.has_other_body and "handling=strict" in call.headers.get("prefer", "").replace(" ", "").lower():
        raise Invalid("idempotency_key_reused")


async def _show(call: Call, started: Started, *, is_stale: bool) -> JsonObject:
    if started.changes is not None and not is_stale:
        return show_instance(
            view_changes(started.changes, started.version), sees_failures=call.sees_failures, ceilings=call.ceilings
        )
    async with call.resources.database.acquire() as connection:
        view = await get_view(call, connection, started.start.ulid)
    if view is None:
        raise NotFound("instance_not_found", key=started.start.ulid)
    return show_instance(view, sees_failures=call.sees_failures, ceilings=call.ceilings)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/definitions/{key}/start",
        start,
        "Start an instance. Under an Idempotency-Key that started one before, that one is answered.",
        Verb.INSTANCES_START,
        "Start",
        statuses=(201, 200),
        problems=(404, 409, 429),
        body=START,
        query=(WAIT,),
        headers={
            "Idempotency-Key": "Known for 30 days: a repeat starts nothing.",
            "Prefer": "`handling=strict`: a repeat with another body is a problem.",
        },
    ),
)
