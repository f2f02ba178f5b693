"""OpenAPI tells what the router does: every route is in it, and every answer fits its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from starlette.routing import Route

from korak_api.app import make_app
from korak_api.routes import OPERATIONS
from tests.support.apis import ORDER, PURE, Api, chain, node

OUTSIDE = {"/openapi.json", "/healthz", "/readyz", "/metrics"}


def list_routes(api: Api) -> Iterator[tuple[str, str]]:
    """Method and address of everything that the router answers."""
    for route in make_app(api.resources).routes:
        assert isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}:
            if route.path not in OUTSIDE:
                yield method, route.path.replace(":path}", "}")


async def describe(api: Api) -> Any:
    """The description."""
    response = await api.client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    return response.json()


async def test_every_route_is_described_and_nothing_else(shared_api: Api) -> None:
    described = await describe(shared_api)

    told = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert told == set(list_routes(shared_api))
    assert described["openapi"] == "3.1.0"


async def test_each_operation_has_a_name_of_its_own_its_problems_and_its_parameters(shared_api: Api) -> None:
    described = await describe(shared_api)

    operations = [operation for methods in described["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for path, methods in described["paths"].items():
        for operation in methods.values():
            inside = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert inside == set(re.findall(r"{(\w+)}", path))
            if operation.get("security") != []:
                assert {"401", "422", "503"} <= operation["responses"].keys()


def list_references(described: Any) -> Iterator[str]:
    """Every $ref in it."""
    match described:
        case dict():
            for name, value in described.items():
                if name == "$ref":
                    yield value
                else:
                    yield from list_references(value)
        case list():
            for value in described:
                yield from list_references(value)


async def test_its_schemas_are_schemas_and_its_references_lead_somewhere(shared_api: Api) -> None:
    described = await describe(shared_api)

    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    used = set(list_references(described))
    assert used <= known
    assert known - used == set(), "nothing is declared for nobody"


async def test_answers_fit_their_schemas(api: Api) -> None:
    described = await describe(api)
    await api.publish(ORDER)
    await api.publish(PURE)
    await api.publish(chain("asks", node("ask", "wait", signals=["a", "b"], mode="all", timeout="PT1H")))
    instance = await api.start("asks")
    await api.start("pure")
    order = await api.start("order", {"input": {"order": "a"}})
    one = f"/v1/instances/{instance['id']}"
    calls: list[tuple[str, str, str, Any]] = [
        ("GET", "/v1/definitions", "/v1/definitions", None),
        ("GET", "/v1/definitions/order", "/v1/definitions/{key}", None),
        ("PUT", "/v1/definitions/new", "/v1/definitions/{key}", {"graph": {**PURE, "key": "new"}}),
        ("POST", "/v1/definitions", "/v1/definitions", {"graph": {**PURE, "key": "newer"}}),
        ("POST", "/v1/definitions/validate", "/v1/definitions/validate", {"graph": PURE}),
        ("POST", "/v1/definitions/new/publish", "/v1/definitions/{key}/publish", None),
        ("POST", "/v1/definitions/new/archive", "/v1/definitions/{key}/archive", None),
        ("POST", "/v1/definitions/new/restore", "/v1/definitions/{key}/restore", None),
        ("GET", "/v1/definitions/new/versions", "/v1/definitions/{key}/versions", None),
        ("GET", "/v1/definitions/new/versions/1", "/v1/definitions/{key}/versions/{number}", None),
        ("POST", "/v1/definitions/new/versions", "/v1/definitions/{key}/versions", {"graph": {**PURE, "key": "new"}}),
        ("POST", "/v1/definitions/new/versions/1/activate", "/v1/definitions/{key}/versions/{number}/activate", None),
        ("GET", "/v1/definitions/new/export", "/v1/definitions/{key}/export", None),
        ("DELETE", "/v1/definitions/new", "/v1/definitions/{key}", None),
        ("POST", "/v1/definitions/pure/start", "/v1/definitions/{key}/start", {}),
        ("POST", "/v1/definitions/pure/start", "/v1/definitions/{key}/start", {"debounce": {"key": "a", "wait": 9}}),
        ("POST", "/v1/definitions/nothing/start", "/v1/definitions/{key}/start", {}),
        ("GET", "/v1/instances", "/v1/instances", None),
        ("GET", "/v1/instances/counts?by=status&by=definition", "/v1/instances/counts", None),
        ("GET", one, "/v1/instances/{ulid}", None),
        ("GET", "/v1/instances/nothing", "/v1/instances/{ulid}", None),
        ("POST", f"{one}/signal", "/v1/instances/{ulid}/signal", {"name": "a"}),
        ("POST", "/v1/instances/asks~A/signal", "/v1/instances/{ulid}/signal", {"name": "a", "start": {}}),
        ("GET", f"{one}/steps", "/v1/instances/{ulid}/steps", None),
        ("GET", f"{one}/events", "/v1/instances/{ulid}/events", None),
        ("GET", f"{one}/waits", "/v1/instances/{ulid}/waits", None),
        ("POST", f"{one}/pause", "/v1/instances/{ulid}/pause", None),
        ("POST", f"{one}/resume", "/v1/instances/{ulid}/resume", None),
        ("POST", f"/v1/instances/{order['id']}/cancel", "/v1/instances/{ulid}/cancel", {"reason": "x"}),
        ("POST", f"/v1/instances/{order['id']}/retry", "/v1/instances/{ulid}/retry", None),
        ("POST", f"{one}/rewind", "/v1/instances/{ulid}/rewind", {"to": "start"}),
        ("GET", f"{one}/export", "/v1/instances/{ulid}/export", None),
        ("POST", "/v1/instances/import", "/v1/instances/import", {"format": "none"}),
        ("POST", f"{one}/fork", "/v1/instances/{ulid}/fork", {"to": "start"}),
        ("GET", f"{one}/failures", "/v1/instances/{ulid}/failures", None),
        ("GET", f"{one}/chunks", "/v1/instances/{ulid}/chunks", None),
        ("PUT", f"{one}/artifacts/a", "/v1/instances/{ulid}/artifacts/{key}", {"content": [1]}),
        ("GET", f"{one}/artifacts", "/v1/instances/{ulid}/artifacts", None),
        ("GET", f"{one}/artifacts/a", "/v1/instances/{ulid}/artifacts/{key}", None),
        ("DELETE", f"{one}/artifacts/a", "/v1/instances/{ulid}/artifacts/{key}", None),
        ("GET", "/v1/instances/nothing/stream", "/v1/instances/{ulid}/stream", None),
        ("POST", "/v1/emit", "/v1/emit", {"name": "paid"}),
        ("POST", "/v1/definitions/order/hold", "/v1/definitions/{name}/hold", {"reason": "x"}),
        ("POST", "/v1/definitions/order/release", "/v1/definitions/{name}/release", None),
        ("POST", "/v1/step-types/test.price/hold", "/v1/step-types/{name}/hold", None),
        ("POST", "/v1/step-types/test.price/release", "/v1/step-types/{name}/release", None),
        ("POST", "/v1/queues/default/hold", "/v1/queues/{name}/hold", {"until": "2100-01-01T00:00:00Z"}),
        ("GET", "/v1/queues", "/v1/queues", None),
        ("POST", "/v1/queues/default/release", "/v1/queues/{name}/release", None),
        ("PUT", "/v1/owners/team:1/weight", "/v1/owners/{scope}/weight", {"weight": 2}),
        ("GET", "/v1/owners/team:1/weight", "/v1/owners/{scope}/weight", None),
        ("POST", "/v1/tokens", "/v1/tokens", {"name": "a", "roles": ["viewer"]}),
        ("GET", "/v1/tokens", "/v1/tokens", None),
        ("DELETE", "/v1/tokens/nothing", "/v1/tokens/{id}", None),
        ("GET", "/v1/me", "/v1/me", None),
        ("GET", "/v1/schema/graph", "/v1/schema/graph", None),
    ]
    assert {(method, path) for method, _, path, _ in calls} == {(each.method, each.path) for each in OPERATIONS}

    for method, address, path, body in calls:
        response = await api.send(method, address, body)
        told = described["paths"][path][method.lower()]["responses"]
        assert str(response.status_code) in told, f"{method} {address}: {response.text}"
        content = told[str(response.status_code)].get("content")
        if content is None:
            assert response.content == b""
            continue
        [schema] = [each["schema"] for each in content.values()]
        whole = {"components": described["components"], **schema}
        answers = [response.json()] if "application/x-ndjson" not in content else map(json.loads, response.iter_lines())
        for answer in answers:
            issues = [error.message for error in Draft202012Validator(whole).iter_errors(answer)]
            assert issues == [], f"{method} {address}"
