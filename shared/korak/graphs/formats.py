"""The formats of a config schema: what a string must be."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Final

from croniter import croniter

from korak.graphs import durations, instants, paths
from korak.graphs.paths import Malformed

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CRON = re.compile(r"[0-9A-Za-z*/,#-]{1,60}( +[0-9A-Za-z*/,#-]{1,60}){4}")
_NODE_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")


def is_date(text: str) -> bool:
    """A day that exists, as `2026-02-28`."""
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_instant(text: str) -> bool:
    """ISO 8601 date and time with an offset."""
    return instants.parse(text) is not None


def is_duration(text: str) -> bool:
    """An ISO 8601 duration."""
    return _compiles(lambda: durations.compile_duration(text))


def is_timezone(text: str) -> bool:
    """An IANA name."""
    return _compiles(lambda: durations.get_zone(text))


def is_cron(text: str) -> bool:
    """Five fields, as crontab(5) has them."""
    return _CRON.fullmatch(text) is not None and croniter.is_valid(text)


def is_field_path(text: str) -> bool:
    """A path such as `state.total` or `items[0]["unit price"]`."""
    return _compiles(lambda: paths.parse(text))


def is_node_id(text: str) -> bool:
    """What a node may be called."""
    return _NODE_ID.fullmatch(text) is not None


def _compiles(compile_text: Callable[[], object]) -> bool:
    try:
        compile_text()
    except Malformed:
        return False
    return True


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date": is_date,
    "date-time": is_instant,
    "duration": is_duration,
    "timezone": is_timezone,
    "cron": is_cron,
    "field-path": is_field_path,
    "node-id": is_node_id,
}
"""Name to whether a string has it."""
