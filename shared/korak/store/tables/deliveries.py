"""What is brought to an instance: addressed rows, kept events and the shapes of their matches."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

workflow_signals: Table = Table(
    "workflow_signals",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("instance_id", BigInteger, nullable=False),
    Column("step_run_id", BigInteger),
    Column("wait_id", BigInteger),
    Column("owner_scope", String(191), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("name", String(191)),
    Column("payload", JSONB),
    Column("source_id", String(191), nullable=False),
    Column("sender", JSONB),
    Column("sent_at", Moment),
    Column("sends", Integer, nullable=False, server_default=text("0")),
    Column("buffered_at", Moment),
    Column("taken_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("discarded_at", Moment),
    UniqueConstraint(
        "instance_id", "wait_id", "source_id", name="wsig_source_unique", postgresql_nulls_not_distinct=True
    ),
    CheckConstraint(
        "kind in ('signal', 'event', 'child', 'ended', 'cancel', 'pause', 'resume', 'retry', 'decision')",
        name="wsig_kind_check",
    ),
    CheckConstraint("buffered_at is null or kind = 'signal'", name="wsig_buffered_check"),
    Index("wsig_open_idx", "instance_id", postgresql_where=text("taken_at is null")),
    Index(
        "wsig_due_idx",
        text("coalesce(sent_at, created_at)"),
        postgresql_where=text("taken_at is null and buffered_at is null"),
    ),
)

workflow_emits: Table = Table(
    "workflow_emits",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("owner_scope", String(191), nullable=False),
    Column("name", String(191), nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("source_id", String(191), nullable=False),
    Column("sender", JSONB),
    Column("matched", Integer, nullable=False, server_default=text("0")),
    Column("matched_at", Moment),
    Column("expires_at", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("owner_scope", "name", "source_id", name="wemit_source_unique"),
    Index("wemit_name_idx", "owner_scope", "name", "id"),
    Index("wemit_payload_idx", "payload", postgresql_using="gin", postgresql_ops={"payload": "jsonb_path_ops"}),
    Index("wemit_open_idx", "id", postgresql_where=text("matched_at is null")),
    Index("wemit_expires_idx", "expires_at"),
)

event_shapes: Table = Table(
    "event_shapes",
    metadata,
    Column("owner_scope", String(191), nullable=False),
    Column("name", String(191), nullable=False),
    Column("paths", JSONB, nullable=False),
    PrimaryKeyConstraint("owner_scope", "name", "paths", name="wshape_unique"),
)
