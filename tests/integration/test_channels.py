"""LISTEN and NOTIFY on a real Postgres: reconnects, bounds, and names that never meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.broker.messages import RunStep
from korak.broker.notify import NotifyBroker
from korak.broker.port import Delivery, Notifier
from korak.errors import TransientError
from korak.store.channels import MAX_PAYLOAD, Channels, channel_name
from tests.support import eventually


@pytest.fixture
async def channels(empty_database_url: str) -> AsyncIterator[Channels]:
    async with Channels(empty_database_url, "korak", timeout=3.0) as channels:
        yield channels


async def test_it_is_the_notifier_of_the_port(channels: Channels) -> None:
    notifier: Notifier = channels
    async with notifier.listen(["a"]) as told:
        await notifier.notify("a", ["1", "2"])
        assert [await anext(told), await anext(told)] == [("a", "1"), ("a", "2")]


async def test_channels_and_schemas_do_not_meet(channels: Channels, empty_database_url: str) -> None:
    async with Channels(empty_database_url, "other") as other, channels.listen(["a", "b"]) as told:
        await other.notify("a", ["theirs"])
        await channels.notify("c", ["elsewhere"])
        await channels.notify("b", ["ours"])
        assert await anext(told) == ("b", "ours")


async def test_two_listeners_of_a_channel_both_hear(channels: Channels) -> None:
    async with channels.listen(["a"]) as one:
        async with channels.listen(["a"]) as two:
            await channels.notify("a", ["x"])
            assert await anext(one) == await anext(two) == ("a", "x")
        await channels.notify("a", ["y"])
        assert await anext(one) == ("a", "y")


async def test_a_terminated_connection_comes_back_and_nudges_once(channels: Channels, empty_database_url: str) -> None:
    """A notification may have been missed meanwhile, so every listener looks."""
    async with channels.listen(["a", "b"]) as told:
        assert await _terminate_all(empty_database_url) == 1
        assert {await anext(told), await anext(told)} == {("a", ""), ("b", "")}
        await eventually(lambda: _is_told(channels))
        assert await anext(told) == ("a", "x")


async def test_while_there_is_no_connection_notifying_fails_at_once(empty_database_url: str) -> None:
    async with Channels("postgresql://postgres@127.0.0.1:1/none", "korak", timeout=0.1) as channels:
        assert not channels.is_connected
        with pytest.raises(TransientError):
            await channels.notify("a", ["x"])


async def test_a_payload_has_a_bound(channels: Channels) -> None:
    async with channels.listen(["a"]) as told:
        await channels.notify("a", ["x" * MAX_PAYLOAD])
        with pytest.raises(ValueError, match="7999"):
            await channels.notify("a", ["x" * (MAX_PAYLOAD + 1)])
        assert await anext(told) == ("a", "x" * MAX_PAYLOAD)


async def test_many_sends_are_few_notifications(channels: Channels) -> None:
    """DESIGN section 2: at most one in 5 ms a queue."""
    async with NotifyBroker(channels) as broker, channels.listen(["steps.default", "done"]) as told:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for _ in range(20):
            await asyncio.gather(*(broker.send("default", [RunStep((number,))]) for number in range(1, 51)))
        took = loop.time() - begun
        await channels.notify("done", ["x"])
        heard = 0
        while await anext(told) != ("done", "x"):
            heard += 1
        assert 1 <= heard <= 20
        assert heard <= took / 0.005 + 1


async def test_without_a_puller_there_are_no_consumers_of_steps(channels: Channels) -> None:
    async with NotifyBroker(channels) as broker:
        with pytest.raises(RuntimeError, match="puller"):
            broker.consumer(["default"], prefetch=1)


async def test_what_is_no_escalation_is_left_out(channels: Channels) -> None:
    async with NotifyBroker(channels) as broker:
        consumer = broker.escalations(prefetch=1)
        getting = asyncio.create_task(consumer.get(1))
        await eventually(lambda: _escalates(channels, getting))
        assert len(getting.result()) == 1


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_names_fit_and_differ(schema: str, channel: str, other_schema: str, other_channel: str) -> None:
    name = channel_name(schema, channel)
    assert len(name.encode()) <= 63
    assert (name == channel_name(other_schema, other_channel)) is ((schema, channel) == (other_schema, other_channel))


async def _terminate_all(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()
    return len(rows)


async def _is_told(channels: Channels) -> bool:
    try:
        await channels.notify("a", ["x"])
    except TransientError:
        return False
    return True


async def _escalates(channels: Channels, getting: asyncio.Task[list[Delivery]]) -> bool:
    if not getting.done():
        await channels.notify("escalations", ["garbage", "", '{"kind":"FireEscalation","escalations":[1]}'])
    return getting.done()
