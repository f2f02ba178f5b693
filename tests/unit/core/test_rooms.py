"""Room under keys: windows that never let more through, taking all or nothing, and who goes first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from korak.core.holds import Holds
from korak.core.rates import Window
from korak.core.rooms import Demand, FlowKey, Parked, Room, get_rank, get_width, list_demands, take
from korak.core.rows import StepRun
from korak.graphs.limiting import FlowRule
from korak.graphs.values import compile_value
from korak.model import FlowKind, HoldKind, InstanceStatus, Json, JsonObject, StepStatus
from korak.steps.results import Complete
from tests.support.handlers import at
from tests.support.runs import Run

KEY = FlowKey("team:1", FlowKind.CONCURRENCY, "k")
OTHER = FlowKey("team:1", FlowKind.CONCURRENCY, "other")


def step(**columns: Any) -> StepRun:
    return StepRun(
        **{
            "id": 1,
            "instance_id": 1,
            "owner_scope": "team:1",
            "node_id": "n",
            "node_type": "a.b",
            "type_version": 1,
            "visit": 1,
            "attempt": 1,
            "idempotency_key": "k",
            "queue": "default",
            "created_at": at(0),
            **columns,
        }
    )


@given(
    st.integers(1, 5),
    st.sampled_from([1.0, 7.0, 60.0, 3_600.0]),
    st.lists(st.floats(0, 1), min_size=1, max_size=200),
)
def test_no_span_of_that_length_ever_sees_more_than_the_limit(limit: int, per: float, gaps: list[float]) -> None:
    """Whenever a start is asked for; and a refused one goes at the time that it was told."""
    room = Room(1, FlowKey("team:1", FlowKind.RATE, "k"))
    room.window.width = get_width(per)
    demand = Demand(room.key, step(), limit, width=room.window.width)
    now, taken = at(0), list[Any]()
    for gap in gaps:
        now += timedelta(seconds=gap * per / 2)
        room.window.advance(now)
        denial = take([demand], {room.key: room})
        if denial is not None:
            assert denial.until is not None
            assert now < denial.until <= now + timedelta(seconds=per * 1.02 + 0.01)
            now = denial.until
            room.window.advance(now)
            assert take([demand], {room.key: room}) is None
        taken.append(now)
    for index, moment in enumerate(taken[limit:]):
        assert moment - taken[index] >= timedelta(seconds=per) - timedelta(microseconds=10)


def test_who_finds_no_room_under_one_key_takes_none_under_another() -> None:
    rooms = {KEY: Room(1, KEY), OTHER: Room(2, OTHER, in_use=1)}
    demands = [Demand(KEY, step(), 3, weight=2), Demand(OTHER, step(), 1)]
    denial = take(demands, rooms)
    assert denial is not None
    assert (denial.key, denial.key_id, denial.ceiling) == (OTHER, 2, 0)
    assert rooms[KEY].in_use == 0
    rooms[OTHER].give_back(1)
    assert take(demands, rooms) is None
    assert (rooms[KEY].in_use, rooms[OTHER].in_use) == (2, 1)


def test_what_is_too_heavy_lets_lighter_ones_pass() -> None:
    room = Room(1, KEY, in_use=4)
    heavy, light = Parked(1, ceiling=3, weight=2), Parked(2, ceiling=4, weight=1)
    assert room.choose([heavy, light, Parked(3, ceiling=4, weight=1)]) == [2]
    room.give_back(1)
    assert room.choose([heavy, light]) == [1]


def test_a_step_that_follows_another_waits_behind_those_who_are_parked() -> None:
    room = Room(1, KEY, has_parked=True)
    denial = take([Demand(KEY, step(), 1, is_inline=True)], {KEY: room})
    assert denial is not None
    assert denial.is_behind
    assert take([Demand(KEY, step(), 1)], {KEY: room}) is None


def test_a_higher_priority_is_asked_first_then_the_oldest_whatever_their_ids() -> None:
    old, young, urgent = step(id=2_001), step(id=1, created_at=at(1)), step(id=3, created_at=at(2), priority=3)
    twin, new = step(id=2_002), step(id=-1)
    asked = sorted([new, young, twin, old, urgent], key=lambda each: get_rank([Demand(KEY, each, 1)]))
    assert asked == [urgent, old, twin, young, new]


def test_a_long_key_is_counted_under_its_digest() -> None:
    rule = FlowRule(compile_value("k"), "k", 1, 1, 1, 60.0)
    for demand in list_demands(rule, "x" * 10_000, step(), is_of_run=False, is_inline=False):
        assert len(demand.key.name) <= 191
    assert list_demands(rule, "x" * 128, step(), is_of_run=False, is_inline=False)[0].key.name == "x" * 128


def test_a_window_over_a_minute_counts_seconds_as_it_did() -> None:
    window = Window()
    window.advance(at(0))
    assert window.take(1)
    window.advance(at(59))
    assert not window.take(1)
    window.advance(at(60))
    assert window.take(1)


def test_a_hold_covers_what_it_names_of_its_owner() -> None:
    one = step(queue="slow", node_type="a.b")
    for owner, kind, name in [
        ("team:1", HoldKind.QUEUE, "slow"),
        ("*", HoldKind.STEP_TYPE, "a.b"),
        ("*", HoldKind.DEFINITION, "order"),
    ]:
        assert Holds(frozenset({(owner, kind, name)})).cover(one, "order")
    assert not Holds(frozenset({("team:2", HoldKind.QUEUE, "slow")})).cover(one, "order")
    assert not Holds(frozenset({("team:1", HoldKind.DEFINITION, "slow")})).cover(one, "order")


def test_what_is_begun_and_ended_in_one_decision_is_not_granted_and_takes_no_room() -> None:
    """A branch that ends the run at once, beside one that would have run where the step before was recorded."""
    ending: JsonObject = {"start": "over", "nodes": [{"id": "over", "type": "end", "config": {"terminate": True}}]}
    flow: Json = [{"key": "k", "concurrency": 1}]
    limited: JsonObject = {"id": "b", "type": "test.ok", "config": {"value": 1}, "flow": flow}
    branches: JsonObject = {"one": {"start": "b", "nodes": [limited]}, "two": ending}
    nodes: list[Json] = [
        {"id": "start", "type": "trigger", "config": {"on": "manual"}},
        {"id": "a", "type": "test.ok", "config": {"value": 1}},
        {"id": "both", "type": "parallel", "branches": branches},
        {"id": "done", "type": "end", "config": {}},
    ]
    pairs = [("start", "a"), ("a", "both"), ("both", "done")]
    run = Run(
        {
            "schema": "korak.graph/v1",
            "key": "branches",
            "nodes": nodes,
            "edges": [{"from": source, "to": target} for source, target in pairs],
            "settings": {"flow": [{"key": "runs", "concurrency": 1}]},
        }
    )
    run.claim()
    changes = run.finish(Complete(), inline=True)
    assert run.instance.status is InstanceStatus.COMPLETED
    assert [step.status for step in run.list_steps("b")] == [StepStatus.CANCELLED]
    assert (changes.claimed, changes.demands, changes.leaves) == ([], [], True)
