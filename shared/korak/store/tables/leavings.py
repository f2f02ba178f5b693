"""What steps leave beside their records: chunks of a stream, artifacts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

workflow_chunks: Table = Table(
    "workflow_chunks",
    metadata,
    Column("instance_id", BigInteger, nullable=False),
    Column("execution_id", String(26), nullable=False),
    Column("index", Integer, nullable=False),
    Column("node_id", String(64), nullable=False),
    Column("visit", Integer, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("content", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("instance_id", "execution_id", "index", name="workflow_chunks_pkey"),
    CheckConstraint("index >= 0", name="wchunk_index_check"),
)

workflow_artifacts: Table = Table(
    "workflow_artifacts",
    metadata,
    Column("instance_id", BigInteger, nullable=False),
    Column("key", String(191), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("metadata", JSONB),
    Column("node_id", String(64)),
    Column("visit", Integer),
    Column("execution_id", String(26)),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    PrimaryKeyConstraint("instance_id", "key", name="workflow_artifacts_pkey"),
    CheckConstraint("kind in ('json', 'text', 'bytes')", name="wart_kind_check"),
    CheckConstraint("size = octet_length(content)", name="wart_size_check"),
    CheckConstraint(
        "(visit is null) = (node_id is null) and (visit is null) = (execution_id is null)", name="wart_visit_check"
    ),
)
