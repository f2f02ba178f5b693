"""Durations (DESIGN 6; spec 16: no overflow in months, a day is 24 hours; spec 17: the DST rule)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.graphs import durations
from korak.graphs.durations import Duration, compile_duration
from korak.graphs.paths import Malformed

LJUBLJANA = "Europe/Ljubljana"
INSTANTS = st.datetimes(
    datetime.fromisoformat("1971-01-01"), datetime.fromisoformat("2100-01-01"), timezones=st.just(UTC)
)
ZONES = st.sampled_from(["UTC", LJUBLJANA, "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"])


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [
        (0, 0),
        (90, 90),
        (1.5, 1.5),
        ("PT1H1M1S", 3661),
        ("P1W", 604800),
        ("P1D", 86400),
        ("P1DT12H", 129600),
        ("PT0.25S", 0.25),
        ("PT0,5S", 0.5),
        ("P100Y", None),
        ("P1M", None),
        ({"days": 1}, None),
        ({"days": 0}, 0),
    ],
    ids=str,
)
def test_reads(raw: Any, seconds: float | None) -> None:
    assert compile_duration(raw).seconds == seconds


@pytest.mark.parametrize(
    "raw",
    [
        -1,
        float("nan"),
        float("inf"),
        1e300,
        10**30,
        True,
        None,
        [],
        {},
        "",
        "P",
        "PT",
        "P1DT",
        "1h",
        "PT1.5H",
        "-PT1H",
        "P1H",
        "PT1H ",
        "P\u0661D",
        "P101Y",
        "P999999Y",
        "PT9999999999S",
        {"days": -1},
        {"days": 1.5},
        {"days": True},
        {"days": 1, "hours": 2},
        {"days": 10**9},
        {"weeks": 1},
    ],
    ids=lambda raw: ascii(raw)[:20],
)
def test_refuses(raw: Any) -> None:
    with pytest.raises(Malformed) as caught:
        compile_duration(raw)
    assert caught.value.issue.code == "invalid_duration"
    assert caught.value.issue.params["detail"]


@pytest.mark.parametrize(
    ("raw", "pointer", "hint"),
    [
        ({"business": "PT8H"}, "/business", "calendars"),
        ({"business": "PT8H", "calendar": "office"}, "/business", "calendars"),
        ({"business": 3600}, "/business", "calendars"),
        ({"business": "PT90M"}, "/business", "calendars"),
        ({"business": "P2D"}, "/business", "business_days"),
        ({"business": "P1M"}, "/business", "business_days"),
        ({"business": "P1MT1H"}, "/business", "business_days"),
        ({"business": "P1W"}, "/business", "business_days"),
        ({"business": []}, "/business", "ISO 8601"),
        ({"business": "PT8H", "at": "close"}, "/at", "no member"),
        ({"business": "PT8H", "calendar": 5}, "/calendar", "name"),
        ({"business_days": 2}, "/business_days", "calendars"),
        ({"business_days": 2, "at": "09:00", "calendar": "office"}, "/business_days", "calendars"),
        ({"business_days": 2, "at": "25:00"}, "/at", "close"),
        ({"business_days": -2}, "/business_days", "negative"),
        ({"business_days": "2"}, "/business_days", "whole"),
    ],
    ids=str,
)
def test_business_time_is_refused_with_a_hint(raw: Any, pointer: str, hint: str) -> None:
    with pytest.raises(Malformed) as caught:
        compile_duration(raw)
    assert caught.value.issue.pointer == pointer
    assert hint in caught.value.issue.message


@pytest.mark.parametrize(
    ("raw", "start", "end"),
    [
        ("P1M", "2026-01-31T10:00:00", "2026-02-28T10:00:00"),
        ("P1M", "2028-01-31T10:00:00", "2028-02-29T10:00:00"),
        ("P1Y", "2028-02-29T10:00:00", "2029-02-28T10:00:00"),
        ("P1M", "2026-12-15T10:00:00", "2027-01-15T10:00:00"),
        ("P1M1DT1H", "2026-01-31T10:00:00", "2026-03-01T11:00:00"),
        ({"days": 2}, "2026-02-27T23:59:00", "2026-03-01T23:59:00"),
    ],
    ids=str,
)
def test_months_never_overflow(raw: Any, start: str, end: str) -> None:
    assert compile_duration(raw).after(at(start), "UTC") == at(end)


@pytest.mark.parametrize(
    ("raw", "start", "end"),
    [
        # clocks go forward on 2026-03-29 at 02:00 to 03:00 (+1 to +2), back on 2026-10-25 at 03:00 to 02:00
        ("P1D", "2026-03-28T09:00:00", "2026-03-29T09:00:00"),
        ({"days": 1}, "2026-03-28T09:00:00", "2026-03-29T08:00:00"),
        ({"days": 1}, "2026-03-28T01:30:00", "2026-03-29T01:00:00"),  # 02:30 isn't there: 03:00 is next
        ({"days": 1}, "2026-10-24T00:30:00", "2026-10-25T00:30:00"),  # 02:30 comes twice: the first
        ("P1M", "2026-02-28T23:30:00", "2026-03-31T22:30:00"),  # 1 March 00:30 there
        ({"days": 1}, "2026-10-24T10:00:00", "2026-10-25T11:00:00"),
    ],
    ids=str,
)
def test_wall_clock_days_follow_the_zone(raw: Any, start: str, end: str) -> None:
    assert compile_duration(raw).after(at(start), LJUBLJANA) == at(end)


def test_a_day_that_a_zone_skipped_ends_at_its_border() -> None:
    assert Duration(days=1).after(at("2011-12-29T20:00:00"), "Pacific/Apia") == at("2011-12-30T10:00:00")


@given(INSTANTS, ZONES, st.integers(0, 400), st.integers(0, 36))
def test_the_result_is_the_first_instant_at_or_past_that_wall_clock_time(
    start: datetime, zone: str, days: int, months: int
) -> None:
    end = Duration(months=months, days=days).after(start, zone)
    info = durations.get_zone(zone)
    local = start.astimezone(info).replace(tzinfo=None)
    read = end.astimezone(info).replace(tzinfo=None)
    assert read >= local + timedelta(days=28 * months + days) - timedelta(days=3)
    assert end.tzinfo is UTC
    just_before = (end - timedelta(microseconds=1)).astimezone(info).replace(tzinfo=None)
    assert just_before < read


@given(st.integers(0, 10**9), INSTANTS, ZONES)
def test_exact_seconds_are_exact_in_any_zone(seconds: int, start: datetime, zone: str) -> None:
    assert compile_duration(seconds).after(start, zone) - start == timedelta(seconds=seconds)


@given(st.integers(0, 99), st.integers(0, 999), st.integers(0, 99), st.integers(0, 99))
def test_iso_adds_its_parts(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"P{days}DT{hours}H{minutes}M{seconds}S"
    assert compile_duration(text).seconds == days * 86400 + hours * 3600 + minutes * 60 + seconds


@given(st.text("PTYMWDHS0123456789.,+-", max_size=20))
def test_any_text_is_a_duration_or_malformed(text: str) -> None:
    try:
        duration = compile_duration(text, signed=True)
    except Malformed:
        return
    assert duration.after(at("2026-01-01T00:00:00"), LJUBLJANA).tzinfo is UTC


def test_a_signed_duration_may_go_back() -> None:
    assert compile_duration("-P1D", signed=True).after(at("2026-03-02T00:00:00")) == at("2026-03-01T00:00:00")
    assert compile_duration("-P1M", signed=True).after(at("2026-03-31T00:00:00")) == at("2026-02-28T00:00:00")


def test_past_the_end_of_the_calendar_is_an_overflow() -> None:
    for duration in (Duration(months=1), Duration(days=1), Duration(exact=timedelta(days=1))):
        with pytest.raises(OverflowError):
            duration.after(datetime(9999, 12, 31, 23, tzinfo=UTC), "UTC")


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "", "../etc/passwd", "/etc/passwd", "Europe", "a\0b", "x" * 65, 5, None]
)
def test_an_unknown_zone_is_refused(name: object) -> None:
    with pytest.raises(Malformed):
        durations.get_zone(name)
