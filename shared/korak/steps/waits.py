"""What a parked step waits for, and the signal that wakes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from korak.errors import StepFailed
from korak.graphs import paths
from korak.model import Json, JsonObject, SignalKind, WaitKind

Due: TypeAlias = "datetime | Json"
"""An absolute time, or a duration as written in a document, counted from the moment the step parks."""

Mode: TypeAlias = Literal["all", "any"]

TIMED_OUT = "timed_out"
"""The outcome of a time limit that names no other (WT-12)."""


@dataclass(frozen=True, slots=True)
class WaitItem:
    """One thing that wakes the step; the first to fire cancels its siblings (WT-6).

    `key` is the event's key or the signal's name. `match` maps paths in the payload to the values they must have. `due`
    is when a timer or time limit fires. `outcome` is handed to `resume()` in the signal. Items of one `group` in mode
    `all` fire together, when the last of them has come. `since` is "now" for an event wait that doesn't look back at
    kept events.
    """

    kind: WaitKind
    key: str | None = None
    match: Mapping[str, Json] | None = None
    correlation: str | None = None
    condition: Json = None
    due: Due = None
    poll: Json = None
    outcome: str | None = None
    since: Literal["now"] | None = None
    mode: Mode = "any"
    group: str | None = None

    @property
    def is_relative(self) -> bool:
        """Whether the due time counts from parking, so that a pause stops it; a date given by the author stays."""
        return self.due is not None and not isinstance(self.due, datetime)


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """What to wait for: made by one of the first five, extended by the rest. Immutable."""

    items: tuple[WaitItem, ...]
    wants_probe: bool = False

    @classmethod
    def timer(cls, at: Due | timedelta) -> WaitSpec:
        """Until a time, or for a duration."""
        return cls((WaitItem(WaitKind.TIMER, due=_due(at)),))

    @classmethod
    def event(
        cls,
        key: str,
        match: Mapping[str, Json] | None = None,
        *,
        since: Literal["now"] | None = None,
        outcome: str | None = None,
    ) -> WaitSpec:
        """For an event by its key (WT-13), kept ones included unless `since` is "now"."""
        return cls((WaitItem(WaitKind.EVENT, key, match, since=since, outcome=outcome),))

    @classmethod
    def signal(
        cls,
        name: str,
        match: Mapping[str, Json] | None = None,
        *,
        correlation: str | None = None,
        outcome: str | None = None,
    ) -> WaitSpec:
        """For a signal sent to this instance. `correlation` is a path whose value must be the state's at that path."""
        return cls((WaitItem(WaitKind.SIGNAL, name, match, correlation, outcome=outcome),))

    @classmethod
    def signals(
        cls,
        names: Sequence[str],
        mode: Mode = "all",
        match: Mapping[str, Json] | None = None,
        *,
        correlation: str | None = None,
    ) -> WaitSpec:
        """For all or any of several signals: `resume()` gets one signal, whose payload maps each name to what came."""
        items = (WaitItem(WaitKind.SIGNAL, name, match, correlation, mode=mode, group="signals") for name in names)
        return cls(tuple(items))

    @classmethod
    def condition(cls, condition: Json, poll: Json | timedelta = None) -> WaitSpec:
        """For a condition to hold, looked at when the subject is touched and every `poll` (WT-3)."""
        return cls((WaitItem(WaitKind.CONDITION, condition=condition, poll=_duration(poll)),))

    def also_at(self, at: Due | timedelta) -> WaitSpec:
        """The same, and a timer as a safety net (WT-11)."""
        return replace(self, items=(*self.items, WaitItem(WaitKind.TIMER, due=_due(at))))

    def timeout(self, after: Due | timedelta, outcome: str = TIMED_OUT) -> WaitSpec:
        """The same, no longer than a duration or until a time (WT-12)."""
        return replace(self, items=(*self.items, WaitItem(WaitKind.TIMEOUT, due=_due(after), outcome=outcome)))

    def probe(self) -> WaitSpec:
        """The same, and one `resume()` right after parking, for what may have happened already (WT-10)."""
        return replace(self, wants_probe=True)

    def correlate(self, state: Mapping[str, Any]) -> WaitSpec:
        """The same with every correlation written out as a match; idempotent.

        Raises `missing_value` where the state has nothing at that path.
        """
        return replace(self, items=tuple(_correlated(item, state) for item in self.items))


@dataclass(frozen=True, slots=True)
class Signal:
    """What woke a parked step.

    `name` is the event's key or the signal's name; it is None where several signals were waited for, and `payload` maps
    their names to what came. `outcome` is the fired item's. `wait` is the id of its row, `at` the time it fired.
    """

    kind: SignalKind
    name: str | None = None
    payload: Json = None
    outcome: str | None = None
    wait: int | None = None
    at: datetime | None = None

    def to_json(self) -> JsonObject:
        """As it is stored with the attempt, so that a retry gets the same (RT-6)."""
        return {
            "kind": self.kind.value,
            "name": self.name,
            "payload": self.payload,
            "outcome": self.outcome,
            "wait": self.wait,
            "at": self.at.isoformat() if self.at else None,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Signal:
        """Read back what `to_json` wrote."""
        at = stored.get("at")
        return cls(
            kind=SignalKind(stored["kind"]),
            name=stored.get("name"),
            payload=stored.get("payload"),
            outcome=stored.get("outcome"),
            wait=stored.get("wait"),
            at=datetime.fromisoformat(at) if at else None,
        )


def _due(at: Due | timedelta) -> Due:
    if isinstance(at, datetime) and at.tzinfo is None:
        raise ValueError("a time needs a time zone")
    return at if isinstance(at, datetime) else _duration(at)


def _duration(given: Json | timedelta) -> Json:
    return given.total_seconds() if isinstance(given, timedelta) else given


def _correlated(item: WaitItem, state: Mapping[str, Any]) -> WaitItem:
    if item.correlation is None:
        return item
    value: Any = paths.lookup(paths.parse(item.correlation), state)
    if value is paths.MISSING:
        raise StepFailed("missing_value", pointer="/correlation", path=f"state.{item.correlation}")
    return replace(item, match={**(item.match or {}), item.correlation: value})
