"""Points in time as text: ISO 8601 with an offset in, UTC with a Z out."""

from __future__ import annotations

from datetime import UTC, datetime

LONGEST = 40


def parse(text: str) -> datetime | None:
    """The instant that `text` names, in UTC; None where it is no ISO 8601 date and time with an offset."""
    if not 16 <= len(text) <= LONGEST or text[10] not in "Tt ":
        return None
    try:
        value = datetime.fromisoformat(text)
        return None if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def render(value: datetime) -> str:
    """ISO 8601 in UTC, with a Z; microseconds only where there are any. A naive `value` is refused (ValueError)."""
    if value.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
