"""The routes by which something comes to instances: signals to one, events to whoever waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, cast

from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import Delivered
from korak.errors import Conflict, Invalid, Issue, NotFound
from korak.graphs.durations import compile_duration
from korak.graphs.paths import Malformed
from korak.model import ENDED, DeliveryKind, JsonObject
from korak.owners.roles import Verb
from korak.store import emits, instances, signals
from korak.store.database import Session
from korak.store.emits import Emit, Kept
from korak.store.signals import Sending, Sent
from korak_api.cloudevents import read_event
from korak_api.operations import Answer, Body, Call, Operation

NAME: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 191}
LONGEST: Final = timedelta(days=30)
"""How long an event may be kept."""

MISSED: Final = 20
"""How many instances whose steps were held are looked at right away; the waker looks at the others."""

SIGNAL: Final = Body(
    {"name": NAME, "payload": {"type": "object"}, "id": NAME}, ("name",), unserved=frozenset({"start"})
)
EMIT: Final = Body(
    {"name": NAME, "payload": {"type": "object"}, "id": NAME, "ttl": {"$ref": "#/$defs/duration"}},
    ("name",),
    unserved=frozenset({"subject"}),
)


async def signal(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/signal (WT-2)."""
    body, ulid = cast("dict[str, Any]", call.body), call.path["ulid"]
    async with call.resources.database.acquire() as connection:
        row = await instances.get_status(connection, call.owner_scope, ulid)
        if row is None:
            raise NotFound("instance_not_found", key=ulid)
        plans = await call.resources.plans.get(Session(connection), {row["version_id"]})
        before = await signals.get(connection, row["id"], body["id"]) if "id" in body else None
    if row["status"] in ENDED:
        if before is not None:  # it may be what ended it: a repeat hears what became of it
            return _tell(before)
        raise Conflict("instance_ended", status=row["status"])
    names = plans[row["version_id"]].signals
    if names is not None and body["name"] not in names:
        raise Invalid("unknown_signal", name=body["name"])
    source_id = body.get("id") or call.seed or str(ULID.from_datetime(call.now))
    sending = Sending(
        row["id"], call.owner_scope, DeliveryKind.SIGNAL, source_id, body["name"], body.get("payload", {}), call.actor
    )
    return _tell(await _send(call, sending))


def _tell(sent: Sent) -> Answer:
    return Answer({"delivered": sent.is_taken, "buffered": sent.is_buffered}, 202)


async def _send(call: Call, sending: Sending) -> Sent:
    """Commit the signal, then hand it out under the lock; where that isn't had, its holder or the waker does."""
    async with call.resources.database.transaction() as connection:
        is_new = await signals.send(connection, sending, now=call.now)
    changes = await call.resources.commander.answer(sending.instance_id, Delivered()) if is_new else None
    async with call.resources.database.acquire() as connection:
        sent = await signals.get(connection, sending.instance_id, sending.source_id) or Sent()
    if sent.is_taken or sent.is_buffered:
        return sent
    return Sent(is_taken=_has_woken(changes), is_buffered=not _has_woken(changes))


def _has_woken(changes: Changes | None) -> bool:
    """Whether a step that waits for the signal was made ready, to take it in its claim."""
    return changes is not None and bool(changes.ready)


async def emit(call: Call) -> Answer:
    """POST /v1/emit."""
    body = cast("dict[str, Any]", call.body)
    now, resources = call.now, call.resources
    wanted = Emit(
        owner_scope=call.owner_scope,
        name=body["name"],
        payload=body.get("payload", {}),
        source_id=body.get("id") or call.seed or str(ULID.from_datetime(now)),
        created_at=now,
        expires_at=now + _get_ttl(call),
        sender=call.actor,
    )
    async with resources.database.transaction() as connection:
        kept = await emits.keep(Session(connection), wanted)
    matched = kept.matched if kept.matched_at is not None else await _match(call, kept)
    is_kept = wanted.expires_at > now if kept.is_new else kept.is_kept
    return Answer({"matched": matched, "started": [], "kept": is_kept}, 202)


async def _match(call: Call, kept: Kept) -> int:
    match = await call.resources.matcher.match(kept.id, call.resources.clock.now())
    for instance_id in sorted(match.missed)[:MISSED]:
        await call.resources.commander.answer(instance_id, Delivered())
    return kept.matched + match.matched


def _get_ttl(call: Call) -> timedelta:
    written = call.body.get("ttl")
    if written is None:
        return call.resources.settings.events.ttl
    try:
        ttl = compile_duration(written).after(call.now, "UTC") - call.now
    except (Malformed, OverflowError) as error:
        detail = error.message if isinstance(error, Malformed) else "it ends after all times"
        raise _refuse_ttl(detail) from None
    if not timedelta() <= ttl <= LONGEST:
        raise _refuse_ttl(f"an event is kept for {LONGEST.days} days at most")
    return ttl


def _refuse_ttl(detail: str) -> Invalid:
    return Invalid("invalid_request", issues=[Issue("invalid_duration", "/ttl", {"detail": detail})])


OPERATIONS: Final = (
    Operation(
        "POST",
        "/v1/instances/{ulid}/signal",
        signal,
        "Send a signal to one instance: it fires a wait of its name, or is kept until there is one.",
        Verb.INSTANCES_SIGNAL,
        "Delivery",
        (202,),
        (404, 409),
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
