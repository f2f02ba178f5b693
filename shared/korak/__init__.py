"""Korak, a durable workflow engine on Postgres: what an author imports."""

from __future__ import annotations

from korak.chains import chain
from korak.errors import KorakError, StepError, StepFailed, StepRetry
from korak.graphs.builder import graph, ref
from korak.steps.contract import (
    BlockingContext,
    Outcome,
    Retry,
    Signal,
    StepContext,
    StepResult,
    StepType,
    WaitSpec,
)
from korak.steps.function import step
from korak.steps.markers import Condition, Duration, NodeId, Parties, Party, Secret

__all__ = [
    "BlockingContext",
    "Condition",
    "Duration",
    "KorakError",
    "NodeId",
    "Outcome",
    "Parties",
    "Party",
    "Retry",
    "Secret",
    "Signal",
    "StepContext",
    "StepError",
    "StepFailed",
    "StepResult",
    "StepRetry",
    "StepType",
    "WaitSpec",
    "chain",
    "graph",
    "ref",
    "step",
]
