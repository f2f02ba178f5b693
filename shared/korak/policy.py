"""The engine's defaults and ceilings for decisions, as the settings give them."""

from __future__ import annotations

from korak.config import Settings
from korak.core.snapshot import Policy
from korak.graphs.contracts import RetryPolicy


def get_policy(settings: Settings) -> Policy:
    """What decisions go by where a definition says nothing, and what it may not exceed."""
    retry, limits = settings.retry, settings.limits
    return Policy(
        retry=RetryPolicy(retry.max_attempts, tuple(retry.backoff), retry.jitter),
        attempts_cap=retry.cap,
        timeout=settings.engine.timeout,
        grace=settings.engine.grace,
        poll=settings.wake.poll,
        limits={
            "max_steps": limits.max_steps,
            "max_transitions": limits.max_transitions,
            "max_for_each_items": limits.max_for_each_items,
            "max_state_bytes": limits.max_state_bytes,
            "max_depth": limits.max_depth,
            "max_started_workflows": limits.max_started_workflows,
            "max_output_bytes": limits.max_output_bytes,
            "max_input_bytes": limits.max_input_bytes,
            **({} if limits.max_cost_units is None else {"max_cost_units": limits.max_cost_units}),
        },
    )
