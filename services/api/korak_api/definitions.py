"""The routes of definitions."""

from __future__ import annotations

from typing import Any, cast

from korak.errors import Issue, NotFound
from korak.graphs.document import SCHEMA, read_graph
from korak.graphs.inputs import get_input_schema
from korak.model import DefinitionStatus, JsonObject
from korak.owners.roles import Verb
from korak.store import definitions, versions
from korak.store.database import Connection
from korak.store.definitions import Definition
from korak.store.versions import Version
from korak_api import publishing
from korak_api.operations import Answer, Body, Call, Handler, Operation
from korak_api.parameters import PAGE, Parameter, make_page, read_page
from korak_api.problems import show_issues
from korak_api.rendering import show_definition, show_definition_head, show_version

GRAPH = Body({"graph": {"type": "object", "description": "A graph document, see /v1/schema/graph."}}, ("graph",))
NOTHING = Body({})
ONLY_NEWER: JsonObject = {"type": "boolean", "description": "Refuse a version that is older than the current one."}
STATUS = Parameter("status", "Only these.", is_list=True, choices=tuple(DefinitionStatus))
PUBLISH = Parameter("publish", "Publish it in the same step: both, or neither.", "flag")
IF_MATCH = {"If-Match": "The checksum of what is overwritten; left out where the key is new."}


async def create(call: Call) -> Answer:
    """POST /v1/definitions."""
    async with call.resources.database.transaction() as connection:
        made = await publishing.create(call, connection, _get_document(call))
    return _answer(made, status=201)


async def save(call: Call) -> Answer:
    """PUT /v1/definitions/{key}."""
    key = call.path["key"]
    async with call.resources.database.transaction() as connection:
        saved, is_new = await publishing.save(call, connection, key, _get_document(call))
        warnings: tuple[Issue, ...] | None = None
        if call.query.get("publish"):
            saved, warnings = await publishing.publish(call, connection, key)
    return _answer(saved, status=201 if is_new else 200, warnings=warnings)


async def validate(call: Call) -> Answer:
    """POST /v1/definitions/validate."""
    report = publishing.check(call, _get_document(call))
    return Answer({"valid": True, "errors": [], "warnings": show_issues(report.warnings)})


async def publish(call: Call) -> Answer:
    """POST /v1/definitions/{key}/publish."""
    async with call.resources.database.transaction() as connection:
        published, warnings = await publishing.publish(call, connection, call.path["key"])
    return _answer(published, warnings=warnings)


async def archive(call: Call) -> Answer:
    """POST /v1/definitions/{key}/archive."""
    async with call.resources.database.transaction() as connection:
        return _answer(await publishing.archive(call, connection, call.path["key"]))


async def restore(call: Call) -> Answer:
    """POST /v1/definitions/{key}/restore."""
    async with call.resources.database.transaction() as connection:
        return _answer(await publishing.restore(call, connection, call.path["key"]))


async def delete(call: Call) -> Answer:
    """DELETE /v1/definitions/{key}: the key stays taken, what runs goes on."""
    async with call.resources.database.transaction() as connection:
        standing = await publishing.lock(call, connection, call.path["key"])
        await definitions.change(connection, standing.id, now=call.now, deleted_at=call.now)
    return Answer(status=204)


async def activate(call: Call) -> Answer:
    """POST /v1/definitions/{key}/versions/{number}/activate."""
    key, number = call.path["key"], _get_number(call)
    only_newer = call.body.get("only_newer") is True
    async with call.resources.database.transaction() as connection:
        return _answer(await publishing.activate(call, connection, key, number, only_newer=only_newer))


async def add_version(call: Call) -> Answer:
    """POST /v1/definitions/{key}/versions."""
    async with call.resources.database.transaction() as connection:
        frozen = await publishing.freeze_version(call, connection, call.path["key"], _get_document(call))
    shown = show_version(frozen.key, frozen.version)
    return Answer({**shown, "warnings": show_issues(frozen.warnings)}, 201 if frozen.is_new else 200)


async def list_definitions(call: Call) -> Answer:
    """GET /v1/definitions."""
    page = read_page(call.query, (str, str), most=call.resources.settings.api.max_page)
    async with call.resources.database.acquire() as connection:
        rows = await definitions.list_definitions(
            connection,
            call.scope_or_all,
            statuses=call.query.get("status", ()),
            after=cast("tuple[str, str] | None", tuple(page.after) or None),
            limit=page.asked,
        )
    items = [show_definition_head(row) for row in rows]
    return Answer(make_page(page, rows, items, lambda row: (row.key, row.owner_scope)))


async def get(call: Call) -> Answer:
    """GET /v1/definitions/{key}."""
    async with call.resources.database.acquire() as connection:
        return _answer(await find(call, connection))


async def list_versions(call: Call) -> Answer:
    """GET /v1/definitions/{key}/versions."""
    page = read_page(call.query, (int,), most=call.resources.settings.api.max_page)
    async with call.resources.database.acquire() as connection:
        found = await find(call, connection)
        before = page.after[0] if page.after else None
        rows = await versions.list_versions(connection, found.id, before=before, limit=page.asked)
    items = [show_version(found.key, row) for row in rows]
    return Answer(make_page(page, rows, items, lambda row: (row.number,)))


async def get_version(call: Call) -> Answer:
    """GET /v1/definitions/{key}/versions/{number}."""
    async with call.resources.database.acquire() as connection:
        found = await find(call, connection)
        version = await _get_version(connection, found, _get_number(call))
    return Answer({**show_version(found.key, version), "graph": version.graph})


async def export(call: Call) -> Answer:
    """GET /v1/definitions/{key}/export: the published graph, without anything of the owner's."""
    async with call.resources.database.acquire() as connection:
        found = await find(call, connection)
        graph, checksum = found.graph, found.checksum
        if found.version is not None:
            version = await _get_version(connection, found, found.version)
            graph, checksum = version.graph, version.checksum
    return Answer({"schema": SCHEMA, "key": found.key, "graph": graph, "checksum": checksum})


async def find(call: Call, connection: Connection) -> Definition:
    """The definition of a request: the owner's, else the application's. Raises NotFound."""
    found = await definitions.get(connection, call.owner_scope, call.path["key"])
    if found is None:
        raise NotFound("definition_not_found", key=call.path["key"])
    return found


async def _get_version(connection: Connection, found: Definition, number: int) -> Version:
    version = await versions.get_version(connection, found.id, number)
    if version is None:
        raise NotFound("version_not_found", key=found.key, number=number)
    return version


def _get_number(call: Call) -> int:
    text = call.path["number"]
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise NotFound("version_not_found", key=call.path["key"], number=text[:20])
    return int(text)


def _get_document(call: Call) -> JsonObject:
    return cast("JsonObject", call.body["graph"])


def _answer(definition: Definition, status: int = 200, *, warnings: tuple[Issue, ...] | None = None) -> Answer:
    shown = show_definition(definition, input_schema=_get_inputs(definition.graph))
    if warnings is not None:
        shown["warnings"] = show_issues(warnings)
    return Answer(shown, status, {"etag": f'"{definition.checksum}"'})


def _get_inputs(document: Any) -> JsonObject | None:
    trigger = read_graph(document).trigger
    return None if trigger is None else get_input_schema(trigger.config)


READ, WRITE = Verb.DEFINITIONS_READ, Verb.DEFINITIONS_WRITE
ONE = "/v1/definitions/{key}"


def _change(path: str, handler: Handler, summary: str, verb: Verb, body: Body = NOTHING) -> Operation:
    return Operation(
        "POST", f"{ONE}/{path}", handler, summary, verb, "Definition", problems=(404, 409), body=body, is_kept=True
    )


def _read(path: str, handler: Handler, summary: str, answer: str, query: tuple[Parameter, ...] = ()) -> Operation:
    return Operation("GET", f"{ONE}{path}", handler, summary, READ, answer, problems=(404,), query=query)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/definitions",
        list_definitions,
        "List definitions by key.",
        READ,
        "DefinitionPage",
        query=(STATUS, *PAGE),
    ),
    Operation(
        "POST",
        "/v1/definitions",
        create,
        "Make a definition with its draft.",
        WRITE,
        "Definition",
        (201,),
        (409,),
        GRAPH,
        is_kept=True,
    ),
    Operation(
        "POST",
        "/v1/definitions/validate",
        validate,
        "Check a graph against every rule of publish.",
        READ,
        "Validation",
        body=GRAPH,
    ),
    Operation(
        "PUT",
        ONE,
        save,
        "Save the draft of a definition, or make one.",
        WRITE,
        "Definition",
        (200, 201),
        (409, 412, 428),
        GRAPH,
        (PUBLISH,),
        IF_MATCH,
    ),
    Operation(
        "DELETE",
        ONE,
        delete,
        "Delete a definition; its key stays taken, what runs goes on.",
        WRITE,
        None,
        (204,),
        (404,),
    ),
    _read("", get, "Read a definition with its graph; the ETag is its checksum.", "Definition"),
    _read("/versions", list_versions, "List versions, the newest first.", "VersionPage", PAGE),
    _read("/versions/{number}", get_version, "Read a version with its graph.", "Version"),
    _read("/export", export, "The published graph with its checksum.", "Export"),
    _change("publish", publish, "Freeze the draft as the next version.", Verb.DEFINITIONS_PUBLISH),
    _change("archive", archive, "Take no more starts.", Verb.DEFINITIONS_ARCHIVE),
    _change("restore", restore, "Take starts again.", Verb.DEFINITIONS_ARCHIVE),
    _change(
        "versions/{number}/activate",
        activate,
        "Make a version the current one.",
        Verb.DEFINITIONS_PUBLISH,
        Body({"only_newer": ONLY_NEWER}),
    ),
    Operation(
        "POST",
        f"{ONE}/versions",
        add_version,
        "Freeze a graph as a version that isn't the current one; what has its checksum already is answered.",
        Verb.DEFINITIONS_PUBLISH,
        "VersionHead",
        (201, 200),
        (409,),
        GRAPH,
        is_kept=True,
    ),
)
