"""Starting instances over HTTP: answers, keys, limits, waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak.core.facts import Finished
from korak.model import OwnerRole
from korak.steps.contract import Complete
from korak.steps.function import step
from korak.steps.registry import MAX_KEY
from tests.support import eventually
from tests.support.apis import ORDER, PURE, Api, chain, node, open_api
from tests.support.flows import open_flows

START = "/v1/definitions/order/start"
GIVEN = {"input": {"order": "o-1"}}


async def test_a_start_answers_the_instance_that_it_made(api: Api) -> None:
    await api.publish(ORDER)

    response = await api.post(START, {**GIVEN, "labels": ["vip"], "priority": "high"})

    assert response.status_code == 201
    body = response.json()
    assert body.keys() == {"instance", "created"}
    assert body["created"] is True
    instance = body["instance"]
    assert instance["definition"] == "order"
    assert instance["version"] == 1
    assert instance["status"] == "running"
    assert instance["nodes"] == ["price"]
    assert instance["input"] == {"order": "o-1", "count": 1}
    assert instance["labels"] == ["vip"]
    assert instance["priority"] == "high"
    assert instance["trigger"] == {"on": "manual", "key": None, "payload": None}
    assert await api.show(instance["id"]) == instance


async def test_what_is_decided_at_once_has_ended_in_the_answer(api: Api) -> None:
    await api.publish(PURE)

    instance = await api.start("pure")

    assert instance["status"] == "completed"
    assert instance["result"] == {"note": "seen"}
    assert await api.show(instance["id"]) == instance


async def test_a_start_without_a_body_has_no_input(api: Api) -> None:
    await api.publish(PURE)

    response = await api.client.post("/v1/definitions/pure/start", headers={"authorization": f"Bearer {api.admin}"})

    assert response.status_code == 201
    assert response.json()["instance"]["input"] == {}


async def test_a_wrong_input_is_told_with_its_pointer_and_nothing_is_kept(api: Api) -> None:
    await api.publish(ORDER)

    response = await api.post(START, {"input": {"order": 7, "more": True}})

    assert response.status_code == 422
    errors = {(error["code"], error["pointer"]) for error in response.json()["errors"]}
    assert ("invalid_input", "/input/order") in errors
    assert len(errors) == 2
    missing = (await api.post(START, {"input": {}})).json()["errors"]
    assert [error["code"] for error in missing] == ["invalid_input"]
    assert missing[0]["pointer"].startswith("/input")
    assert await api.fetch("select id from workflow_instances") == []


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"subject": {"type": "order", "id": "1"}}, "not_available", "/subject"),
        ({"on_behalf_of": "ana"}, "not_available", "/on_behalf_of"),
        ({"run_timeout": 1}, "not_available", "/run_timeout"),
        ({"inputs": {}}, "invalid_value", "/inputs"),
        ({"input": []}, "invalid_value", "/input"),
        ({"priority": "highest"}, "invalid_value", "/priority"),
        ({"labels": ["a", 1]}, "invalid_value", "/labels/1"),
        ({"version": 0}, "invalid_value", "/version"),
        ({"execution_timeout": "soon"}, "invalid_value", "/execution_timeout"),
        ({"execution_timeout": 0}, "invalid_duration", "/execution_timeout"),
    ],
)
async def test_members_that_aren_t_served_or_are_wrong_are_told(api: Api, body: Any, code: str, pointer: str) -> None:
    await api.publish(ORDER)

    response = await api.post(START, {**GIVEN, **body})

    assert response.status_code == 422
    assert [(error["code"], error["pointer"]) for error in response.json()["errors"]] == [(code, pointer)]


async def test_what_can_t_be_started_is_told(api: Api) -> None:
    """T-X-4."""
    await api.post("/v1/definitions", {"graph": ORDER})

    unknown = await api.post("/v1/definitions/nothing/start", {})
    unpublished = await api.post(START, GIVEN)
    await api.post("/v1/definitions/order/publish")
    no_version = await api.post(START, {**GIVEN, "version": 7})

    assert (unknown.status_code, unknown.json()["code"]) == (404, "definition_not_found")
    assert (unpublished.status_code, unpublished.json()["code"]) == (409, "definition_not_published")
    assert (no_version.status_code, no_version.json()["code"]) == (404, "version_not_found")


async def test_a_version_can_be_named(api: Api) -> None:
    await api.publish(ORDER)
    await api.publish({**ORDER, "settings": {"label": "new"}})

    assert (await api.start("order", {**GIVEN, "version": 1}))["version"] == 1
    newest = await api.start("order", GIVEN)
    assert (newest["version"], newest["labels"]) == (2, ["new"])


async def test_a_time_limit_is_the_start_s_or_the_definition_s_whichever_is_shorter(api: Api) -> None:
    await api.publish(chain("limited", node("price", "test.ok"), execution_timeout="PT1H"))

    short = await api.start("limited", {"execution_timeout": "PT1M"})
    long = await api.start("limited", {"execution_timeout": "P1D"})

    def count(instance: Any) -> float:
        return api.resources.clock.now().fromisoformat(instance["deadline_at"]).timestamp() - (
            api.resources.clock.now().fromisoformat(instance["created_at"]).timestamp()
        )

    assert count(short) == pytest.approx(60, abs=1)
    assert count(long) == pytest.approx(3600, abs=1)


async def test_au_2_a_start_on_behalf_of_nobody_is_refused(api: Api) -> None:
    await api.publish(chain("mine", node("price", "test.ok"), actor="on_behalf_of"))
    user = await api.make_token(OwnerRole.STARTER, user="ana")

    refused = await api.post("/v1/definitions/mine/start", {})
    instance = await api.start("mine", token=user)

    assert (refused.status_code, refused.json()["code"]) == (422, "missing_triggering_user")
    assert instance["actor"] == {"mode": "on_behalf_of", "user": "ana"}


# keys


async def test_id_2_a_key_starts_once(api: Api) -> None:
    """T-GUARD-5."""
    await api.publish(ORDER)
    key = {"idempotency-key": "k-1"}

    first = await api.post(START, GIVEN, headers=key)
    again = await api.post(START, GIVEN, headers=key)
    differs = await api.post(START, {"input": {"order": "o-2"}}, headers=key)
    strict = await api.post(START, {"input": {"order": "o-2"}}, headers={**key, "prefer": "handling=strict"})

    assert (first.status_code, again.status_code, differs.status_code) == (201, 200, 200)
    assert again.json() == {"instance": first.json()["instance"], "created": False}
    assert differs.json() == {"instance": first.json()["instance"], "created": False, "input_differs": True}
    assert (strict.status_code, strict.json()["code"]) == (422, "idempotency_key_reused")
    assert len(await api.fetch("select id from workflow_instances")) == 1


async def test_id_11_the_raw_key_is_nowhere_in_the_database(api: Api) -> None:
    await api.publish(ORDER)
    key = {"idempotency-key": "raw-key-of-a-client"}
    started = (await api.post(START, GIVEN, headers=key)).json()["instance"]
    await api.post(f"/v1/instances/{started['id']}/pause", headers=key)

    tables = await api.fetch(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'korak'::regnamespace"
    )
    for table in [row["relname"] for row in tables]:
        assert await api.fetch(f"select 1 from {table} t where t::text like '%raw-key-of-a-client%'") == [], table


async def test_id_3_parallel_starts_under_one_key_make_one_instance(api: Api, database_url: str) -> None:
    """T-GUARD-6."""
    await api.publish(ORDER)
    async with open_api(database_url) as other:
        answers = await asyncio.gather(
            *((api, other)[number % 2].post(START, GIVEN, headers={"idempotency-key": "k"}) for number in range(20))
        )

    bodies = [answer.json() for answer in answers]
    assert sorted(body["created"] for body in bodies) == [False] * 19 + [True]
    assert len({body["instance"]["id"] for body in bodies}) == 1
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len(await api.fetch("select id from workflow_instances")) == 1


async def test_id_4_a_key_that_has_expired_starts_anew(api: Api) -> None:
    await api.publish(ORDER)
    key = {"idempotency-key": "k-1"}
    first = await api.post(START, GIVEN, headers=key)
    await api.fetch("update workflow_idempotency_keys set expires_at = created_at")

    second = await api.post(START, GIVEN, headers=key)

    assert second.status_code == 201
    assert second.json()["instance"]["id"] != first.json()["instance"]["id"]


async def test_a_key_belongs_to_its_owner_and_its_definition(api: Api) -> None:
    await api.publish(ORDER)
    await api.publish(PURE)
    key = {"idempotency-key": "k-1"}
    await api.post(START, GIVEN, headers=key)

    theirs = await api.post(START, GIVEN, headers={**key, "korak-owner": "team:1"})
    another = await api.post("/v1/definitions/pure/start", {}, headers=key)

    assert (theirs.status_code, another.status_code) == (201, 201)


@pytest.mark.parametrize("key", ["k" * 192, "", "a\tb"])
async def test_a_key_is_short_and_printable(api: Api, key: str) -> None:
    await api.publish(ORDER)

    assert (await api.post(START, GIVEN, headers={"idempotency-key": key})).status_code == 422


# limits


async def test_lm_3_a_start_over_the_limit_is_kept_as_refused(api: Api) -> None:
    await api.publish(chain("few", node("price", "test.ok"), limits={"max_starts_per_minute": 2}))
    start = "/v1/definitions/few/start"

    answers = [await api.post(start, {}) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 429]
    refused = answers[2]
    body = refused.json()
    assert body["code"] == "start_rate_exceeded"
    assert body["params"] == {"limit": 2}
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    instance = await api.show(body["refused_instance"])
    assert (instance["status"], instance["closed_reason"]) == ("failed", "refused")
    assert instance["failure"]["code"] == "start_rate_exceeded"
    assert instance["actions"]["retry"] == "instance_not_retryable"
    listed = (await api.get("/v1/instances")).json()["items"]
    assert instance["id"] not in {item["id"] for item in listed}
    assert len(listed) == 2


async def test_lm_10_refused_starts_do_not_count_and_the_window_moves_on(api: Api) -> None:
    await api.publish(chain("few", node("price", "test.ok"), limits={"max_starts_per_minute": 1}))
    start = "/v1/definitions/few/start"
    statuses = [(await api.post(start, {})).status_code for _ in range(4)]

    await api.fetch("update flow_keys set counted_at = counted_at - 60")

    assert statuses == [201, 429, 429, 429]
    assert [(await api.post(start, {})).status_code for _ in range(2)] == [201, 429]


async def test_id_10_a_refused_start_leaves_its_key_free(api: Api) -> None:
    await api.publish(chain("few", node("price", "test.ok"), limits={"max_starts_per_minute": 1}))
    start = "/v1/definitions/few/start"
    first = await api.post(start, {}, headers={"idempotency-key": "a"})
    refused = await api.post(start, {}, headers={"idempotency-key": "b"})
    # A repeat of what was started isn't a start: no limit holds for it.
    repeated = await api.post(start, {}, headers={"idempotency-key": "a"})

    await api.fetch("update flow_keys set counted_at = counted_at - 60")
    freed = await api.post(start, {}, headers={"idempotency-key": "b"})

    assert [answer.status_code for answer in (first, refused, repeated, freed)] == [201, 429, 200, 201]
    assert freed.json()["instance"]["id"] != refused.json()["refused_instance"]


async def test_parallel_starts_never_exceed_a_limit(api: Api, database_url: str) -> None:
    await api.publish(chain("few", node("price", "test.ok"), limits={"max_starts_per_minute": 5}))
    async with open_api(database_url) as other:
        answers = await asyncio.gather(
            *((api, other)[number % 2].post("/v1/definitions/few/start", {}) for number in range(30))
        )

    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [429] * 25


async def test_the_engine_s_limit_holds_where_a_definition_has_none(database_url: str) -> None:
    async with open_api(database_url, KORAK_LIMITS__MAX_STARTS_PER_MINUTE="1") as api:
        await api.publish(ORDER)

        assert [(await api.post(START, GIVEN)).status_code for _ in range(2)] == [201, 429]


# waits


async def test_wait_answers_at_the_end(api: Api, database_url: str) -> None:
    """?wait= is told by the broker, or looks every second."""
    await api.publish(ORDER)
    waiting = asyncio.create_task(api.post(START, GIVEN, wait=30))
    async with open_flows(database_url) as flows:
        [row] = await eventually(lambda: api.fetch("select id from workflow_instances"))
        engine = await flows.register()
        step = await flows.claim(row["id"], engine, api.resources.clock.now())
        assert not waiting.done()
        assert step.claim_token is not None
        done = Finished(step.id, step.claim_token, Complete("next", {"total": 1}))
        await flows.answer(row["id"], done, api.resources.clock.now(), step=step.id)

    response = await waiting

    assert response.status_code == 201
    assert response.json()["instance"]["status"] == "completed"


async def test_wait_ends_with_its_time(api: Api) -> None:
    await api.publish(ORDER)

    response = await api.post(START, GIVEN, wait="0.1")

    assert (response.status_code, response.json()["instance"]["status"]) == (201, "running")


async def test_wait_ends_when_the_service_stops(api: Api) -> None:
    await api.publish(ORDER)
    waiting = asyncio.create_task(api.post(START, GIVEN, wait=60))
    await eventually(lambda: api.fetch("select id from workflow_instances"))

    api.stop.set()

    assert (await waiting).status_code == 201


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "inf", "soon"])
async def test_wait_takes_0_to_60_seconds(api: Api, wait: str) -> None:
    await api.publish(ORDER)

    response = await api.post(START, GIVEN, wait=wait)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_parameter")
    assert await api.fetch("select id from workflow_instances") == []


async def test_starts_are_counted(api: Api) -> None:
    await api.publish(PURE)
    await api.post("/v1/definitions/pure/start", {}, headers={"idempotency-key": "k"})
    await api.post("/v1/definitions/pure/start", {}, headers={"idempotency-key": "k"})

    shown = (await api.client.get("/metrics")).text

    assert 'korak_starts_total{result="created"} 1.0' in shown
    assert 'korak_starts_total{result="repeated"} 1.0' in shown
    assert 'korak_http_requests_total{method="POST",route="/v1/definitions/{key}/start",status="201"} 1.0' in shown


async def test_one_start_that_can_t_be_written_takes_no_other_with_it(api: Api) -> None:
    """A version edited by hand fails its own instance with a code; the others of the batch run."""
    await api.publish(ORDER)
    await api.publish(PURE)
    await api.fetch(
        "update workflow_versions set graph = '{\"nodes\": 1}' where definition_id ="
        " (select id from workflow_definitions where key = 'pure')"
    )

    broken, *others = await asyncio.gather(
        api.post("/v1/definitions/pure/start", {}), *(api.post(START, GIVEN) for _ in range(3))
    )

    assert [answer.status_code for answer in others] == [201] * 3
    assert broken.status_code == 201
    assert broken.json()["instance"]["failure"]["code"] == "invalid_graph"


async def test_st_3_the_longest_key_of_a_type_fits_its_steps(api: Api) -> None:
    kind = "long." + "k" * (MAX_KEY - 5)
    api.resources.catalogue.add(step(kind)(lambda ctx: None))  # type: ignore[attr-defined]  # a registry
    await api.publish(chain("long", node("work", kind)))

    assert (await api.start("long"))["nodes"] == ["work"]
