"""Handlers and rows that do what none should: each costs its own instance, with a code, and nobody else anything."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from korak.model import JsonObject
from tests.support.graphs import chain, node
from tests.support.stage import Stage, staged

RETURNED = {
    **dict.fromkeys(
        ("object", "list", "number", "nan", "nul", "surrogate", "big_integer", "key", "bytes", "deep", "big", "class"),
        "invalid_output",
    ),
    "outcome": "unknown_outcome",
}
RAISED = {
    **dict.fromkeys(("exit", "base", "interrupt", "generator_exit", "text", "long"), "exception"),
    "failed": "acme_refused",
}
ENDLESS = ("e2e.never", "e2e.never_in_thread", "e2e.never_in_process", "e2e.stubborn")
LONGEST = 100_000
"""Characters of all that is told of an instance; a trace has 64 KiB."""

LISTS = ("steps", "events", "waits", "failures")

pytestmark = pytest.mark.timeout(180)


def hostile(kind: str, config: JsonObject, **members: Any) -> JsonObject:
    """A definition with one hostile node, named for what it does."""
    what = next(iter(config.values()), "")
    key = f"{kind}-{what if isinstance(what, str) else ''}".replace(".", "-").replace("_", "-").strip("-")
    return chain(key, node("work", kind, config, **members))


async def run_all(stage: Stage, graphs: list[tuple[JsonObject, str]]) -> None:
    """Start one instance of each document, and expect that it fails with its code, while a good one completes."""
    meant = {str(graph["key"]): ("failed", code) for graph, code in graphs}
    started: dict[str, str] = {}
    for graph, _ in graphs:
        await stage.calls.publish(graph)
        started[str(graph["key"])] = (await stage.calls.start(str(graph["key"]), {}))["id"]
    await assert_good(stage)
    told = {}
    for key, instance in started.items():
        ended = await stage.calls.wait_for_end(instance)
        told[key] = (ended["status"], (ended["failure"] or {}).get("code"))
        assert len(str(await tell(stage, instance))) < LONGEST, key
    assert told == meant
    await assert_good(stage)


async def tell(stage: Stage, instance: str) -> list[Any]:
    """All that the API says of an instance."""
    return [await stage.calls.get(instance), *[await stage.calls.get(instance, what) for what in LISTS]]


async def assert_good(stage: Stage) -> None:
    """An ordinary instance completes, on the same engine as ever."""
    started = await stage.calls.start("good", {}, wait=30)
    assert started["status"] == "completed"
    assert stage.engine.code is None


async def test_what_a_handler_returns_or_raises_costs_its_own_instance(tmp_path: Path, database_url: str) -> None:
    """LM-6, RT-8, RT-10: no JSON, 10 MB, SystemExit, a dead process: a code, and the engine goes on."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("good", node("work", "e2e.effect")))
        await run_all(
            stage,
            [
                *((hostile("e2e.returns", {"what": what}), code) for what, code in RETURNED.items()),
                *((hostile("e2e.raises", {"what": what}), code) for what, code in RAISED.items()),
                *((hostile("e2e.raises_in_thread", {"what": what}), "exception") for what in ("exit", "base")),
                (hostile("e2e.dies_in_process", {"code": 9}), "exception"),
            ],
        )
        await stage.assert_rules()
        assert await stage.engine.stop() == 0


async def test_a_handler_that_never_comes_back_ends_at_its_timeout(tmp_path: Path, database_url: str) -> None:
    """RT-14: on the loop, in a thread, in a process, or refusing to be cancelled; the engine still drains."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("good", node("work", "e2e.effect")))
        await run_all(stage, [(hostile(kind, {}, timeout=1), "timeout") for kind in ENDLESS])
        await stage.assert_rules()
        assert await stage.engine.stop() == 0


async def test_a_secret_that_a_handler_says_is_seen_nowhere(tmp_path: Path, database_url: str) -> None:
    """DESIGN 12.7: not in an output, an error, a trace, a log line, a metric or a row."""
    secret = token_hex(16)
    settings = {"KORAK_SECRETS__ENVIRONMENT": "E2E_SECRET_", "E2E_SECRET_KEY": secret, "KORAK_LOGS__LEVEL": "debug"}
    async with staged(tmp_path, database_url, None, settings) as stage:
        seen: list[str] = []
        for how in ("output", "failed", "raised"):
            graph = chain(how, node("work", "e2e.leaky", {"key": {"secret": "key"}, "how": how}))
            await stage.calls.publish(graph)
            instance = (await stage.calls.start(how, {}))["id"]
            ended = await stage.calls.wait_for_end(instance)
            assert ended["status"] == ("completed" if how == "output" else "failed")
            seen.append(str(await tell(stage, instance)))
        assert "it is " in seen[0]
        assert "refused with " in seen[1]
        assert "RuntimeError" in seen[2]
        assert secret not in "".join(seen)
        assert secret not in stage.fleet.read_logs()
        assert secret not in await dump(stage)
        for program in stage.fleet.programs:
            assert secret not in await program.read_metrics()


async def dump(stage: Stage) -> str:
    """Every row of every table."""
    tables = await stage.connection.fetch("select tablename from pg_tables where schemaname = 'korak'")
    rows = [await stage.connection.fetch(f"select t::text from {name} t") for (name,) in tables]
    return str(rows)


DAMAGE = {
    "graph": "update workflow_versions v set graph = '7' from workflow_definitions d"
    " where d.id = v.definition_id and d.key = 'graph' and v.status = 'published'",
    "nodes": "update workflow_versions v set graph = graph || '{\"nodes\": [{}, 7]}' from workflow_definitions d"
    " where d.id = v.definition_id and d.key = 'nodes' and v.status = 'published'",
    "contracts": "update workflow_versions v set contracts = '[]' from workflow_definitions d"
    " where d.id = v.definition_id and d.key = 'contracts' and v.status = 'published'",
    "walk": "update workflow_instances i set walk = '7' from workflow_definitions d"
    " where d.id = i.definition_id and d.key = 'walk'",
    "state": "update workflow_instances i set state = '[7]' from workflow_definitions d"
    " where d.id = i.definition_id and d.key = 'state'",
    "node": "update workflow_step_runs s set node_id = 'nowhere' from workflow_instances i, workflow_definitions d"
    " where i.id = s.instance_id and d.id = i.definition_id and d.key = 'node' and s.status in ('queued', 'waiting')",
}


@pytest.mark.parametrize("first", ["e2e.effect", "delay"])
async def test_garbage_in_a_row_costs_its_own_instance(
    tmp_path: Path, database_url: str, broker_url: str | None, first: str
) -> None:
    """A graph, a state, a walk or a step that somebody wrote by hand: `invalid_graph`, and the others run."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        stage.engine.kill()
        stage.waker.kill()
        begin = node("begin", first, {"for": 0.1} if first == "delay" else {})
        started: dict[str, list[str]] = {}
        for key in (*DAMAGE, "good"):
            await stage.calls.publish(chain(key, begin, node("work", "e2e.effect", save={"key": "work"})))
            started[key] = [(await stage.calls.start(key, {}))["id"] for _ in range(5)]
        for damage in DAMAGE.values():
            assert await stage.connection.execute(damage) != "UPDATE 0"
        stage.engine = await stage.fleet.start_ready("engine")
        await stage.fleet.start_ready("waker")

        await stage.end_all(60)

        rows = await stage.connection.fetch(
            "select d.key, i.status, i.failure_code, count(*) as count from workflow_instances i"
            " join workflow_definitions d on d.id = i.definition_id group by 1, 2, 3"
        )
        ends = {row["key"]: (row["status"], row["failure_code"], row["count"]) for row in rows}
        assert ends == {**dict.fromkeys(DAMAGE, ("failed", "invalid_graph", 5)), "good": ("completed", None, 5)}
        await assert_good(stage)
