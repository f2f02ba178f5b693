"""The routes of holds: definitions, step types and queues of which nothing begins for now; and of the queues."""

from __future__ import annotations

from typing import Final

import structlog

from korak.errors import NotFound
from korak.model import HoldKind
from korak.owners.roles import Verb
from korak.store import definitions, holds
from korak.store.database import Connection, Session
from korak.store.holds import Hold, Queue
from korak.store.settling import PATIENCE, settle
from korak_api.operations import Answer, Body, Call, Handler, Operation
from korak_api.rendering import Shown, show_owner, show_time

log: structlog.stdlib.BoundLogger = structlog.get_logger()

HOLD: Final = Body(
    {
        "reason": {"type": "string", "minLength": 1, "maxLength": 2000},
        "until": {"type": "string", "format": "date-time"},
    }
)
NOTHING: Final = Body({})
MOST_NAME: Final = 191


def _hold(kind: HoldKind) -> Handler:
    async def hold(call: Call) -> Answer:
        name, reason = _get_name(call), call.body.get("reason")
        until = call.get_later("until")
        async with call.resources.database.transaction() as connection:
            await _check_known(connection, call.owner_scope, kind, name)
            wanted = Hold(
                call.owner_scope,
                kind,
                name,
                call.now,
                reason=reason if isinstance(reason, str) else None,
                until=until,
                held_by=call.actor,
            )
            held = await holds.put(Session(connection), wanted)
        await _settle(call, held)
        return Answer(show_hold(held))

    hold.__doc__ = f"POST a hold of a {kind}: what is in flight goes on, and once it is answered nothing of it begins."
    return hold


async def _check_known(connection: Connection, owner_scope: str, kind: HoldKind, name: str) -> None:
    """A name that nobody knows is a slip: a hold of it would keep nothing."""
    if kind is HoldKind.DEFINITION:
        if await definitions.get(connection, owner_scope, name) is None:
            raise NotFound("definition_not_found", key=name)
    elif not await holds.is_known(Session(connection), owner_scope, kind, name):
        raise NotFound("not_found", what=kind.replace("_", " "), key=name)


async def _settle(call: Call, held: Hold) -> None:
    async with call.resources.database.acquire() as connection:
        is_settled = await settle(Session(connection))
    if not is_settled:
        log.warning("hold_unsettled", kind=held.kind, name=held.name, seconds=PATIENCE)


def _release(kind: HoldKind) -> Handler:
    async def release(call: Call) -> Answer:
        name = _get_name(call)
        async with call.resources.database.transaction() as connection:
            released = await holds.release(Session(connection), call.owner_scope, kind, name, call.now)
        if released is None:
            raise NotFound("not_found", what="hold", key=name)
        return Answer(show_hold(released))

    release.__doc__ = f"POST the end of a hold of a {kind}: what it kept goes on."
    return release


def _get_name(call: Call) -> str:
    name = call.path["name"]
    if len(name) > MOST_NAME:
        raise NotFound("not_found", what="thing of that name", key=name[:100])
    return name


async def list_queues(call: Call) -> Answer:
    """GET /v1/queues."""
    async with call.resources.database.acquire() as connection:
        found = await holds.list_queues(Session(connection), call.now, owner=call.scope_or_all)
    return Answer({"items": [_show_queue(queue) for queue in found], "next": None})


def show_hold(hold: Hold) -> Shown:
    """A hold."""
    return {
        "kind": hold.kind,
        "name": hold.name,
        "owner": show_owner(hold.owner_scope),
        "reason": hold.reason,
        "until": show_time(hold.until),
        "held_at": show_time(hold.held_at),
        "released_at": show_time(hold.released_at),
        "actor": hold.held_by,
    }


def _show_queue(queue: Queue) -> Shown:
    hold = queue.hold
    return {
        "name": queue.name,
        "bound": queue.bound,
        "backlog": queue.backlog,
        "sent": queue.sent,
        "held": queue.held,
        "consumers": queue.consumers,
        "hold": None
        if hold is None
        else {
            "owner": show_owner(hold.owner_scope),
            "reason": hold.reason,
            "until": show_time(hold.until),
            "held_at": show_time(hold.held_at),
        },
    }


PLACES: Final = {
    HoldKind.DEFINITION: "definitions",
    HoldKind.STEP_TYPE: "step-types",
    HoldKind.QUEUE: "queues",
}


def _operate(verb: str, kind: HoldKind, handler: Handler, summary: str) -> Operation:
    return Operation(
        "POST",
        f"/v1/{PLACES[kind]}/{{name}}/{verb}",
        handler,
        summary.format(kind=kind.replace("_", " ")),
        Verb.INSTANCES_COMMAND,
        "Hold",
        problems=(404,),
        body=HOLD if verb == "hold" else NOTHING,
        is_kept=True,
    )


OPERATIONS: Final = (
    *(_operate("hold", kind, _hold(kind), "Begin no step of this {kind} until it is released.") for kind in HoldKind),
    *(_operate("release", kind, _release(kind), "Let the steps of this {kind} go on.") for kind in HoldKind),
    Operation(
        "GET",
        "/v1/queues",
        list_queues,
        "List the queues: what waits in each, and who serves it.",
        Verb.STATS_READ,
        "QueuePage",
    ),
)
