"""Definitions and their versions."""

from __future__ import annotations

from sqlalchemy import (
    CHAR,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
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

workflow_definitions: Table = Table(
    "workflow_definitions",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("key", String(100), nullable=False),
    Column("name", String(200), nullable=False),
    Column("description", Text),
    Column("owner_type", String(100)),
    Column("owner_id", String(191)),
    Column("owner_scope", String(191), nullable=False),
    Column("subject_key", String(100)),
    Column("status", String(16), nullable=False, server_default="draft"),
    Column(
        "current_version_id",
        BigInteger,
        ForeignKey("workflow_versions.id", name="wdef_current_fk", ondelete="RESTRICT", use_alter=True),
    ),
    Column("webhook_id", String(26)),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("deleted_at", Moment),
    UniqueConstraint("owner_scope", "key", name="wdef_key_unique"),
    UniqueConstraint("webhook_id", name="wdef_webhook_unique"),
    CheckConstraint("status in ('draft', 'active', 'archived')", name="wdef_status_check"),
    CheckConstraint("(owner_id is null) = (owner_scope = '*')", name="wdef_owner_check"),
    CheckConstraint("status = 'draft' or current_version_id is not null", name="wdef_current_check"),
)

workflow_versions: Table = Table(
    "workflow_versions",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column(
        "definition_id",
        BigInteger,
        ForeignKey("workflow_definitions.id", name="wver_definition_fk", ondelete="RESTRICT"),
        nullable=False,
    ),
    Column("number", Integer),
    Column("status", String(16), nullable=False),
    Column("schema_version", String(32), nullable=False),
    Column("graph", JSONB, nullable=False),
    Column("trigger", JSONB, nullable=False),
    Column("settings", JSONB, nullable=False),
    Column("contracts", JSONB),
    Column("label", String(100)),
    Column("trigger_type", String(16)),
    Column("trigger_key", String(191)),
    Column("actor_mode", String(16), nullable=False),
    Column("checksum", CHAR(64), nullable=False),
    Column("review_flags", JSONB),
    Column("published_at", Moment),
    Column("publisher_type", String(100)),
    Column("publisher_id", String(191)),
    Column("schedule_cursor_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("definition_id", "number", name="wver_number_unique"),
    CheckConstraint("status in ('draft', 'published', 'superseded')", name="wver_status_check"),
    CheckConstraint(
        "(status = 'draft') = (number is null)"
        " and (status = 'draft') = (published_at is null) and (status = 'draft') = (contracts is null)",
        name="wver_frozen_check",
    ),
    CheckConstraint("actor_mode in ('system', 'on_behalf_of')", name="wver_actor_check"),
    Index("wver_draft_unique", "definition_id", unique=True, postgresql_where=text("status = 'draft'")),
    Index("wver_trigger_idx", "trigger_type", "trigger_key", "status"),
)
