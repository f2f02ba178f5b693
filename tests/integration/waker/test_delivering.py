"""Stages 1 and 2: what is addressed to an instance and was taken by nobody."""

from __future__ import annotations

from korak.model import JsonObject
from korak.store import emits
from korak.store.database import Session
from korak.store.emits import Emit
from korak_waker.report import Report
from tests.support.flows import Flows, chain, pausing, work
from tests.support.wakers import Wakers, at

LISTENING = chain(pausing(signal="go"), work())


async def send(flows: Flows, instance: int, kind: str, name: str | None = "go", **columns: JsonObject | int) -> int:
    """A row as the API leaves one, whose message is lost."""
    return int(
        await flows.get(
            "insert into workflow_signals (instance_id, step_run_id, owner_scope, kind, name, payload, source_id,"
            " created_at) values ($1, $2, '*', $3, $4, $5, gen_random_uuid()::text, $6) returning id",
            instance,
            columns.get("step"),
            kind,
            name,
            columns.get("payload", {}),
            at(0),
        )
    )


async def get_signal(flows: Flows, signal: int) -> tuple[bool, bool]:
    """Whether it was taken, and whether it is buffered."""
    [row] = await flows.fetch("select taken_at, buffered_at from workflow_signals where id = $1", signal)
    return row["taken_at"] is not None, row["buffered_at"] is not None


async def test_a_signal_whose_message_was_lost_is_delivered_again(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(LISTENING))
    await flows.ask_claim(instance, engine := await flows.register(), at(0))
    signal = await send(flows, instance, "signal")
    assert await wakers.run(29) == Report()
    assert await wakers.run(30) == Report(requeued=1)
    await flows.claim_any(instance, engine, at(31))
    assert await get_signal(flows, signal) == (True, False)
    assert (await flows.get_step(instance))["node_id"] == "work"


async def test_an_event_is_delivered_to_its_step_wt_8(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(event="paid", match={"order": "1"}), work())))
    engine = await flows.register()
    await flows.ask_claim(instance, engine, at(0))
    step = (await flows.get_step(instance))["id"]
    event = await send(flows, instance, "event", "paid", step=step, payload={"order": "1"})
    assert await wakers.run(30) == Report(requeued=1)
    await flows.claim_any(instance, engine, at(31))
    assert await get_signal(flows, event) == (True, False)


async def test_a_delivery_that_its_step_could_not_take_is_decided_at_the_next_look(
    flows: Flows, wakers: Wakers
) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(signal="go", match={"order": "1"}))))
    engine = await flows.register()
    await flows.ask_claim(instance, engine, at(0))
    signal = await send(flows, instance, "signal", payload={"order": "2"})
    assert await wakers.run(30) == Report(requeued=1)
    await flows.ask_claim(instance, engine, at(31))
    assert await wakers.run(61) == Report(deliveries=1)
    assert await get_signal(flows, signal) == (False, True)
    assert await wakers.run(1000) == Report()


async def test_a_signal_for_nobody_yet_is_kept(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    signal = await send(flows, instance, "signal")
    assert await wakers.run(30) == Report(deliveries=1)
    assert await get_signal(flows, signal) == (False, True)


async def test_an_event_whose_step_moved_on_is_discarded(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    event = await send(flows, instance, "event", step=999_999)
    assert await wakers.run(30) == Report(deliveries=1)
    assert await get_signal(flows, event) == (True, False)


async def test_what_is_addressed_to_an_ended_run_is_taken(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await flows.cancel(instance, at(0))
    event, command = await send(flows, instance, "event"), await send(flows, instance, "cancel", None)
    await wakers.run(30)
    assert await get_signal(flows, event) == await get_signal(flows, command) == (True, False)


async def test_a_command_that_found_the_run_locked_is_obeyed_soon(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    command = await send(flows, instance, "cancel", None, payload={"reason": "enough"})
    assert await wakers.run(0.5) == Report()
    assert await wakers.run(1) == Report(deliveries=1)
    row = await flows.get_instance(instance)
    assert (row["status"], row["cancel_reason"]) == ("cancelled", "enough")
    assert await get_signal(flows, command) == (True, False)


async def test_a_delivery_for_no_instance_is_looked_at_ever_more_rarely(flows: Flows, wakers: Wakers) -> None:
    signal = await send(flows, 4711, "signal")
    looks = []
    for second in range(30, 3000, 30):
        await wakers.run(second)
        if await flows.get("select sent_at from workflow_signals where id = $1", signal) == at(second):
            looks.append(second)
    assert looks == [30, 60, 120, 240, 480, 960, 1560, 2160, 2760]


async def test_a_hundred_deliveries_of_one_run_are_one_question(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    for _ in range(20):
        await send(flows, instance, "signal")
    assert await wakers.run(30) == Report(deliveries=1)


# events that were accepted and not matched to their end


async def emit(flows: Flows, order: str, *, seconds: float = 0.0, ttl: float = 3600.0) -> int:
    """An event that its emitter has kept and not matched."""
    event = Emit("*", "paid", {"order": order}, f"event-{order}-{seconds}", at(seconds), at(seconds + ttl))
    async with flows.database.transaction() as connection:
        return (await emits.keep(Session(connection), event)).id


async def test_an_event_whose_emitter_died_is_matched(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(event="paid", match={"order": "1"}), work())))
    engine = await flows.register()
    await flows.ask_claim(instance, engine, at(0))
    await emit(flows, "1")
    assert await wakers.run(4) == Report()
    assert await wakers.run(5) == Report(matched=1)
    await flows.claim_any(instance, engine, at(6))
    assert (await flows.get_step(instance))["node_id"] == "work"
    assert await wakers.run(7) == Report()


async def test_events_that_another_is_matching_hide_none_behind_them_wk_10(flows: Flows, wakers: Wakers) -> None:
    version = await flows.publish(chain(pausing(event="paid", match={"order": "9"}), work()))
    await flows.start(version)
    for order in range(10):
        await emit(flows, str(order))
    waker = await wakers.make(batch=2)
    async with flows.database.transaction() as holder:
        await holder.fetch("select from workflow_emits order by id limit 5 for update")
        assert await waker.run_once(at(10)) == Report(matched=1)
    await waker.run_once(at(11))
    assert await flows.get("select count(*) from workflow_emits where matched_at is null") == 0


async def test_kept_events_keys_and_answers_go_when_their_time_is_over(flows: Flows, wakers: Wakers) -> None:
    await emit(flows, "1", ttl=60)
    await emit(flows, "2", ttl=6000)
    assert await wakers.run(10) == Report()
    await flows.get(
        "insert into workflow_idempotency_keys (scope, key, expires_at, created_at) values ('start', '', $1, $1)", at(0)
    )
    assert await wakers.run(60) == Report(expired=2)
    assert await flows.get("select count(*) from workflow_emits") == 1


async def test_an_event_that_is_kept_for_no_time_is_matched_before_it_goes(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(event="paid", match={"order": "1"}), work())))
    await flows.ask_claim(instance, await flows.register(), at(0))
    await emit(flows, "1", ttl=0)
    assert await wakers.run(5) == Report(matched=1, expired=1)
