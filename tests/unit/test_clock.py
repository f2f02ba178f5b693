"""The clock: corrected by what was measured, and moved by hand in tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.clock import Clock, ManualClock

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


def test_the_time_is_aware_and_utc() -> None:
    assert Clock().now().utcoffset() == timedelta()


def test_an_adjusted_clock_is_ahead_by_what_was_measured() -> None:
    plain, ahead = Clock(), Clock()
    ahead.adjust(timedelta(hours=1))
    assert timedelta(minutes=59) < ahead.now() - plain.now() < timedelta(minutes=61)


def test_the_monotonic_clock_is_not_adjusted() -> None:
    clock = Clock()
    before = clock.monotonic()
    clock.adjust(timedelta(days=-1))
    assert clock.monotonic() >= before


@given(st.lists(st.timedeltas(timedelta(days=-9), timedelta(days=9))))
def test_measuring_again_meets_the_database_whatever_it_does(errors: list[timedelta]) -> None:
    clock = ManualClock(NOON)
    database = NOON
    for error in errors:
        database += error
        clock.adjust(database - clock.now())
        assert clock.now() == database


def test_a_manual_clock_stands_until_it_is_moved() -> None:
    clock = ManualClock(NOON)
    assert clock.now() == clock.now() == NOON
    assert clock.advance(timedelta(hours=2)) == NOON + timedelta(hours=2)
    assert clock.advance(30.0) == NOON + timedelta(hours=2, seconds=30)
    assert clock.monotonic() == 7230.0


def test_a_manual_clock_goes_back_only_by_set() -> None:
    clock = ManualClock(NOON)
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1.0)
    clock.adjust(timedelta(minutes=5))
    clock.set(NOON - timedelta(days=1))
    assert clock.now() == NOON - timedelta(days=1)
    assert clock.monotonic() == 0.0
