"""`korak dev` as a newcomer meets it: one line, an order, kills of every kind, an end that leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from korak.dev import embedded
from tests.support import devs
from tests.support.devs import Dev, is_gone, make_shop, running_shop, start_dev
from tests.support.waiting import eventually_blocking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(180)]

MUG = {"order_id": "A-1", "sku": "mug", "quantity": 2}


def refuse(directory: Path, *flags: str, **environ: str) -> str:
    """What a `korak dev` that can't start says, which is one line."""
    done = subprocess.run(
        [devs.find_korak(), "dev", *flags],
        cwd=directory,
        env=devs.get_environ(**environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_an_order_completes_and_nothing_is_left_running(tmp_path: Path) -> None:
    """On an embedded database: stdout is one line, the order ships, SIGTERM ends with 0 and takes all along."""
    shop = make_shop(tmp_path / "shop")
    with start_dev(tmp_path, *shop.get_flags(), **shop.environ) as dev:
        assert (tmp_path / "out").read_text().count("\n") == 1
        ended = dev.finish(dev.start("order", MUG))
        assert (ended["status"], ended["result"]["status"], ended["result"]["total"]) == ("completed", "shipped", 25.0)
        left = json.loads((tmp_path / ".korak/client.json").read_text())
        assert left == {"url": dev.url, "token": dev.token}
        for file in ("client.json", "database.json", "token"):
            assert (tmp_path / ".korak" / file).stat().st_mode & 0o777 == 0o600
        trace = embedded.read_trace(tmp_path / ".korak/postgres")
        assert trace is not None
        pids = [trace.pid, *(child.pid for child in psutil.Process(dev.process.pid).children(recursive=True))]
        assert len(pids) >= 3
        assert dev.stop() == 0
        eventually_blocking(lambda: all(map(is_gone, pids)), message="something is still running")


def test_a_killed_engine_is_back_and_its_step_is_taken_over_at_once(tmp_path: Path, database_url: str) -> None:
    """SIGKILL in the middle of a step: a new engine, a new attempt, the effects not repeated, long before the lease."""
    shop = make_shop(tmp_path / "shop")
    flags = shop.get_flags(parcel_takes=1.5)
    with start_dev(tmp_path, *flags, **shop.environ, KORAK_DATABASE__URL=database_url) as dev:
        instance = dev.start("order", MUG)
        dev.await_step(instance, "ship", "running")
        engine = dev.find_child("engine")
        engine.kill()
        ended = dev.finish(instance)
        assert ended["status"] == "completed"
        attempts = [step for step in dev.list_steps(instance) if step["node"] == "ship"]
        assert [step["status"] for step in attempts] == ["failed", "completed"]
        assert attempts[0]["error"]["code"] == "lease_expired"
        assert attempts[0]["idempotency_key"] == attempts[1]["idempotency_key"]
        charged = [step["status"] for step in dev.list_steps(instance) if step["node"] == "charge"]
        assert charged.count("completed") == 1  # before it the provider may not have been up yet
        assert dev.find_child("engine").pid != engine.pid
        used = [line for line in dev.log() if line["event"] == "database_used"]
        assert [line["is_embedded"] for line in used] == [False]
        assert not (tmp_path / ".korak/postgres").exists()


def test_a_killed_dev_takes_its_children_along_and_goes_on_with_its_data(tmp_path: Path) -> None:
    """SIGKILL of the parent: engine and provider end with it; the server is taken over, and the order completes."""
    shop = make_shop(tmp_path / "shop")
    dev = start_dev(tmp_path, *shop.get_flags(parcel_takes=60), **shop.environ)
    instance = dev.start("order", MUG)
    dev.await_step(instance, "ship", "running")
    children = [dev.find_child("engine").pid, dev.find_child("shop.provider").pid]
    server = embedded.read_trace(tmp_path / ".korak/postgres")
    dev.kill()
    eventually_blocking(lambda: all(map(is_gone, children)), 5, message="a child outlived its parent")
    assert server is not None
    assert server.is_alive
    with start_dev(tmp_path, *shop.get_flags(), **shop.environ) as again:
        assert again.token == dev.token
        assert [line["server"] for line in again.log() if line["event"] == "taken_over"] == [server.pid]
        ended = again.finish(instance)
        assert (ended["status"], ended["result"]["status"]) == ("completed", "shipped")
        assert again.get("/v1/definitions/order")["version"] == 1


def test_a_server_that_was_killed_too_is_started_again(tmp_path: Path) -> None:
    """What a killed server leaves behind doesn't stop the next start, whoever has its number now."""
    dev = start_dev(tmp_path)
    file = tmp_path / ".korak/postgres/postmaster.pid"
    server = embedded.read_trace(file.parent)
    assert server is not None
    dev.kill()
    os.kill(server.pid, signal.SIGKILL)
    eventually_blocking(lambda: is_gone(server.pid))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    with start_dev(tmp_path) as again:
        assert again.get("/v1/me")["is_app_wide"]


def test_a_token_that_is_given_opens_everything(tmp_path: Path, database_url: str) -> None:
    with start_dev(tmp_path, "--token", "my own", KORAK_DATABASE__URL=database_url) as dev:
        assert dev.token == "my own"
        me = dev.get("/v1/me")
        assert (me["is_app_wide"], me["roles"]) == (True, ["admin"])


def test_a_graph_that_is_refused_stops_nothing_and_is_told(tmp_path: Path, database_url: str) -> None:
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    trigger = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
    document = {"schema": "korak.graph/v1", "key": "odd", "nodes": [trigger, {"id": "a", "type": "no.such"}]}
    (graphs / "odd.json").write_text(json.dumps({**document, "edges": [{"from": "start", "to": "a"}]}))
    (graphs / "other.json").write_text('{"name": "of another kind"}')
    with start_dev(tmp_path, "--publish", str(graphs), KORAK_DATABASE__URL=database_url) as dev:
        told = (tmp_path / "err").read_text()
        assert "/nodes/1/type" in told
        assert "no.such" in told
        assert "other.json" not in told
        assert dev.get("/v1/definitions")["items"] == []


def test_a_taken_port_is_one_line_and_says_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refuse(tmp_path, "--port", str(port))
    assert str(port) in line
    assert "--port" in line
    assert not (tmp_path / ".korak/postgres").exists()


def test_a_directory_that_is_in_use_is_one_line(tmp_path: Path, database_url: str) -> None:
    with start_dev(tmp_path, KORAK_DATABASE__URL=database_url):
        assert "--data" in refuse(tmp_path, "--port", "0", KORAK_DATABASE__URL=database_url)


def test_step_modules_that_are_not_there_are_one_line(tmp_path: Path, database_url: str) -> None:
    assert "no.such" in refuse(tmp_path, "--port", "0", "--steps", "no.such", KORAK_DATABASE__URL=database_url)


def test_the_orders_that_go_another_way(tmp_path: Path, database_url: str) -> None:
    """The example's table of what can go wrong."""
    with running_shop(tmp_path, KORAK_DATABASE__URL=database_url) as dev:
        _check_ways(dev)


def _check_ways(dev: Dev) -> None:
    orders: dict[str, dict[str, Any]] = {
        "lamp": {"order_id": "1", "sku": "lamp"},
        "declined": {"order_id": "2", "sku": "mug", "card": "declined"},
        "sold out": {"order_id": "3", "sku": "mug", "quantity": 1000},
        "big": {"order_id": "4", "sku": "desk", "quantity": 3},
        "unknown": {"order_id": "5", "sku": "yacht"},
    }
    instances = {name: dev.start("order", order) for name, order in orders.items()}
    ended = {name: dev.finish(instance) for name, instance in instances.items()}
    results = {name: (each["result"] or {}).get("status") for name, each in ended.items()}
    assert results == {
        "lamp": "shipped",
        "declined": "unpaid",
        "sold out": "sold out",
        "big": "shipped",
        "unknown": None,
    }
    assert ended["unknown"]["failure"]["code"] == "unknown_article"
    assert ended["big"]["state"]["service"] == "insured courier"
    reserved = [step for step in dev.list_steps(instances["lamp"]) if step["node"] == "reserve"]
    assert [step["status"] for step in reserved] == ["failed", "failed", "completed"]
    released = [step["status"] for step in dev.list_steps(instances["declined"]) if step["node"] == "release"]
    assert released == ["completed"]
