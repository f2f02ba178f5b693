"""Counts and durations as a chain's methods take them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from korak.chains.given import misuse, show, take
from korak.graphs.durations import compile_duration
from korak.graphs.paths import Malformed
from korak.graphs.values import compile_value, get_form
from korak.model import Json

UNITS: Mapping[str, int] = {"seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400}
MAX_COUNT = 2**31 - 1


def read_count(given: object, what: str) -> int:
    """A whole number from 1."""
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MAX_COUNT:
        raise misuse(f"{what} is a whole number from 1: {show(given)} isn't.")
    return given


def sum_seconds(what: str, **parts: float) -> float:
    """The seconds of all units together; none of them may be negative."""
    for unit, given in parts.items():
        is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
        if not is_number or not 0 <= given < math.inf:
            raise misuse(f"{what}: {unit} is a number from 0: {show(given)} isn't.")
    try:
        total = sum(given * UNITS[unit] for unit, given in parts.items())
        compile_duration(total)
    except (Malformed, OverflowError) as error:
        raise misuse(f"{what}: a duration is a hundred years at most.") from error
    return int(total) if float(total).is_integer() else total


def read_limit(given: Any, what: str) -> Json:
    """A duration as written in a graph, a timedelta, or a value that gives one."""
    written = take(given.total_seconds() if isinstance(given, timedelta) else given, what)
    try:
        if get_form(written) is None:
            compile_duration(written)
        else:
            compile_value(written)
    except Malformed as error:
        raise misuse(f"{what}: {error.message}") from error
    return written
