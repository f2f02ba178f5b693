"""The store's rows in memory: loaded, written and constrained as the statements and the migration have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from korak.core.changes import Cascade, Changes, Leavings, Outward
from korak.core.counters import DONE, Counters
from korak.core.failing import get_told
from korak.core.holds import NO_HOLDS, Held, Holds
from korak.core.past import TURNS, Begun, Compensated, Line, Past, Stored
from korak.core.rows import (
    Artifact,
    Child,
    Compensation,
    Delivery,
    Event,
    Failure,
    Instance,
    Scope,
    StepRun,
    Wait,
    copy,
)
from korak.core.snapshot import Kept, Policy, Snapshot
from korak.graphs.document import REDUCED
from korak.graphs.plans import Plan
from korak.model import (
    CompensationStatus,
    DeliveryKind,
    EventType,
    InstanceStatus,
    JsonObject,
    ScopeStatus,
    StepRole,
    StepStatus,
    TriggerKind,
    WaitKind,
    WaitStatus,
)
from korak.store.applying import DOCUMENTS, RARE, is_begun_here, is_closed_here
from korak.store.loading import get_holds, has_ended
from korak.store.pasts import read_begun
from korak.store.sealing import Ids
from korak.store.statements import get_statement
from tests.support.constraints import check_instance, check_scopes, check_signals, check_step, check_steps, check_wait
from tests.support.rooms import Rooms

Row = TypeVar("Row", Instance, StepRun, Wait, Delivery, Scope, Compensation)

Fault = Callable[[], None]
"""Called before every statement; what it raises rolls the transaction back."""


class Counter(Ids):
    """Ids in blocks: what one process takes later may well be lower than what another has taken before."""

    def __init__(self, memory: Memory, block: int = 1) -> None:
        super().__init__(block)
        self._memory, self._size, self._left = memory, block, list[int]()

    def take(self, table: str) -> int:
        """The next id, of whatever table."""
        if not self._left:
            self._left = list(range(self._memory.last_id + self._size, self._memory.last_id, -1))
            self._memory.last_id += self._size
        return self._left.pop()


@dataclass(eq=False)
class Emit:
    """An event that was kept for those who wait later."""

    name: str
    payload: JsonObject
    source_id: str
    created_at: datetime
    matched_at: datetime | None = None


@dataclass(frozen=True)
class Depending:
    """A row of workflow_dependencies."""

    wait_id: int
    instance_id: int
    step_run_id: int
    awaited_id: int
    is_needed: bool


@dataclass(eq=False)
class Family:
    """An instance and all that hangs on it. Rows are replaced, never changed, so that a copy is cheap."""

    instance: Instance
    steps: dict[int, StepRun] = field(default_factory=dict)
    waits: dict[int, Wait] = field(default_factory=dict)
    scopes: dict[int, Scope] = field(default_factory=dict)
    compensations: dict[int, Compensation] = field(default_factory=dict)
    signals: dict[int, Delivery] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    chunks: dict[str, list[str]] = field(default_factory=dict)
    """What visits have streamed, by their execution ids."""
    stamps: dict[int, datetime] = field(default_factory=dict)
    """When each delivery was last sent on."""
    _live: list[int] | None = None
    _open: list[int] | None = None
    _claimed: list[int] | None = None

    def copy(self) -> Family:
        """The same rows in collections of their own."""
        return Family(
            self.instance,
            dict(self.steps),
            dict(self.waits),
            dict(self.scopes),
            dict(self.compensations),
            dict(self.signals),
            list(self.events),
            list(self.failures),
            dict(self.artifacts),
            dict(self.chunks),
            dict(self.stamps),
        )

    @property
    def live(self) -> list[StepRun]:
        """The attempts that may still change."""
        if self._live is None:
            self._live = [step.id for step in self.steps.values() if step.status is not None and step.status.is_live]
        return [self.steps[step_id] for step_id in self._live]

    @property
    def open_waits(self) -> list[Wait]:
        """The waits that may still fire."""
        if self._open is None:
            open_ = (WaitStatus.PENDING, WaitStatus.SUSPENDED)
            self._open = [wait.id for wait in self.waits.values() if wait.status in open_]
        return [self.waits[wait_id] for wait_id in self._open]

    @property
    def claimed(self) -> list[StepRun]:
        """The attempts whose holder may be heard: they run, or were cancelled as they did."""
        if self._claimed is None:
            running = (StepStatus.RUNNING, StepStatus.CANCELLED)
            self._claimed = [step.id for step in self.steps.values() if step.claim_token and step.status in running]
        return [self.steps[step_id] for step_id in self._claimed]

    @property
    def parent_id(self) -> int | None:
        """The instance that started this one."""
        return self.instance.parent_instance_id if isinstance(self.instance, Child) else None

    def look_again(self) -> None:
        """Statuses have changed."""
        self._live = self._open = self._claimed = None


class Memory:
    """Every instance's family by id, the kept events, and the plans by version.

    `cascades` and `dependencies` are rows that wakers look at, `cursors` say how far each cascade has come; `keys` are
    those of starts. `is_unheld`: a hold is over, and what it has kept is still to be let go.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.families: dict[int, Family] = {}
        self.emits: list[Emit] = []
        self.plans: dict[int, Plan] = {}
        self.owners: dict[int, int] = {}
        self.policy = policy or Policy()
        self.last_id = 0
        self.last_signal = 0
        self.cascades: list[Cascade] = []
        self.dependencies: list[Depending] = []
        self.keys: set[str] = set()
        self.cursors: dict[tuple[int, int], int] = {}
        self.rooms = Rooms()
        self.holds: Holds = NO_HOLDS
        self.is_unheld = False
        self.ulids: dict[str, int] = {}
        self._undo: list[Callable[[], object]] = []

    def find(self, step_id: int) -> Family | None:
        """The family that a step belongs to."""
        return self.families.get(self.owners.get(step_id, 0))

    def hold(self, *rows: Held) -> None:
        """From here on this is held, and nothing else."""
        self.is_unheld = self.is_unheld or not self.holds.rows <= set(rows)
        self.holds = Holds(frozenset(rows), self.holds.version + 1)

    # loading

    def load(self, instance_id: int, closed: Sequence[int] = (), *, is_backward: bool = False) -> Snapshot:
        """What a decision may look at, in rows of its own."""
        snapshot, family = self.load_rows(instance_id), self.families[instance_id]
        snapshot.deliveries = [self._read(family, row) for row in family.signals.values() if row.taken_at is None]
        snapshot.cancelled = {
            step.id: copy(step)
            for step in map(family.steps.get, closed)
            if step is not None and step.status is StepStatus.CANCELLED
        }
        snapshot.failed = _find_failed(family)
        snapshot.kept = self._look_back(family)
        snapshot.past = read_past(family) if is_backward else None
        return snapshot

    def load_rows(self, instance_id: int) -> Snapshot:
        """Of that what an engine keeps, as nobody writes it without the lock."""
        family = self.families[instance_id]
        instance = copy(family.instance)
        snapshot = Snapshot(instance, self.plans[instance.version_id], self.policy)
        snapshot.steps = {step.id: _read_step(step) for step in family.live}
        snapshot.waits = {wait.id: copy(wait) for wait in family.open_waits}
        snapshot.scopes = {scope.id: copy(scope) for scope in _list_scopes(family, snapshot)} if family.scopes else {}
        snapshot.halted = {
            scope.id: copy(family.steps[scope.halted_step_run_id])
            for scope in snapshot.scopes.values()
            if scope.halted_step_run_id is not None and scope.status is ScopeStatus.PENDING
        }
        snapshot.compensations = _read_compensations(family) if snapshot.plan.has_compensations else {}
        snapshot.ended = _read_ended(family, snapshot)
        return snapshot

    def _read(self, family: Family, row: Delivery) -> Delivery:
        row = copy(row)
        step = family.steps.get(row.step_run_id or 0)
        row.execution_id = None if step is None else step.execution_id
        return row

    def _look_back(self, family: Family) -> dict[int, list[Kept]]:
        seen = {(row.name, row.source_id) for row in family.signals.values()}
        kept: dict[int, list[Kept]] = {}
        for wait in family.open_waits:
            step = family.steps[wait.step_run_id]
            if not wait.looks_back or not step.status or not step.status.is_live or step.probe is None:
                continue
            holds = get_holds(wait.match or {})
            found = [
                Kept(emit.source_id, emit.name, emit.payload, emit.created_at)
                for emit in self.emits
                if emit.name == wait.event_key
                and (emit.name, emit.source_id) not in seen
                and holds.items() <= emit.payload.items()
            ]
            kept.setdefault(step.id, []).extend(found[:20])
        return kept

    # writing

    def apply(self, changes: Changes, fault: Fault = lambda: None) -> bool:
        """Write sealed changes in one transaction; False where the instance has moved, and nothing was written."""
        return bool(self.apply_all([changes], fault))

    def apply_all(self, batch: Sequence[Changes], fault: Fault = lambda: None) -> set[int]:
        """Write the changes of several instances; those that still stood where they were decided from.

        What they are to other runs comes last, as `reaching.write` has it.
        """
        moved = [changes for changes in batch if self._apply_own(changes, fault)]
        for changes in moved:
            over = {wait.id for wait in changes.waits if wait.status in (WaitStatus.FIRED, WaitStatus.CANCELLED)}
            if over:
                self._set_dependencies([row for row in self.dependencies if row.wait_id not in over])
        for changes in moved:
            if changes.outward is not None:
                self._reach(changes, changes.outward, fault)
        return {changes.instance.id for changes in moved}

    def begin(self) -> None:
        """From here on everything can be taken back."""
        self._undo.clear()

    def roll_back(self) -> None:
        """Take back what was written since `begin`."""
        while self._undo:
            self._undo.pop()()

    def _apply_own(self, changes: Changes, fault: Fault) -> bool:
        instance_id = changes.instance.id
        before = self.families.get(instance_id)
        if not self.stands(changes):
            return False
        family = Family(copy(changes.instance)) if before is None else before.copy()
        self._write(family, changes, fault)
        _check(family, changes)
        fault()
        family.look_again()
        self._undo.append(partial(self._restore, instance_id, before))
        self.families[instance_id] = family
        self.plans[changes.instance.version_id] = changes.before.plan  # replaced, perhaps, since it was asked for
        self.ulids[family.instance.ulid] = instance_id
        self.owners.update(dict.fromkeys((step.id for step in changes.new_steps), instance_id))
        return True

    def stands(self, changes: Changes) -> bool:
        """Whether all is as it was decided from: the instance, and the holds that were asked."""
        if changes.is_new:
            return True
        family = self.families.get(changes.instance.id)
        is_same = family is not None and family.instance.lock_version == changes.before.instance.lock_version
        return is_same and changes.holds in (None, self.holds.version)

    def _restore(self, instance_id: int, family: Family | None) -> None:
        if family is None:
            self.forget(instance_id)
        else:
            self.families[instance_id] = family

    def forget(self, instance_id: int) -> None:
        """The instance and all that hangs on it is gone."""
        family = self.families.pop(instance_id)
        del self.ulids[family.instance.ulid]
        for step_id in family.steps:
            self.owners.pop(step_id, None)
        self.keys.discard(family.instance.idempotency_digest or "")

    def _set_dependencies(self, rows: list[Depending]) -> None:
        self._undo.append(partial(setattr, self, "dependencies", self.dependencies))
        self.dependencies = rows

    def _reach(self, changes: Changes, outward: Outward, fault: Fault) -> None:
        """The statements of `reaching.write`, in their order."""
        fault()
        assert len(self.apply_all(outward.children, fault)) == len(outward.children), "a child is new"
        for child in outward.children:
            assert isinstance(child.instance, Child), "a child is inserted as one"
            assert child.instance.idempotency_digest not in self.keys, "widem_unique"
            self.keys.add(child.instance.idempotency_digest or "")
        fault()
        for command in outward.commands:
            family = self.find_ulid(command.ulid)
            row = Delivery(0, family.instance.id, "*", command.kind, command.source_id, command.created_at)
            row.sender = command.sender
            self.send(family, row)
        if outward.cascades:
            self._undo.append(partial(setattr, self, "cascades", self.cascades))
            self.cascades = [*self.cascades, *outward.cascades]
        for each in outward.dependencies:
            awaited = self.find_ulid(each.ulid).instance.id
            place = (each.wait.id, each.wait.instance_id, each.wait.step_run_id)
            self._set_dependencies([*self.dependencies, Depending(*place, awaited, each.is_needed)])
        fault()
        if outward.end is not None:
            self._tell_end(changes, outward.end)

    def _tell_end(self, changes: Changes, end: JsonObject) -> None:
        instance = changes.instance
        for family in self.families.values():
            for wait in family.open_waits:
                if wait.kind is WaitKind.CHILD and wait.event_key == instance.ulid:
                    source = f"{instance.ulid}:{end['seq']}"
                    row = Delivery(0, family.instance.id, "*", DeliveryKind.CHILD, source, instance.updated_at)
                    row.name, row.payload = instance.ulid, end
                    row.step_run_id, row.wait_id = wait.step_run_id, wait.id
                    self.send(family, row)

    def find_ulid(self, ulid: str) -> Family:
        """The family of that ULID."""
        return self.families[self.ulids[ulid]]

    def list_group(self, instance_id: int, group: str) -> list[str]:
        """What `children.list_group` gives: the runs of a group, else those that may have been in it."""
        told, family = set[str](), self.families[instance_id]
        for step in _list_starting(_list_standing(family)):
            given = step.input if isinstance(step.input, dict) else {}
            told.update(_list_texts(step.output) if given.get("group") == group or "truncated" in given else ())
        carried = [begun for begun in _read_carried(family) if _stands(family, begun.seq)]
        told.update(ulid for begun in carried for ulid in begun.ulids)
        there = [ulid for ulid in told if ulid in self.ulids]
        rows = [self.find_ulid(ulid).instance for ulid in there]
        found = [row.ulid for row in rows if (row.trigger_type, row.trigger_key) == (TriggerKind.WORKFLOW, group)]
        return sorted(found or told.difference(there))

    def list_children(self, instance_id: int) -> list[Family]:
        """The runs that one has started, by their ids."""
        found = [family for family in self.families.values() if family.parent_id == instance_id]
        return sorted(found, key=lambda family: family.instance.id)

    def _write(self, family: Family, changes: Changes, fault: Fault) -> None:
        """The statements of `applying.apply`, in its order."""
        fault()
        _record(family, changes)
        fault()
        for step in changes.new_steps:
            if not is_begun_here(step):
                _add(family, _inserted(step, "steps_add", "step"))
        fault()
        columns = get_statement("steps_change").groups["step"].columns
        for step in changes.steps:
            if not is_closed_here(changes, step):
                family.steps[step.id] = _changed(family.steps[step.id], step, columns, DOCUMENTS)
        _write_rewind(family, changes, fault)
        _write_scopes(family, changes, fault)
        _write_compensations(family, changes, fault)
        fault()
        columns = get_statement("waits_change").groups["wait"].columns
        for wait in changes.waits:
            family.waits[wait.id] = _changed(family.waits[wait.id], wait, columns, ("payload",))
        fault()
        for wait in changes.new_waits:
            family.waits[wait.id] = _inserted(wait, "waits_open", "wait")
        self._write_signals(family, changes, fault)
        family.failures.extend(changes.failures)
        if changes.leavings is not None:
            _write_left(family, changes.leavings, fault)
            self._carry(family, changes.leavings, fault)

    def _carry(self, family: Family, left: Leavings, fault: Fault) -> None:
        """What a fork has of the run that it comes from; a test's memory may hold the fork alone."""
        fault()
        for carried in left.carried:
            if carried.source in self.ulids:
                twin = copy(self.find_ulid(carried.source).artifacts[carried.key])
                step = family.steps.get(carried.step_run_id or 0)
                twin.instance_id = carried.instance_id
                twin.node_id = twin.visit = twin.execution_id = None
                if step is not None:
                    twin.node_id, twin.visit, twin.execution_id = step.node_id, step.visit, step.execution_id
                family.artifacts[twin.key] = twin

    def _write_signals(self, family: Family, changes: Changes, fault: Fault) -> None:
        fault()
        columns = get_statement("signals_take").groups["signal"].columns
        for row in changes.deliveries:
            family.signals[row.id] = _changed(family.signals[row.id], row, columns, ())
        fault()
        for row in changes.new_deliveries:
            self.send(family, row)

    def send(self, family: Family, row: Delivery) -> bool:
        """Address a delivery to an instance; False where that very thing was sent to that wait already."""
        for known in family.signals.values():
            if (known.wait_id, known.source_id) == (row.wait_id, row.source_id):
                twin = copy(known)
                twin.taken_at = known.taken_at or row.taken_at
                self._undo.append(partial(family.signals.__setitem__, known.id, known))
                family.signals[known.id] = twin
                return False
        self.last_signal += 1
        twin = copy(row)
        twin.id = self.last_signal
        self._undo.append(partial(family.signals.pop, twin.id))
        family.signals[twin.id] = twin
        return True


CLOSED = ("status", "outcome", "output", "finished_at")


def _changed(old: Row, new: Row, columns: Iterable[str], kept: Iterable[str]) -> Row:
    """The row with these columns; the `kept` ones are left as they are where nothing is given."""
    row = copy(old)
    for name in columns:
        value = getattr(new, name)
        if value is not None or name not in kept:
            setattr(row, name, value)
    return row


def _inserted(new: Row, statement: str, group: str) -> Row:
    """The row as the statement inserts it: columns that it doesn't name keep their defaults."""
    named: Mapping[str, Any] = {name: getattr(new, name) for name in get_statement(statement).groups[group].columns}
    return type(new)(**named)


def _record(family: Family, changes: Changes) -> None:
    if not changes.is_new:
        _write_instance(family, changes)
    for step in changes.steps:
        if is_closed_here(changes, step):
            family.steps[step.id] = _changed(family.steps[step.id], step, CLOSED, ())
    for step in changes.new_steps:
        if is_begun_here(step):
            _add(family, copy(step))
    for event in changes.events:
        assert event.seq == len(family.events) + 1, "wevent_seq_unique"
        family.events.append(event)


def _add(family: Family, step: StepRun) -> None:
    assert step.id not in family.steps, "workflow_step_runs_pkey"
    family.steps[step.id] = step


def _write_instance(family: Family, changes: Changes) -> None:
    old, new = family.instance, changes.instance
    given = get_statement("record").groups["change"].columns
    columns = [name for name in given if name not in ("expected", "holds")]
    if any(event.type in RARE for event in changes.events):
        columns += get_statement("instances_change").groups["instance"].columns
    kept = ("state", "walk") if new.is_ended else ("state", "walk", "result")
    family.instance = _changed(old, new, columns, kept)
    family.instance.lock_version = old.lock_version + 1


def _find_failed(family: Family) -> StepRun | None:
    if family.instance.status is not InstanceStatus.FAILED:
        return None
    failed = [
        step
        for step in family.steps.values()
        if has_ended(family.instance, step) and step.node_id == family.instance.failed_node_id
    ]
    return copy(max(failed, key=lambda step: (step.visit, step.attempt))) if failed else None


def _read_step(step: StepRun) -> StepRun:
    step = copy(step)
    if step.counters is not None and step.status is StepStatus.WAITING and step.ready_at is None:
        step.input = None
    return step


def _list_scopes(family: Family, snapshot: Snapshot) -> Iterator[Scope]:
    """Those that `scopes_load` reads."""
    pages = snapshot.policy.pages
    whole: set[int] = set()
    room: dict[int, tuple[int, int]] = {}
    for step in snapshot.steps.values():
        if step.counters is not None and step.status is StepStatus.WAITING:
            counters = Counters.from_json(step.counters)
            if counters.verdict == DONE or counters.total <= pages.small or step.node_type != "for_each":
                whole.add(step.id)
            is_asked_for = step.ready_at is not None
            room[step.id] = (counters.next_index, counters.get_room(pages, is_asked_for=is_asked_for))
    for scope in sorted(family.scopes.values(), key=lambda scope: scope.item_index or 0):
        index, left = room.get(scope.step_run_id, (0, 0))
        is_next = scope.status is ScopeStatus.PENDING and left > 0 and (scope.item_index or 0) >= index
        if is_next:
            room[scope.step_run_id] = (index, left - 1)
        if is_next or scope.status is ScopeStatus.RUNNING or scope.step_run_id in whole:
            yield scope


def _write_rewind(family: Family, changes: Changes, fault: Fault) -> None:
    if changes.undone is None:
        return
    fault()
    for step_id in changes.undone:
        twin = family.steps[step_id] = copy(family.steps[step_id])
        twin.undone_at = changes.instance.updated_at
    family.instance.result = changes.instance.result


def read_past(family: Family) -> Past:
    """What `past_load` and `visits_count` read."""
    lines: list[Line] = []
    for event in family.events:
        step = None if event.step_run_id is None else family.steps[event.step_run_id]
        is_outermost = step is None or (step.scope_id is None and step.role is StepRole.STEP)
        if event.type in TURNS and is_outermost:
            lines.append(Line(event.seq, event.type, event.data or {}, None if step is None else copy(step)))
    visits: dict[str, int] = {}
    for step in family.steps.values():
        if step.role is StepRole.STEP:
            visits[step.node_id] = max(step.visit, visits.get(step.node_id, 0))
    compensated = [
        Compensated(row.seq, row.node_id, row.visit, row.status)
        for row in sorted(family.compensations.values(), key=lambda row: row.seq)
        if row.status is not None
    ]
    return Past(tuple(lines), visits, tuple(compensated), tuple(_list_begun(family)), tuple(_list_stored(family)))


def _list_begun(family: Family) -> list[Begun]:
    """What `past_begun` reads."""
    inside = _list_starting(step for step in family.steps.values() if step.scope_id is not None)
    own = [
        Begun(first, tuple(_list_texts(step.output)))
        for step in inside
        if isinstance(step.input, dict)
        and not step.input.keys().isdisjoint(("group", "truncated"))
        and (first := _find_first(family, step)) is not None
    ]
    return [*own, *_read_carried(family)]


def _list_standing(family: Family) -> Iterator[StepRun]:
    """The attempts of visits that no rewind has left behind."""
    for step in family.steps.values():
        twins = [twin for twin in family.steps.values() if (twin.node_id, twin.visit) == (step.node_id, step.visit)]
        firsts = [first for twin in twins if (first := _find_first(family, twin)) is not None]
        if not firsts or _stands(family, min(firsts)):
            yield step


def _stands(family: Family, seq: int) -> bool:
    return read_past(family).stands(seq, family.instance.next_seq)


def _list_starting(steps: Iterable[StepRun]) -> list[StepRun]:
    """The attempts that have started runs, of each node's newest visit in its place."""
    started = [step for step in steps if step.node_type == "start_workflows" and _list_texts(step.output)]
    newest: dict[tuple[int | None, str], int] = {}
    for step in started:
        place = (step.scope_id, step.node_id)
        newest[place] = max(step.visit, newest.get(place, 0))
    return [step for step in started if step.visit == newest[step.scope_id, step.node_id]]


def _list_texts(output: JsonObject | None) -> list[str]:
    lists = [value if isinstance(value, list) else [value] for value in (output or {}).values()]
    return [text for texts in lists for text in texts if isinstance(text, str)]


def _read_carried(family: Family) -> list[Begun]:
    told = [event.data or {} for event in family.events if event.type is EventType.INSTANCE_FORKED]
    listed: list[Any] = [each.get("started") or [] for each in told]
    return [begun for each in listed for item in each for begun in read_begun(item)]


def _find_first(family: Family, step: StepRun) -> int | None:
    """None of an attempt that hasn't begun: it has what the one before it had."""
    return next((event.seq for event in family.events if event.step_run_id == step.id), None)


def _list_stored(family: Family) -> Iterator[Stored]:
    """What `past_artifacts` reads."""
    for artifact in family.artifacts.values():
        attempts = [
            step
            for step in family.steps.values()
            if step.role is StepRole.STEP and step.execution_id == artifact.execution_id
        ]
        seqs = [seq for step in attempts if (seq := _find_first(family, step)) is not None]
        if artifact.execution_id is None or seqs:
            yield Stored(artifact.key, min(seqs, default=None))


def _write_scopes(family: Family, changes: Changes, fault: Fault) -> None:
    """The statements of `applying._write_scopes`, in their order."""
    fault()
    _adopt_scopes(family, {before: (after, decided) for before, after, decided in changes.adopted_scopes})
    fault()
    for scope in changes.new_scopes:
        assert scope.id not in family.scopes, "workflow_scopes_pkey"
        family.scopes[scope.id] = _inserted(scope, "scopes_add", "scope")
    fault()
    columns = get_statement("scopes_change").groups["scope"].columns
    for scope in changes.scopes:
        family.scopes[scope.id] = _changed(family.scopes[scope.id], scope, columns, ())
    fault()
    for scope in list(family.scopes.values()):
        is_open = scope.status in (ScopeStatus.PENDING, ScopeStatus.RUNNING)
        if is_open and scope.step_run_id in changes.closed_scopes:
            twin = copy(scope)
            twin.status, twin.ended_at = ScopeStatus.CANCELLED, changes.instance.updated_at
            family.scopes[twin.id] = twin


def _write_left(family: Family, left: Leavings, fault: Fault) -> None:
    """The statements of `applying._write_left`, in their order."""
    fault()
    family.artifacts.update({artifact.key: artifact for artifact in left.artifacts})
    fault()
    for execution in left.closed_chunks:
        family.chunks.pop(execution, None)


def _adopt_scopes(family: Family, adopted: Mapping[int, tuple[int, bool]]) -> None:
    for scope in [scope for scope in family.scopes.values() if scope.step_run_id in adopted]:
        twin = copy(scope)
        twin.step_run_id, is_decided = adopted[scope.step_run_id]
        twin.halted_step_run_id = None
        is_kept = scope.name != REDUCED if is_decided else scope.status is ScopeStatus.COMPLETED
        if not is_kept:
            twin.halted_step_run_id = _find_halted(family, scope.id)
            if twin.halted_step_run_id is None:
                twin.state = twin.walk = None
            twin.status, twin.outcome = ScopeStatus.PENDING, None
            twin.output = twin.error = twin.finish_order = twin.ended_at = None
        family.scopes[twin.id] = twin


def _find_halted(family: Family, scope_id: int) -> int | None:
    """Where an unfinished body stood: the newest attempt at its node there."""
    newest: dict[str, StepRun] = {}
    for step in family.steps.values():
        if step.scope_id == scope_id and step.role is StepRole.STEP:
            other = newest.get(step.node_id)
            if other is None or (other.visit, other.attempt) < (step.visit, step.attempt):
                newest[step.node_id] = step
    ended = (StepStatus.FAILED, StepStatus.CANCELLED)
    halted = [step for step in newest.values() if step.status in ended and step.outcome is None]
    assert len(halted) <= 1, "a body stands at one place"
    return halted[0].id if halted else None


def _read_compensations(family: Family) -> dict[int, Compensation]:
    """The newest that is kept and the newest that failed, without what they hold, and whole the one that runs."""
    found: dict[int, Compensation] = {}
    for status in (CompensationStatus.KEPT, CompensationStatus.FAILED):
        rows = [row for row in family.compensations.values() if row.status is status]
        for row in sorted(rows, key=lambda row: row.seq)[-1:]:
            found[row.seq] = copy(row)
            found[row.seq].input = found[row.seq].state = found[row.seq].error = None
    undoing = [row for row in family.compensations.values() if row.status is CompensationStatus.UNDOING]
    return found | {row.seq: copy(row) for row in undoing}


def _write_compensations(family: Family, changes: Changes, fault: Fault) -> None:
    fault()
    for row in changes.new_compensations:
        assert row.seq not in family.compensations, "wcomp_seq_unique"
        family.compensations[row.seq] = _inserted(row, "compensations_keep", "compensation")
    fault()
    for seq, row in family.compensations.items() if changes.retries_undoing else ():
        if row.status is CompensationStatus.FAILED:
            family.compensations[seq] = replace(row, status=CompensationStatus.KEPT, call=row.call + 1)
    fault()
    columns = get_statement("compensations_change").groups["compensation"].columns
    for row in changes.compensations:
        family.compensations[row.seq] = _changed(family.compensations[row.seq], row, columns, ())


def _read_ended(family: Family, snapshot: Snapshot) -> dict[tuple[int | None, str], JsonObject]:
    ended: dict[tuple[int | None, str], JsonObject] = {}
    live: set[int | None] = {None, *snapshot.halted.keys() & snapshot.scopes.keys()}
    live |= {scope.id for scope in snapshot.scopes.values() if scope.status is ScopeStatus.RUNNING}
    for step in sorted(family.steps.values(), key=lambda step: (step.visit, step.attempt)):
        if step.role is not StepRole.STEP or step.scope_id not in live or step.undone_at is not None:
            continue
        if step.status is StepStatus.COMPLETED:
            ended[(step.scope_id, step.node_id)] = {"output": step.output, "outcome": step.outcome, "error": None}
        elif step.status is StepStatus.FAILED and step.outcome is not None:
            told = get_told(step.error_code or "", step.error_message, step.error_params, step.attempt)
            ended[(step.scope_id, step.node_id)] = {"output": None, "outcome": step.outcome, "error": told}
    return ended


def _check(family: Family, changes: Changes) -> None:
    """The constraints, for the rows that were written."""
    check_instance(family.instance)
    for step in (*changes.steps, *changes.new_steps):
        check_step(family.steps[step.id])
    for wait in (*changes.waits, *changes.new_waits):
        check_wait(family.waits[wait.id])
    if changes.new_steps:
        check_steps(family.steps.values())
    if changes.deliveries or changes.new_deliveries:
        check_signals(family.signals.values())
    if changes.scopes or changes.new_scopes or changes.adopted_scopes:
        check_scopes(family.scopes.values())
