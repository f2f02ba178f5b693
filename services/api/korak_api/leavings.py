"""The routes to what steps leave beside their records: chunks while they stream, artifacts."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from korak.errors import Invalid, Issue, NotFound, StepFailed
from korak.model import ArtifactKind, JsonObject
from korak.owners.roles import Verb
from korak.steps import artifacts as making
from korak.steps.artifacts import Made
from korak.store import artifacts, chunks, instances
from korak.store.chunks import Place
from korak.store.database import Connection
from korak_api.operations import Answer, Body, Call, Operation
from korak_api.parameters import PAGE, Parameter, make_page, read_page
from korak_api.rendering import show_artifact, show_chunk

ARTIFACT: Final = Body(
    {
        "content": {"description": "Any JSON; a string for text, base64 for bytes."},
        "kind": {"type": "string", "enum": list(ArtifactKind)},
        "metadata": {"type": "object"},
    },
    required=("content",),
)
WHOLE: Final = 10
"""Artifacts of a page that has what they hold."""

STEP: Final = Parameter("step", "Only of this node, by its id, or of this visit, by its `execution`.")
AFTER: Final = Parameter("after", "Only chunks with a greater `index`.", "count")
CONTENT: Final = Parameter(
    "content", f"Whether each comes with what it holds; then a page has {WHOLE} at most.", "flag"
)


async def list_chunks(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/chunks."""
    page = read_page(call.query, (str, int), most=call.resources.settings.api.max_page)
    execution, index = page.after or ("", -1)
    place = Place(execution, index, call.query.get("step"), call.query.get("after", -1))
    async with call.resources.database.acquire() as connection:
        instance_id = await find_id(call, connection)
        rows = await chunks.list_chunks(connection, instance_id, place, limit=page.asked)
    items = [show_chunk(row) for row in rows]
    return Answer(make_page(page, rows, items, lambda row: (row["execution_id"], row["index"])))


async def list_artifacts(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/artifacts."""
    with_content = bool(call.query.get("content"))
    page = read_page(call.query, (str,), most=WHOLE if with_content else call.resources.settings.api.max_page)
    after = page.after[0] if page.after else ""
    async with call.resources.database.acquire() as connection:
        instance_id = await find_id(call, connection)
        rows = await artifacts.list_artifacts(
            connection, instance_id, after=after, limit=page.asked, with_content=with_content
        )
    return Answer(make_page(page, rows, [show_artifact(row) for row in rows], lambda row: (row["key"],)))


async def get_artifact(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/artifacts/{key}."""
    async with call.resources.database.acquire() as connection:
        row = await artifacts.get(connection, await find_id(call, connection), call.path["key"])
    if row is None:
        raise _not_there(call)
    return Answer(show_artifact(row))


async def put_artifact(call: Call) -> Answer:
    """PUT /v1/instances/{ulid}/artifacts/{key}."""
    made = _read_artifact(call)
    async with call.resources.database.acquire() as connection:
        instance_id = await find_id(call, connection)
        is_new = await artifacts.put(connection, instance_id, made, call.now)
        row = await artifacts.get(connection, instance_id, made.key)
    if is_new is None or row is None:
        raise _not_there(call)
    return Answer(show_artifact(row), 201 if is_new else 200)


async def drop_artifact(call: Call) -> Answer:
    """DELETE /v1/instances/{ulid}/artifacts/{key}."""
    async with call.resources.database.acquire() as connection:
        if not await artifacts.drop(connection, await find_id(call, connection), call.path["key"]):
            raise _not_there(call)
    return Answer(status=204)


async def find_id(call: Call, connection: Connection) -> int:
    """The row of a request's instance. Raises NotFound, for another owner's too."""
    row = await instances.get_status(connection, call.owner_scope, call.path["ulid"])
    if row is None:
        raise NotFound("instance_not_found", key=call.path["ulid"])
    return int(row["id"])


def _not_there(call: Call) -> NotFound:
    return NotFound("not_found", what="artifact", key=call.path["key"])


def _read_artifact(call: Call) -> Made:
    """The artifact of a body, checked like a step's own. Raises Invalid with pointers into the body."""
    key, body = call.path["key"], call.body
    limit = call.resources.settings.limits.max_artifact_bytes
    try:
        return making.make(key, _read_content(body), kind=body.get("kind"), metadata=body.get("metadata"), limit=limit)
    except StepFailed as refused:
        pointer = str(refused.params["pointer"]).removeprefix("/artifacts").removeprefix(f"/{key}")
        detail: dict[str, Any] = {"detail": f"{refused.params['detail']}"}
        raise Invalid("invalid_request", issues=[Issue("invalid_value", pointer, detail)]) from None


def _read_content(body: JsonObject) -> object:
    content = body["content"]
    if body.get("kind") != ArtifactKind.BYTES:
        return content
    try:
        return base64.b64decode(content if isinstance(content, str) else "-", validate=True)
    except (binascii.Error, ValueError):
        issue = Issue("invalid_value", "/content", {"detail": "Bytes are a string in base64"})
        raise Invalid("invalid_request", issues=[issue]) from None


READ: Final = Verb.INSTANCES_READ
ONE: Final = "/v1/instances/{ulid}"
KEY: Final = f"{ONE}/artifacts/{{key}}"

OPERATIONS: Final = (
    Operation(
        "GET",
        f"{ONE}/chunks",
        list_chunks,
        "List what steps have streamed whose output isn't recorded yet, by visit and index.",
        READ,
        "ChunkPage",
        problems=(404,),
        query=(STEP, AFTER, *PAGE),
    ),
    Operation(
        "GET",
        f"{ONE}/artifacts",
        list_artifacts,
        "List artifacts by their keys.",
        READ,
        "ArtifactPage",
        problems=(404,),
        query=(CONTENT, *PAGE),
    ),
    Operation("GET", KEY, get_artifact, "Read an artifact.", READ, "Artifact", problems=(404,)),
    Operation(
        "PUT",
        KEY,
        put_artifact,
        "Leave an artifact with an instance, or replace one.",
        Verb.INSTANCES_SIGNAL,
        "Artifact",
        (200, 201),
        (404,),
        ARTIFACT,
    ),
    Operation("DELETE", KEY, drop_artifact, "Take an artifact away.", Verb.INSTANCES_COMMAND, None, (204,), (404,)),
)
