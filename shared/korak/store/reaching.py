"""Writing what decisions are to other runs: children, commands, ends, and who waits for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from korak.core.changes import Changes, Command, Outward
from korak.model import WaitKind, WaitStatus
from korak.store.database import Runner
from korak.store.statements import get_statement

Apply = Callable[[Runner, Sequence[Changes]], Awaitable[object]]


async def write(runner: Runner, batch: Sequence[Changes], apply: Apply) -> None:
    """Write it, after all that is the instances' own: whoever is told finds the wait that it is for.

    `apply` writes the children, whose own first walk may have ended them already.
    """
    closed = sorted(_list_closed(batch))
    if closed:
        await runner.fetch("dependencies_close", waits=closed)
    reached = [(changes, changes.outward) for changes in batch if changes.outward is not None]
    if not reached:
        return
    children = [child for _, outward in reached for child in outward.children]
    if children:
        await apply(runner, children)
        read = get_statement("children_claim").groups["child"].read
        await runner.fetch("children_claim", child=[read(child.instance) for child in children])
    await _address(runner, [outward for _, outward in reached])
    depending = [row for changes, outward in reached for row in _list_depending(changes, outward)]
    if depending:
        await runner.fetch("dependencies_open", dependency=depending)
    ended = [_get_end(changes, outward) for changes, outward in reached if outward.end is not None]
    if ended:
        await runner.fetch("children_end", ended=ended)


async def _address(runner: Runner, outwards: Sequence[Outward]) -> None:
    commands: list[Command] = [command for outward in outwards for command in outward.commands]
    if commands:
        read = get_statement("children_bid").groups["command"].read
        await runner.fetch("children_bid", command=[read(command) for command in commands])
    cascades = [cascade for outward in outwards for cascade in outward.cascades]
    if cascades:
        read = get_statement("cascades_open").groups["cascade"].read
        await runner.fetch("cascades_open", cascade=[read(cascade) for cascade in cascades])


def _list_closed(batch: Sequence[Changes]) -> Iterator[int]:
    over = (WaitStatus.FIRED, WaitStatus.CANCELLED)
    for changes in batch:
        for wait in changes.waits:
            if wait.kind is WaitKind.WORKFLOWS and wait.status in over:
                yield wait.id


def _list_depending(changes: Changes, outward: Outward) -> Iterator[tuple[Any, ...]]:
    for each in outward.dependencies:
        wait = each.wait
        place = (wait.id, each.place, wait.instance_id, wait.step_run_id)
        yield (*place, each.ulid, each.is_needed, changes.instance.updated_at)


def _get_end(changes: Changes, outward: Outward) -> tuple[Any, ...]:
    end, instance = outward.end or {}, changes.instance
    return instance.ulid, end, f"{instance.ulid}:{end.get('seq')}", instance.updated_at
