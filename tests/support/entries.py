"""Entries into pure nodes, and contexts for handlers, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from korak.graphs.values import compile_value
from korak.model import Json, JsonObject, SignalKind
from korak.steps.contract import Signal
from korak.steps.pure import Entry, LoopState, PureResult, PureType
from korak.steps.secrets import Secrets

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@dataclass
class Node:
    """What a pure type needs of its node."""

    id: str
    raw: JsonObject
    program: object = None


def enter(
    pure: PureType[Any],
    config: JsonObject,
    *,
    roots: Mapping[str, Any] | None = None,
    now: datetime = NOW,
    timezone: str = "UTC",
    loop: LoopState | None = None,
) -> PureResult:
    """What one entry into a node with this config comes to."""
    return pure.enter(Entry(Node("n", config), roots or {}, now, timezone, loop=loop))


def wake(
    pure: PureType[Any], config: JsonObject, signal: Signal | SignalKind, *, output: JsonObject | None = None
) -> PureResult:
    """What a parked visit comes to when this signal wakes it."""
    if isinstance(signal, SignalKind):
        signal = Signal(signal)
    return pure.resume_pure(Entry(Node("n", config), {}, NOW, output=output), signal)


@dataclass
class Context:
    """A context of either face, as far as a handler reads it."""

    config: JsonObject = field(default_factory=dict)
    raw: JsonObject = field(default_factory=dict)
    input: JsonObject = field(default_factory=dict)
    state: JsonObject = field(default_factory=dict)
    trigger: JsonObject = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    parked: JsonObject | None = None
    signal: Signal | None = None
    attempt: int = 1
    visit: int = 1
    idempotency_key: str = "01J:n:1"
    node: str = "n"
    instance: str = "01J"
    definition: str = "order"
    version: int = 1
    owner: str | None = None
    subject: Any = None
    now: datetime = NOW
    timezone: str = "UTC"
    simulating: bool = False
    cancelled: bool = False

    @classmethod
    def of(cls, raw: JsonObject, **rest: Any) -> Context:
        """A context of a node with this config, resolved as the engine does it."""
        config = compile_value(raw, secrets=True).resolve({"input": rest.get("input", {})})
        assert isinstance(config, dict)
        return cls(config=config, raw=raw, **rest)

    def output(self, node: str | None = None) -> JsonObject | None:
        return self.parked if node is None else None

    def resolve(self, value: Json) -> Json:
        return compile_value(value).resolve({"input": self.input, "state": self.state})

    def reveal(self, member: str) -> Json:
        return compile_value(self.raw[member], secrets=True).reveal({"input": self.input}, self.secrets.get)
