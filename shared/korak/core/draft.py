"""The working copy of a snapshot: the one place where a status changes, an event is numbered and a row is made."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from korak.core import transitions
from korak.core.changes import Changes, Grant, Leavings, Outward
from korak.core.holds import Holds
from korak.core.rooms import Needs
from korak.core.rows import Event, Failure, Instance, Scope, StepRun, copy
from korak.core.scopes import Scopes, get_state
from korak.core.snapshot import Claimant, Policy, Snapshot
from korak.core.stack import Stack
from korak.core.waits import Waits
from korak.graphs.plans import Plan, PlannedNode
from korak.model import (
    EventType,
    InstanceStatus,
    Json,
    JsonObject,
    ParkedFor,
    ScopeStatus,
    StepRole,
    StepStatus,
)


class Draft(Waits):
    """A snapshot under decision. Rows are copied when they are first edited; the snapshot itself never changes."""

    undone: list[int] | None = None
    fork: Changes | None = None
    leavings: Leavings | None = None
    outward: Outward | None = None
    holds: Holds | None = None

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        super().__init__(snapshot, now)
        self.snapshot = snapshot
        self.plan: Plan = snapshot.plan
        self.policy: Policy = snapshot.policy
        self.steps: dict[int, StepRun] = dict(snapshot.steps)
        self.scopes: Scopes = Scopes(snapshot.scopes, now)
        self.ended: dict[tuple[int | None, str], JsonObject] = snapshot.ended
        self.begin_fact()
        self.last_outputs: dict[int | None, JsonObject] = {}
        self.containers: list[int] = []
        self.ended_scopes: list[int] = []
        self.needs: Needs = Needs()
        self.cancelled: dict[int, StepRun] = dict(snapshot.cancelled)
        self._events: list[Event] = []
        self._failures: list[Failure] = []
        self._edited: dict[int, StepRun] = {}
        self._new_steps: list[StepRun] = []
        self._transitions: list[str] = []
        self._made_ready: dict[int, StepRun] = {}

    @cached_property
    def stack(self) -> Stack:
        """The compensations, of which only graphs that undo something have any."""
        return Stack(self.snapshot.compensations)

    def begin_fact(self) -> None:
        """Forget what belongs to the fact before: who asked, how far was walked, what runs by it."""
        self.walked = 0
        self.claimant: Claimant | None = None
        self.claimed: list[Grant] = []
        self.dropped: str | None = None

    # steps

    def get_step(self, step_id: int) -> StepRun | None:
        """The live attempt of that id, or None where it isn't live any more."""
        return self.steps.get(step_id)

    def edit(self, step: StepRun) -> StepRun:
        """The attempt's copy that may be changed."""
        if step.id < 0:
            return step
        if step.id not in self._edited:
            self._edited[step.id] = self.steps[step.id] = copy(step)
        return self._edited[step.id]

    def move(self, step: StepRun, to: StepStatus) -> StepRun:
        """The attempt with its new status, by an arrow that is drawn. An ended one leaves the live steps."""
        step = self.edit(step)
        self._transitions.append("step." + transitions.check(transitions.STEP, step.status, to))
        step.status = to
        if to is not StepStatus.QUEUED:
            step.parked_for = None
        if to in (StepStatus.QUEUED, StepStatus.WAITING):
            step.release_claim()
        if not to.is_live:
            step.finished_at = self.now
            self.clear_ready(step)
            self.steps.pop(step.id, None)
        if to is StepStatus.CANCELLED:
            self.cancelled[step.id] = step
        return step

    def settle_cancelled(self, step: StepRun) -> StepRun:
        """A cancelled attempt whose holder has been heard: its claim is over, so that it is heard once."""
        twin = step if step.id < 0 else self._edited.setdefault(step.id, copy(step))
        self.cancelled[step.id] = twin
        twin.release_claim()
        return twin

    def add_step(
        self, node: PlannedNode, *, visit: int, like: StepRun | None = None, scope_id: int | None = None
    ) -> StepRun:
        """A new attempt without a status: the first of a visit in a scope, or the one after `like`."""
        instance = self.instance
        step = StepRun(
            id=self.make_id(),
            instance_id=instance.id,
            owner_scope=instance.owner_scope,
            node_id=node.id,
            node_type=node.type,
            type_version=node.type_version,
            visit=visit,
            attempt=1,
            idempotency_key=f"wf:{instance.ulid}:{node.id}:{visit}",
            queue=node.queue or instance.queue or "default",
            created_at=self.now,
            priority=instance.priority if node.priority is None else node.priority,
            scope_id=scope_id,
        )
        if like is not None:
            step.attempt = like.attempt + 1
            step.retry_of = like.ulid
            step.execution_id, step.idempotency_key = like.execution_id, like.idempotency_key
            step.scope_id, step.parent_step_run_id = like.scope_id, like.parent_step_run_id
            step.role, step.call, step.hook_order = like.role, like.call, like.hook_order
            step.flow = like.flow
        if step.scope_id in self.scopes.rows:
            step.parent_step_run_id = self.scopes.rows[step.scope_id].step_run_id
        self.steps[step.id] = step
        self._new_steps.append(step)
        return step

    def make_ready(self, step: StepRun) -> StepRun:
        """The attempt, free to be claimed; a paused run parks it instead."""
        step = self.edit(step)
        if self.instance.paused_at is not None and step.role is StepRole.STEP:
            return self.hold(step)
        step.ready_at, step.sent_at, step.parked_for = self.now, None, None
        self._made_ready[step.id] = step
        return step

    def hold(self, step: StepRun) -> StepRun:
        """The attempt, not up for a claim while the run is paused. What it is owed on parking stays owed."""
        step = self.edit(step)
        step.ready_at = step.sent_at = None
        if step.status is StepStatus.QUEUED:
            step.parked_for = ParkedFor.PAUSE
        self._made_ready.pop(step.id, None)
        return step

    def clear_ready(self, step: StepRun) -> StepRun:
        """The attempt, no longer up for a claim."""
        step = self.edit(step)
        step.ready_at = step.sent_at = step.probe = None
        self._made_ready.pop(step.id, None)
        return step

    def close_chunks(self, step: StepRun) -> None:
        """What the visit has streamed is in its output now."""
        left = self.leave()
        if step.execution_id not in left.closed_chunks:
            left.closed_chunks.append(step.execution_id)

    def leave(self) -> Leavings:
        """Where it is noted what steps leave beside their records."""
        self.leavings = self.leavings or Leavings()
        return self.leavings

    # the instance and its history

    def move_instance(self, to: InstanceStatus) -> None:
        """Give the run its new status, by an arrow that is drawn."""
        if self.instance.status is not to:
            self._transitions.append("instance." + transitions.check(transitions.INSTANCE, self.instance.status, to))
            self.instance.status = to

    def record(self, event: EventType, step: StepRun | None = None, data: JsonObject | None = None) -> None:
        """Write one line of history, numbered without a gap."""
        instance = self.instance
        line = Event(instance.id, instance.next_seq, event, self.now, data=data)
        if step is not None:
            line.node_id, line.step_run_id = step.node_id, step.id
        self._events.append(line)
        instance.next_seq += 1

    def record_failure(self, failure: Failure) -> None:
        """Keep a failure, with what became of it."""
        self._failures.append(failure)

    def remember(self, step: StepRun, **what: Json) -> None:
        """What values and handlers read of this visit from now on (`steps.<id>`)."""
        if self.ended is self.snapshot.ended:
            self.ended = dict(self.ended)
        self.ended[(step.scope_id, step.node_id)] = what

    def _list_halted(self) -> dict[int, StepRun]:
        """Where the bodies stood that are still in view and to be started."""
        rows, halted = self.scopes.rows, self.snapshot.halted
        return {key: step for key, step in halted.items() if key in rows and rows[key].status is ScopeStatus.PENDING}

    def _list_ended(self) -> dict[tuple[int | None, str], JsonObject]:
        """What may still be read of ended visits: those of bodies that are over are nobody's."""
        if not self.scopes.is_touched:
            return self.ended
        rows, halted = self.scopes.rows, self.snapshot.halted
        live = {None, *(key for key, row in rows.items() if row.status is ScopeStatus.RUNNING or key in halted)}
        return {place: what for place, what in self.ended.items() if place[0] in live}

    def get_state(self, scope_id: int | None) -> JsonObject:
        """The state as a scope sees it."""
        return self.instance.state if scope_id is None else get_state(self.instance, self.scopes.rows, scope_id)

    def write_state(self, scope_id: int | None, written: JsonObject) -> None:
        """Replace top-level keys of the state, in this scope alone."""
        if written:
            place = self._edit_place(scope_id)
            place.state = {**(place.state or {}), **written}

    def get_walk(self, part: str, scope_id: int | None = None) -> JsonObject:
        """A copy of one part of a place's bookkeeping: `visits`, of the whole run, or `loops`, by node."""
        place = self.instance if scope_id is None else self.scopes.rows[scope_id]
        kept = (place.walk or {}).get(part)
        return dict(kept) if isinstance(kept, dict) else {}

    def set_walk(self, part: str, value: JsonObject, scope_id: int | None = None) -> None:
        """Replace one part of a place's bookkeeping."""
        place = self._edit_place(scope_id)
        place.walk = {**(place.walk or {}), part: value}

    def _edit_place(self, scope_id: int | None) -> Instance | Scope:
        return self.instance if scope_id is None else self.scopes.edit(scope_id)

    def end_scope(
        self, scope_id: int, to: ScopeStatus, *, outcome: str | None = None, output: Json = None, error: Json = None
    ) -> None:
        """The body has come to its end; its container is told before the decision is over."""
        scope = self.scopes.move(scope_id, to)
        scope.outcome, scope.output = outcome, output
        scope.error = error if isinstance(error, dict) else None
        self.ended_scopes.append(scope_id)

    def reach(self) -> Outward:
        """What this decision is to other runs."""
        if self.outward is None:
            self.outward = Outward()
        return self.outward

    def finish(self) -> Changes:
        """The changes, and the snapshot that holds after them."""
        instance, before = self.instance, self.snapshot.instance
        changes = Changes(
            instance=instance,
            before=self.snapshot,
            after=self.snapshot,
            is_new=before.status is None,
            is_ended=instance.is_ended and not before.is_ended,
            steps=list(self._edited.values()),
            new_steps=self._new_steps,
            waits=list(self._edited_waits.values()),
            new_waits=self._new_waits,
            scopes=list(self.scopes.edited.values()),
            new_scopes=self.scopes.added,
            closed_scopes=self.scopes.closed,
            adopted_scopes=self.scopes.adopted,
            deliveries=list(self._edited_deliveries.values()),
            new_deliveries=self._new_deliveries,
            events=self._events,
            failures=self._failures,
            leavings=self.leavings,
            transitions=self._transitions,
            undone=self.undone,
            fork=self.fork,
            outward=self.outward,
            demands=self.needs.demands,
            parkings=self.needs.parkings,
            freed=self._list_freed() if self.plan.has_flow else [],
            leaves=self.needs.leaves,
            holds=None if self.holds is None else self.holds.version,
        )
        if changes.is_empty:
            return changes
        instance.lock_version += 1
        instance.updated_at = self.now
        changes.ready = list(self._made_ready.values())
        changes.after = Snapshot(
            instance,
            self.plan,
            self.policy,
            self.steps,
            self.waits,
            self.scopes.rows,
            self._list_ended(),
            halted=self._list_halted(),
        )
        if self.plan.has_compensations:
            self.stack.finish(changes)
        return changes

    def _list_freed(self) -> list[int]:
        """The steps with limits of their own that ran before and don't now."""
        return [
            step.id
            for step in self.snapshot.steps.values()
            if step.status is StepStatus.RUNNING
            and ((now := self.steps.get(step.id)) is None or now.status is not StepStatus.RUNNING)
            and (node := self.plan.nodes.get(step.node_id)) is not None
            and node.flow
        ]
