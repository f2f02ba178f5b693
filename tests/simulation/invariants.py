"""What must hold after every step (DESIGN section 12), as far as it is the core's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, cast

from korak.core import transitions
from korak.core.changes import Changes
from korak.core.counters import Counters
from korak.core.facts import Finished, HandedBack, Lost
from korak.core.rooms import Demand, FlowKey, list_demands
from korak.core.rows import StepRun, Wait
from korak.core.snapshot import Snapshot
from korak.core.states import replay
from korak.graphs.limiting import FlowRule
from korak.graphs.plans import PlannedNode
from korak.model import (
    EventType,
    FlowKind,
    InstanceStatus,
    Json,
    JsonObject,
    Probe,
    ScopeStatus,
    StepRole,
    StepStatus,
    WaitKind,
    WaitStatus,
)
from tests.simulation.containing import check_containers, check_kin, check_pause
from tests.simulation.undoing import check_undoing, check_view, list_copied
from tests.support.memory import Family, Memory, read_past
from tests.support.rooms import Place

SKEW = timedelta(seconds=1)
"""How far the clocks of two processes may be apart."""

TERMINAL = (
    EventType.STEP_COMPLETED,
    EventType.STEP_FAILED,
    EventType.STEP_CANCELLED,
    EventType.HOOK_COMPLETED,
    EventType.HOOK_FAILED,
)
NAMES = {f"step.{name}" for name in transitions.STEP.values()} | {
    f"instance.{name}" for name in transitions.INSTANCE.values()
}


def check_changes(changes: Changes) -> None:
    """The changes of one decision are whole: every new row has its id, and what is claimed runs."""
    assert set(changes.transitions) <= NAMES
    for step in (*changes.new_steps, *changes.steps):
        assert step.id > 0
    assert all(grant.step.status is StepStatus.RUNNING for grant in changes.claimed)
    assert all(step.ready_at is not None for step in changes.ready)
    assert set(changes.after.steps) == {step.id for step in changes.after.steps.values()}


def check_after(memory: Memory, changes: Changes) -> None:
    """What an engine keeps is what stands there; but for stamps, which others write without the lock."""
    after, stands = changes.after, memory.load(changes.instance.id)
    assert vars(after.instance) == vars(stands.instance)
    assert after.instance.is_ended or after.ended == stands.ended, (after.ended, stands.ended)
    assert _read(after.steps) == _read(stands.steps)
    assert _read(after.waits) == _read(stands.waits)
    assert _read_running(after) == _read_running(stands)
    check_view(changes, stands)


def _read(rows: Mapping[int, StepRun | Wait]) -> list[JsonObject]:
    return [
        {
            name: value
            for name, value in vars(row).items()
            if name not in ("ready_at", "sent_at", "parked_for") and not (name == "input" and vars(row).get("counters"))
        }
        for _, row in sorted(rows.items())
    ]


def _read_running(snapshot: Snapshot) -> list[JsonObject]:
    rows = snapshot.scopes.values()
    return [vars(row) for row in sorted(rows, key=lambda row: row.id) if row.status is ScopeStatus.RUNNING]


def check_family(memory: Memory, family: Family, changes: Changes) -> None:
    """Invariants 1 to 4 and 6 for one instance that has just moved."""
    _check_history(family)
    _check_tokens(family, changes)
    check_kin(memory, family, changes)
    check_pause(changes)
    _check_attempts(family)
    _check_state(memory, family)
    _check_replay(memory, family)
    _check_deliveries(family)
    _check_waits(family)
    check_undoing(memory, family)


def check_room(memory: Memory) -> None:
    """Of a key never more runs at once than its limit says; only what runs, and a run that was let in, holds room."""
    taken: Counter[FlowKey] = Counter()
    limits: dict[FlowKey, int] = {}
    places: set[Place] = set()
    for family in memory.families.values():
        for place, demands in _list_holding(memory, family):
            for demand in demands:
                taken[demand.key] += demand.weight
                limits[demand.key] = demand.limit
                places.add(place)
    assert all(count <= limits[key] for key, count in taken.items()), (taken, limits)
    assert set(memory.rooms.slots) == places, (set(memory.rooms.slots), places)


def _list_holding(memory: Memory, family: Family) -> Iterator[tuple[Place, list[Demand]]]:
    plan, instance = memory.plans[family.instance.version_id], family.instance
    if not plan.has_flow or instance.is_ended:
        return
    kept: Any = (instance.walk or {}).get("flow") or {}
    of_run = dict(zip(kept.get("keys", ()), plan.settings.flow, strict=False)) if kept.get("is_in") else {}
    for step in family.live:
        if step.status is StepStatus.RUNNING and step.role is StepRole.STEP:
            rules = zip(plan.nodes[step.node_id].flow, step.flow or (), strict=False)
            own = [each for rule, name in rules for each in _demand(rule, name, step) if name not in of_run]
            yield (instance.id, step.id), list({demand.key: demand for demand in reversed(own)}.values())
    any_step = next(iter(family.steps.values()))
    yield (instance.id, None), [each for name, rule in of_run.items() for each in _demand(rule, name, any_step)]


def _demand(rule: FlowRule, name: str, step: StepRun) -> list[Demand]:
    demands = list_demands(rule, name, step, is_of_run=False, is_inline=False)
    return [demand for demand in demands if demand.key.kind is FlowKind.CONCURRENCY]


def _check_history(family: Family) -> None:
    """6: no gap in `seq`, no two terminal events of one attempt; 1: a recorded step has exactly one record."""
    assert [event.seq for event in family.events] == list(range(1, family.instance.next_seq))
    ends = Counter(event.step_run_id for event in family.events if event.type in TERMINAL)
    assert not ends or max(ends.values()) == 1, ends
    ended = {step.id for step in family.steps.values() if step.status is not None and not step.status.is_live}
    assert set(ends) == ended


def _check_tokens(family: Family, changes: Changes) -> None:
    """2 and 3: an open scope has one live step, which something will move; an ended one has none and no wait."""
    instance = family.instance
    live = [step for step in family.live if step.role is StepRole.STEP]
    if instance.is_ended:
        assert not live, live
        assert all(wait.kind is WaitKind.RETRY for wait in family.open_waits)
    check_containers(family, live, changes)
    if instance.is_ended:
        return
    for step in live:
        assert _is_driven(family, step), step
    retried = {wait.step_run_id for wait in family.open_waits if wait.kind is WaitKind.RETRY}
    is_running = any(
        step.status is StepStatus.RUNNING or (step.status is StepStatus.QUEUED and step.id not in retried)
        for step in live
    )
    assert instance.status is (InstanceStatus.RUNNING if is_running else InstanceStatus.WAITING)


def _is_driven(family: Family, step: StepRun) -> bool:
    waits = [wait for wait in family.open_waits if wait.step_run_id == step.id]
    match step.status:
        case StepStatus.RUNNING:
            return step.lease_until is not None and step.engine_id is not None
        case StepStatus.WAITING if step.counters is not None:
            counters = Counters.from_json(step.counters)
            is_held = family.instance.paused_at is not None and counters.has_debt
            return counters.running > 0 or step.ready_at is not None or is_held
        case StepStatus.WAITING if not waits:
            is_owed = step.ready_at is not None or family.instance.paused_at is not None
            return step.probe is Probe.RESUME and is_owed
        case StepStatus.WAITING:
            return all(wait.kind is not WaitKind.RETRY for wait in waits)
        case _:
            is_parked = step.parked_for is not None
            if step.parked_for == "pause":
                return family.instance.paused_at is not None
            return step.ready_at is not None or is_parked or any(wait.kind is WaitKind.RETRY for wait in waits)


def _check_attempts(family: Family) -> None:
    """Attempts of a visit follow one another under one key; visits count from one; a visit is one step of the count.

    Of what a fork has from where it came, and what was rewound there, it counts the visits alone.
    """
    copied = list_copied(family)
    before: Counter[str] = Counter()
    for step_id in copied:
        step = family.steps[step_id]
        before[step.node_id] = max(before[step.node_id], step.visit)
    visits: dict[tuple[str, int], list[StepRun]] = {}
    for step in family.steps.values():
        if step.role is StepRole.STEP and step.id not in copied:
            visits.setdefault((step.node_id, step.visit), []).append(step)
    outermost = [attempts for attempts in visits.values() if attempts[0].scope_id is None]
    assert len(outermost) + before.total() == family.instance.steps_count
    for attempts in visits.values():
        assert sorted(step.attempt for step in attempts) == list(range(1, len(attempts) + 1))
        assert len({(step.idempotency_key, step.execution_id) for step in attempts}) == 1
        assert sum(step.status is StepStatus.COMPLETED for step in attempts) <= 1
    newest: Counter[str] = Counter()
    for node, visit in visits:
        newest[node] = max(newest[node], visit)
    assert sum(newest.values()) == len(visits) + sum(before[node] for node in newest)
    _check_times(family)
    tokens = [step.claim_token for step in family.live if step.status is StepStatus.RUNNING]
    assert len(set(tokens)) == len(tokens)


def _check_state(memory: Memory, family: Family) -> None:
    """1: every output entered the state once, in the order of history."""
    nodes = memory.plans[family.instance.version_id].nodes
    states: dict[int | None, JsonObject] = {None: {}}
    copied = list_copied(family)
    transitions_made = 0
    stood: dict[int, tuple[JsonObject, int]] = {}
    for event in family.events:
        if event.type is EventType.INSTANCE_REWOUND:
            states[None], transitions_made = stood[cast("int", (event.data or {})["seq"])]
        if event.type is EventType.STEP_COMPLETED and event.step_run_id is not None:
            step = family.steps[event.step_run_id]
            node = nodes[step.node_id]
            transitions_made += node.counts and node.type != "end" and step.scope_id is None
            merged = _merge(family, step, states) if step.id not in copied else (event.data or {}).get("wrote")
            state = {**states.get(step.scope_id, {}), **cast("JsonObject", merged or {})}
            state = _enter(node, state, step.output or {})
            removed = cast("list[str]", (event.data or {}).get("removed") or [])
            states[step.scope_id] = {key: value for key, value in state.items() if key not in removed}
        stood[event.seq] = states[None], transitions_made
    assert family.instance.state == states[None]
    for scope in family.scopes.values():
        assert (scope.state or {}) == states.get(scope.id, {}), scope
    assert family.instance.transitions_count == transitions_made


def _check_replay(memory: Memory, family: Family) -> None:
    """What history tells is where the run stands: its state, its transitions, the rounds of its loops."""
    instance = family.instance
    position = replay(memory.plans[instance.version_id], read_past(family).lines)[-1].position
    assert (position.state, position.transitions) == (instance.state, instance.transitions_count)
    assert position.loops == ((instance.walk or {}).get("loops") or {})


def _merge(family: Family, step: StepRun, states: Mapping[int | None, JsonObject]) -> JsonObject:
    """What the branches of a parallel wrote, in the order of their declaration, or the body of a scope."""
    merged: JsonObject = {}
    if step.node_type in ("parallel", "scope"):
        mine = [scope for scope in family.scopes.values() if scope.step_run_id == step.id]
        for scope in sorted(mine, key=lambda scope: scope.item_index or 0):
            merged |= states.get(scope.id, {})
    return merged


def _enter(node: PlannedNode, state: JsonObject, output: JsonObject) -> JsonObject:
    """Saved keys that begin with a _ aren't for the state."""
    if node.type == "set_field":
        field, new = str(node.raw["field"]).removeprefix("state").removeprefix("."), output["new"]
        return {**state, **({field: new} if field else cast("JsonObject", new))}
    if node.save is None:
        return state
    public: JsonObject = {key: value for key, value in output.items() if not key.startswith("_")}
    return {**state, **(public if node.save.key is None else {node.save.key: output})}


def _check_deliveries(family: Family) -> None:
    """4: a delivery is taken once or still there; each wait receives one once."""
    received = Counter(
        str((event.data or {})["source_id"]) for event in family.events if event.type is EventType.SIGNAL_RECEIVED
    )
    taken = Counter(row.source_id for row in family.signals.values() if row.taken_at is not None)
    assert received <= taken, received - taken


def _check_waits(family: Family) -> None:
    """A pause stops every clock; an open wait belongs to a live attempt."""
    live = {step.id: step for step in family.live}
    for wait in family.open_waits:
        assert wait.step_run_id in live, wait
        is_stopped = family.instance.paused_at is not None and live[wait.step_run_id].role is StepRole.STEP
        if not wait.is_date:
            assert wait.status is (WaitStatus.SUSPENDED if is_stopped else WaitStatus.PENDING), wait


def check_holder(snapshot: Snapshot, fact: Finished | Lost | HandedBack) -> None:
    """5: only who holds the token is heard."""
    assert snapshot.steps[fact.step].claim_token == fact.token


def _check_times(family: Family) -> None:
    """No retry starts before it is due, however often its nudge is doubled; a second clean-up is for what ran."""
    cancelled = {(step.node_id, step.visit): step.id for step in family.steps.values() if step.status == "cancelled"}
    for step in family.steps.values():
        if step.role is StepRole.STEP and step.scheduled_for is not None and step.claimed_at is not None:
            assert step.claimed_at >= step.scheduled_for - SKEW, step
        if step.role is StepRole.CANCEL and step.call == 2:
            assert _ran_last(family, cancelled[step.node_id, step.visit]), step


def _ran_last(family: Family, step_id: int) -> bool:
    told = [event.type for event in family.events if event.step_run_id == step_id]
    return told[told.index(EventType.STEP_CANCELLED) - 1] in (EventType.STEP_STARTED, EventType.STEP_RESUMED)


def check_nothing_missed(memory: Memory, family: Family) -> None:
    """4: nobody waits for what lies there, or was kept, and fits."""
    there = [(row.name, row.payload) for row in family.signals.values() if row.taken_at is None]
    seen = {row.source_id for row in family.signals.values()}
    kept = [(emit.name, emit.payload) for emit in memory.emits if emit.source_id not in seen]
    for wait in family.open_waits:
        lies = there + (kept if wait.looks_back else [])
        fitting = [payload for name, payload in lies if name == wait.event_key and _fits(wait.match or {}, payload)]
        assert not fitting or wait.payload is not None, (wait, fitting)


def _fits(match: JsonObject, payload: Json) -> bool:
    return isinstance(payload, dict) and match.items() <= payload.items() if match else True
