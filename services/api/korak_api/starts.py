"""The route that starts instances."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from ulid import ULID

from korak.errors import Invalid, NotFound
from korak.model import JsonObject
from korak.owners.roles import Verb
from korak.starting import MEMBERS, Started, Wish, read_wish
from korak_api import debouncing
from korak_api.asking import get_view
from korak_api.operations import Answer, Body, Call, Operation
from korak_api.parameters import WAIT, refuse
from korak_api.problems import StartRefused
from korak_api.requests import read_header
from korak_api.settling import settle
from korak_api.standing import show_instance, view_changes

MAX_KEY: Final = 191
"""Characters of an Idempotency-Key."""

START: Final = Body(
    {**MEMBERS, "debounce": debouncing.DEBOUNCE}, unserved=frozenset({"subject", "on_behalf_of", "run_timeout"})
)


async def start(call: Call) -> Answer:
    """POST /v1/definitions/{key}/start."""
    wish = _get_wish(call)
    seconds = read_wait(call)
    if "debounce" in call.body:
        return await debouncing.debounce(call, wish, find=_answer)
    with ExitStack() as stack:
        watch = stack.enter_context(call.resources.waiter.watch(wish.ulid, is_new=True)) if seconds else None
        started = await settle(call, wish)
        _refuse(call, started)
        if seconds and not started.start.is_created:
            watch = stack.enter_context(call.resources.waiter.watch(started.start.ulid))
        if watch is not None:
            await watch.wait(seconds)
    return await _answer(call, started, is_stale=bool(seconds))


async def _answer(call: Call, started: Started, *, is_stale: bool = False) -> Answer:
    _refuse(call, started)
    shown = await _show(call, started, is_stale=is_stale)
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
    body = {name: value for name, value in call.body.items() if name != "debounce"}
    ulid = str(ULID.from_datetime(call.now))
    wish = read_wish(body, ulid=ulid, owner=call.reach.owner, key=call.path["key"], starter=call.credential.user)
    given = read_header("Idempotency-Key", call.headers.get("idempotency-key"), MAX_KEY)
    return replace(wish, trigger_key=given)


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
        "Start an instance, or find the one that its Idempotency-Key or its id has; debounced, start it later.",
        Verb.INSTANCES_START,
        "Start",
        statuses=(201, 200, 202),
        others={202: "Debounced"},
        problems=(404, 409, 429),
        body=START,
        query=(WAIT,),
        headers={
            "Idempotency-Key": "Known for 30 days: a repeat starts nothing.",
            "Prefer": "`handling=strict`: a repeat with another body is a problem.",
        },
    ),
)
