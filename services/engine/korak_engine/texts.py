"""Texts of errors that anybody may have written: said, cleaned and cut without ever raising."""

from __future__ import annotations

import math
import traceback
from datetime import UTC, datetime, timedelta
from typing import Final

LONGEST: Final = 1 << 20
"""Characters of a text that are looked at."""

FRAMES: Final = 64
"""The frames of each exception in a trace, the innermost ones."""

LONGEST_WAIT: Final = timedelta(days=36525)
"""No retry is later: what is asked for beyond is cut."""


def say(value: object) -> str:
    """What it says of itself; what is known of it where asking raises."""
    try:
        return str.__str__(str(value))[:LONGEST]
    except BaseException:  # an error whose text raises SystemExit is still no reason to end
        return f"a {type(value).__name__} that can't be shown"


def name_type(error: BaseException) -> str:
    """The class of an exception, with its module unless that is Python's own."""
    kind = type(error)
    module, name = kind.__dict__.get("__module__"), type.__dict__["__qualname__"].__get__(kind)
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else str(name)


def format_trace(error: BaseException) -> str | None:
    """The trace with its causes; None where it can't be told."""
    try:
        return "".join(traceback.format_exception(error, limit=-FRAMES))[-LONGEST:]
    except BaseException:  # whatever an exception's members do when they are read
        return None


def clean(text: str) -> str:
    """The text without what no database stores: NUL and lone surrogates."""
    plain = str.__str__(text)
    return plain.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


def clip(text: str | None, limit: int) -> str | None:
    """The first characters."""
    return text if text is None or len(text) <= limit else text[: limit - 1] + "…"


def clip_bytes(text: str | None, limit: int) -> str | None:
    """The last bytes: the end of a trace says most."""
    if text is None or len(text) * 4 <= limit or len(raw := text.encode()) <= limit:
        return text
    return raw[-limit:].decode("utf-8", "ignore")


def resolve_after(after: object, now: datetime) -> datetime | None:
    """When a retry was asked for: a time, or a delay from now. None where what was given is neither."""
    try:
        if isinstance(after, datetime):
            due = after if after.tzinfo else after.replace(tzinfo=UTC)
            return min(due.astimezone(UTC), now + LONGEST_WAIT)
        if isinstance(after, timedelta):
            return now + min(after, LONGEST_WAIT)
        if isinstance(after, (int, float)) and not isinstance(after, bool) and not math.isnan(after):
            seconds = max(0.0, min(float(after), LONGEST_WAIT.total_seconds()))
            return now + timedelta(seconds=seconds)
    except Exception:
        return None
    return None
