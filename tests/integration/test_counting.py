"""The broker that counts, over the Postgres one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from korak.broker.counting import CountingBroker
from korak.broker.messages import Message, RunStep
from korak.broker.notify import NotifyBroker
from korak.store.channels import Channels


class Standing:
    """One step that stands ready, once."""

    def __init__(self) -> None:
        self.ready: list[Message] = [RunStep((7,))]

    async def pull(self, queues: Sequence[str], limit: int) -> list[Message]:
        pulled, self.ready = self.ready, []
        return pulled

    async def unstamp(self, messages: Sequence[Message]) -> None:
        self.ready.extend(messages)


async def test_what_is_sent_and_taken_is_counted_by_queue(empty_database_url: str) -> None:
    counts: Counter[tuple[str, str]] = Counter()

    def count(queue: str, way: str, messages: int) -> None:
        counts[queue, way] += messages

    async with (
        Channels(empty_database_url, "korak") as channels,
        CountingBroker(NotifyBroker(channels, Standing()), count) as broker,
    ):
        await broker.send("default", [RunStep((1,)), RunStep((2,))])
        consumer = broker.consumer(["default"], prefetch=1)
        assert [delivery.message for delivery in await consumer.get(5)] == [RunStep((7,))]
        await consumer.stop()
        assert broker.pulls
    assert counts == {("default", "sent"): 2, ("default", "taken"): 1}
