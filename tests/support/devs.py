"""`korak dev` and the commands as real processes, with the shop's workflow and its provider."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from tests.support.servers import ROOT, free_port
from tests.support.waiting import eventually_blocking

SHOP = ROOT / "examples" / "shop"
READY = 50.0
"""Seconds in which everything is ready, a new embedded database included."""


def get_environ(**more: str) -> dict[str, str]:
    """The environment of a command: nothing of Korak's from outside, the examples on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KORAK_")}
    return {**kept, "PYTHONPATH": str(ROOT / "examples"), "COLUMNS": "160", **more}


def find_korak() -> str:
    """The command as it is installed beside the Python that runs the tests."""
    return str(Path(sys.executable).with_name("korak"))


@dataclass(slots=True)
class Dev:
    """One `korak dev --json` in a directory of its own, from the moment that it is ready."""

    directory: Path
    process: subprocess.Popen[str]
    url: str
    token: str

    @property
    def client(self) -> httpx.Client:
        """An HTTP client with its token."""
        return httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {self.token}"}, timeout=30)

    def find_child(self, word: str) -> psutil.Process:
        """Its child with that word as an argument."""
        for child in psutil.Process(self.process.pid).children():
            if word in child.cmdline():
                return child
        raise AssertionError(f"no {word} among the children")

    def get(self, path: str, **query: Any) -> Any:
        """A body of the API."""
        with self.client as client:
            return client.get(path, params=query).raise_for_status().json()

    def start(self, key: str, given: dict[str, Any]) -> str:
        """The id of a new instance."""
        with self.client as client:
            answer = client.post(f"/v1/definitions/{key}/start", json={"input": given}).raise_for_status().json()
        return str(answer["instance"]["id"])

    def finish(self, instance: str, timeout: float = 40.0) -> dict[str, Any]:
        """The instance, once it has ended."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.get(f"/v1/instances/{instance}", wait=5)
            return found if found["ended_at"] else None

        ended = eventually_blocking(look, timeout, message=f"{instance} didn't end")
        assert ended is not None
        return ended

    def await_step(self, instance: str, node: str, status: str) -> dict[str, Any]:
        """The newest attempt at a node, once it has that status."""

        def look() -> dict[str, Any] | None:
            steps = [step for step in self.list_steps(instance) if step["node"] == node]
            return next((step for step in reversed(steps) if step["status"] == status), None)

        step = eventually_blocking(look, 30, message=f"{node} isn't {status}")
        assert step is not None
        return step

    def list_steps(self, instance: str) -> list[dict[str, Any]]:
        """All attempts."""
        return list(self.get(f"/v1/instances/{instance}/steps", limit=200)["items"])

    def log(self) -> list[dict[str, Any]]:
        """The lines of its log that are JSON."""
        lines = (self.directory / "err").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def kill(self) -> None:
        """SIGKILL, and wait for it."""
        self.process.kill()
        self.process.wait(20)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None and self.stop() != 0:
            raise AssertionError((self.directory / "err").read_text()[-4000:])


def start_dev(directory: Path, *flags: str, **environ: str) -> Dev:
    """Start one and wait until it is ready; what it said on stdout stands in the file `out`."""
    directory.mkdir(parents=True, exist_ok=True)
    out, err = directory / "out", directory / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            [find_korak(), "dev", "--json", "--port", "0", *flags],
            cwd=directory,
            env=get_environ(**environ),
            stdout=stdout,
            stderr=stderr,
            text=True,
        )

    def look() -> dict[str, str] | None:
        if process.poll() is not None:
            raise RuntimeError(f"korak dev ended with {process.returncode}:\n{err.read_text()[-4000:]}")
        text = out.read_text()
        return json.loads(text) if text.endswith("\n") else None

    try:
        told = eventually_blocking(look, READY, message="korak dev isn't ready") or {}
    except TimeoutError as error:
        process.kill()
        raise RuntimeError(err.read_text()[-4000:]) from error
    return Dev(directory, process, told["url"], told["token"])


@dataclass(frozen=True, slots=True)
class Shop:
    """The shop's workflow with its provider on a port of its own."""

    graphs: Path
    port: int

    def get_flags(self, *, settle_after: float = 0.1, parcel_takes: float = 0.1) -> Sequence[str]:
        """What `korak dev` must be told."""
        pace = f"--settle-after {settle_after} --parcel-takes {parcel_takes}"
        beside = f"shop.provider --port {self.port} {pace}"
        return ("--steps", "shop.steps", "--publish", str(self.graphs), "--with", beside)

    @property
    def environ(self) -> dict[str, str]:
        """What must be set."""
        return {
            "KORAK_WEBHOOK__ALLOW": f"127.0.0.1:{self.port}",
            "KORAK_SECRETS__ENVIRONMENT": "SHOP_",
            "SHOP_PAYMENT_KEY": "test-key",
        }


def make_shop(directory: Path) -> Shop:
    """A copy of the example that calls a port which is free here."""
    port = free_port()
    graphs = directory / "graphs"
    graphs.mkdir(parents=True)
    document = (SHOP / "order.json").read_text().replace("127.0.0.1:8090", f"127.0.0.1:{port}")
    (graphs / "order.json").write_text(document)
    return Shop(graphs, port)


@contextmanager
def running_shop(directory: Path, **environ: str) -> Iterator[Dev]:
    """A shop that is open."""
    shop = make_shop(directory / "shop")
    with start_dev(directory, *shop.get_flags(), **shop.environ, **environ) as dev:
        yield dev


def is_gone(pid: int) -> bool:
    """Whether there is no such process any more, or only its remains."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
