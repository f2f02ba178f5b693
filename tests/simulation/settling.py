"""Whether anything still moves by itself once nothing goes wrong any more, and what must hold where nothing does."""

from __future__ import annotations

from korak.core.delivering import COMMANDS
from korak.core.rows import StepRun, Wait
from korak.model import EventType, ParkedFor, StepRole, StepStatus, WaitKind, WaitStatus
from tests.simulation import history, invariants
from tests.simulation.undoing import list_cleaning
from tests.support import ties
from tests.support.memory import Family, Memory

LEGITIMATE = {WaitKind.SIGNAL, WaitKind.EVENT, WaitKind.CHILD, WaitKind.WORKFLOWS}
"""What a run may wait for without an end: a client, or another run that does."""

BACK = {EventType.INSTANCE_RETRIED, EventType.INSTANCE_REWOUND}


def is_settled(memory: Memory) -> bool:
    """Whether every run has ended with every hook done, or waits for what only a client can send."""
    return not memory.cascades and all(_is_settled(memory, family) for family in memory.families.values())


def list_moving(memory: Memory) -> list[Family]:
    """The runs that aren't settled."""
    return [family for family in memory.families.values() if not _is_settled(memory, family)]


def is_told(family: Family) -> bool:
    """Whether no row that is addressed to the run waits to be taken."""
    return all(row.taken_at is not None or row.buffered_at is not None for row in family.signals.values())


def is_bidden(family: Family) -> bool:
    """Whether a command that was sent to the run waits to be obeyed."""
    return any(row.taken_at is None and row.kind in COMMANDS for row in family.signals.values())


def is_heard(family: Family) -> bool:
    """Whether the holder of every attempt that ran as it was cancelled has been heard, or was given up."""
    return not any(step.status is StepStatus.CANCELLED for step in family.claimed)


def _is_settled(memory: Memory, family: Family) -> bool:
    if not is_told(family):
        return False
    if family.instance.is_ended:
        return not family.live and is_heard(family)
    is_parked = all(
        step.role is StepRole.STEP and step.status is StepStatus.WAITING and step.ready_at is None
        for step in family.live
        if not _is_shut_out(memory, step)
    )
    return is_parked and all(_is_legitimate(memory, wait) for wait in family.open_waits)


def _is_legitimate(memory: Memory, wait: Wait) -> bool:
    match wait.kind:
        case WaitKind.CHILD:
            return not memory.find_ulid(wait.event_key or "").instance.is_ended
        case WaitKind.WORKFLOWS:
            awaited = {row.awaited_id for row in memory.dependencies if row.wait_id == wait.id}
            ended = {each for each in awaited if memory.families[each].instance.is_ended}
            return ended < awaited and all(_was_told(memory, wait, each) for each in ended)
        case kind:
            return kind in LEGITIMATE


def _was_told(memory: Memory, wait: Wait, awaited_id: int) -> bool:
    """Whether the wait was told of the run's last end. One that has ended and goes on again is waited for as before."""
    rows = memory.families[wait.instance_id].signals.values()
    last = ties.name_end(memory.families[awaited_id].instance)
    return any(row.wait_id == wait.id and row.source_id == last for row in rows)


def _is_shut_out(memory: Memory, step: StepRun) -> bool:
    """Whether a run that waits for a client keeps the room that the step needs."""
    rooms = memory.rooms
    return step.parked_for is ParkedFor.LIMIT and step.id in rooms.parked and not rooms.has_room(step.id)


def check_pause(memory: Memory) -> None:
    """A pause has reached all that is open below a paused run."""
    for family in memory.families.values():
        parent = None if family.parent_id is None else memory.families[family.parent_id].instance
        is_held = parent is not None and parent.paused_at is not None and not parent.is_ended
        if is_held and not _has_come_back(family, EventType.INSTANCE_RESUMED):
            assert family.instance.paused_at is not None or family.instance.is_ended, family.instance


def check_end(memory: Memory) -> None:
    """Who waits doesn't wait for what lies there; a child that was waited for has ended with its parent's step."""
    for family in memory.families.values():
        history.check_whole(memory, family)
        invariants.check_nothing_missed(memory, family)
        assert not list_cleaning(family), family.instance
        for wait in family.waits.values():
            if wait.kind is WaitKind.CHILD and _was_cancelled(family, wait):
                child = memory.find_ulid(wait.event_key or "")
                assert child.instance.is_ended or _has_come_back(child), child.instance


def _was_cancelled(family: Family, wait: Wait) -> bool:
    """Whether the wait ended with its step, and not by its time limit, which doesn't end the child."""
    mine = [other for other in family.waits.values() if other.step_run_id == wait.step_run_id]
    is_over = any(other.status is WaitStatus.FIRED for other in mine)
    return not is_over and family.steps[wait.step_run_id].status is StepStatus.CANCELLED


def _has_come_back(family: Family, *others: EventType) -> bool:
    """Whether a client has reopened the run, or done something else with it, who needn't care what its parent does."""
    back = [event.data or {} for event in family.events if event.type in BACK or event.type in others]
    return any(told.get("actor") is None for told in back)
