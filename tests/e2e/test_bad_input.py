"""Bad input, one fault a test, on a `korak dev`: a code, a place, a run that can be looked at and tried again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from korak.model import Json, JsonObject
from tests.support import devs
from tests.support.clones import Clones
from tests.support.devs import Dev, start_dev
from tests.support.graphs import chain, node
from tests.support.servers import ROOT
from tests.support.waiting import eventually_blocking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

ABSENT = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
OK = node("ok", "e2e.jumps", {"to": None})


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory, clones: Clones) -> Iterator[Dev]:
    folder = tmp_path_factory.mktemp("bad")
    with clones.lend() as url:
        given = {
            "KORAK_DATABASE__URL": url,
            "KORAK_STEPS": "tests.e2e.steps",
            "KORAK_TEST_CALLS": str(folder / "calls"),
            "PYTHONPATH": str(ROOT),
        }
        with start_dev(folder, **given) as dev:
            yield dev


def send(dev: Dev, method: str, path: str, body: Any = None, **headers: str) -> Any:
    with dev.client as client:
        return client.request(method, path, json=body, headers=headers)


def publish(dev: Dev, document: JsonObject, **headers: str) -> Any:
    """The answer to a new version, or a new definition."""
    path = f"/v1/definitions/{document['key']}"
    tag = send(dev, "GET", path, **headers).headers.get("etag")
    given = headers if tag is None else {"if-match": tag, **headers}
    return send(dev, "PUT", f"{path}?publish=true", {"graph": document}, **given)


def run(dev: Dev, document: JsonObject, given: JsonObject | None = None) -> dict[str, Any]:
    """A run of a document that may be published, at its end."""
    assert publish(dev, document).status_code in (200, 201)
    return dev.finish(dev.start(str(document["key"]), given or {}))


def retry(dev: Dev, run: str) -> dict[str, Any]:
    assert send(dev, "POST", f"/v1/instances/{run}/retry", {}).status_code == 200
    return dev.finish(run)


def show(dev: Dev, run: str) -> str:
    done = subprocess.run(
        [devs.find_korak(), "show", run],
        cwd=dev.directory,
        env=devs.get_environ(KORAK_CLIENT__URL=dev.url, KORAK_CLIENT__TOKEN=dev.token),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def is_told(dev: Dev, ended: dict[str, Any], code: str, where: str, **params: Json) -> bool:
    """That a run has failed with this, and everything that tells of it says so: with the node, and what is wrong.

    Whether a retry is offered.
    """
    failure = ended["failure"]
    assert (ended["status"], failure["code"], failure["node"]) == ("failed", code, where), ended
    one = f"/v1/instances/{ended['id']}"
    step = next(step for step in reversed(dev.list_steps(ended["id"])) if step["node"] == where)
    [*_, listed] = dev.get(f"{one}/failures")["items"]
    for told in (failure, step["error"], listed):
        assert (told["code"], told["params"] | params) == (code, told["params"])
        assert told["message"] == failure["message"]
    assert dev.get(f"{one}/events", limit=200)["items"][-1]["type"] == "InstanceFailed"
    assert ended["waiting_for"] == []
    return ended["actions"]["retry"] is True


def each(items: Json, **config: Json) -> JsonObject:
    inner: JsonObject = {"start": "ok", "nodes": [OK], "edges": []}
    return node("each", "for_each", {"items": items, **config}, body=inner)


def sub(definition: Json, **config: Json) -> JsonObject:
    return node("sub", "start_workflow", {"definition": definition, "wait": True, **config})


ITEMS: Json = {"ref": "input.items"}


@pytest.mark.parametrize("items", [{"a": 1}, "abc", 5, None])
def test_items_that_are_no_list(dev: Dev, items: Json) -> None:
    many = node("many", "start_workflows", {"definition": "nobody", "items": ITEMS})
    for document, where in ((chain("no-list", each(ITEMS)), "each"), (chain("no-list-of-runs", many), "many")):
        ended = run(dev, document, {"items": items})
        assert is_told(dev, ended, "invalid_input", where, pointer="/items")
        again = retry(dev, ended["id"])
        assert is_told(dev, again, "invalid_input", where, pointer="/items")
        assert [step["attempt"] for step in dev.list_steps(ended["id"])] == [1, 2]


def test_more_items_than_may_be(dev: Dev) -> None:
    """And a million of them, which are refused before they are read."""
    ended = run(dev, chain("too-many", each(ITEMS)), {"items": [0] * 10_001})
    is_offered = is_told(dev, ended, "budget_items", "each", pointer="/items", limit=10_000, actual=10_001)
    assert not is_offered, "no retry helps before the limit is raised"
    assert "budget_items" in show(dev, ended["id"])
    before = len(dev.get("/v1/instances", definition="too-many")["items"])
    refused = send(dev, "POST", "/v1/definitions/too-many/start", {"input": {"items": [0] * 1_000_000}})
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    assert len(dev.get("/v1/instances", definition="too-many")["items"]) == before


def test_a_quorum_above_the_number_of_items(dev: Dev) -> None:
    document = chain("too-few", each(ITEMS, mode="quorum", quorum=3))
    ended = run(dev, document, {"items": [1, 2]})
    assert is_told(dev, ended, "quorum_unreachable", "each", needed=3, total=2)
    assert [step["node"] for step in dev.list_steps(ended["id"])] == ["each"]
    assert run(dev, document, {"items": [1, 2, 3]})["status"] == "completed"


@pytest.mark.parametrize("to", ["nowhere", "start", "", 5, ["other"], {"to": "other"}])
def test_a_jump_to_an_unknown_target(dev: Dev, to: Json) -> None:
    jump = node("jump", "e2e.jumps", {"to": {"ref": "input.to"}}, jumps=["ok", "$end"], save={"merge": True})
    jump["retry"] = {"max_attempts": 1}
    ended = run(dev, chain("jumps", jump, OK), {"to": to})
    assert is_told(dev, ended, "unknown_jump", "jump", target=to)
    assert ended["state"] == {}
    assert run(dev, chain("jumps", jump, OK), {"to": "$end"})["result"] == {"seen": True}


def test_a_child_that_can_t_be_started(dev: Dev) -> None:
    """Archived, never there, another owner's, or no such version; then it is there, and the run goes on."""
    assert publish(dev, chain("kid", OK)).status_code in (200, 201)
    assert publish(dev, chain("their-kid", OK), **{"korak-owner": "team:2"}).status_code == 201
    document = chain("parent", sub({"ref": "input.child"}))
    never = run(dev, document, {"child": "never-was"})
    assert is_told(dev, never, "child_not_started", "sub", pointer="/definition", key="never-was")
    theirs = run(dev, document, {"child": "their-kid"})
    assert theirs["failure"]["message"] == never["failure"]["message"].replace("never-was", "their-kid")
    for key, wrong in (("by-version", {"version": 99}), ("by-checksum", {"checksum": "0" * 64})):
        ended = run(dev, chain(key, sub("kid", **wrong)))
        assert is_told(dev, ended, "child_not_started", "sub", detail="it has no such version")
    assert send(dev, "POST", "/v1/definitions/kid/archive").status_code == 200
    ended = run(dev, document, {"child": "kid"})
    assert is_told(dev, ended, "child_not_started", "sub", detail="it is archived")
    assert "it is archived" in show(dev, ended["id"])
    assert dev.get("/v1/instances", parent=ended["id"])["items"] == []
    assert send(dev, "POST", "/v1/definitions/kid/restore").status_code == 200
    assert retry(dev, ended["id"])["status"] == "completed"
    assert len(dev.get("/v1/instances", parent=ended["id"])["items"]) == 1


def test_a_child_whose_input_is_wrong(dev: Dev) -> None:
    strict = chain("strict", OK)
    strict["nodes"][0]["config"]["inputs"] = {"order": {"type": "string", "required": True}}  # type: ignore[index,call-overload]  # a list
    assert publish(dev, strict).status_code == 201
    ended = run(dev, chain("careless", sub("strict", inputs={"order": 5})))
    assert is_told(dev, ended, "child_not_started", "sub", pointer="/inputs/order", key="strict")
    assert not ended["failure"]["message"].endswith("..")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_runs_that_wait_for_one_another(dev: Dev, count: int) -> None:
    """A way round of that many: found, named, and every one of them fails."""
    asks = node("asks", "wait", {"signal": "ids"})
    waits = node("waits", "wait_workflows", {"ids": {"ref": "steps.asks.output.payload.ids"}})
    assert publish(dev, chain("round", asks, waits)).status_code in (200, 201)
    runs = [dev.start("round", {}) for _ in range(count)]
    for number, one in enumerate(runs):
        payload = {"ids": [runs[(number + 1) % count]]}
        assert send(dev, "POST", f"/v1/instances/{one}/signal", {"name": "ids", "payload": payload}).is_success
    ended = [dev.finish(one) for one in runs]
    where = "/ids/0" if count == 1 else "/ids"
    assert all(is_told(dev, one, "wait_impossible", "waits", pointer=where) for one in ended)
    messages = " ".join(one["failure"]["message"] for one in ended)
    assert all(one in messages for one in runs)
    assert ("for itself" if count == 1 else "for one another") in messages


@pytest.mark.parametrize(
    ("ids", "code", "pointer"),
    [([ABSENT], "wait_impossible", "/ids/0"), ([5], "invalid_input", "/ids"), (None, "invalid_input", "/ids")],
)
def test_runs_that_are_no_runs(dev: Dev, ids: Json, code: str, pointer: str) -> None:
    waits = node("waits", "wait_workflows", {"ids": {"ref": "input.ids"}})
    assert is_told(dev, run(dev, chain("nobody-there", waits), {"ids": ids}), code, "waits", pointer=pointer)


@pytest.mark.parametrize("what", ["list", "number", "class"])
def test_a_handler_that_returns_no_mapping(dev: Dev, what: str) -> None:
    document = chain("returns", node("odd", "e2e.returns", {"what": what}, save={"merge": True}))
    ended = run(dev, document)
    assert is_told(dev, ended, "invalid_output", "odd", pointer="")
    assert ended["failure"]["message"].startswith("The output can't be stored: a step returns an object, not ")
    assert ended["state"] == {}


def test_a_compensation_that_always_fails(dev: Dev) -> None:
    """It stops no other, the cancel holds, and what couldn't be undone stands there to be seen and tried again."""
    fails: JsonObject = {"type": "e2e.raises", "config": {"what": "failed"}}
    first = node("first", "e2e.jumps", {"to": None}, compensate={"type": "e2e.jumps", "config": {"to": None}})
    second = node("second", "e2e.jumps", {"to": None}, compensate=fails)
    assert publish(dev, chain("undo", first, second, node("w", "wait", {"signal": "go"}))).status_code == 201
    one = dev.start("undo", {})
    dev.await_step(one, "w", "waiting")
    assert send(dev, "POST", f"/v1/instances/{one}/cancel", {}).status_code == 200

    def look() -> Any:
        shown = dev.get(f"/v1/instances/{one}")
        return shown if shown["compensation"]["pending"] == 0 else None

    shown = eventually_blocking(look, 30, message="it isn't undone") or {}
    assert shown["compensation"] == {"kept": 0, "pending": 0, "completed": 1, "failed": 1}
    assert (shown["status"], shown["actions"]["retry"]) == ("cancelled", True)
    [failure] = dev.get(f"/v1/instances/{one}/failures")["items"]
    assert (failure["code"], failure["node"], failure["source"]) == ("acme_refused", "second", "hook")
    told = show(dev, one)
    assert "1 failed to undo" in told
    assert f"korak retry {one} tries again what could not be undone" in told
    assert send(dev, "POST", f"/v1/instances/{one}/retry", {}).json()["compensation"]["pending"] == 1
    shown = eventually_blocking(look, 30, message="it isn't undone") or {}
    assert shown["compensation"] == {"kept": 0, "pending": 0, "completed": 1, "failed": 1}
    hooks = [step for step in dev.get(f"/v1/instances/{one}/steps")["items"] if step["role"] == "compensate"]
    assert [(step["node"], step["status"]) for step in hooks] == [
        ("second", "failed"),
        ("first", "completed"),
        ("second", "failed"),
    ]


def test_a_signal_that_is_sent_twice_under_one_id(dev: Dev) -> None:
    waits = [node(name, "wait", {"signal": "go"}, save={"key": name}) for name in ("first", "second")]
    assert publish(dev, chain("twice", *waits)).status_code == 201
    one = dev.start("twice", {})
    for number, name in enumerate(("a", "a", "a")):
        body = {"name": "go", "id": name, "payload": {"n": number}}
        assert send(dev, "POST", f"/v1/instances/{one}/signal", body).status_code == 202
    dev.await_step(one, "second", "waiting")
    assert send(dev, "POST", f"/v1/instances/{one}/signal", {"name": "go", "id": "b"}).status_code == 202
    ended = dev.finish(one)
    assert [ended["state"][name]["payload"] for name in ("first", "second")] == [{"n": 0}, {}]
    late = send(dev, "POST", f"/v1/instances/{one}/signal", {"name": "go", "id": "c"})
    assert (late.status_code, late.json()["code"]) == (409, "instance_ended")


def test_a_state_over_its_limit(dev: Dev) -> None:
    """What was too much isn't in it."""
    note = node("note", "set_field", {"field": "state.note", "value": {"ref": "input.note"}})
    document = chain("large", node("first", "set_field", {"field": "state.first", "value": 1}), note)
    document["settings"] = {"limits": {"max_state_bytes": 100}}
    ended = run(dev, document, {"note": "x" * 200})
    assert is_told(dev, ended, "budget_state_bytes", "note", pointer="/note", limit=100, actual=221)
    assert (ended["state"], ended["budget"]["state_bytes"]) == ({"first": 1}, 11)
    assert is_told(dev, retry(dev, ended["id"]), "budget_state_bytes", "note")


@pytest.mark.parametrize("given", [{}, {"customer": None}, {"customer": ""}])
def test_a_concurrency_key_that_is_nothing(dev: Dev, given: JsonObject) -> None:
    flow: Json = [{"key": {"ref": "input.customer"}, "concurrency": 1}]
    ended = run(dev, chain("keyed", {**OK, "flow": flow}), given)
    assert is_told(dev, ended, "missing_value", "ok", pointer="/flow/0/key", path="input.customer")
    whole = chain("keyed-runs", OK)
    whole["settings"] = {"flow": flow}
    ended = run(dev, whole, given)
    assert is_told(dev, ended, "missing_value", "ok", pointer="/settings/flow/0/key")
    assert is_told(dev, retry(dev, ended["id"]), "missing_value", "ok")


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        (each(5), "/nodes/1/config/items"),
        (each([1], mode="quorum", quorum=0), "/nodes/1/config/quorum"),
        (each([1], quorum=1), "/nodes/1/config/quorum"),
        ({**OK, "jumps": ["nowhere"]}, "/nodes/1/jumps/0"),
        ({**OK, "flow": [{"key": None, "concurrency": 1}]}, "/nodes/1/flow/0/key"),
        (sub("kid", version=0), "/nodes/1/config/version"),
        (sub("kid", checksum="abc"), "/nodes/1/config/checksum"),
        ({**OK, "compensate": {"type": "no.body"}}, "/nodes/1/compensate/type"),
    ],
)
def test_what_is_wrong_as_it_is_written_is_never_stored(dev: Dev, wrong: JsonObject, pointer: str) -> None:
    refused = publish(dev, chain("wrong", wrong))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_document")
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer], json.dumps(refused.json()["errors"])
    assert send(dev, "GET", "/v1/definitions/wrong").status_code == 404
