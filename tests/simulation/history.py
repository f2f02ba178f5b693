"""What history must tell: each output entered the state once, attempts follow one another, nothing ended twice.

After a change what it touched is looked at, from where the run stood before; all of it now and then, and at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import TypeAlias, cast

from korak.core.changes import Changes
from korak.core.rows import Event, StepRun
from korak.core.states import replay
from korak.graphs.plans import Plan, PlannedNode
from korak.model import EventType, JsonObject, StepRole, StepStatus
from tests.simulation.undoing import check_kept, list_copied
from tests.support.memory import Family, Memory, read_past

States: TypeAlias = dict[int | None, JsonObject]
"""What was written in each place of a run: in the outermost one (None), and in each scope by its id."""

SKEW = timedelta(seconds=1)
"""How far the clocks of two processes may be apart."""

TERMINAL = (
    EventType.STEP_COMPLETED,
    EventType.STEP_FAILED,
    EventType.STEP_CANCELLED,
    EventType.HOOK_COMPLETED,
    EventType.HOOK_FAILED,
)


def check_moved(memory: Memory, before: Family, changes: Changes) -> None:
    """What one change has made of a run that stood well."""
    family = memory.families[changes.instance.id]
    told = family.events[len(before.events) :]
    assert [event.seq for event in told] == list(range(before.instance.next_seq, family.instance.next_seq))
    touched = [family.steps[step.id] for step in (*changes.steps, *changes.new_steps)]
    ended = {step.id for step in touched if _is_ended(step)}
    ended -= {step_id for step_id in ended if step_id in before.steps and _is_ended(before.steps[step_id])}
    assert sorted(_list_ended(told)) == sorted(ended), (told, ended)
    _check_visits(_group(family, touched))
    _check_times(family, touched)
    states: States = {scope.id: scope.state or {} for scope in before.scopes.values()}
    states[None], made = before.instance.state, before.instance.transitions_count
    if any(event.type is EventType.INSTANCE_REWOUND for event in told):
        _check_state(memory, family)
    else:
        _compare(family, states, _Entering(memory, family).enter(told, states, made))


def check_whole(memory: Memory, family: Family) -> None:
    """All that history tells, from its beginning on."""
    _check_events(family)
    _check_attempts(family)
    _check_times(family, family.steps.values())
    _check_state(memory, family)
    _check_replay(memory, family)
    _check_deliveries(family)
    check_kept(memory, family)


def _is_ended(step: StepRun) -> bool:
    return step.status is not None and not step.status.is_live


def _list_ended(events: Iterable[Event]) -> list[int]:
    return [event.step_run_id for event in events if event.type in TERMINAL and event.step_run_id is not None]


def _check_events(family: Family) -> None:
    """6: no gap in `seq`, no two terminal events of one attempt; 1: a recorded step has exactly one record."""
    assert [event.seq for event in family.events] == list(range(1, family.instance.next_seq))
    assert sorted(_list_ended(family.events)) == sorted(step.id for step in family.steps.values() if _is_ended(step))


Visits: TypeAlias = dict[tuple[str, int], list[StepRun]]
"""The attempts of each visit of a node."""


def _group(family: Family, touched: Collection[StepRun]) -> Visits:
    """The visits that these attempts are of, with all attempts of each."""
    visits: Visits = {(step.node_id, step.visit): [] for step in touched if step.role is StepRole.STEP}
    for step in family.steps.values() if visits else ():
        if (step.node_id, step.visit) in visits and step.role is StepRole.STEP:
            visits[step.node_id, step.visit].append(step)
    return visits


def _check_visits(visits: Visits) -> None:
    """Attempts of a visit follow one another under one key, and one at most is completed."""
    for attempts in visits.values():
        assert sorted(step.attempt for step in attempts) == list(range(1, len(attempts) + 1))
        assert len({(step.idempotency_key, step.execution_id) for step in attempts}) == 1
        assert sum(step.status is StepStatus.COMPLETED for step in attempts) <= 1


def _check_attempts(family: Family) -> None:
    """Visits count from one; a visit is one step of the count.

    Of what a fork has from where it came, and what was rewound there, it counts the visits alone.
    """
    copied = list_copied(family)
    before: Counter[str] = Counter()
    for step_id in copied:
        step = family.steps[step_id]
        before[step.node_id] = max(before[step.node_id], step.visit)
    visits: Visits = {}
    for step in family.steps.values():
        if step.role is StepRole.STEP and step.id not in copied:
            visits.setdefault((step.node_id, step.visit), []).append(step)
    outermost = [attempts for attempts in visits.values() if attempts[0].scope_id is None]
    assert len(outermost) + before.total() == family.instance.steps_count
    _check_visits(visits)
    newest: Counter[str] = Counter()
    for node, visit in visits:
        newest[node] = max(newest[node], visit)
    assert sum(newest.values()) == len(visits) + sum(before[node] for node in newest)


def _check_times(family: Family, steps: Iterable[StepRun]) -> None:
    """No retry starts before it is due, however often its nudge is doubled; a second clean-up is for what ran."""
    for step in steps:
        if step.role is StepRole.STEP and step.scheduled_for is not None and step.claimed_at is not None:
            assert step.claimed_at >= step.scheduled_for - SKEW, step
        if step.role is StepRole.CANCEL and step.call == 2:
            place = (step.node_id, step.visit, StepStatus.CANCELLED)
            rows = family.steps.values()
            cancelled = [row.id for row in rows if (row.node_id, row.visit, row.status) == place]
            assert _ran_last(family, cancelled[-1]), step


def _ran_last(family: Family, step_id: int) -> bool:
    told = [event.type for event in family.events if event.step_run_id == step_id]
    return told[told.index(EventType.STEP_CANCELLED) - 1] in (EventType.STEP_STARTED, EventType.STEP_RESUMED)


def _check_state(memory: Memory, family: Family) -> None:
    """1: every output entered the state once, in the order of history."""
    states: States = {None: {}}
    made = _Entering(memory, family, list_copied(family)).enter(family.events, states, 0)
    _compare(family, states, made)


def _compare(family: Family, states: States, made: int) -> None:
    assert family.instance.state == states[None]
    for scope in family.scopes.values():
        assert (scope.state or {}) == states.get(scope.id, {}), scope
    assert family.instance.transitions_count == made


class _Entering:
    """How outputs enter the states of a run. `copied` are attempts that a fork has from where it came."""

    def __init__(self, memory: Memory, family: Family, copied: Collection[int] = ()) -> None:
        self._plan: Plan = memory.plans[family.instance.version_id]
        self._family = family
        self._copied = copied

    def enter(self, events: Iterable[Event], states: States, made: int) -> int:
        """Let what these events tell enter, after so many transitions; how many there are then."""
        stood: dict[int, tuple[JsonObject, int]] = {}
        for event in events:
            if event.type is EventType.INSTANCE_REWOUND:
                states[None], made = stood[cast("int", (event.data or {})["seq"])]
            if event.type is EventType.STEP_COMPLETED and event.step_run_id is not None:
                made += self._enter_output(event, self._family.steps[event.step_run_id], states)
            stood[event.seq] = states[None], made
        return made

    def _enter_output(self, event: Event, step: StepRun, states: States) -> bool:
        node = self._plan.nodes[step.node_id]
        told = event.data or {}
        merged = told.get("wrote") if step.id in self._copied else self._merge(step, states)
        state = {**states.get(step.scope_id, {}), **cast("JsonObject", merged or {})}
        state = _enter(node, state, step.output or {})
        removed = cast("list[str]", told.get("removed") or [])
        states[step.scope_id] = {key: value for key, value in state.items() if key not in removed}
        return node.counts and node.type != "end" and step.scope_id is None

    def _merge(self, step: StepRun, states: Mapping[int | None, JsonObject]) -> JsonObject:
        """What the branches of a parallel wrote, in the order of their declaration, or the body of a scope."""
        merged: JsonObject = {}
        if step.node_type in ("parallel", "scope"):
            mine = [scope for scope in self._family.scopes.values() if scope.step_run_id == step.id]
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


def _check_replay(memory: Memory, family: Family) -> None:
    """What history tells is where the run stands: its state, its transitions, the rounds of its loops."""
    instance = family.instance
    position = replay(memory.plans[instance.version_id], read_past(family).lines)[-1].position
    assert (position.state, position.transitions) == (instance.state, instance.transitions_count)
    assert position.loops == ((instance.walk or {}).get("loops") or {})


def _check_deliveries(family: Family) -> None:
    """4: a delivery is taken once or still there; each wait receives one once."""
    received = Counter(
        str((event.data or {})["source_id"]) for event in family.events if event.type is EventType.SIGNAL_RECEIVED
    )
    taken = Counter(row.source_id for row in family.signals.values() if row.taken_at is not None)
    assert received <= taken, received - taken
    discarded = {row.source_id for row in family.signals.values() if row.discarded_at is not None}
    assert not discarded & received.keys(), discarded
