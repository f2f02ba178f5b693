"""The routes that make one run out of another."""

from __future__ import annotations

from typing import Final

from ulid import ULID

from korak.core.facts import ForkAsked
from korak.errors import Unavailable
from korak.model import JsonObject
from korak.owners.roles import Verb
from korak_api.instances import find
from korak_api.operations import Answer, Body, Call, Operation
from korak_api.standing import show_instance, view_changes

PLACE: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "A completed step outside of containers: its id or its execution's, or a node for its newest visit; "
    "the trigger's node for the beginning.",
}
FORK: Final = Body({"to": PLACE})


async def fork(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/fork."""
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
    to = call.body.get("to")
    fact = ForkAsked(str(ULID.from_datetime(call.now)), to if isinstance(to, str) else None, call.actor)
    changes = await call.resources.commander.answer(view.instance.id, fact)
    if changes is None or changes.fork is None:
        raise Unavailable(what="The instance")
    made = view_changes(changes.fork, view.version)
    return Answer(show_instance(made, sees_failures=call.sees_failures, ceilings=call.ceilings), 201)


OPERATIONS: Final = (
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
