"""Room that is held under keys with limits, the weights of owners, and holds."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

flow_slots: Table = Table(
    "flow_slots",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("flow_key_id", BigInteger, nullable=False),
    Column("instance_id", BigInteger, nullable=False),
    Column("step_run_id", BigInteger),
    Column("weight", Integer, nullable=False),
    Column("taken_at", Moment, nullable=False),
    UniqueConstraint(
        "instance_id", "step_run_id", "flow_key_id", name="fslot_unique", postgresql_nulls_not_distinct=True
    ),
    CheckConstraint("weight > 0", name="fslot_weight_check"),
    Index("fslot_step_idx", "step_run_id", postgresql_where=text("step_run_id is not null")),
)

flow_weights: Table = Table(
    "flow_weights",
    metadata,
    Column("owner_scope", String(191), primary_key=True),
    Column("weight", Integer, nullable=False),
    CheckConstraint("weight between 1 and 1000", name="fweight_weight_check"),
)

holds: Table = Table(
    "holds",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("owner_scope", String(191), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("name", String(191), nullable=False),
    Column("reason", Text),
    Column("until", Moment),
    Column("held_by", JSONB),
    Column("held_at", Moment, nullable=False),
    Column("released_at", Moment),
    CheckConstraint("kind in ('definition', 'step_type', 'queue')", name="hold_kind_check"),
    Index("hold_open_unique", "owner_scope", "kind", "name", unique=True, postgresql_where=text("released_at is null")),
)

hold_state: Table = Table(
    "hold_state",
    metadata,
    Column("id", Boolean, primary_key=True, server_default=text("true")),
    Column("version", BigInteger, nullable=False),
    CheckConstraint("id", name="hstate_single_check"),
)
