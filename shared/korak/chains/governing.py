"""What a chain says of all its steps and of every run: queue, priority, attempts, version, limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from korak.chains.compiling import Options
from korak.chains.dispatching import Dispatched
from korak.chains.given import misuse, plain, show
from korak.chains.naming import read_name
from korak.chains.numbers import read_count, sum_seconds
from korak.graphs.document import RUN_LIMITS
from korak.graphs.schema import QUEUE
from korak.model import Json, JsonObject, Priority

MAX_VERSION = 100


class Governed(Dispatched):
    """The options of a chain; each may be said before or after the steps, and the last word counts."""

    def __init__(self) -> None:
        self._options = Options()
        self._settings: JsonObject = {}
        self._limits: dict[str, int] = {}
        super().__init__()

    def on_queue(self, queue: str) -> Self:
        """The queue of every step whose handler names none."""
        if not isinstance(queue, str) or not re.match(QUEUE, queue):
            raise misuse(f"A queue's name has only letters, digits, . _ and -: {show(queue)}.")
        self._options = replace(self._options, queue=plain(queue))
        return self._set("queue", plain(queue))

    def with_priority(self, priority: Priority | int | str) -> Self:
        """Which runs of a queue go first: low (if nothing is said), normal, high or urgent, or 0 to 3."""
        known = {level.name.lower(): level for level in Priority}
        level = known.get(priority) if isinstance(priority, str) else priority
        if not isinstance(level, int) or isinstance(level, bool) or level not in list(Priority):
            raise misuse(f"A priority is one of {', '.join(known)}, or 0 to 3: {show(priority)} is none.")
        return self._set("priority", Priority(level).name.lower())

    def max_attempts(self, attempts: int) -> Self:
        """How often a step is tried, the first attempt included, where its handler doesn't say."""
        self._options = replace(self._options, max_attempts=read_count(attempts, "max_attempts"))
        return self

    def version(self, version: str) -> Self:
        """Your own version of the chain: a label `version:<text>` of every run, and part of the checksum."""
        read = read_name(version, "A version")
        if len(read) > MAX_VERSION:
            raise misuse(f"A version is a text of {MAX_VERSION} characters at most.")
        return self._set("label", f"version:{read}")

    def must_complete_within(self, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> Self:
        """How long a run may take, its waits included: after that it fails with `deadline_exceeded`."""
        total = sum_seconds("must_complete_within", seconds=seconds, minutes=minutes, hours=hours, days=days)
        if not total:
            raise misuse("must_complete_within needs more than no time.")
        return self._set("execution_timeout", total)

    def max_transitions(self, limit: int) -> Self:
        """How many steps may be completed; a straight chain of n steps passes with n."""
        self._limits["max_transitions"] = _read_limit("max_transitions", limit)
        return self

    def max_for_each_items(self, limit: int) -> Self:
        """How many items a for_each may have."""
        self._limits["max_for_each_items"] = _read_limit("max_for_each_items", limit)
        return self

    def max_state_bytes(self, limit: int) -> Self:
        """How many bytes the state may have as JSON."""
        self._limits["max_state_bytes"] = _read_limit("max_state_bytes", limit)
        return self

    def max_cost_units(self, limit: int) -> Self:
        """How many units the completed steps may cost: 1 each unless `@step(..., cost=n)` says otherwise."""
        self._limits["max_cost_units"] = _read_limit("max_cost_units", limit)
        return self

    def prune_state_after(self, steps: int = 2) -> Self:
        """Keep what the newest steps returned, as many as that, and drop what older ones did from the state."""
        return self._set("prune_state_after", read_count(steps, "prune_state_after"))

    def max_started_workflows(self, limit: int) -> Self:
        """How many runs a run may start, in all its steps together."""
        self._limits["max_started_workflows"] = _read_limit("max_started_workflows", limit)
        return self

    def _set(self, member: str, value: Json) -> Self:
        self._settings[member] = value
        return self

    def _get_limits(self) -> Mapping[str, int]:
        return self._limits

    def _get_settings(self) -> JsonObject:
        return {**self._settings, "limits": {**self._limits}} if self._limits else {**self._settings}


def _read_limit(name: str, given: int) -> int:
    """A limit, which can only lower the engine's own."""
    most = RUN_LIMITS[name]
    limit = read_count(given, name)
    if most is not None and limit > most:
        raise misuse(f"{name} is {most} at most: it can only lower the engine's limit.")
    return limit
