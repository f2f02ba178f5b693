"""Signals that start what they are for: the run and the signal in front of it are committed together."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final, cast

from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import Delivered
from korak.core.identity import Greeting, Identity
from korak.errors import Invalid, Issue, Problem, Unavailable
from korak.loop import wait
from korak.model import JsonObject, OnClosed, OnOpen
from korak.owners.roles import Verb, require
from korak.starting import ID, MEMBERS, Wish, read_wish
from korak.store import signals
from korak.store.signals import Sent
from korak_api.operations import Answer, Call
from korak_api.parameters import refuse
from korak_api.problems import StartRefused
from korak_api.settling import LOOK, PATIENCE, settle

START: Final[JsonObject] = {
    "type": "object",
    "description": "Start first where no run of the address's id is open: only with {definition}~{id}.",
    "properties": {name: member for name, member in MEMBERS.items() if name not in ("id", "on_open")},
    "additionalProperties": False,
}


async def greet(call: Call) -> Answer:
    """Send a signal to the open run of an id, or to one that is started for it."""
    require(call.credential, Verb.INSTANCES_START)
    wish = _get_wish(call)
    try:
        started = await settle(call, wish)
    except Problem as refused:
        raise _point(refused) from None
    start, greeting = started.start, wish.greeting
    if start.refusal is not None:
        raise StartRefused(start.ulid, start.refusal.limit, start.refusal.retry_after)
    assert start.instance_id is not None
    assert greeting is not None
    sent = await hand_out(call, start.instance_id, greeting.source_id, is_new=True)
    told: JsonObject = {"delivered": sent.is_taken, "buffered": sent.is_buffered}
    return Answer({**told, "instance": start.ulid, "created": start.is_created}, 202)


def _get_wish(call: Call) -> Wish:
    body = cast("dict[str, Any]", call.body)
    if call.address is None:
        issue = Issue("invalid_value", "/start", {"detail": "It starts only what is addressed as {definition}~{id}"})
        raise Invalid("invalid_request", issues=[issue])
    if "execution" in body:
        issue = Issue("invalid_value", "/execution", {"detail": "What is started has no visit that waits yet"})
        raise Invalid("invalid_request", issues=[issue])
    key, business_id = call.address
    if re.fullmatch(ID, business_id) is None:
        raise refuse("id", "it has letters, digits and ._:- (191 at most)")
    given = {name: value for name, value in body["start"].items() if name != "on_closed"}
    source_id = body.get("id") or call.seed or str(ULID.from_datetime(call.now))
    ulid = str(ULID.from_datetime(call.now))
    wish = read_wish(given, ulid=ulid, owner=call.reach.owner, key=key, starter=call.credential.user)
    return replace(
        wish,
        identity=Identity(business_id, OnOpen.USE_EXISTING, OnClosed(body["start"].get("on_closed", OnClosed.ALLOW))),
        greeting=Greeting(body["name"], body.get("payload", {}), source_id, call.actor),
    )


def _point(refused: Problem) -> Problem:
    """What is wrong with the start stands in the request's `start`; the name of the signal beside it."""
    if refused.code == "unknown_signal":
        return refused
    refused.issues = tuple(issue.at("/start") for issue in refused.issues)
    return refused


async def hand_out(call: Call, instance_id: int, source_id: str, *, is_new: bool) -> Sent:
    """Have an instance take a signal that is committed, and tell what became of it."""
    changes = await call.resources.commander.answer(instance_id, Delivered()) if is_new else None
    if is_new and changes is None:
        call.resources.informer.remind(instance_id)
    return _judge(await _look(call, instance_id, source_id), changes)


async def hand_over(call: Call, instance_id: int, source_id: str) -> Sent:
    """The same for a signal whose fate must be known: under the lock, or by whoever holds that, or as the step that it
    has woken is claimed.

    Raises Unavailable where it isn't known in time; the signal is handed out all the same, and a repeat hears of it.
    """
    clock = call.resources.clock
    deadline = clock.monotonic() + PATIENCE
    is_decided = False
    while True:
        is_decided = is_decided or await call.resources.commander.answer(instance_id, Delivered()) is not None
        sent = await _look(call, instance_id, source_id)
        if sent != Sent():
            return sent
        if clock.monotonic() >= deadline:
            raise Unavailable(what="The instance")
        await wait(LOOK)


async def _look(call: Call, instance_id: int, source_id: str) -> Sent:
    async with call.resources.database.acquire() as connection:
        return await signals.get(connection, instance_id, source_id) or Sent()


def _judge(sent: Sent, changes: Changes | None) -> Sent:
    if sent != Sent():
        return sent
    return Sent(is_taken=_has_woken(changes), is_buffered=not _has_woken(changes))


def _has_woken(changes: Changes | None) -> bool:
    """Whether a step that waits for the signal was made ready, to take it in its claim."""
    return changes is not None and bool(changes.ready)
