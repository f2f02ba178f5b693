"""Spans of time as authors write them: seconds, ISO 8601, days on the wall clock (DESIGN 6, duration)."""

from __future__ import annotations

import calendar
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from korak.errors import Issue
from korak.graphs import paths
from korak.graphs.paths import Malformed
from korak.model import Json, JsonObject

LONGEST_DAYS: Final = 36525
"""A hundred years: no duration is longer."""

_ISO = re.compile(
    r"(?P<sign>[+-])?P(?=.)(?:(?P<years>\d{1,6})Y)?(?:(?P<months>\d{1,6})M)?(?:(?P<weeks>\d{1,6})W)?(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,10}(?:[.,]\d{1,9})?)S)?)?",
    re.ASCII,
)
_AT = re.compile(r"close|same_time|([01][0-9]|2[0-3]):[0-5][0-9]")


@dataclass(frozen=True, slots=True)
class Duration:
    """A span: months and days on the wall clock of a time zone, then an exact rest.

    Month arithmetic stays inside the month (31 January and one month is the last of February). An ISO day is 24 hours;
    `{"days": 1}` is the same wall-clock time on the next day.
    """

    months: int = 0
    days: int = 0
    exact: timedelta = timedelta()

    @property
    def seconds(self) -> float | None:
        """The length in seconds; None where it depends on the start and the time zone."""
        return None if self.months or self.days else self.exact.total_seconds()

    def after(self, start: datetime, timezone: str = "UTC") -> datetime:
        """The instant, in UTC, that lies this span after `start` (aware).

        A wall-clock time that doesn't exist is the first instant after the gap; one that comes twice is its first.
        Raises OverflowError beyond the calendar's end, Malformed("invalid_duration") for an unknown time zone.
        """
        if not (self.months or self.days):
            return start.astimezone(UTC) + self.exact
        zone = get_zone(timezone)
        local = _add_months(start.astimezone(zone).replace(tzinfo=None), self.months) + timedelta(days=self.days)
        return _first_instant(local, zone) + self.exact


def get_zone(name: object) -> ZoneInfo:
    """The time zone of an IANA name. Raises Malformed("invalid_duration")."""
    try:
        if isinstance(name, str) and 0 < len(name) <= 64:
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise _malformed(f"{str(name)[:64]!r} is no IANA time zone.")


def compile_duration(raw: Json, *, signed: bool = False) -> Duration:
    """The duration that `raw` writes; with `signed` it may be negative. Raises Malformed("invalid_duration")."""
    duration = _read(raw)
    if not signed and (duration.months < 0 or duration.days < 0 or duration.exact < timedelta()):
        raise _malformed("A duration isn't negative.")
    if abs(duration.months) * 30.4 + abs(duration.days) + abs(duration.exact.total_seconds()) / 86400 > LONGEST_DAYS:
        raise _malformed("A duration is a hundred years at most.")
    return duration


def _read(raw: Json) -> Duration:
    if isinstance(raw, str):
        return _read_iso(raw)
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return _read_seconds(raw)
    if isinstance(raw, dict):
        return _read_object(raw)
    raise _malformed("A duration is seconds, ISO 8601 or an object.")


def _read_seconds(raw: float) -> Duration:
    if not math.isfinite(raw) or abs(raw) > (LONGEST_DAYS + 1) * 86400:
        raise _malformed("A duration is a hundred years at most.")
    return Duration(exact=timedelta(seconds=raw))


def _read_iso(text: str) -> Duration:
    match = _ISO.fullmatch(text)
    if match is None:
        raise _malformed(f"{text[:40]!r} is no ISO 8601 duration, such as PT1H30M, P2D or P1M.")
    part = {name: float((match[name] or "0").replace(",", ".")) for name in match.groupdict() if name != "sign"}
    exact = timedelta(
        weeks=part["weeks"],
        days=part["days"],
        hours=part["hours"],
        minutes=part["minutes"],
        seconds=part["seconds"],
    )
    sign = -1 if match["sign"] == "-" else 1
    return Duration(months=sign * int(part["years"] * 12 + part["months"]), exact=sign * exact)


def _read_object(raw: JsonObject) -> Duration:
    if "business" in raw:
        raise _refuse_business(raw)
    if "business_days" in raw:
        raise _refuse_business_days(raw)
    if set(raw) != {"days"}:
        raise _malformed("A duration object has the key days, business or business_days.")
    return Duration(days=_read_count(raw, "days"))


def _read_count(raw: JsonObject, key: str) -> int:
    count = raw[key]
    if not isinstance(count, int) or isinstance(count, bool) or abs(count) > LONGEST_DAYS:
        raise _malformed(f"{key} is a whole number, {LONGEST_DAYS} at most.", key)
    return count


def _refuse_business(raw: JsonObject) -> Malformed:
    _check_members(raw, {"business", "calendar"})
    text = raw["business"]
    inner = _read_iso(text) if isinstance(text, str) else _read(text) if isinstance(text, (int, float)) else None
    if inner is None:
        return _malformed("business is seconds or an ISO 8601 duration.", "business")
    if isinstance(text, str) and re.search(r"[YWD]|M[^T]*T|^[+-]?P\d+M$", text):
        return _malformed('Days and longer may not stand in business: use {"business_days": n}.', "business")
    return _no_calendars("business")


def _refuse_business_days(raw: JsonObject) -> Malformed:
    _check_members(raw, {"business_days", "at", "calendar"})
    if _read_count(raw, "business_days") < 0:
        return _malformed("business_days isn't negative.", "business_days")
    at = raw.get("at", "same_time")
    if not isinstance(at, str) or _AT.fullmatch(at) is None:
        return _malformed("at is close, same_time or a time such as 09:00.", "at")
    return _no_calendars("business_days")


def _check_members(raw: JsonObject, allowed: set[str]) -> None:
    if unknown := sorted(set(raw) - allowed):
        raise _malformed(f"{unknown[0][:40]!r} is no member of this duration.", unknown[0])
    if not isinstance(raw.get("calendar", ""), str):
        raise _malformed("calendar is a name.", "calendar")


def _no_calendars(key: str) -> Malformed:
    return _malformed("Business time needs calendars, which this version of Korak doesn't have yet.", key)


def _add_months(local: datetime, months: int) -> datetime:
    year, month = divmod(local.year * 12 + local.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("beyond the calendar's end")
    last = calendar.monthrange(year, month + 1)[1]
    return local.replace(year=year, month=month + 1, day=min(local.day, last))


def _first_instant(local: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which a clock of `zone` reads `local` or later."""
    late = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if late.astimezone(zone).replace(tzinfo=None) == local:
        return late
    early = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    before = early.astimezone(zone).utcoffset()
    while late - early > timedelta(microseconds=1):
        middle = early + (late - early) / 2
        if middle.astimezone(zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late


def _malformed(detail: str, *at: str) -> Malformed:
    return Malformed(Issue("invalid_duration", paths.pointer(at), {"detail": detail}))
