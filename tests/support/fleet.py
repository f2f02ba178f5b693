"""Korak's real commands as processes: started, killed, frozen and started again by the tests, each by its own pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.servers import ROOT, free_port
from tests.support.waiting import eventually

READY = 30.0
END = 30.0
TAIL = 6_000
"""Characters of a log that are shown where a test has failed."""

QUICK = {
    "KORAK_DATABASE__POOL": "4",
    "KORAK_ENGINE__LEASE": "3",
    "KORAK_ENGINE__GRACE": "2",
    "KORAK_ENGINE__REQUEUE_AFTER": "2",
    "KORAK_ENGINE__DRAIN": "10",
    "KORAK_RETRY__BACKOFF": "0.2,0.5,1",
    "KORAK_WAKE__INTERVAL": "0.2",
}
"""Settings under which a loss is mended within seconds, and a server's hundred connections serve several fleets."""


@dataclass(eq=False)
class Program:
    """One command that runs. It is ended only by this object, by its own pid."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    port: int
    url: str = field(init=False)

    def __post_init__(self) -> None:
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.process.poll()

    def read_log(self) -> str:
        """What it has logged until now."""
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        if self.code is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and gone."""
        self.send(signal.SIGKILL)
        self.process.wait(END)

    def freeze(self) -> None:
        """SIGSTOP."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    async def wait(self, timeout: float = END) -> int:
        """Its exit code, once it has ended."""
        await eventually(lambda: self.code is not None, timeout, message=f"{self.name} doesn't end")
        assert self.code is not None
        return self.code

    async def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.send(signal.SIGTERM)
        return await self.wait()

    async def is_ready(self) -> bool:
        """Whether it says that it does its work."""
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.get(f"{self.url}/readyz", timeout=2)
        except httpx.TransportError:
            return False
        return answer.status_code == 200

    async def wait_until_ready(self) -> None:
        """Until it does its work; at once an error where it ended instead."""

        async def look() -> bool:
            if self.code is not None:
                raise RuntimeError(f"{self.name} ended with {self.code}:\n{self.read_log()[-TAIL:]}")
            return await self.is_ready()

        await eventually(look, READY, message=f"{self.name} isn't ready")

    async def read_metrics(self) -> str:
        """All that it counts, as Prometheus reads it."""
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(f"{self.url}/metrics", timeout=5)).text

    async def read_metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's series that have these labels."""
        text = await self.read_metrics()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = (line for line in text.splitlines() if line.partition("{")[0].partition(" ")[0] == name)
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(each in line for each in wanted))


class Fleet:
    """The processes of one test on one database. A context manager: what still runs at the end is killed."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.api_port = free_port()
        self.environment = {**QUICK, **environment}
        self.programs: list[Program] = []

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.kill()

    def start(self, name: str, **settings: str) -> Program:
        """Start `korak <name>` with further settings, such as `ENGINE__CONCURRENCY="4"`."""
        port = self.api_port if name == "api" else free_port()
        own = {"KORAK_API__PORT" if name == "api" else "KORAK_HEALTH__PORT": str(port)}
        own |= {f"KORAK_{setting}": value for setting, value in settings.items()}
        log = self.folder / f"{len(self.programs)}-{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "korak", name],
                env=self._get_environment(own),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )
        program = Program(name, process, log, port)
        self.programs.append(program)
        return program

    async def start_ready(self, name: str, **settings: str) -> Program:
        """The same, once it does its work."""
        program = self.start(name, **settings)
        await program.wait_until_ready()
        return program

    def run(self, *arguments: str) -> str:
        """What a command that ends says."""
        done = subprocess.run(
            [sys.executable, "-m", "korak", *arguments],
            env=self._get_environment({}),
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=END,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read_logs(self) -> str:
        """All that all of them have logged."""
        return "".join(program.read_log() for program in self.programs)

    def show_logs(self) -> str:
        """The ends of all logs, as they are shown where a test has failed."""
        return "".join(
            f"----- {program.log.name} (pid {program.pid}, exit code {program.code})\n{program.read_log()[-TAIL:]}\n"
            for program in self.programs
        )

    def _get_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KORAK_")}
        return {**inherited, "PYTHONPATH": str(ROOT), **self.environment, **own}
