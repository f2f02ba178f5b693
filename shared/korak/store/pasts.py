"""Loads what led to where instances stand, for a fact that goes back to an earlier place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from korak.core.past import TURNS, Begun, Compensated, Line, Past, Stored
from korak.core.rows import StepRun, get_columns
from korak.core.snapshot import Snapshot
from korak.model import CompensationStatus, EventType
from korak.store.database import Runner
from korak.store.rows import read


async def load(runner: Runner, snapshots: Sequence[Snapshot]) -> None:
    """Give snapshots their past. Raises what the statements do."""
    if not snapshots:
        return
    ids = [snapshot.instance.id for snapshot in snapshots]
    lines: dict[int, list[Line]] = defaultdict(list)
    for row in await runner.fetch("past_load", ids=ids, types=list(TURNS)):
        step = None if row["id"] is None else read(StepRun, {name: row[name] for name in get_columns(StepRun)})
        lines[row["of_instance"]].append(Line(row["seq"], EventType(row["type"]), row["data"] or {}, step))
    visits: dict[int, dict[str, int]] = defaultdict(dict)
    for row in await runner.fetch("visits_count", ids=ids):
        visits[row["instance_id"]][row["node_id"]] = row["visit"]
    undoing: dict[int, list[Compensated]] = defaultdict(list)
    for row in await runner.fetch("past_compensations", ids=ids):
        status = CompensationStatus(row["status"])
        undoing[row["instance_id"]].append(Compensated(row["seq"], row["node_id"], row["visit"], status))
    begun, stored = await _load_beside(runner, ids)
    for snapshot in snapshots:
        own = snapshot.instance.id
        beside = tuple(undoing[own]), tuple(begun[own]), tuple(stored[own])
        snapshot.past = Past(tuple(lines[own]), visits[own], *beside)


async def _load_beside(
    runner: Runner, ids: Sequence[int]
) -> tuple[Mapping[int, list[Begun]], Mapping[int, list[Stored]]]:
    """What bodies have started, and what is kept beside the state, with where in the history that was.

    The first event of each attempt is read once: no index leads from an attempt to its events.
    """
    started = await runner.fetch("past_begun", ids=ids)
    kept = await runner.fetch("past_artifacts", ids=ids)
    firsts: dict[int, int] = {}
    if any(row["step_run_id"] is not None for row in started) or any(row["attempts"] for row in kept):
        firsts = {row["step_run_id"]: row["seq"] for row in await runner.fetch("past_firsts", ids=ids)}
    begun: dict[int, list[Begun]] = defaultdict(list)
    for row in started:
        step = row["step_run_id"]
        told = row["told"] if step is None else {**row["told"], "seq": firsts.get(step)}
        begun[row["instance_id"]] += read_begun(told)
    stored: dict[int, list[Stored]] = defaultdict(list)
    for row in kept:
        seqs = [firsts[step] for step in row["attempts"] if step in firsts]
        if row["is_from_outside"] or seqs:
            stored[row["instance_id"]].append(Stored(row["key"], min(seqs, default=None)))
    return begun, stored


def read_begun(told: Any) -> list[Begun]:
    """What is told of runs that bodies have started. It may have come with an import: nothing is taken for granted."""
    seq, ulids = (told.get("seq"), told.get("ids")) if isinstance(told, dict) else (None, None)
    if not isinstance(seq, int) or not isinstance(ulids, list):
        return []
    return [Begun(seq, tuple(str(ulid) for ulid in ulids))]
