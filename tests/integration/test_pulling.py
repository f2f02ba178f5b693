"""The Postgres broker's consumer on the real release query, while its connections are cut."""

from __future__ import annotations

from korak.broker.messages import RunStep
from korak.broker.notify import NotifyBroker
from korak.clock import ManualClock
from korak.releasing import Puller
from korak.store.channels import Channels
from korak.store.database import Database
from tests.support.flows import NOW, chain, open_flows, work
from tests.support.waiting import eventually

CUT = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'cut'"


async def test_a_consumer_goes_on_where_its_connection_is_lost(database_url: str) -> None:
    """Whoever takes steps sees no fault of the database: it gets what stands ready once that can be read again."""
    async with (
        open_flows(database_url) as flows,
        Channels(database_url, "korak") as channels,
        Database(database_url, "korak", name="cut") as database,
    ):
        puller = Puller(database, ManualClock(NOW))
        async with NotifyBroker(channels, puller, poll=0.05) as broker:
            consumer = broker.consumer(["default"], 10)
            version = await flows.publish(chain(work()))
            for _ in range(3):
                [instance_id] = await flows.start(version)
                [delivery] = await consumer.get(10)
                step = await flows.get_step(instance_id)
                assert delivery.message == RunStep((step["id"],))
                await eventually(lambda: flows.get(CUT), message="there was no connection to cut")
            await consumer.stop()
