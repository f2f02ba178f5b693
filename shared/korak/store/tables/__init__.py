"""The tables as SQLAlchemy knows them: for the API's queries and for the check against the migrations."""

from __future__ import annotations

from korak.store.tables.definitions import workflow_definitions, workflow_versions
from korak.store.tables.deliveries import event_shapes, workflow_emits, workflow_signals
from korak.store.tables.fleet import engines, queues
from korak.store.tables.inbox import workflow_inbox
from korak.store.tables.instances import (
    workflow_compensations,
    workflow_events,
    workflow_failures,
    workflow_instances,
    workflow_scopes,
)
from korak.store.tables.kin import workflow_cascades, workflow_dependencies
from korak.store.tables.leavings import workflow_artifacts, workflow_chunks
from korak.store.tables.ledgers import flow_keys, http_answers, tokens, workflow_idempotency_keys
from korak.store.tables.limits import flow_slots, flow_weights, hold_state, holds
from korak.store.tables.metadata import metadata
from korak.store.tables.steps import workflow_step_runs, workflow_waits

__all__ = [
    "engines",
    "event_shapes",
    "flow_keys",
    "flow_slots",
    "flow_weights",
    "hold_state",
    "holds",
    "http_answers",
    "metadata",
    "queues",
    "tokens",
    "workflow_artifacts",
    "workflow_cascades",
    "workflow_chunks",
    "workflow_compensations",
    "workflow_definitions",
    "workflow_dependencies",
    "workflow_emits",
    "workflow_events",
    "workflow_failures",
    "workflow_idempotency_keys",
    "workflow_inbox",
    "workflow_instances",
    "workflow_scopes",
    "workflow_signals",
    "workflow_step_runs",
    "workflow_versions",
    "workflow_waits",
]
