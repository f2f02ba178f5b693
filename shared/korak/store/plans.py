"""Versions, compiled once: what runs is kept by the id of its version, which never changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from korak.errors import KorakError
from korak.graphs.planning import build
from korak.graphs.plans import Plan, PlanSettings
from korak.store.database import Runner

KEPT = 1_000
"""How many versions a process keeps compiled; the one that was used longest ago goes first."""


class Plans:
    """The compiled versions of a process."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._plans: OrderedDict[int, Plan] = OrderedDict()
        self._numbers: dict[int, int] = {}

    async def get(self, runner: Runner, version_ids: Iterable[int]) -> dict[int, Plan]:
        """The plans of versions, by id. One whose stored graph can't be read has a plan without nodes."""
        wanted = set(version_ids)
        missing = [version_id for version_id in wanted if version_id not in self._plans]
        if missing:
            for row in await runner.fetch("versions_load", ids=missing):
                self._plans[row["id"]] = compile_version(row)
                self._numbers[row["id"]] = row["number"]
        found = {version_id: self._plans[version_id] for version_id in wanted}
        for version_id in wanted:
            self._plans.move_to_end(version_id)
        while len(self._plans) > self._kept:
            version_id, _ = self._plans.popitem(last=False)
            self._numbers.pop(version_id, None)
        return found

    def get_number(self, version_id: int) -> int:
        """The number of a version that was loaded here."""
        return self._numbers.get(version_id, 0)


def compile_version(row: Mapping[str, Any]) -> Plan:
    """A version's plan; one without nodes where the stored graph was edited by hand: its instances fail with a code."""
    try:
        return build(row["graph"], row["contracts"])
    except KorakError:
        return Plan(
            key=row["key"],
            trigger="",
            start="",
            nodes={},
            settings=PlanSettings(),
            referenced=frozenset(),
            signals=frozenset(),
            inputs=None,
            input_schema=None,
        )
