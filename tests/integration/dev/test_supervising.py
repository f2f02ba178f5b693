"""A supervised child: back at once, slower in a crash loop, ended in order, and gone with a parent that was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from korak.clock import Clock
from korak.dev.supervising import Program, Supervisor
from korak.loop import Backoff
from tests.support.devs import is_gone
from tests.support.waiting import eventually, eventually_blocking

BODIES = {
    "patient": "import signal; signal.pause()",
    "stubborn": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()",
    "crashing": "raise SystemExit(3)",
    "reading": "import signal, sys; open('read', 'w').write(repr(sys.stdin.read())); signal.pause()",
}
PARENT = """
import asyncio, sys
from korak import logs
from korak.clock import Clock
from korak.config import Logs
from korak.dev.supervising import Program, Supervisor

async def main():
    supervisor = Supervisor(Program("child", "patient"), Clock())
    running = asyncio.ensure_future(supervisor.run(asyncio.Event()))
    while supervisor.pid is None:
        await asyncio.wait({running}, timeout=0.01)
    sys.stdout.write(f"{supervisor.pid}\\n")
    sys.stdout.flush()
    await running

logs.configure(Logs())
asyncio.run(main())
"""


@dataclass(slots=True)
class Child:
    """A supervisor that runs."""

    supervisor: Supervisor
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    deaths: list[int] = field(default_factory=list)

    async def await_pid(self, *, other_than: int | None = None) -> int:
        """The child's process, once it is past its start."""

        def look() -> int | None:
            pid = self.supervisor.pid
            return pid if pid not in (None, other_than) and self._is_up(pid or 0) else None

        pid = await eventually(look, 20)
        assert pid is not None
        return pid

    def _is_up(self, pid: int) -> bool:
        return psutil.pid_exists(pid) and psutil.Process(pid).num_threads() > 1


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    """The programs on the Python path, and a stderr that children can be given."""
    for name, body in BODIES.items():
        (tmp_path / f"{name}.py").write_text(body)
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "err").open("w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        yield {"PYTHONPATH": str(tmp_path)}


@asynccontextmanager
async def running(module: str, environ: Mapping[str, str], **options: float) -> AsyncIterator[Child]:
    program = Program("child", module, environ=environ, grace=options.get("grace", 10))
    child = Child(supervisor=None)  # type: ignore[arg-type]  # set in the next line

    async def on_death(pid: int) -> None:
        child.deaths.append(pid)
        raise RuntimeError("a clean-up that fails ends nothing")

    backoff = Backoff(first=options.get("first", 0.01), most=options.get("most", 0.05))
    child.supervisor = Supervisor(program, Clock(), on_death=on_death, backoff=backoff)
    task = asyncio.ensure_future(child.supervisor.run(child.stop))
    try:
        yield child
    finally:
        child.stop.set()
        await task
        assert child.supervisor.pid is None


async def test_a_killed_child_is_replaced_and_cleaned_up_behind(environ: Mapping[str, str]) -> None:
    async with running("patient", environ) as child:
        first = await child.await_pid()
        psutil.Process(first).kill()
        second = await child.await_pid(other_than=first)
        assert child.deaths == [first]
    assert is_gone(second)
    assert child.deaths == [first]


async def test_a_crash_loop_waits_longer_and_longer(environ: Mapping[str, str]) -> None:
    async with running("crashing", environ, first=1000, most=1000) as child:
        await eventually(lambda: len(child.deaths) == 2, 20)
        assert child.supervisor.pid is None


async def test_a_child_that_does_not_end_is_killed(environ: Mapping[str, str]) -> None:
    async with running("stubborn", environ, grace=0.2) as child:
        pid = await child.await_pid()
    assert is_gone(pid)


async def test_a_child_that_reads_its_input_finds_none(environ: Mapping[str, str]) -> None:
    async with running("reading", environ) as child:
        await child.await_pid()
        await eventually(lambda: Path("read").exists() and Path("read").read_text() == "''", 20)


def test_a_child_ends_with_a_killed_parent(environ: Mapping[str, str]) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env={**environ})
    assert parent.stdout is not None
    try:
        with parent.stdout as stdout:
            pid = int(stdout.readline())
        await_start(pid)
    finally:
        parent.kill()
        parent.wait(10)
    eventually_blocking(lambda: is_gone(pid), 5)


def test_the_pipe_alone_would_end_it(environ: Mapping[str, str]) -> None:
    """Where there is no signal at a parent's death, the end of its pipe tells."""
    command = [sys.executable, "-m", "korak.dev.tether", str(os.getpid()), "patient"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env={**environ})
    await_start(child.pid)
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(10) == -signal.SIGKILL


def test_a_child_whose_parent_is_gone_before_it_began_ends(environ: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "korak.dev.tether", "1", "patient"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env={**environ})
    assert child.wait(20) == -signal.SIGKILL
    assert child.stdin is not None
    child.stdin.close()


def await_start(pid: int) -> None:
    """Wait until the child holds on to its parent: it has a second thread then."""
    eventually_blocking(lambda: psutil.Process(pid).num_threads() > 1, 20)
