"""The routes that make one run out of another."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ulid import ULID

from korak.core.facts import ForkAsked
from korak.core.opening import Owner
from korak.errors import Conflict, TooLarge, Unavailable
from korak.model import JsonObject, OwnerRole
from korak.owners.roles import Verb
from korak.store import copies
from korak_api.importer import Document
from korak_api.instances import find
from korak_api.operations import Answer, Body, Call, Lines, Operation
from korak_api.standing import show_instance, view_changes

PLACE: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "A completed step outside of containers: its id or its execution's, or a node for its newest visit; "
    "the trigger's node for the beginning.",
}
FORK: Final = Body({"to": PLACE})
LINES: Final = Lines("application/x-ndjson", "Run")


async def fork(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/fork."""
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
    to = call.body.get("to")
    fact = ForkAsked(str(ULID.from_datetime(call.now)), to if isinstance(to, str) else None, call.actor)
    changes = await call.resources.commander.insist(view.instance.id, fact)
    if changes.fork is None:
        raise Unavailable(what="The instance")
    made = view_changes(changes.fork, view.version)
    return Answer(show_instance(made, sees_failures=call.sees_failures, ceilings=call.ceilings), 201)


async def export(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/export."""
    spool = call.resources.spools.open()
    try:
        async for piece in copies.export(call.resources.database, call.owner_scope, call.path["ulid"], call.now):
            spool.write(piece)
    except TooLarge as error:
        spool.close()
        raise Conflict("export_too_large", limit=error.params["limit"]) from None
    except BaseException:
        spool.close()
        raise
    return Answer(stream=spool, media_type=LINES.media_type)


async def bring(call: Call) -> Answer:
    """POST /v1/instances/import."""
    assert call.lines is not None, "the operation takes lines"
    owner = Owner(call.owner_scope, call.reach.owner.type, call.reach.owner.id)
    users = None if OwnerRole.ADMIN in call.credential.roles else frozenset({call.credential.user})
    document = Document(call.lines, owner, call.actor, call.now, users)
    ulid, is_new = await call.resources.importer.bring(document)
    async with call.resources.database.acquire() as connection:
        view = await find(replace(call, path={"ulid": ulid}), connection)
    shown = show_instance(view, sees_failures=call.sees_failures, ceilings=call.ceilings)
    return Answer(shown, 201 if is_new else 200)


OPERATIONS: Final = (
    Operation(
        "GET",
        "/v1/instances/{ulid}/export",
        export,
        "Everything that is known of an instance, one JSON object a line. It holds references to secrets, never their "
        "values.",
        Verb.INSTANCES_COMMAND,
        "Run",
        problems=(404, 409),
    ),
    Operation(
        "POST",
        "/v1/instances/import",
        bring,
        "Bring in an exported instance: an ended one as it was, an open one goes on. It keeps its id where no instance "
        "here has it. The same document again: the instance that it has made.",
        Verb.INSTANCES_COMMAND,
        "Instance",
        statuses=(200, 201),
        problems=(409, 413),
        lines=LINES,
        is_kept=True,
    ),
    Operation(
        "POST",
        "/v1/instances/{ulid}/fork",
        fork,
        "Begin an instance of its own where this one stood: behind its newest completed step, or behind `to`.",
        Verb.INSTANCES_COMMAND,
        "Instance",
        statuses=(201,),
        problems=(404, 409),
        body=FORK,
        is_kept=True,
    ),
)
