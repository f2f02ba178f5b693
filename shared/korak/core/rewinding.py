"""Going back: a run takes the state and the place that it had behind a completed step, and walks on from there."""

from __future__ import annotations

from typing import Final

from korak.core import deadlines, ending, undoing, walking
from korak.core.draft import Draft
from korak.core.past import Past
from korak.core.states import Position, Standing, replay
from korak.errors import Conflict, Issue
from korak.model import EventType, InstanceStatus, JsonObject

REWOUND = "rewound"
"""A part of the bookkeeping: how often the run went back. From then on every node's visits are counted."""

ENDED: Final = "it has ended for whoever waited for it; fork it instead"
UNDONE: Final = "what it had done was undone; fork it to a step before that, or start anew"
"""Why an instance can't be rewound."""


def rewind(draft: Draft, to: str, actor: JsonObject | None) -> None:
    """Go back to the place behind a completed step; what lives is cancelled, and what came after it is undone.

    A paused run stays paused. Conflict where the run has ended otherwise than by failing, where what it had done was
    undone as it failed, or where `to` names no such step.
    """
    instance = draft.instance
    if instance.is_ended and instance.status is not InstanceStatus.FAILED:
        raise Conflict("instance_not_rewindable", status=instance.status, why=ENDED)
    if instance.is_ended and draft.plan.settings.compensate_on_failure:
        raise Conflict("instance_not_rewindable", status=instance.status, why=UNDONE)
    standing = list_standing(draft)
    target = find(draft, standing, to)
    _clear(draft)
    if instance.is_ended:
        reopen(draft)
    draft.undone = [
        each.line.step.id for each in standing if each.line.seq > target.line.seq and each.line.step is not None
    ]
    restore(draft, target.position)
    draft.record(EventType.INSTANCE_REWOUND, None, {"to": describe(target), "seq": target.line.seq, "actor": actor})
    go_on(draft, target)


def list_standing(draft: Draft) -> list[Standing]:
    """The lines of the run's history that no rewind has undone. Conflict where they don't tell where it stood."""
    return replay(draft.plan, get_past(draft).lines)


def get_past(draft: Draft) -> Past:
    """The run's history. Conflict where it isn't there, or where there is no graph that it could be read by."""
    past = draft.snapshot.past
    if past is None or not draft.plan.nodes:
        raise Conflict("position_unknown")
    return past


def find(draft: Draft, standing: list[Standing], to: str | None) -> Standing:
    """The newest completed step that `to` names: an attempt's or a visit's id, a node, or the trigger for the start.

    None is the newest of all. Raises Conflict("step_not_completed") where none is named.
    """
    if to == draft.plan.trigger:
        return standing[0]
    for each in reversed(standing):
        step = each.line.step
        is_done = each.line.type is EventType.STEP_COMPLETED or step is None
        if is_done and (to is None or (step is not None and to in (step.ulid, step.execution_id, step.node_id))):
            return each
    raise Conflict("step_not_completed", issues=[Issue("step_not_completed", "/to", {"to": to})], to=to)


def describe(target: Standing) -> JsonObject:
    """A place, as history tells it."""
    step = target.line.step
    return {"node": None, "step": None} if step is None else {"node": step.node_id, "step": step.ulid}


def reopen(draft: Draft) -> None:
    """A failed run is open again; its deadline begins anew."""
    instance = draft.instance
    draft.move_instance(InstanceStatus.RUNNING)
    instance.ended_at = instance.closed_reason = None
    instance.failure_code = instance.failure_message = instance.failure_params = None
    instance.failure_category = instance.failed_node_id = None
    deadlines.begin_anew(draft)
    undoing.forget(draft)


def restore(draft: Draft, position: Position) -> None:
    """Let the run stand where it stood. Visits go on counting, so that no key is used twice; so do its costs."""
    instance, past = draft.instance, draft.snapshot.past
    instance.state, instance.transitions_count = position.state, position.transitions
    instance.result = position.last
    count = draft.get_walk(REWOUND).get("count")
    draft.set_walk(REWOUND, {"count": (count if isinstance(count, int) else 0) + 1})
    draft.set_walk("visits", {**draft.get_walk("visits"), **(past.visits if past else {})})
    draft.set_walk("loops", position.loops)
    if draft.plan.settings.prune_after:
        draft.set_walk("writers", position.writers)
    inner = {place: what for place, what in draft.ended.items() if place[0] is not None}
    draft.ended = {**inner, **{(None, node): what for node, what in position.ended.items()}}


def go_on(draft: Draft, target: Standing) -> None:
    """Walk on behind the step, by the outcome that it had."""
    step = target.line.step
    if step is None:
        walking.walk(draft, draft.plan.start)
        return
    node = draft.plan.nodes[step.node_id]
    following = walking.follow(draft, node, str(step.outcome), step.output or {}, scope_id=None)
    walking.walk(draft, following)


def _clear(draft: Draft) -> None:
    """Cancel what lives, as a cancel of the run does. Signals that nobody has taken stay for whoever waits next."""
    ending.cancel_steps(draft, list(draft.steps.values()))
