"""Violence against a stage, drawn from a seed and paced by the work that is done, so that it meets all of it."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.support import load
from tests.support.fleet import Program
from tests.support.proxies import Proxy
from tests.support.stage import Stage

SEVER = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and random() < $1"""


@dataclass(eq=False)
class Chaos:
    """Kills and replaces processes, and cuts connections, after every `stride` or so attempts that have ended.

    `wire` is the one to the broker, where it has one of its own.
    """

    stage: Stage
    chance: random.Random
    wire: Proxy | None = None
    _services: dict[str, Program] = field(default_factory=dict)

    async def run(self, acts: int, stride: int) -> None:
        """So many acts, against two engines, a waker and an API."""
        stage, seen = self.stage, 0
        second = stage.fleet.start("engine")
        self._services = {"engine": stage.engine, "other engine": second, "waker": stage.waker, "api": stage.api}
        for _ in range(acts):
            seen = await load.wait_for_steps(stage, seen + self.chance.randint(stride // 2, stride))
            await self._act()

    async def _act(self) -> None:
        acts: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            *((f"kill {name}", lambda name=name: self._kill(name)) for name in self._services),
            ("kill both engines", self._kill_engines),
            ("sever the database", self._sever),
            ("cut the broker", self._cut),
        ]
        name, act = self.chance.choice(acts)
        sys.stdout.write(f"{name}\n")
        await act()

    async def _kill(self, name: str) -> None:
        victim = self._services[name]
        victim.kill()
        self._services[name] = self.stage.fleet.start(victim.name)

    async def _kill_engines(self) -> None:
        for name in ("engine", "other engine"):
            await self._kill(name)

    async def _sever(self) -> None:
        await self.stage.connection.fetchval(SEVER, self.chance.random())

    async def _cut(self) -> None:
        if self.wire is not None:
            self.wire.cut(refuse=False)
