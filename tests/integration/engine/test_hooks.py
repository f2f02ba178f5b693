"""A cancel hook after its step's engine has died: called a second time, and what once() saved is there (CN-6, CL-9)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from korak import config
from korak.clock import ManualClock
from korak.core.facts import Lost
from korak.core.rows import StepRun
from korak_engine.effects import Effects
from korak_engine.identity import Identity
from korak_engine.work import Work
from tests.support.flows import NOW, Flows, chain, open_flows, work

HOOKS = "select id, call, output from workflow_step_runs where instance_id = $1 and role = 'cancel' order by call"


async def claim(flows: Flows, engine: int) -> Work:
    """The newest attempt, hooks included, as an engine holds it."""
    instance = await flows.get("select id from workflow_instances")
    changes = await flows.ask_claim(instance, engine, NOW)
    [grant] = changes.claimed
    return Work(grant.step, grant.input, changes.after, 1)


async def save(connection: Any) -> int:
    await connection.execute(text("insert into public.ledger values (7)"))
    return 7


async def test_cn_6_after_a_dead_engine_the_second_call_recalls_what_once_saved(database_url: str) -> None:
    database = config.Database(url=database_url)
    async with open_flows(database_url) as flows, Effects(database, ManualClock(NOW)) as effects:
        await flows.get("create table public.ledger (amount integer)")
        [instance] = await flows.start(await flows.publish(chain(work(kind="test.held"))))
        engine = await flows.register()
        running = await claim(flows, engine)
        assert await effects.once(running, "charge", save) == 7
        await flows.cancel(instance, NOW)
        first = await claim(flows, engine)
        assert await effects.recall(first, "charge") == 7
        step: StepRun = running.step
        await flows.answer(instance, Lost(step.id, step.claim_token or ""), NOW, step=step.id)
        second = await claim(flows, engine)
        assert await effects.recall(second, "charge") == 7
        assert await effects.recall(second, "other") is None
        hooks = await flows.fetch(HOOKS, instance)
    assert [(row["id"], row["call"], row["output"]) for row in hooks] == [
        (first.step.id, 1, None),
        (second.step.id, 2, None),
    ]


def test_cl_9_a_token_has_26_characters_and_is_no_other_s() -> None:
    identity = Identity(frozenset({"default"}), lambda key, version: True)
    tokens = {identity.get_claimant().token for _ in range(100)}
    assert {len(token) for token in tokens} == {26}
    assert len(tokens) == 100
