"""Definitions over HTTP: drafts under If-Match, versions, archive, what another owner sees."""

from __future__ import annotations

from typing import Any

import pytest

from korak.graphs.checksum import checksum
from korak.model import OwnerRole
from tests.support.apis import ORDER, PURE, Api, chain, node

ALL = "/v1/definitions"
ONE = "/v1/definitions/order"
OTHER = chain(
    "order",
    node("price", "test.price", order={"ref": "input.order"}, currency="USD"),
    inputs={
        "order": {"type": "string", "required": True},
    },
)
BROKEN: Any = {**ORDER, "edges": []}


async def test_a_definition_is_made_with_a_draft(api: Api) -> None:
    response = await api.post(ALL, {"graph": ORDER})

    assert response.status_code == 201
    made = response.json()
    assert made["key"] == "order"
    assert made["name"] == "Order"
    assert made["status"] == "draft"
    assert made["version"] is None
    assert made["checksum"] == checksum(ORDER)
    assert made["graph"] == ORDER
    assert made["input_schema"]["required"] == ["order"]
    assert response.headers["etag"] == f'"{checksum(ORDER)}"'
    assert (await api.get(ONE)).json() == made


async def test_a_key_is_taken_once_by_a_deleted_one_too(api: Api) -> None:
    await api.post(ALL, {"graph": ORDER})
    assert (await api.post(ALL, {"graph": ORDER})).json()["code"] == "definition_exists"

    assert (await api.send("DELETE", ONE)).status_code == 204

    assert (await api.get(ONE)).status_code == 404
    assert (await api.send("DELETE", ONE)).status_code == 404
    again = await api.post(ALL, {"graph": ORDER})
    assert (again.status_code, again.json()["code"]) == (409, "definition_exists")
    assert (await api.send("PUT", ONE, {"graph": ORDER})).json()["code"] == "definition_exists"


async def test_put_of_a_new_key_takes_no_if_match(api: Api) -> None:
    named = await api.send("PUT", ONE, {"graph": ORDER}, headers={"if-match": '"abc"'})
    assert (named.status_code, named.json()["code"]) == (412, "checksum_mismatch")

    assert (await api.send("PUT", ONE, {"graph": ORDER})).status_code == 201


async def test_what_is_overwritten_must_be_named(api: Api) -> None:
    await api.post(ALL, {"graph": ORDER})

    missing = await api.send("PUT", ONE, {"graph": OTHER})
    stale = await api.send("PUT", ONE, {"graph": OTHER}, headers={"if-match": f'"{checksum(OTHER)}"'})
    fresh = await api.send("PUT", ONE, {"graph": OTHER}, headers={"if-match": f'"{checksum(ORDER)}"'})
    anything = await api.send("PUT", ONE, {"graph": ORDER}, headers={"if-match": "*"})

    assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")
    assert (stale.status_code, stale.json()["params"]) == (412, {"actual": checksum(ORDER)})
    assert fresh.status_code == 200
    assert fresh.headers["etag"] == f'"{checksum(OTHER)}"'
    assert anything.json()["checksum"] == checksum(ORDER)


async def test_the_document_has_the_key_of_its_address(api: Api) -> None:
    response = await api.send("PUT", f"{ALL}/another", {"graph": ORDER})

    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/key"
    assert (await api.get(f"{ALL}/another")).status_code == 404


async def test_publishing_freezes_the_next_version(api: Api) -> None:
    await api.post(ALL, {"graph": ORDER})
    first = (await api.post(f"{ONE}/publish")).json()
    await api.send("PUT", ONE, {"graph": OTHER}, headers={"if-match": "*"})
    drafted = (await api.get(ONE)).json()
    second = (await api.post(f"{ONE}/publish")).json()

    assert (first["status"], first["version"], first["has_draft"]) == ("active", 1, False)
    assert (drafted["version"], drafted["has_draft"], drafted["checksum"]) == (1, True, checksum(OTHER))
    assert drafted["published_checksum"] == checksum(ORDER)
    assert (second["version"], second["published_checksum"]) == (2, checksum(OTHER))
    versions = (await api.get(f"{ONE}/versions")).json()["items"]
    assert [(version["number"], version["status"]) for version in versions] == [(2, "published"), (1, "superseded")]
    assert (await api.get(f"{ONE}/versions/1")).json()["graph"] == ORDER
    assert (await api.get(f"{ONE}/versions/3")).json()["code"] == "version_not_found"
    assert (await api.get(f"{ONE}/versions/one")).status_code == 404


async def test_publishing_what_is_published_changes_nothing(api: Api) -> None:
    await api.publish(ORDER)
    first = await api.fetch("select * from workflow_versions")

    answers = [
        await api.post(f"{ONE}/publish"),
        await api.send("PUT", ONE, {"graph": ORDER}, publish="true", headers={"if-match": "*"}),
    ]

    assert [answer.json()["version"] for answer in answers] == [1, 1]
    assert [answer.json()["has_draft"] for answer in answers] == [False, False]
    assert await api.fetch("select * from workflow_versions") == first


async def test_a_graph_that_breaks_rules_isn_t_published_and_nothing_of_it_is_kept(api: Api) -> None:
    response = await api.send("PUT", ONE, {"graph": BROKEN}, publish="true")

    assert response.status_code == 422
    body = response.json()
    assert body["code"] == "invalid_document"
    assert {error["code"] for error in body["errors"]} >= {"nothing_follows", "unreachable_node"}
    assert all(error["message"] for error in body["errors"])
    assert (await api.get(ONE)).status_code == 404


async def test_a_draft_may_break_rules_of_publish_but_has_the_form(api: Api) -> None:
    assert (await api.post(ALL, {"graph": BROKEN})).status_code == 201
    refused = await api.post(f"{ONE}/publish")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_document")

    shapeless = await api.post(ALL, {"graph": {"schema": "korak.graph/v1", "key": "x", "nodes": [{"id": 1}]}})
    assert shapeless.status_code == 422
    assert len(shapeless.json()["errors"]) >= 2


async def test_validate_tells_without_keeping(api: Api) -> None:
    good = await api.post(f"{ALL}/validate", {"graph": ORDER})
    bad = await api.post(f"{ALL}/validate", {"graph": BROKEN})

    assert (good.status_code, good.json()["valid"]) == (200, True)
    assert bad.status_code == 422
    assert (await api.get(ALL)).json() == {"items": [], "next": None}


async def test_an_archived_definition_takes_no_starts_until_it_is_restored(api: Api) -> None:
    await api.publish(PURE)
    one = f"{ALL}/pure"

    assert (await api.post(f"{one}/archive")).json()["status"] == "archived"
    refused = await api.post(f"{one}/start", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "definition_archived")
    for call in (api.post(f"{one}/publish"), api.send("PUT", one, {"graph": PURE}, headers={"if-match": "*"})):
        assert (await call).json()["code"] == "definition_archived"

    assert (await api.post(f"{one}/restore")).json()["status"] == "active"
    assert (await api.post(f"{one}/restore")).json()["code"] == "definition_not_archived"
    assert (await api.post(f"{one}/start", {})).status_code == 201


async def test_a_draft_can_t_be_archived(api: Api) -> None:
    await api.post(ALL, {"graph": ORDER})

    response = await api.post(f"{ONE}/archive")

    assert (response.status_code, response.json()["code"]) == (409, "definition_not_published")


async def test_an_older_version_becomes_the_current_one_again(api: Api) -> None:
    await api.publish(ORDER)
    await api.publish(OTHER)

    response = await api.post(f"{ONE}/versions/1/activate")

    assert (response.status_code, response.json()["version"]) == (200, 1)
    assert (await api.start("order", {"input": {"order": "a"}}))["version"] == 1
    versions = (await api.get(f"{ONE}/versions")).json()["items"]
    assert [(version["number"], version["status"]) for version in versions] == [(2, "superseded"), (1, "published")]
    assert (await api.post(f"{ONE}/versions/9/activate")).json()["code"] == "version_not_found"


async def test_an_instance_keeps_the_version_that_it_was_started_with(api: Api) -> None:
    await api.publish(ORDER)
    instance = await api.start("order", {"input": {"order": "a"}})
    await api.publish(OTHER)

    shown = await api.show(instance["id"])

    assert (shown["version"], shown["definition_hash"]) == (1, checksum(ORDER))


async def test_export_has_the_published_graph_and_nothing_of_the_owner_s(api: Api) -> None:
    await api.publish(ORDER)
    await api.send("PUT", ONE, {"graph": OTHER}, headers={"if-match": "*"})

    assert (await api.get(f"{ONE}/export")).json() == {
        "schema": "korak.graph/v1",
        "key": "order",
        "graph": ORDER,
        "checksum": checksum(ORDER),
    }


async def test_lists_come_in_pages_by_key(api: Api) -> None:
    for key in ("c", "a", "b"):
        await api.publish(chain(key, node("note", "set_field", field="state.x", value=1)))
    await api.post(ALL, {"graph": ORDER})

    seen: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        page = (await api.get(ALL, limit=2, **cursor)).json()
        seen += [item["key"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}

    assert seen == ["a", "b", "c", "order"]
    assert [item["key"] for item in (await api.get(ALL, status="draft")).json()["items"]] == ["order"]
    assert "graph" not in page["items"][0]


async def test_a_key_is_looked_up_in_the_owner_then_app_wide(api: Api) -> None:
    """DESIGN 8: a definition key is looked up in the owner, then app-wide; another owner's is 404."""
    await api.publish(ORDER)
    team = await api.make_token(OwnerRole.AUTHOR, OwnerRole.STARTER, owner="team:1")
    other = await api.make_token(OwnerRole.AUTHOR, OwnerRole.STARTER, owner="team:2")
    shared = (await api.get(ONE, token=team)).json()
    assert (shared["owner"], shared["checksum"]) == (None, checksum(ORDER))
    # What is the application's isn't an owner's to change.
    assert (await api.post(f"{ONE}/archive", token=team)).status_code == 404

    await api.publish(OTHER, token=team)

    assert (await api.get(ONE, token=team)).json()["owner"] == "team:1"
    assert (await api.get(ONE, token=other)).json()["owner"] is None
    assert (await api.get(ONE)).json()["owner"] is None
    assert (await api.start("order", {"input": {"order": "a"}}, token=team))["definition_hash"] == checksum(OTHER)
    started = await api.start("order", {"input": {"order": "a"}}, token=other)
    assert (started["definition_hash"], started["owner"]) == (checksum(ORDER), "team:2")
    owners = [item["owner"] for item in (await api.get(ALL, token=team)).json()["items"]]
    assert owners == [None, "team:1"]
    everything = (await api.get(ALL, headers={"korak-owner": "*"})).json()["items"]
    assert [item["owner"] for item in everything] == [None, "team:1"]


async def test_a_definition_of_one_owner_is_not_there_for_another(api: Api) -> None:
    team = await api.make_token(OwnerRole.ADMIN, owner="team:1")
    other = await api.make_token(OwnerRole.ADMIN, owner="team:2")
    await api.publish(ORDER, token=team)

    for method, path in (
        ("GET", ONE),
        ("GET", f"{ONE}/versions"),
        ("GET", f"{ONE}/export"),
        ("DELETE", ONE),
        ("POST", f"{ONE}/publish"),
        ("POST", f"{ONE}/archive"),
        ("POST", f"{ONE}/start"),
    ):
        response = await api.send(method, path, token=other)
        assert (response.status_code, response.json()["code"]) == (404, "definition_not_found"), path
    assert (await api.get(ALL, token=other)).json()["items"] == []


@pytest.mark.parametrize("body", [None, {}, {"graph": None}, {"graph": []}, {"graph": ORDER, "more": 1}, []])
async def test_a_body_has_the_graph_and_nothing_else(api: Api, body: Any) -> None:
    response = await api.post(ALL, body)

    assert response.status_code == 422
    assert response.json()["errors"]
