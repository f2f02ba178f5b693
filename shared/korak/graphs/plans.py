"""The form of a graph that runs. `korak.graphs.planning` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from korak.errors import Issue
from korak.graphs.contracts import RetryPolicy
from korak.graphs.durations import Duration
from korak.graphs.inputs import check_payload, fill_defaults
from korak.graphs.limiting import FlowRule
from korak.graphs.schemas import Schema
from korak.graphs.values import Value
from korak.model import JsonObject, StepRole

ANY: Final = frozenset({"*"})
"""The `jumps` of a node that may jump to any node beside it."""


@dataclass(frozen=True, slots=True)
class Save:
    """Where a node's output enters the state: under `key`, or its members merged in where the key is None."""

    key: str | None


@dataclass(slots=True, eq=False)
class PlannedNode:
    """One node, ready to run. A retry, timeout, queue, priority or bound that is None is the engine's default."""

    id: str
    type: str
    type_version: int
    label: str | None
    is_pure: bool
    config: Value
    """Resolves to the handler's input. Conditions stand in it as written: their type reads them from `raw`."""
    raw: JsonObject
    targets: Mapping[str, str]
    outcomes: Mapping[str, bool]
    on_error: tuple[tuple[tuple[str, ...], str], ...]
    save: Save | None
    retry: RetryPolicy | None
    has_own_retry: bool
    """Whether the node itself says how often it is tried."""
    timeout: float | None
    queue: str | None
    priority: int | None
    max_output: int | None
    cost: int
    """The units that a completed visit counts for; what is decided without a handler counts for none."""
    counts: bool
    """Whether a completed visit is a transition; else it belongs to the step before it."""
    has_cancel_hook: bool
    waits: bool
    streams: bool
    has_side_effects: bool
    ability: str | None
    input_schema: Schema | None
    repeats: bool
    jumps: frozenset[str] | None
    names: Mapping[str, str]
    """The ids of the nodes that it may jump to by their labels, where those are no ids and not taken twice."""
    comes_round: bool
    """Whether it stands in a cycle of its own body."""
    container: str | None
    branch: str | None
    body: str | None
    branches: Mapping[str, str]
    reducer: str | None
    """The node that runs over the results of its bodies."""
    escalations: tuple[JsonObject, ...]
    digest: str
    """The contract's digest at publish: an engine whose type has another one looks whether it still fits."""
    flow: tuple[FlowRule, ...] = ()
    program: object = None
    """A slot that a pure type may fill with its compiled config."""
    compensate: PlannedNode | None = None
    """What undoes a visit of it that has completed."""

    @property
    def bodies(self) -> bool:
        """Whether it is a container."""
        return self.body is not None or bool(self.branches)


@dataclass(slots=True, eq=False)
class PlanSettings:
    """The document's `settings`. What is None is the engine's default."""

    timezone: str = "UTC"
    actor: str = "system"
    queue: str | None = None
    priority: int | None = None
    label: Value | None = None
    execution_timeout: Duration | None = None
    run_timeout: Duration | None = None
    retry: RetryPolicy | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    compensate_on_failure: bool = False
    on_cancel: PlannedNode | None = None
    on_deadline: PlannedNode | None = None
    flow: tuple[FlowRule, ...] = ()
    prune_after: int | None = None


@dataclass(slots=True, eq=False)
class Plan:
    """A version of a graph, ready to run."""

    key: str
    trigger: str
    start: str
    """The node after the trigger."""
    nodes: Mapping[str, PlannedNode]
    """All but the trigger, those of bodies too."""
    settings: PlanSettings
    referenced: frozenset[str]
    """The nodes that a value, a condition or a node id in the graph names; all of them where one is computed."""
    signals: frozenset[str] | None
    """The names that its waits can take; None: any."""
    inputs: JsonObject | None
    """The schema of a start's input, as written; None: any object."""
    input_schema: Schema | None

    has_containers: bool = False
    has_flow: bool = False
    """Whether a node or the settings limit who runs."""
    begins_with_input: bool = False
    """Whether its first node makes the input the state, as a chain's does."""
    has_compensations: bool = False
    line: tuple[str, ...] = ()
    """Its outermost steps, but for the end, where they follow each other in one line; else none."""
    places: Mapping[str, int] = field(default_factory=dict)
    """Where each node of that line stands: how many of its steps come before. The end comes after all."""
    cleans_up: bool = False
    """Whether anything runs after it was cancelled or has failed, besides what its step types do on a cancel."""

    def find(self, node_id: str, role: StepRole) -> PlannedNode | None:
        """What a step of that node and role runs; None where the stored graph hasn't got it."""
        node = self.nodes.get(node_id)
        match role:
            case StepRole.STEP | StepRole.CANCEL:
                return node
            case StepRole.COMPENSATE:
                return None if node is None else node.compensate
            case StepRole.ON_CANCEL:
                return self.settings.on_cancel
            case StepRole.ON_DEADLINE:
                return self.settings.on_deadline
            case _:
                assert_never(role)

    def accept(self, given: JsonObject, most: int | None = None) -> tuple[JsonObject, list[Issue]]:
        """A start's input with the declared defaults, and what is wrong with it. `most`: bytes of any state here."""
        filled, issues = given, []
        if self.inputs is not None and self.input_schema is not None:
            filled = fill_defaults(self.inputs, given)
            issues = self.input_schema.check(filled, code="invalid_input")
        if self.begins_with_input and not issues:
            issues = check_payload(filled, self.settings.limits, most)
        return filled, issues
