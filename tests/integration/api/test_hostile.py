"""What bad input gets: a clear problem with a code and a pointer, and nothing stored or lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.apis import PURE, Api, chain, node

JSON = {"content-type": "application/json"}
PROBLEM = {"type", "title", "status", "detail", "code", "params", "errors"}


async def send(api: Api, content: Any, path: str = "/v1/emit", **headers: str) -> Any:
    """A POST of raw bytes."""
    given = {"authorization": f"Bearer {api.admin}", **JSON, **headers}
    return await api.client.post(path, content=content, headers=given)


def is_problem(response: Any, status: int, code: str) -> bool:
    """Whether the answer is that problem, in the form that all have."""
    body = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert body.keys() >= PROBLEM
    assert body["status"] == response.status_code
    assert (response.status_code, body["code"]) == (status, code), body
    return True


@pytest.mark.parametrize(
    ("raw", "status", "pointer"),
    [
        (b"{", 400, None),
        (b"nothing", 400, None),
        (b"\xff\xfe", 400, None),
        (b'{"name": "a", "payload": {"x": NaN}}', 400, None),
        (b'{"name": "a", "payload": {"x": Infinity}}', 400, None),
        (b"[" * 100_000, 400, None),
        (b'{"name": "a"} {}', 400, None),
        (b'{"name": "a", "payload": {"x": "\\u0000"}}', 422, "/payload/x"),
        (b'{"name": "a", "payload": {"\\u0000": 1}}', 422, "/payload/\\u0000"),
        (b'{"name": "a", "payload": {"x": "\\ud800"}}', 400, None),
        (b'{"name": "a", "payload": {"x": 1e999}}', 400, None),
        (b'{"name": "a", "payload": {"x": 99999999999999999999}}', 422, "/payload/x"),
        (b'{"name": "a", "payload": {"x": ' + b"[" * 100 + b"]" * 100 + b"}}", 422, "/payload/x" + "/0" * 62),
        (b'{"name": "a", "payload": {"x": ' + b"9" * 5000 + b"}}", 400, None),
    ],
)
async def test_json_that_can_t_be_stored_is_refused_with_its_pointer(
    shared_api: Api, raw: bytes, status: int, pointer: str | None
) -> None:
    response = await send(shared_api, raw)

    assert is_problem(response, status, "invalid_json")
    if pointer is not None:
        assert response.json()["errors"][0]["pointer"] == pointer
    assert await shared_api.fetch("select id from workflow_emits where name = 'a'") == []


async def test_a_body_over_its_bound_is_refused_while_it_is_read(shared_api: Api) -> None:
    big = b'{"name": "a", "payload": {"x": "' + b"x" * 10_000_000 + b'"}}'
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 100_000
            yield b"x" * 100_000

    assert is_problem(await send(shared_api, big), 413, "body_too_large")
    assert is_problem(await send(shared_api, endless()), 413, "body_too_large")
    assert read < 40 << 20
    within = b'{"name": "big", "ttl": 0, "payload": {"x": "' + b"x" * 900_000 + b'"}}'
    assert (await send(shared_api, within)).status_code == 202


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
async def test_another_type_than_json_is_refused(shared_api: Api, kind: str) -> None:
    assert is_problem(await send(shared_api, b"{}", **{"content-type": kind}), 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/cloudevents+json"]
)
async def test_json_by_any_name_is_read(shared_api: Api, kind: str) -> None:
    response = await send(shared_api, b"{}", **{"content-type": kind})

    assert response.status_code == 422


@pytest.mark.parametrize("name", ["Authorization", "Korak-Owner", "Idempotency-Key", "If-Match"])
async def test_a_header_that_decides_stands_once(shared_api: Api, name: str) -> None:
    """Which of two counts is read differently by those in between."""
    given = [("Authorization", f"Bearer {shared_api.admin}"), (name, "team:1"), (name, "team:2")]

    response = await shared_api.client.post("/v1/emit", json={"name": "twice"}, headers=given)

    assert is_problem(response, 422, "invalid_parameter")
    assert response.json()["params"]["name"] == name
    assert await shared_api.fetch("select id from workflow_emits where name = 'twice'") == []


async def test_an_unknown_address_and_a_wrong_method_are_told(shared_api: Api) -> None:
    assert is_problem(await shared_api.get("/v2/instances"), 404, "route_not_found")
    assert is_problem(await shared_api.get("/v1/instances/"), 404, "route_not_found")
    assert is_problem(await shared_api.get("/%00%ff"), 404, "route_not_found")
    wrong = await shared_api.send("PATCH", "/v1/definitions")
    assert is_problem(wrong, 405, "method_not_allowed")
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert set((await shared_api.send("POST", "/v1/me")).headers["allow"].split(", ")) == {"GET", "HEAD"}


def make_graph(**members: Any) -> Any:
    """A graph with other members."""
    return {**PURE, **members}


CYCLE = make_graph(
    nodes=[PURE["nodes"][0], node("a", "test.ok"), node("b", "test.ok")],  # type: ignore[index]  # a list
    edges=[{"from": "start", "to": "a"}, {"from": "a", "to": "b"}, {"from": "b", "to": "a"}],
)
SELF = make_graph(
    nodes=[PURE["nodes"][0], node("a", "test.ok")],  # type: ignore[index]  # a list
    edges=[{"from": "start", "to": "a"}, {"from": "a", "to": "a"}],
)
SLOW_PATTERN = chain(
    "slow",
    node("price", "test.price", order={"ref": "input.order"}),
    inputs={
        "order": {"type": "string", "pattern": "(a+)+$", "required": True},
    },
)


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (CYCLE, "cycle_without_loop"),
        (SELF, "cycle_without_loop"),
        (make_graph(nodes=[]), "invalid_config"),
        (make_graph(nodes=PURE["nodes"][1:], edges=PURE["edges"][1:]), "trigger_missing"),  # type: ignore[index]  # lists
        (make_graph(nodes=[*PURE["nodes"], *PURE["nodes"]]), "duplicate_node"),  # type: ignore[misc]  # a list
        (chain("x", node("a", "nobody.knows")), "unknown_type"),
        (chain("x", node("a", "condition", **{"if": {"cel": "1 +"}})), "invalid_expression"),
        (chain("x", node("a", "condition", **{"if": {"cel": "(" * 5000}})), "invalid_expression"),
        (chain("x", node("a", "condition", **{"if": {"ref": "input.x", "op": "matches", "value": "(?=a)"}})), None),
        (chain("x", node("a", "test.price", order=7)), "invalid_config"),
    ],
)
async def test_a_graph_that_can_t_run_isn_t_published(shared_api: Api, document: Any, code: str | None) -> None:
    response = await shared_api.send("PUT", f"/v1/definitions/{document['key']}", {"graph": document}, publish="true")

    assert is_problem(response, 422, "invalid_document")
    assert code is None or code in {error["code"] for error in response.json()["errors"]}
    assert await shared_api.fetch("select id from workflow_definitions") == []


@pytest.mark.parametrize("call", ["/v1/definitions", "/v1/definitions/validate"])
async def test_lm_5_a_graph_that_is_too_large_is_told_before_anything_looks_into_it(shared_api: Api, call: str) -> None:
    wide = make_graph(nodes=[{}] * 20_000)
    large = make_graph(nodes=[*PURE["nodes"], node("x", "test.ok", value="x" * 300_000)])  # type: ignore[misc]  # a list
    many_edges = make_graph(edges=[{"from": "a", "to": "b"}] * 1001)

    for document in (wide, large, many_edges):
        response = await shared_api.post(call, {"graph": document})
        assert response.status_code == 422
        assert [error["code"] for error in response.json()["errors"]] == ["graph_too_large"]


async def test_a_graph_of_a_million_nodes_is_over_the_bound_of_a_body(shared_api: Api) -> None:
    raw = b'{"graph": {"nodes": [' + b'{"id":"n"},' * 999_999 + b'{"id":"n"}]}}'

    assert is_problem(await send(shared_api, raw, "/v1/definitions"), 413, "body_too_large")


@pytest.mark.timeout(20)
async def test_a_pattern_and_an_expression_made_to_be_slow_are_not(api: Api) -> None:
    await api.publish(SLOW_PATTERN)
    slow = chain(
        "cel",
        node(
            "x",
            "set_field",
            field="state.x",
            value={"cel": "input.l.map(a, input.l.map(b, input.l.map(c, a + b + c)))"},
        ),
    )
    await api.publish(slow)

    refused = await api.post("/v1/definitions/slow/start", {"input": {"order": "a" * 50_000 + "!"}})
    failed = await api.start("cel", {"input": {"l": list(range(1000))}})

    assert is_problem(refused, 422, "invalid_request")
    assert failed["status"] == "failed"
    assert failed["failure"]["code"] == "expression_error"


@pytest.mark.parametrize(
    "name", ["__proto__", "a" * 200, "../etc/passwd", "order%00", "%F0%9F%92%A9", "'; drop table tokens; --"]
)
async def test_a_name_that_is_no_key_is_not_there(shared_api: Api, name: str) -> None:
    for method in ("GET", "DELETE"):
        assert (await shared_api.send(method, f"/v1/definitions/{name}")).status_code == 404
    assert (await shared_api.post(f"/v1/definitions/{name}/start", {})).status_code == 404


async def test_a_key_that_is_too_long_is_told(shared_api: Api) -> None:
    response = await shared_api.post("/v1/definitions", {"graph": make_graph(key="k" * 101)})

    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/key"


async def test_an_error_of_ours_tells_nothing_of_itself(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def explode(*_: Any, **__: Any) -> Any:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("korak_api.instances.instances.list_instances", explode)

    response = await api.get("/v1/instances")

    assert is_problem(response, 500, "internal")
    assert "hunter2" not in response.text


async def test_a_database_that_is_gone_is_unavailable(api: Api, database_url: str) -> None:
    await api.publish(PURE)
    await api.fetch("alter table workflow_instances rename to gone")
    assert (await api.get("/v1/instances")).status_code == 500
    await api.fetch("alter table gone rename to workflow_instances")
    await api.fetch("set lock_timeout = 0")
    name = database_url.rpartition("/")[2]
    await api.fetch(
        f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}' and pid <> pg_backend_pid()"
    )

    answers = [await api.post("/v1/definitions/pure/start", {}) for _ in range(5)]

    assert {answer.status_code for answer in answers} <= {201, 503}
    assert answers[-1].status_code == 201
    for answer in answers:
        if answer.status_code == 503:
            assert is_problem(answer, 503, "unavailable")
            assert answer.headers["retry-after"] == "1"


async def test_no_answer_shows_a_row_id(api: Api) -> None:
    await api.publish(chain("asks", node("ask", "wait", signal="go")))
    await api.fetch("alter table workflow_instances alter id restart with 918273645")
    await api.fetch("alter table workflow_step_runs alter id restart with 918273645")
    await api.fetch("alter table workflow_waits alter id restart with 918273645")
    instance = await api.start("asks")
    one = f"/v1/instances/{instance['id']}"
    await api.post(f"{one}/signal", {"name": "go"})

    for path in ("/v1/instances", one, f"{one}/steps", f"{one}/events", f"{one}/waits", f"{one}/failures"):
        assert "9182736" not in json.dumps((await api.get(path)).json()), path
