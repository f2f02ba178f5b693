"""The workflows of a world, which are published anew now and then: runs stay with the version that they began with."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from korak.core.opening import Owner, Version
from korak.model import JsonObject
from tests.simulation.chaining import write_chain
from tests.simulation.graphs import write_graph
from tests.support.memory import Memory
from tests.support.plans import plan_of

OWNER = Owner("team:1", "team", "1")


class Definitions:
    """The newest version of each key, and those that chains pin by their checksums."""

    def __init__(self, random: Random, memory: Memory, count: int) -> None:
        self._random = random
        self._memory = memory
        self._last = 0
        self.newest: dict[str, Version] = {}
        self._pinned: dict[tuple[str, str], Version] = {}
        for number in range(1, count + 1):
            self._publish(number)

    def publish(self) -> None:
        """One of them gets a new version."""
        self._publish(self._random.randint(1, len(self.newest)))

    def find(self, key: str, checksum: str | None) -> Version | None:
        """The version that a step names."""
        return self.newest.get(key) if checksum is None else self._pinned.get((key, checksum))

    def forget(self, used: Iterable[int]) -> None:
        """Versions that no run has and none can start are gone."""
        kept = set(used) | {version.version_id for version in self.newest.values()}
        kept |= {version.version_id for version in self._pinned.values()}
        for version_id in self._memory.plans.keys() - kept:
            del self._memory.plans[version_id]

    def _publish(self, number: int) -> None:
        """What it may start has a lower number, or any now and then: then the depth ends it."""
        key = f"d{number}"
        startable = [f"d{each}" for each in range(1, number)]
        if self._random.random() < 0.05:
            startable.append(key)
        if self._random.random() < 0.35:
            built = write_chain(self._random, key, startable)
            self._pinned = {
                place: version for place, version in self._pinned.items() if not place[0].startswith(f"{key}.")
            }
            for child in built.children:
                self._pinned[child.key, child.checksum] = self._keep(child.document())
            self.newest[key] = self._keep(built.document())
        else:
            self.newest[key] = self._keep(write_graph(self._random, key, startable))

    def _keep(self, document: JsonObject) -> Version:
        self._last += 1
        plan = self._memory.plans[self._last] = plan_of(document)
        return Version(self._last, self._last, "0" * 64, plan)
