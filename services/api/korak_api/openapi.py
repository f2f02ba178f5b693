"""OpenAPI 3.1, made from the table of operations, so that it can't tell anything else than the router does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

from korak.model import JsonObject
from korak_api.operations import Operation
from korak_api.shapes import SHAPES

PROBLEM: Final = "application/problem+json"
TITLES: Final = {
    200: "Done.",
    201: "Made.",
    202: "Accepted.",
    204: "Done; there is nothing to tell.",
    400: "The body isn't JSON.",
    401: "No credential, or none that is known.",
    403: "The credential may not.",
    404: "Not there, or another owner's.",
    409: "The state forbids it.",
    412: "If-Match names an older draft.",
    413: "The body is over its bound.",
    415: "The body isn't application/json.",
    422: "The input is wrong.",
    428: "If-Match is missing.",
    429: "A limit on starts holds.",
    503: "Nobody is there to answer now.",
}
KINDS: Final = {"Stream": "text/event-stream", "Run": "application/x-ndjson"}
"""What an answer is, where it isn't JSON."""

IDEMPOTENCY_KEY: Final = "Kept for 24 hours: a repeat gets the first answer."


def describe(operations: Sequence[Operation]) -> dict[str, Any]:
    """The description of an API of these operations."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Korak",
            "version": version("korak"),
            "description": "Durable workflows. JSON in, JSON out; what goes wrong is a problem of RFC 9457.",
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "paths": paths,
        "components": {
            "schemas": SHAPES,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _describe(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _get_id(operation),
        "summary": operation.summary,
        "parameters": [
            *_list_path(operation.path),
            *(each.to_openapi() for each in operation.query),
            *_list_headers(operation),
        ],
        "responses": _list_responses(operation),
    }
    if operation.verb is not None:
        described["x-korak-verb"] = operation.verb.value
    if operation.is_public:
        described["security"] = []
    if operation.body is not None:
        content = {"application/json": {"schema": _inline(operation.body.to_schema())}}
        described["requestBody"] = {"required": bool(operation.body.required), "content": content}
    if operation.lines is not None:
        schema = {"schema": {"$ref": f"#/components/schemas/{operation.lines.shape}"}}
        described["requestBody"] = {"required": True, "content": {operation.lines.media_type: schema}}
    return described


def _get_id(operation: Operation) -> str:
    words = re.findall(r"[a-z]+", operation.path.removeprefix("/v1"))
    return "_".join([operation.method.lower(), *words])


def _list_path(path: str) -> list[JsonObject]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _list_headers(operation: Operation) -> list[JsonObject]:
    headers = dict(operation.headers)
    if operation.is_kept:
        headers["Idempotency-Key"] = IDEMPOTENCY_KEY
    if not operation.is_public:
        headers["Korak-Owner"] = "For an app-wide token: whose things this is about, such as team:42."
    return [
        {"name": name, "in": "header", "description": told, "schema": {"type": "string"}}
        for name, told in headers.items()
    ]


def _list_responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in operation.statuses:
        found[str(status)] = {"description": TITLES[status]}
        name = operation.others.get(status, operation.answer)
        if name is not None:
            schema = {"$ref": f"#/components/schemas/{name}"}
            found[str(status)]["content"] = {KINDS.get(name, "application/json"): {"schema": schema}}
    problem = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status in sorted({*operation.problems, *_get_common(operation)}):
        found[str(status)] = {"description": TITLES[status], "content": problem}
    return found


def _get_common(operation: Operation) -> set[int]:
    common = set() if operation.is_public else {401, 422, 503}
    if operation.verb is not None:
        common.add(403)
    if operation.body is not None:
        common |= {400, 413, 415, 422}
    if operation.is_kept:
        common.add(409)
    return common


def _inline(schema: JsonObject) -> Any:
    """The schema with its references to Korak's own definitions pointed at the components."""
    if isinstance(schema, dict):
        return {
            name: f"#/components/schemas/{str(value).rpartition('/')[2].capitalize()}"
            if name == "$ref"
            else _inline(value)  # type: ignore[arg-type]  # any JSON goes in
            for name, value in schema.items()
        }
    return [_inline(value) for value in schema] if isinstance(schema, list) else schema
