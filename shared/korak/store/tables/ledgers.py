"""What happens once: start keys and effects, stored answers, limits, tokens."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    CHAR,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from korak.store.tables.metadata import Moment, metadata

workflow_idempotency_keys: Table = Table(
    "workflow_idempotency_keys",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("key", CHAR(64), nullable=False),
    Column(
        "definition_id",
        BigInteger,
        ForeignKey("workflow_definitions.id", name="widem_definition_fk", ondelete="SET NULL"),
    ),
    Column(
        "instance_id",
        BigInteger,
        ForeignKey(
            "workflow_instances.id", name="widem_instance_fk", ondelete="CASCADE", deferrable=True, initially="DEFERRED"
        ),
    ),
    Column(
        "parent_instance_id",
        BigInteger,
        ForeignKey("workflow_instances.id", name="widem_parent_fk", ondelete="CASCADE"),
    ),
    Column("instance_ulid", String(26)),
    Column("fingerprint", CHAR(64)),
    Column("result", JSONB),
    Column("is_done", Boolean, nullable=False, server_default=text("true")),
    Column("expires_at", Moment),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("scope", "key", name="widem_unique"),
    CheckConstraint("scope in ('start', 'effect')", name="widem_scope_check"),
    Index("widem_expires_idx", "expires_at", postgresql_where=text("expires_at is not null")),
    Index("widem_instance_idx", "instance_id"),
    Index("widem_parent_idx", "parent_instance_id", postgresql_where=text("parent_instance_id is not null")),
)

http_answers: Table = Table(
    "http_answers",
    metadata,
    Column("owner_scope", String(191), nullable=False),
    Column("key", CHAR(64), nullable=False),
    Column("fingerprint", CHAR(64), nullable=False),
    Column("status", SmallInteger),
    Column("body", JSONB),
    Column("expires_at", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("owner_scope", "key", name="hans_key_unique"),
    Index("hans_expires_idx", "expires_at"),
)

flow_keys: Table = Table(
    "flow_keys",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("owner_scope", String(191), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", String(191), nullable=False),
    Column("in_use", Integer, nullable=False, server_default=text("0")),
    Column("counters", ARRAY(Integer), nullable=False),
    Column("counted_at", BigInteger, nullable=False, server_default=text("0")),
    Column("idle_at", Moment),
    UniqueConstraint("owner_scope", "kind", "key", name="fkey_unique"),
    CheckConstraint("kind in ('start_rate', 'rate', 'concurrency')", name="fkey_kind_check"),
    CheckConstraint("cardinality(counters) = 60", name="fkey_counters_check"),
    Index("fkey_idle_idx", "idle_at", postgresql_where=text("idle_at is not null")),
)

tokens: Table = Table(
    "tokens",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("ulid", String(26), nullable=False),
    Column("digest", CHAR(64), nullable=False),
    Column("name", String(100), nullable=False),
    Column("owner_type", String(100)),
    Column("owner_id", String(191)),
    Column("owner_scope", String(191), nullable=False),
    Column("roles", JSONB, nullable=False),
    Column("user_id", String(191)),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    UniqueConstraint("ulid", name="token_ulid_unique"),
    UniqueConstraint("digest", name="token_digest_unique"),
    CheckConstraint("(owner_id is null) = (owner_scope = '*')", name="token_owner_check"),
)
