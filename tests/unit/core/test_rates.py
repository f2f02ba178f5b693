"""The window of starts: sixty one-second counters that the time moves along."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from korak.core.rates import SECONDS, Window

START = datetime(2030, 1, 1, tzinfo=UTC)


def test_lm_3_as_many_as_the_limit_pass_in_a_minute() -> None:
    window = Window()
    window.advance(START)

    assert [window.take(3) for _ in range(5)] == [True, True, True, False, False]
    assert window.total == 3


def test_lm_10_what_is_older_than_a_minute_is_forgotten() -> None:
    window = Window()
    window.advance(START)
    window.take(1)

    window.advance(START + timedelta(seconds=59))
    assert not window.take(1)
    window.advance(START + timedelta(seconds=60))
    assert window.take(1)


def test_a_clock_that_goes_back_forgets_nothing() -> None:
    window = Window()
    window.advance(START)
    window.take(1)

    window.advance(START - timedelta(hours=1))

    assert not window.take(1)


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 4)), max_size=60),
    st.integers(1, 5),
)
def test_no_minute_has_more_than_the_limit_and_the_pause_is_exact(asked: list[tuple[int, int]], limit: int) -> None:
    window, now = Window(), START
    taken: list[datetime] = []
    for seconds, count in asked:
        now += timedelta(seconds=seconds)
        window.advance(now)
        taken += [now for _ in range(count) if window.take(limit)]
        recent = [at for at in taken if at > now - timedelta(seconds=SECONDS)]
        assert window.total == len(recent) <= limit
        if window.total == limit:
            pause = window.get_pause(limit)
            later = Window(list(window.counters), window.counted_at)
            later.advance(now + timedelta(seconds=pause - 1))
            assert pause == 1 or not later.take(limit)
            later.advance(now + timedelta(seconds=pause))
            assert later.take(limit)
