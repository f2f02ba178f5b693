"""Which broker a process uses: RabbitMQ where it has an address, else Postgres."""

from __future__ import annotations

from korak.broker.guarding import Timing
from korak.broker.notify import NotifyBroker
from korak.broker.port import Broker, Notifier, Puller
from korak.broker.rabbit import RabbitBroker


def open_broker(
    url: str | None,
    *,
    notifier: Notifier | None = None,
    puller: Puller | None = None,
    prefix: str = "korak",
    timing: Timing | None = None,
) -> Broker:
    """The broker at `url`; without one the Postgres broker, on `notifier`, and on `puller` where steps are consumed.

    `prefix` goes before every name at RabbitMQ. A ValueError where there is neither an address nor a notifier.
    """
    if url is not None:
        return RabbitBroker(url, prefix=prefix, timing=timing)
    if notifier is None:
        raise ValueError("the Postgres broker needs a notifier")
    return NotifyBroker(notifier, puller)
