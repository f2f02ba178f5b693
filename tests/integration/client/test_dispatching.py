"""Chains that are dispatched: pinned to their own version, whichever is current, with one key for all of a run's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak import chain
from korak.chains import Chain
from korak.client import AsyncKorak
from korak.errors import Conflict, Forbidden, Invalid, SchemaOlder
from korak.model import OwnerRole
from korak_api.embedding import embed
from tests.support.apis import URL, Api, get_settings


def build(text: str) -> Chain:
    """A code version of one chain."""
    return chain("report").wait_for_signal(text).max_state_bytes(500)


async def test_a_dispatch_publishes_its_own_version_and_leaves_the_current_one(api: Api, korak: AsyncKorak) -> None:
    """Two code versions of a rolling deploy don't publish over each other"""
    old, new = build("old"), build("new")
    await korak.publish(old)
    runs = await asyncio.gather(*(each.dispatch({"n": 1}, client=korak) for each in (old, new, old, new, new)))
    shown = [await korak.get(run) for run in runs]
    assert [each["definition_hash"] for each in shown] == [each.checksum for each in (old, new, old, new, new)]
    assert [each["waiting_for"][0]["names"] for each in shown] == [["old"], ["new"], ["old"], ["new"], ["new"]]
    assert shown[1]["state"] == {"n": 1}
    standing = (await api.get("/v1/definitions/report")).json()
    assert (standing["version"], standing["published_checksum"]) == (1, old.checksum)
    versions = (await api.get("/v1/definitions/report/versions")).json()["items"]
    assert [each["number"] for each in versions] == [2, 1]


async def test_the_first_dispatch_of_all_makes_the_definition(api: Api, korak: AsyncKorak) -> None:
    runs = await asyncio.gather(*(build("first").dispatch(client=korak) for _ in range(10)))
    assert len(set(runs)) == 10
    versions = (await api.get("/v1/definitions/report/versions")).json()["items"]
    assert [each["number"] for each in versions] == [1]
    with pytest.raises(Conflict) as raised:
        await korak.start("report")
    assert raised.value.code == "definition_not_published"


async def test_t_guard_5_one_key_is_one_run(api: Api, korak: AsyncKorak) -> None:
    keyed = build("keyed").idempotency_key("K")
    one = await keyed.dispatch({"a": 1}, client=korak)
    assert await keyed.dispatch({"a": 2}, client=korak) == one
    assert await build("other").idempotency_key("K").dispatch(client=korak) == one
    assert await keyed.dispatch(client=korak, idempotency_key="L") != one
    assert (await korak.get(one))["state"] == {"a": 1}
    assert len(await api.fetch("select id from workflow_instances")) == 2
    assert len(await api.fetch("select id from workflow_step_runs where node_id = 'begin'")) == 2


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ({"_x": 1}, "/input/_x"),
        ({"text": "x" * 500}, "/input"),
        ({"a": {"b": float("nan")}}, "/input/a/b"),
        ({"a": object()}, "/input/a"),
        ([1], None),
    ],
)
async def test_t_state_5_and_t_guard_4_what_can_t_be_a_state_is_never_sent(payload: Any, pointer: str | None) -> None:
    async with AsyncKorak("http://127.0.0.1:9", "token", retries=0) as nowhere:
        with pytest.raises(Invalid) as raised:
            await build("bad").dispatch(payload, client=nowhere)
    assert [issue.pointer for issue in raised.value.issues] == ([] if pointer is None else [pointer])


async def test_who_may_only_start_can_t_publish_by_a_dispatch(api: Api, korak: AsyncKorak, door: Any) -> None:
    starter = await api.make_token(OwnerRole.STARTER)
    async with AsyncKorak(URL, starter, transport=door) as client:
        with pytest.raises(Forbidden):
            await build("new").dispatch(client=client)
        await korak.publish(build("new"), current=False)
        assert await build("new").dispatch(client=client)


async def test_t_x_4_a_chain_of_nobody_s_is_refused(korak: AsyncKorak) -> None:
    with pytest.raises(Invalid) as raised:
        await chain("strange").then("nobody.has_this").dispatch(client=korak)
    assert "unknown_type" in {issue.code for issue in raised.value.issues}


async def test_a_service_dispatches_in_its_own_process(api: Api) -> None:
    """With the pool that it has, and no server, address or token"""
    settings = api.resources.settings
    async with embed(settings, owner="team:42", database=api.database) as korak:
        run = await build("inside").dispatch({"a": 1}, client=korak)
        assert (await korak.get(run))["owner"] == "team:42"
        assert (await korak.signal(run, "inside"))["delivered"]
        assert (await korak.wait(run, timeout=10))["status"] == "completed"
    async with embed(settings) as korak:
        assert [each["id"] async for each in korak.list()] == []


async def test_a_settings_client_is_used_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KORAK_CLIENT__URL", "http://127.0.0.1:9")
    monkeypatch.setenv("KORAK_CLIENT__TOKEN", "token")
    with pytest.raises(Invalid):
        await build("x").dispatch({"_x": 1})


async def test_the_chains_that_a_chain_starts_are_published_before_it(api: Api, korak: AsyncKorak) -> None:
    """A run starts the very versions that its code had, whichever are current"""
    leaf = chain("leaf").wait_for_signal("a")
    top = chain("top").run_workflow("leaf", leaf).run_workflow("middle", chain("middle").run_workflow("leaf", leaf))
    run = await korak.get(await top.dispatch({"a": 1}, client=korak))
    assert run["definition_hash"] == top.checksum
    rows = await api.fetch("select key, current_version_id from workflow_definitions order by id")
    assert [(row["key"], row["current_version_id"]) for row in rows] == [
        ("leaf", None),
        ("middle", None),
        ("top", None),
    ]
    assert (await korak.publish(top))["status"] == "published"
    [current] = await api.fetch("select key from workflow_definitions where current_version_id is not null")
    assert current["key"] == "top"


async def test_a_service_is_told_that_its_database_was_not_migrated(empty_database_url: str) -> None:
    with pytest.raises(SchemaOlder, match="run korak migrate"):
        async with embed(get_settings(empty_database_url)):
            pass
