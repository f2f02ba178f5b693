"""Versions that are published without becoming current, and starts that are pinned to one by its checksum."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak import chain
from korak.graphs.checksum import checksum
from korak.model import JsonObject, OwnerRole
from tests.support.apis import PURE, Api, node, open_api
from tests.support.apis import chain as line

ONE = "/v1/definitions/pure"
SECOND = line("pure", node("note", "set_field", field="state.note", value="second"))
THIRD = line("pure", node("note", "set_field", field="state.note", value="third"))
REPORT = chain("report").wait_for_input().max_state_bytes(200).document()


async def add(api: Api, document: JsonObject, status: int = 201, **rest: Any) -> Any:
    """The version that a document is."""
    response = await api.post(f"/v1/definitions/{document['key']}/versions", {"graph": document}, **rest)
    assert response.status_code == status, response.text
    return response.json()


ODD: JsonObject = {**PURE, "settings": {"retry": {"max_attempts": 20}}}


async def activate(api: Api, number: int, status: int = 200, **body: Any) -> Any:
    """What making a version current comes to."""
    response = await api.post(f"{ONE}/versions/{number}/activate", body)
    assert response.status_code == status, response.text
    return response.json()


async def test_publishing_tells_what_is_odd(api: Api) -> None:
    """On every way that publishes, the first time and again; DESIGN 10: the validation warns."""
    told = [
        (await api.send("PUT", ONE, {"graph": ODD}, publish="true")).json(),
        (await api.post(f"{ONE}/publish")).json(),
        await add(api, ODD, 200),
        await add(api, {**SECOND, "settings": ODD["settings"]}),
    ]
    for answer in told:
        assert [(each["code"], each["pointer"]) for each in answer["warnings"]] == [
            ("retry_clamped", "/settings/retry/max_attempts")
        ]
    assert (await add(api, SECOND))["warnings"] == []
    assert "warnings" not in (await api.get(ONE)).json()


async def test_a_version_is_published_without_becoming_current(api: Api) -> None:
    await api.publish(PURE)

    made = await add(api, SECOND)

    assert (made["number"], made["checksum"], made["status"]) == (2, checksum(SECOND), "superseded")
    standing = (await api.get(ONE)).json()
    assert (standing["version"], standing["has_draft"], standing["graph"]) == (1, False, PURE)
    assert await add(api, SECOND, 200) == made
    assert (await add(api, PURE, 200))["number"] == 1
    assert (await api.start("pure"))["state"]["note"] == "seen"


async def test_what_nobody_has_made_current_isn_t_started_unless_it_is_named(api: Api) -> None:
    made = await add(api, PURE)

    assert (await api.get(ONE)).json()["status"] == "draft"
    unnamed = await api.post(f"{ONE}/start", {})
    assert (unnamed.status_code, unnamed.json()["code"]) == (409, "definition_not_published")
    named = await api.start("pure", {"version": checksum(PURE)})
    assert (named["status"], named["version"]) == ("completed", made["number"])
    standing = await activate(api, 1)
    assert (standing["status"], standing["has_draft"]) == ("active", False)


async def test_a_start_is_pinned_by_a_checksum(api: Api) -> None:
    await api.publish(PURE)
    await add(api, SECOND)

    pinned = await api.start("pure", {"version": checksum(SECOND)})
    strange = await api.post(f"{ONE}/start", {"version": checksum(THIRD)})
    wrong = await api.post(f"{ONE}/start", {"version": "latest"})

    assert (pinned["version"], pinned["state"]["note"]) == (2, "second")
    assert pinned["definition_hash"] == checksum(SECOND)
    assert (strange.status_code, strange.json()["code"]) == (404, "version_not_found")
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/version")


async def test_an_older_version_isn_t_made_current_by_who_wants_a_newer_one(api: Api) -> None:
    await api.publish(PURE)
    await add(api, SECOND)
    await activate(api, 2, only_newer=True)
    await add(api, THIRD)

    refused = await activate(api, 1, 409, only_newer=True)

    assert refused["code"] == "version_older"
    told = refused["params"]
    assert (told["checksum"], told["current_checksum"]) == (checksum(PURE), checksum(SECOND))
    assert told["published_at"] < told["current_published_at"]
    assert (await activate(api, 2, only_newer=True))["version"] == 2
    assert (await activate(api, 1))["version"] == 1
    assert (await activate(api, 3, only_newer=True))["version"] == 3


async def test_one_checksum_is_published_once_however_many_do_it_at_once(api: Api) -> None:
    answers = await asyncio.gather(
        *(api.post(f"{ONE}/versions", {"graph": graph}) for graph in [PURE] * 5 + [SECOND] * 5)
    )

    assert {response.status_code for response in answers} <= {200, 201}
    assert sum(response.status_code == 201 for response in answers) == 2
    assert sorted({response.json()["number"] for response in answers}) == [1, 2]


async def test_what_is_wrong_is_no_version(api: Api) -> None:
    broken: Any = {**PURE, "edges": []}

    refused = await api.post(f"{ONE}/versions", {"graph": broken})
    misplaced = await api.post("/v1/definitions/other/versions", {"graph": PURE})

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_document")
    assert misplaced.json()["errors"][0]["pointer"] == "/key"
    assert await api.fetch("select id from workflow_definitions") == []


async def test_an_archived_or_deleted_definition_gets_no_version(api: Api) -> None:
    await api.publish(PURE)
    await api.post(f"{ONE}/archive")
    archived = await api.post(f"{ONE}/versions", {"graph": SECOND})
    await api.post(f"{ONE}/restore")
    await api.send("DELETE", ONE)
    deleted = await api.post(f"{ONE}/versions", {"graph": SECOND})

    assert (archived.status_code, archived.json()["code"]) == (409, "definition_archived")
    assert (deleted.status_code, deleted.json()["code"]) == (409, "definition_exists")


async def test_a_version_of_what_is_the_application_s_is_the_application_s(api: Api) -> None:
    """An owner's own definition would hide the application's, current version and all."""
    await api.publish(PURE)
    author = await api.make_token(OwnerRole.AUTHOR, owner="team:42")

    refused = await api.post(f"{ONE}/versions", {"graph": SECOND}, token=author)
    await add(api, SECOND, headers={"korak-owner": "team:42"})
    run = await api.start("pure", {"version": checksum(SECOND)}, headers={"korak-owner": "team:42"})

    assert (refused.status_code, refused.json()["code"]) == (409, "definition_app_wide")
    assert (run["owner"], run["state"]["note"]) == ("team:42", "second")
    assert [row["owner_scope"] for row in await api.fetch("select owner_scope from workflow_definitions")] == ["*"]


async def test_only_who_may_publish_adds_a_version(api: Api) -> None:
    starter = await api.make_token(OwnerRole.STARTER)
    assert (await api.post(f"{ONE}/versions", {"graph": PURE}, token=starter)).status_code == 403


@pytest.mark.parametrize(
    ("given", "code", "pointer"),
    [
        ({"_x": 1, "a": 2}, "field_not_writable", "/input/_x"),
        ({"a/b": {"_fine": 1}, "_a/b": 1}, "field_not_writable", "/input/_a~1b"),
        ({"text": "x" * 200}, "budget_state_bytes", "/input"),
    ],
)
async def test_t_state_5_and_t_guard_4_what_can_t_be_the_first_state_starts_nothing(
    api: Api, given: Any, code: str, pointer: str
) -> None:
    await api.publish(REPORT)

    response = await api.post("/v1/definitions/report/start", {"input": given})

    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert (error["code"], error["pointer"]) == (code, pointer)
    assert " " in error["message"]
    assert await api.fetch("select id from workflow_instances") == []
    assert (await api.start("report", {"input": {"a": {"_inside": 1}}}))["state"] == {"a": {"_inside": 1}}


async def test_t_guard_4_the_engine_s_own_limit_of_a_state_holds_for_the_first_one(database_url: str) -> None:
    """Set below what a definition may say: nothing starts that could only fail"""
    async with open_api(database_url, KORAK_LIMITS__MAX_STATE_BYTES="300") as api:
        await api.publish(chain("wide").wait_for_signal("go").document())
        big = {"text": "x" * 400}

        refused = await api.post("/v1/definitions/wide/start", {"input": big})
        put_off = await api.post("/v1/instances/wide~a/signal", {"name": "go", "start": {"input": big}})

        assert (refused.status_code, put_off.status_code) == (422, 422)
        [error] = refused.json()["errors"]
        assert (error["code"], error["pointer"]) == ("budget_state_bytes", "/input")
        assert error["params"] == {"limit": 300, "actual": 411}
        assert error["message"] == "limits.max_state_bytes is 300: the state is 411 bytes."
        assert put_off.json()["errors"][0]["pointer"] == "/start/input"
        assert await api.fetch("select id from workflow_instances") == []
        assert (await api.start("wide", {"input": {"text": "x" * 200}}))["status"] == "waiting"
