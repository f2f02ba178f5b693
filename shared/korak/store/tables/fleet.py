"""Queues and the engines that serve them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    String,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

queues: Table = Table(
    "queues",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("bound", Integer, nullable=False, server_default=text("1000")),
    Column("created_at", Moment, nullable=False),
    CheckConstraint("bound > 0", name="queue_bound_check"),
)

engines: Table = Table(
    "engines",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("ulid", String(26), nullable=False),
    Column("host", String(191), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("build", String(100)),
    Column("queues", JSONB, nullable=False),
    Column("types", JSONB, nullable=False),
    Column("lease_until", Moment, nullable=False),
    Column("held_since", Moment, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("close_reason", String(32)),
    UniqueConstraint("ulid", name="engine_ulid_unique"),
    CheckConstraint("close_reason is null or closed_at is not null", name="engine_closed_check"),
    Index("engine_open_idx", "lease_until", postgresql_where=text("closed_at is null")),
)
