"""What joins runs: who waits for whom, and what a run brings to its children."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

workflow_dependencies: Table = Table(
    "workflow_dependencies",
    metadata,
    Column("wait_id", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("instance_id", BigInteger, nullable=False),
    Column("step_run_id", BigInteger, nullable=False),
    Column("awaited_id", BigInteger, nullable=False),
    Column("is_needed", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("wait_id", "place", name="wdep_place_unique"),
    Index("wdep_awaited_idx", "awaited_id"),
    Index("wdep_waiter_idx", "instance_id"),
)

workflow_cascades: Table = Table(
    "workflow_cascades",
    metadata,
    Column("instance_id", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("sender", JSONB),
    Column("cursor", BigInteger, nullable=False, server_default=text("0")),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("instance_id", "seq", name="wcas_seq_unique"),
    CheckConstraint("kind in ('pause', 'resume')", name="wcas_kind_check"),
)
