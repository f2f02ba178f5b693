"""The routes by which something comes to instances: signals to one, events to whoever waits for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from ulid import ULID

from korak.core.facts import Delivered
from korak.emitting import MEMBERS, NAME, read_emit
from korak.errors import Conflict, NotFound, refuse_at
from korak.model import ENDED, DeliveryKind, JsonObject
from korak.owners.roles import Verb
from korak.store import emits, instances, signals
from korak.store.database import Connection, Session
from korak.store.emits import Kept
from korak.store.signals import Sending, Sent
from korak_api import greeting
from korak_api.cloudevents import read_event
from korak_api.greeting import hand_out, hand_over
from korak_api.operations import Answer, Body, Call, Operation

MISSED: Final = 20
"""How many instances whose steps were held are looked at right away; the waker looks at the others."""

EXECUTION: Final[JsonObject] = {
    "type": "string",
    "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$",
    "description": "The visit that it is for, as `waiting_for` has it: 409 `wait_over` once that waits for it no more.",
}
SIGNAL: Final = Body(
    {"name": NAME, "payload": {"type": "object"}, "id": NAME, "execution": EXECUTION, "start": greeting.START},
    ("name",),
)
EMIT: Final = Body(
    {"name": NAME, **MEMBERS},
    ("name",),
    unserved=frozenset({"subject"}),
)


async def signal(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/signal (WT-2)."""
    body, ulid = cast("dict[str, Any]", call.body), call.path["ulid"]
    if "start" in body:
        return await greeting.greet(call)
    known = body.get("id") or call.seed
    source_id = known or str(ULID.from_datetime(call.now))
    async with call.resources.database.acquire() as connection:
        row = await instances.get_status(connection, call.owner_scope, ulid)
        if row is None:
            raise NotFound("instance_not_found", key=ulid)
        plans = await call.resources.plans.get(Session(connection), {row["version_id"]})
        before = None if known is None else await signals.get(connection, row["id"], known)
        step = await _find_step(connection, row["id"], body) if before is None else None
    if row["status"] in ENDED:
        if before is not None:  # it may be what ended it: a repeat hears what became of it
            return _tell(before, body["name"])
        raise Conflict("instance_ended", status=row["status"])
    names = plans[row["version_id"]].signals
    if names is not None and body["name"] not in names:
        raise refuse_at("/name", "unknown_signal", name=body["name"])
    if "execution" in body and before is None and step is None:
        raise Conflict("wait_over", name=body["name"])
    sending = Sending(
        row["id"], call.owner_scope, DeliveryKind.SIGNAL, source_id, body["name"], body.get("payload", {}), call.actor
    )
    sent = await _send(call, replace(sending, step_run_id=step), is_exact="execution" in body)
    return _tell(sent, body["name"])


async def _find_step(connection: Connection, instance_id: int, body: dict[str, Any]) -> int | None:
    """The attempt that a signal is for, where it names one visit that waits for it."""
    if "execution" not in body:
        return None
    return await signals.find_waiting(Session(connection), instance_id, body["execution"], body["name"])


def _tell(sent: Sent, name: str) -> Answer:
    if sent.is_discarded:
        raise Conflict("wait_over", name=name)
    return Answer({"delivered": sent.is_taken, "buffered": sent.is_buffered}, 202)


async def _send(call: Call, sending: Sending, *, is_exact: bool) -> Sent:
    """Commit the signal, then hand it out under the lock; where that isn't had, its holder or the waker does.

    Of one that is for one visit alone it is known what became of it before anything is told.
    """
    async with call.resources.database.transaction() as connection:
        is_new = await signals.send(connection, sending, now=call.now)
    if is_exact:
        return await hand_over(call, sending.instance_id, sending.source_id)
    return await hand_out(call, sending.instance_id, sending.source_id, is_new=is_new)


async def emit(call: Call) -> Answer:
    """POST /v1/emit."""
    body = cast("dict[str, Any]", call.body)
    now, resources = call.now, call.resources
    source_id = call.seed or str(ULID.from_datetime(now))
    ttl = resources.settings.events.ttl
    given = {name: value for name, value in body.items() if name != "name"}
    wanted = read_emit(given, body["name"], call.owner_scope, now, source_id=source_id, ttl=ttl)
    wanted = replace(wanted, sender=call.actor)
    async with resources.database.transaction() as connection:
        kept = await emits.keep(Session(connection), wanted)
    matched = kept.matched if kept.matched_at is not None else await _match(call, kept)
    is_kept = wanted.expires_at > now if kept.is_new else kept.is_kept
    return Answer({"matched": matched, "started": [], "kept": is_kept}, 202)


async def _match(call: Call, kept: Kept) -> int:
    match = await call.resources.matcher.match(kept.id, call.resources.clock.now())
    for instance_id in sorted(match.missed)[:MISSED]:
        if await call.resources.commander.answer(instance_id, Delivered()) is None:
            call.resources.informer.remind(instance_id)
    return kept.matched + match.matched


OPERATIONS: Final = (
    Operation(
        "POST",
        "/v1/instances/{ulid}/signal",
        signal,
        "Send a signal to one instance: it fires a wait of its name, or is kept until there is one.",
        Verb.INSTANCES_SIGNAL,
        "Delivery",
        (202,),
        (404, 409, 429),
        SIGNAL,
        is_kept=True,
    ),
    Operation(
        "POST",
        "/v1/emit",
        emit,
        "Emit an event to every wait that it fits; it is kept for waits that come later. Takes CloudEvents too.",
        Verb.EVENTS_EMIT,
        "Emission",
        (202,),
        body=EMIT,
        is_kept=True,
        translate=read_event,
    ),
)
