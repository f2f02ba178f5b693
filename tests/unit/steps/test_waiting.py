"""delay and wait: when they park, what wakes them and what comes out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.model import Json, JsonObject, SignalKind, WaitKind
from korak.steps.builtin.delay import Delay
from korak.steps.builtin.wait import WaitStep
from korak.steps.pure import Completed, Failed, Parked
from korak.steps.waits import Signal, WaitItem, WaitSpec
from tests.support.entries import NOW, enter, wake

LATER = "2026-03-02T13:00:00Z"


def test_a_delay_parks_until_its_duration_is_over() -> None:
    assert enter(Delay(), {"for": "PT1H"}) == Parked(WaitSpec.timer("PT1H"), {"due_at": LATER})
    assert enter(Delay(), {"for": {"ref": "input.wait"}}, roots={"input": {"wait": 3600}}) == Parked(
        WaitSpec.timer(3600), {"due_at": LATER}
    )


def test_a_delay_parks_until_its_time() -> None:
    expected = Parked(WaitSpec.timer(datetime(2026, 3, 2, 13, tzinfo=UTC)), {"due_at": LATER})
    assert enter(Delay(), {"until": LATER}) == expected
    assert enter(Delay(), {"until": {"ref": "input.at"}}, roots={"input": {"at": "2026-03-02T14:00+01:00"}}) == expected


def test_a_time_without_an_offset_is_the_instance_s_wall_clock() -> None:
    result = enter(Delay(), {"until": "2026-07-01T09:00"}, timezone="Europe/Ljubljana")
    assert result == Parked(WaitSpec.timer(datetime(2026, 7, 1, 7, tzinfo=UTC)), {"due_at": "2026-07-01T07:00:00Z"})


def test_a_day_by_the_calendar_keeps_the_wall_clock() -> None:
    now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    result = enter(Delay(), {"for": {"days": 1}}, now=now, timezone="Europe/Ljubljana")
    assert isinstance(result, Parked)
    assert result.output == {"due_at": "2026-03-29T11:00:00Z"}


@pytest.mark.parametrize("config", [{"for": 0}, {"until": "2026-03-02T12:00:00Z"}, {"until": "2020-01-01"}])
def test_delay_with_a_past_due_time_completes_without_parking(config: JsonObject) -> None:
    result = enter(Delay(), config)
    assert isinstance(result, Completed)
    assert result.outcome == "next"
    assert set(result.output) == {"due_at"}


@given(st.integers(-(10**6), 10**6))
def test_a_delay_parks_exactly_when_its_time_is_ahead(seconds: int) -> None:
    due = NOW + timedelta(seconds=seconds)
    assert isinstance(enter(Delay(), {"until": due.isoformat()}), Parked) is (due > NOW)


def test_wt_15_a_delay_goes_on_with_its_due_time() -> None:
    result = wake(Delay(), {"for": "PT1H"}, SignalKind.TIMER, output={"due_at": LATER})
    assert result == Completed("next", {"due_at": LATER})


def test_wt_15_nothing_but_a_timer_resumes_a_delay() -> None:
    result = wake(Delay(), {"for": "PT1H"}, SignalKind.EVENT)
    assert isinstance(result, Failed)
    assert (result.code, result.params) == ("resume_unsupported", {"type": "delay", "kind": "event"})


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"for": {"ref": "input.no"}}, "/for"),
        ({"for": "tomorrow"}, "/for"),
        ({"until": {"ref": "input.no"}}, "/until"),
        ({"until": "soon"}, "/until"),
        ({"until": 12}, "/until"),
        ({"until": "9999-12-31T23:59:59-14:00"}, "/until"),
        ({"for": 1e300}, "/for"),
    ],
)
def test_what_is_no_time_is_invalid_input_with_its_place(config: JsonObject, pointer: str) -> None:
    for pure in (Delay(), WaitStep()):
        result = enter(pure, config, roots={"input": {}})
        assert isinstance(result, Failed)
        assert (result.code, result.params["pointer"]) == ("invalid_input", pointer)


@pytest.mark.parametrize(
    ("config", "pointers"),
    [
        ({"for": "PT1H"}, []),
        ({}, [""]),
        ({"for": 1, "until": LATER}, [""]),
        ({"until": "soon"}, ["/until"]),
        ({"until": {"ref": "input.at"}}, []),
    ],
)
def test_a_delay_takes_one_of_two(config: JsonObject, pointers: list[str], scope: Any) -> None:
    assert [issue.pointer for issue in Delay().validate_config(config, scope)] == pointers


def park(config: JsonObject, **roots: Any) -> tuple[WaitItem, ...]:
    result = enter(WaitStep(), config, roots=roots)
    assert isinstance(result, Parked), result
    return result.spec.items


def test_wt_13_a_wait_for_an_event_takes_its_match_at_entry() -> None:
    config: JsonObject = {"event": "payment.settled", "match": {"order.id": {"ref": "input.id"}}, "since": "now"}
    assert park(config, input={"id": 7}) == (WaitItem(WaitKind.EVENT, "payment.settled", {"order.id": 7}, since="now"),)


def test_a_wait_for_an_event_looks_back_unless_told_not_to() -> None:
    assert park({"event": "paid"})[0].since is None


def test_a_name_may_be_computed() -> None:
    assert park({"signal": {"template": "go-${input.id}"}}, input={"id": 7})[0].key == "go-7"


def test_a_correlation_is_taken_from_the_state() -> None:
    items = park({"signal": "paid", "correlation": "order"}, state={"order": 7})
    assert items == (WaitItem(WaitKind.SIGNAL, "paid", {"order": 7}, "order"),)


def test_a_correlation_that_the_state_lacks_fails_the_node() -> None:
    result = enter(WaitStep(), {"signal": "paid", "correlation": "order"}, roots={"state": {}})
    assert isinstance(result, Failed)
    assert (result.code, result.params) == ("missing_value", {"pointer": "/correlation", "path": "state.order"})


@pytest.mark.parametrize(
    ("given", "pointer"),
    [(5, "/match"), ([["a", 1]], "/match"), (None, "/match"), ({"a": 1, "b..c": 1}, "/match/b..c")],
)
def test_a_match_that_was_computed_is_an_object_with_paths(given: Json, pointer: str) -> None:
    """Least of all one that isn't there: such a wait would take anything"""
    config: JsonObject = {"event": "paid", "match": {"ref": "input.match"}}
    result = enter(WaitStep(), config, roots={"input": {"match": given}})
    assert isinstance(result, Failed)
    assert (result.code, result.params["pointer"]) == ("invalid_input", pointer)


@pytest.mark.parametrize(("written", "mode"), [({}, "all"), ({"mode": "any"}, "any")])
def test_several_signals_are_waited_for_as_one_group(written: JsonObject, mode: str) -> None:
    items = park({"signals": ["a", "b"], **written})
    assert [(item.key, item.mode, item.group) for item in items] == [("a", mode, "signals"), ("b", mode, "signals")]


def test_wt_12_a_time_limit_is_a_duration_or_a_time() -> None:
    limit = park({"event": "paid", "timeout": "P3D"})[1]
    assert limit == WaitItem(WaitKind.TIMEOUT, due="P3D", outcome="timed_out")
    limit = park({"event": "paid", "timeout": {"ref": "input.at"}}, input={"at": LATER})[1]
    assert limit.due == datetime(2026, 3, 2, 13, tzinfo=UTC)


def test_wt_12_timed_out_is_an_outcome_only_with_a_time_limit() -> None:
    outcomes = WaitStep().contract().outcomes
    assert [spec.key for spec in outcomes({"event": "a"})] == ["next"]
    assert [(spec.key, spec.is_required) for spec in outcomes({"event": "a", "timeout": 1})] == [
        ("next", True),
        ("timed_out", True),
    ]


CONDITION: JsonObject = {"ref": "state.ready", "op": "eq", "value": True}


def test_a_condition_that_holds_at_entry_does_not_park() -> None:
    assert enter(WaitStep(), {"condition": CONDITION, "timeout": 5}, roots={"state": {"ready": True}}) == Completed()


@pytest.mark.parametrize(
    ("written", "poll"), [({}, None), ({"poll": "PT5M"}, "PT5M"), ({"poll": 5}, 60.0), ({"poll": "PT1M"}, "PT1M")]
)
def test_wt_3_a_condition_is_looked_at_at_most_every_minute(written: JsonObject, poll: Json) -> None:
    items = park({"condition": CONDITION, **written}, state={"ready": False})
    assert items == (WaitItem(WaitKind.CONDITION, condition=CONDITION, poll=poll),)


def test_a_wait_for_a_time_is_a_delay() -> None:
    assert enter(WaitStep(), {"for": "PT1H"}) == enter(Delay(), {"for": "PT1H"})
    assert isinstance(enter(WaitStep(), {"until": "2020-01-01"}), Completed)


@pytest.mark.parametrize(
    ("config", "signal", "expected"),
    [
        (
            {"event": "paid"},
            Signal(SignalKind.EVENT, "paid", {"a": 1}),
            Completed("next", {"key": "paid", "payload": {"a": 1}}),
        ),
        ({"signal": "go"}, Signal(SignalKind.SIGNAL, "go"), Completed("next", {"key": "go", "payload": None})),
        (
            {"signals": ["a", "b"]},
            Signal(SignalKind.SIGNAL, None, {"a": 1, "b": 2}),
            Completed("next", {"signals": {"a": 1, "b": 2}}),
        ),
        ({"condition": CONDITION}, Signal(SignalKind.CONDITION), Completed()),
        ({"event": "paid", "timeout": 1}, Signal(SignalKind.TIMEOUT, outcome="timed_out"), Completed("timed_out")),
        ({"for": 1}, Signal(SignalKind.TIMER), Completed("next", {"due_at": LATER})),
    ],
)
def test_what_came_is_the_output(config: JsonObject, signal: Signal, expected: Completed) -> None:
    assert wake(WaitStep(), config, signal, output={"due_at": LATER}) == expected


def test_a_result_is_made_of_what_came() -> None:
    signal = Signal(SignalKind.SIGNAL, "paid", {"total": 3, "by": "Ana"})
    assert wake(WaitStep(), {"signal": "paid", "result": {"ref": "signal.payload"}}, signal) == Completed(
        output={"total": 3, "by": "Ana"}
    )
    parts: JsonObject = {"signal": "paid", "result": [{"ref": "signal.payload"}, None, {"by": {"ref": "signal.name"}}]}
    assert wake(WaitStep(), parts, signal) == Completed(output={"total": 3, "by": "paid"})
    assert wake(WaitStep(), {**parts, "timeout": 5}, SignalKind.TIMEOUT) == Completed("timed_out")


def test_a_result_is_an_object() -> None:
    signal = Signal(SignalKind.SIGNAL, "paid", {"total": 3})
    failed = wake(WaitStep(), {"signal": "paid", "result": {"ref": "signal.payload.total"}}, signal)
    assert isinstance(failed, Failed)
    assert (failed.code, failed.params["pointer"]) == ("invalid_input", "/result")


@pytest.mark.parametrize(
    "config", [{"event": {"ref": "input.no"}}, {"signal": ""}, {"signals": []}, {"signals": "a"}, {"event": "x" * 192}]
)
def test_what_is_no_name_is_invalid_input(config: JsonObject) -> None:
    result = enter(WaitStep(), config, roots={"input": {}})
    assert isinstance(result, Failed)
    assert (result.code, result.params["pointer"]) == ("invalid_input", f"/{next(iter(config))}")


@pytest.mark.parametrize(
    ("config", "pointers"),
    [
        ({"event": "a"}, []),
        ({}, [""]),
        ({"event": "a", "signal": "b"}, [""]),
        ({"for": 1, "until": LATER}, [""]),
        ({"for": 1, "match": {}}, ["/match"]),
        ({"event": "a", "mode": "any"}, ["/mode"]),
        ({"signal": "a", "since": "now"}, ["/since"]),
        ({"event": "a", "correlation": "x"}, ["/correlation"]),
        ({"event": "a", "poll": 60}, ["/poll"]),
        ({"event": " "}, ["/event"]),
        ({"event": 3}, ["/event"]),
        ({"event": {"ref": "input.name"}}, []),
        ({"signals": ["a", "a"]}, ["/signals"]),
        ({"signals": ["a", {"ref": "input.b"}]}, []),
        ({"signals": []}, ["/signals"]),
        ({"signals": {"ref": "input.names"}}, []),
        ({"event": "a", "timeout": "soon"}, ["/timeout"]),
        ({"event": "a", "timeout": {"ref": "input.at"}}, []),
        ({"event": "a", "timeout": LATER}, []),
        ({"until": "soon"}, ["/until"]),
    ],
)
def test_a_wait_takes_exactly_one_form_and_what_goes_with_it(
    config: JsonObject, pointers: list[str], scope: Any
) -> None:
    issues = WaitStep().validate_config(config, scope)
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", pointer) for pointer in pointers]
