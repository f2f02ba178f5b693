"""What a waker is to start or emit."""

from __future__ import annotations

from sqlalchemy import CHAR, BigInteger, CheckConstraint, Column, Identity, Index, String, Table, text
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

workflow_inbox: Table = Table(
    "workflow_inbox",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("owner_scope", String(191), nullable=False, server_default=text("'*'")),
    Column("name", String(191), nullable=False),
    Column("body", JSONB, nullable=False, server_default=text("'{}'")),
    Column("starter_id", String(191)),
    Column("debounce_key", String(191)),
    Column("due_at", Moment, nullable=False, server_default=text("'-infinity'")),
    Column("opened_at", Moment),
    Column("latest_at", Moment),
    Column("idempotency_digest", CHAR(64)),
    Column("fingerprint", CHAR(64)),
    Column("replaces", String(26)),
    Column("failed_at", Moment),
    Column("error", JSONB),
    CheckConstraint("kind in ('start', 'emit')", name="winbox_kind_check"),
    CheckConstraint("debounce_key is null or (kind = 'start' and opened_at is not null)", name="winbox_debounce_check"),
    CheckConstraint("(failed_at is null) = (error is null)", name="winbox_failed_check"),
    Index(
        "winbox_debounce_unique",
        "owner_scope",
        "name",
        "debounce_key",
        unique=True,
        postgresql_where=text("debounce_key is not null and failed_at is null"),
    ),
    Index("winbox_due_idx", "due_at", "id", postgresql_where=text("failed_at is null")),
)
