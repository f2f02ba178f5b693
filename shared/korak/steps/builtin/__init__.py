"""The types that are always there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from korak.steps.builtin.branch import Branch
from korak.steps.builtin.condition import ConditionStep
from korak.steps.builtin.delay import Delay
from korak.steps.builtin.end import End
from korak.steps.builtin.for_each import ForEach
from korak.steps.builtin.loop import Loop
from korak.steps.builtin.parallel import Parallel
from korak.steps.builtin.scope import ScopeStep
from korak.steps.builtin.set_field import SetField
from korak.steps.builtin.start_workflow import StartWorkflow, StartWorkflows
from korak.steps.builtin.trigger import Trigger
from korak.steps.builtin.wait import WaitStep
from korak.steps.builtin.wait_workflows import WaitWorkflows
from korak.steps.builtin.webhook import Webhook
from korak.steps.contract import StepType
from korak.steps.pure import PureType

__all__ = ["PURE", "RESERVED", "list_types"]

RESERVED = frozenset(
    {
        *("trigger", "condition", "branch", "set_field", "transition", "delay", "wait", "loop"),
        *("start_workflow", "end", "approval", "notify", "webhook"),
        *("parallel", "for_each", "scope", "start_workflows", "wait_workflows", "decision", "input", "code"),
    }
)
"""The keys without a dot: nobody else's (ST-2)."""

PURE: Mapping[str, PureType[Any]] = MappingProxyType(
    {
        pure.key: pure
        for pure in (
            *(ConditionStep(), Branch(), SetField(), Delay(), WaitStep(), Loop(), End()),
            *(Parallel(), ForEach(), ScopeStep()),
        )
    }
)
"""The types that are decided in the record of the step before, by key."""


def list_types(webhook: Webhook | None = None) -> tuple[StepType, ...]:
    """Every built-in type; `webhook` is one that was told its guard and time limit."""
    kin = (StartWorkflow(), StartWorkflows(), WaitWorkflows())
    return (Trigger(), *PURE.values(), *kin, webhook or Webhook())
