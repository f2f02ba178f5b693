"""Times, and lengths of time, as a person reads them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def show_span(span: timedelta | None) -> str:
    """A length of time in its two largest units."""
    if span is None:
        return ""
    seconds = span.total_seconds()
    if seconds < 0.001:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    parts = []
    for size, unit in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:.0f} {unit}")
    return " ".join(parts[:2])


def read_time(moment: Any) -> datetime | None:
    """A time of an answer; None where there is none."""
    return datetime.fromisoformat(moment) if isinstance(moment, str) else None


def get_between(start: Any, end: datetime) -> timedelta | None:
    """How long it was from a time of an answer."""
    began = read_time(start)
    return None if began is None else end - began
