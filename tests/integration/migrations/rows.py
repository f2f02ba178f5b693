"""A legal row of each table, to be made illegal in one place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

Row = dict[str, Any]

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DIGEST = "0" * 64
ULID = "01J0000000000000000000000A"
SEED = 10**9
"""The id of what `insert_instance` makes, far from what a sequence gives."""

RUNNING = {"status": "running", "claim_token": ULID, "engine_id": 1, "claimed_at": AT, "lease_until": AT}
WORKFLOW = {"owner_type": "team", "owner_id": "42", "owner_scope": "team:42"}

LEGAL: dict[str, Row] = {
    "workflow_definitions": {"key": "order", "name": "Order", "created_at": AT, "updated_at": AT, **WORKFLOW},
    "workflow_versions": {
        "definition_id": SEED,
        "status": "draft",
        "schema_version": "korak.graph/v1",
        "graph": Jsonb({}),
        "trigger": Jsonb({}),
        "settings": Jsonb({}),
        "actor_mode": "system",
        "checksum": DIGEST,
        "created_at": AT,
        "updated_at": AT,
    },
    "workflow_instances": {
        "ulid": ULID,
        "definition_id": SEED,
        "version_id": SEED,
        "trigger_type": "manual",
        "input": Jsonb({}),
        "state": Jsonb({}),
        "status": "running",
        "actor_mode": "system",
        "definition_hash": DIGEST,
        "created_at": AT,
        "updated_at": AT,
        **WORKFLOW,
    },
    "workflow_scopes": {"instance_id": SEED, "step_run_id": SEED, "status": "pending", "created_at": AT},
    "workflow_step_runs": {
        "instance_id": SEED,
        "owner_scope": "team:42",
        "node_id": "price",
        "node_type": "shop.price",
        "visit": 1,
        "attempt": 1,
        "status": "queued",
        "ulid": ULID,
        "execution_id": ULID,
        "idempotency_key": f"wf:{ULID}:price:1",
        "queue": "default",
        "created_at": AT,
    },
    "workflow_waits": {
        "instance_id": SEED,
        "step_run_id": SEED,
        "owner_scope": "team:42",
        "kind": "timer",
        "status": "pending",
        "created_at": AT,
    },
    "workflow_signals": {
        "instance_id": SEED,
        "owner_scope": "team:42",
        "kind": "signal",
        "source_id": "a",
        "created_at": AT,
    },
    "workflow_emits": {
        "owner_scope": "team:42",
        "name": "payment.settled",
        "payload": Jsonb({}),
        "source_id": "a",
        "expires_at": AT,
        "created_at": AT,
    },
    "workflow_dependencies": {
        "wait_id": SEED,
        "place": 0,
        "instance_id": SEED,
        "step_run_id": SEED,
        "awaited_id": SEED,
        "is_needed": True,
        "created_at": AT,
    },
    "workflow_cascades": {"instance_id": SEED, "seq": 1, "kind": "pause", "created_at": AT},
    "event_shapes": {"owner_scope": "team:42", "name": "payment.settled", "paths": Jsonb(["order"])},
    "workflow_events": {"instance_id": SEED, "seq": 1, "type": "InstanceStarted", "created_at": AT},
    "workflow_compensations": {
        "instance_id": SEED,
        "seq": 1,
        "step_run_id": SEED,
        "node_id": "price",
        "visit": 1,
        "status": "kept",
        "state": Jsonb({}),
        "created_at": AT,
    },
    "workflow_failures": {
        "instance_id": SEED,
        "source": "step",
        "category": "step",
        "propagation": "instance",
        "non_retryable": False,
        "handled": False,
        "code": "exception",
        "created_at": AT,
    },
    "workflow_inbox": {"kind": "start", "name": "order"},
    "workflow_chunks": {
        "instance_id": SEED,
        "execution_id": ULID,
        "index": 0,
        "node_id": "write",
        "visit": 1,
        "attempt": 1,
        "content": "Once upon a time",
        "created_at": AT,
    },
    "workflow_artifacts": {
        "instance_id": SEED,
        "key": "report",
        "kind": "text",
        "content": b"abc",
        "size": 3,
        "created_at": AT,
        "updated_at": AT,
    },
    "workflow_idempotency_keys": {"scope": "start", "key": DIGEST, "created_at": AT},
    "http_answers": {
        "owner_scope": "team:42",
        "key": DIGEST,
        "fingerprint": DIGEST,
        "expires_at": AT,
        "created_at": AT,
    },
    "flow_keys": {"owner_scope": "team:42", "kind": "rate", "key": "erp", "counters": [0] * 60},
    "flow_slots": {"flow_key_id": 1, "instance_id": SEED, "weight": 1, "taken_at": AT},
    "flow_weights": {"owner_scope": "team:42", "weight": 3},
    "hold_state": {"version": 1},
    "holds": {"owner_scope": "team:42", "kind": "queue", "name": "default", "held_at": AT},
    "queues": {"name": "default", "created_at": AT},
    "engines": {
        "ulid": ULID,
        "host": "here",
        "pid": 1,
        "queues": Jsonb([]),
        "types": Jsonb([]),
        "lease_until": AT,
        "held_since": AT,
        "started_at": AT,
        "seen_at": AT,
    },
    "tokens": {"ulid": ULID, "digest": DIGEST, "name": "ci", "roles": Jsonb(["viewer"]), "created_at": AT, **WORKFLOW},
}


def insert(connection: psycopg.Connection, table: str, changes: Row) -> None:
    """Insert the legal row with `changes`; an `id` may be given."""
    row = LEGAL[table] | changes
    statement = sql.SQL("insert into korak.{} ({}) overriding system value values ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join([sql.Placeholder()] * len(row)),
    )
    connection.execute(statement, list(row.values()))


def insert_instance(connection: psycopg.Connection) -> None:
    """A definition, its draft and an instance, each with the id SEED."""
    for table in ("workflow_definitions", "workflow_versions", "workflow_instances"):
        insert(connection, table, {"id": SEED})
