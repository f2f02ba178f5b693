"""The routes that make one run out of another."""

from __future__ import annotations

import hashlib
from typing import Final, cast

from ulid import ULID

from korak.core.arriving import Arrival
from korak.core.exporting import FORMAT, write_document
from korak.core.facts import ForkAsked
from korak.core.importing import count_names, import_run
from korak.core.opening import Owner, Version
from korak.errors import Conflict, NotFound, Unavailable
from korak.graphs.hygiene import canonical
from korak.model import JsonObject
from korak.owners.roles import Verb
from korak.policy import get_policy
from korak.store import copies as stored
from korak.store.database import Session
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
ROWS: Final = ("steps", "scopes", "waits", "signals", "events", "failures", "artifacts")
VERSION: Final = ("key", "number", "label", "checksum", "graph")
FORK: Final = Body({"to": PLACE})


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


IMPORT: Final = Body(
    {
        "format": {"const": FORMAT},
        "exported_at": {"type": "string"},
        "definition": {
            "type": "object",
            "properties": {"key": {"type": "string"}, "checksum": {"type": "string"}},
            "required": ["key", "checksum"],
        },
        "instance": {"type": "object"},
        **{name: {"type": "array", "items": {"type": "object"}} for name in ROWS},
    },
    required=("format", "exported_at", "definition", "instance", *ROWS),
)


async def export(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/export."""
    found = await stored.load(call.resources.database, call.owner_scope, call.path["ulid"])
    if found is None:
        raise NotFound("instance_not_found", key=call.path["ulid"])
    contents, version = found
    contracts = hashlib.sha256(canonical(version["contracts"])).hexdigest()
    definition = {**{name: version[name] for name in VERSION}, "contracts": contracts}
    return Answer(write_document(contents, definition, call.now))


async def bring(call: Call) -> Answer:
    """POST /v1/instances/import."""
    resources, body = call.resources, call.body
    version, number = await _find_version(call, cast("JsonObject", body["definition"]))
    ulids = sorted(str(ULID.from_datetime(call.now)) for _ in range(count_names(body)))
    owner = Owner(call.owner_scope, call.reach.owner.type, call.reach.owner.id)
    arrival = Arrival(version, owner, call.actor, iter(ulids), get_policy(resources.settings), call.now)
    changes = import_run(body, arrival)
    await resources.importer.write(changes)
    view = view_changes(changes, number)
    return Answer(show_instance(view, sees_failures=call.sees_failures, ceilings=call.ceilings), 201)


async def _find_version(call: Call, definition: JsonObject) -> tuple[Version, int]:
    key, checksum = str(definition["key"]), str(definition["checksum"])
    async with call.resources.database.acquire() as connection:
        runner = Session(connection)
        rows = await runner.fetch("starts_resolve", wanted=[(0, call.owner_scope, key, None, checksum)])
        if not rows or rows[0]["version_id"] is None:
            raise Conflict("version_missing", key=key, checksum=checksum)
        [row] = rows
        plans = await call.resources.plans.get(runner, [row["version_id"]])
    version = Version(row["definition_id"], row["version_id"], row["checksum"], plans[row["version_id"]])
    return version, row["number"]


OPERATIONS: Final = (
    Operation(
        "GET",
        "/v1/instances/{ulid}/export",
        export,
        "Everything that is known of an instance, as one document. It holds references to secrets, never their values.",
        Verb.INSTANCES_COMMAND,
        "Run",
        problems=(404,),
    ),
    Operation(
        "POST",
        "/v1/instances/import",
        bring,
        "Bring in an exported instance as a new one: an ended one as it was, an open one goes on.",
        Verb.INSTANCES_COMMAND,
        "Instance",
        statuses=(201,),
        problems=(409, 413),
        body=IMPORT,
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
