"""What a step may wait for, and what wakes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import StepFailed
from korak.graphs.paths import Malformed
from korak.model import SignalKind, WaitKind
from korak.steps.waits import Signal, WaitItem, WaitSpec

TIME = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_timer_takes_a_time_a_timedelta_or_a_written_duration() -> None:
    assert WaitSpec.timer(TIME).items == (WaitItem(WaitKind.TIMER, due=TIME),)
    assert WaitSpec.timer(timedelta(minutes=2)).items == (WaitItem(WaitKind.TIMER, due=120.0),)
    assert WaitSpec.timer("PT2M").items == (WaitItem(WaitKind.TIMER, due="PT2M"),)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        WaitSpec.timer(datetime(2026, 3, 2))  # noqa: DTZ001


def test_only_a_duration_is_relative() -> None:
    """A pause stops what counts from parking; a date given by the author stays."""
    spec = WaitSpec.event("paid").timeout("P3D").also_at(TIME)
    assert [item.is_relative for item in spec.items] == [False, True, False]


def test_wt_11_and_12_a_safety_net_and_a_time_limit_are_added() -> None:
    spec = WaitSpec.event("paid", {"order": 7}).also_at(TIME).timeout(60)
    assert [item.kind for item in spec.items] == [WaitKind.EVENT, WaitKind.TIMER, WaitKind.TIMEOUT]
    assert spec.items[2].outcome == "timed_out"
    assert WaitSpec.event("paid").timeout(60, "late").items[1].outcome == "late"


def test_wt_10_a_probe_is_asked_for() -> None:
    assert not WaitSpec.event("paid").wants_probe
    assert WaitSpec.event("paid").probe().wants_probe


def test_a_spec_is_immutable() -> None:
    spec = WaitSpec.signal("go")
    spec.timeout(1)
    assert len(spec.items) == 1


def test_several_signals_are_one_group() -> None:
    spec = WaitSpec.signals(["a", "b"], "any", {"x": 1})
    assert [(item.key, item.mode, item.group, item.match) for item in spec.items] == [
        ("a", "any", "signals", {"x": 1}),
        ("b", "any", "signals", {"x": 1}),
    ]


def test_a_correlation_becomes_a_match_once() -> None:
    spec = WaitSpec.signal("paid", {"kind": "card"}, correlation="order.id").correlate({"order": {"id": 7}})
    assert spec.items[0].match == {"kind": "card", "order.id": 7}
    assert spec.correlate({"order": {"id": 7}}) == spec


@pytest.mark.parametrize("path", ["orders[1].id", 'orders[1]["id"]', '["a b"]', 'x["a.b"]', "order-id", "nothing"])
def test_a_correlation_is_any_path(path: str) -> None:
    state = {"orders": [{"id": 6}, {"id": 7}], "x": {"a.b": 7}, "order-id": 7, "nothing": None}
    if path.startswith("["):
        with pytest.raises(Malformed):
            WaitSpec.signal("paid", correlation=path).correlate(state)
        return
    [item] = WaitSpec.signal("paid", correlation=path).correlate(state).items
    assert item.match == {path: None if path == "nothing" else 7}


@pytest.mark.parametrize("path", ["order.id", "order[0]", 'order["id"]', "orders"])
def test_a_correlation_that_the_state_lacks_is_missing_value(path: str) -> None:
    with pytest.raises(StepFailed) as caught:
        WaitSpec.signal("paid", correlation=path).correlate({"order": 1})
    assert (caught.value.code, caught.value.params) == (
        "missing_value",
        {"pointer": "/correlation", "path": f"state.{path}"},
    )


@given(
    st.sampled_from(SignalKind),
    st.none() | st.text(),
    st.none() | st.integers() | st.lists(st.text()),
    st.none() | st.datetimes(timezones=st.just(UTC)),
)
def test_rt_6_a_stored_signal_is_read_back(kind: SignalKind, name: str | None, payload: object, at: datetime) -> None:
    signal = Signal(kind, name, payload, "late", 12, at)  # type: ignore[arg-type]  # hypothesis doesn't know Json
    assert Signal.from_json(signal.to_json()) == signal
