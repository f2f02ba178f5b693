"""`korak.store.tables` and the migrations say the same, to the letter (STYLE 8, 18)."""

from __future__ import annotations

import re
from enum import StrEnum

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, ForeignKeyConstraint, text
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateSchema, CreateTable

from korak import model
from korak.store import tables
from korak_migrations.connecting import VERSION_TABLE, connect

CATALOG = {
    "columns": """
        select c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and a.attnum > 0""",
    "constraints": """
        select c.relname, n.conname, n.contype, n.condeferrable, n.condeferred, pg_get_constraintdef(n.oid, true)
        from pg_constraint n join pg_class c on c.oid = n.conrelid
        where c.relnamespace = current_schema()::regnamespace and n.contype in ('c', 'f', 'p', 'u')""",
    "indexes": """
        select c.relname, pg_get_indexdef(c.oid, 0, true) from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relnamespace = current_schema()::regnamespace""",
    "options": """
        select c.relname, c.reloptions from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'""",
}

ENUMS: dict[str, type[StrEnum]] = {
    "wdef_status_check": model.DefinitionStatus,
    "wver_status_check": model.VersionStatus,
    "winst_status_check": model.InstanceStatus,
    "winst_actor_check": model.ActorMode,
    "wver_actor_check": model.ActorMode,
    "wstep_status_check": model.StepStatus,
    "wstep_role_check": model.StepRole,
    "wstep_parked_for_check": model.ParkedFor,
    "wwait_kind_check": model.WaitKind,
    "wwait_status_check": model.WaitStatus,
    "wscope_status_check": model.ScopeStatus,
    "wcomp_status_check": model.CompensationStatus,
    "wart_kind_check": model.ArtifactKind,
    "wsig_kind_check": model.DeliveryKind,
    "winbox_kind_check": model.InboxKind,
    "fkey_kind_check": model.FlowKind,
    "hold_kind_check": model.HoldKind,
}


def test_alembic_finds_nothing_to_change(shared_database_url: str) -> None:
    with connect(shared_database_url, "korak") as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, tables.metadata) == []


@pytest.mark.parametrize("part", CATALOG)
def test_the_tables_drawn_anew_are_the_migrated_ones(shared_database_url: str, part: str) -> None:
    with connect(shared_database_url, "korak") as connection:
        migrated = read(connection, part)
    with connect(shared_database_url, "drawn") as connection:
        connection.execute(CreateSchema("drawn"))
        draw(connection)
        drawn = read(connection, part)
        connection.rollback()
    assert drawn == migrated


def draw(connection: Connection) -> None:
    # Alembic's comparison is blind to CHECKs, options and deferrals: everything is made once more beside the original.
    for table in tables.metadata.tables.values():
        connection.execute(CreateTable(table, include_foreign_key_constraints=[]))
        for index in table.indexes:
            connection.execute(CreateIndex(index))
    for table in tables.metadata.tables.values():
        for constraint in table.constraints:
            if isinstance(constraint, ForeignKeyConstraint):
                connection.execute(AddConstraint(constraint))


def read(connection: Connection, part: str) -> list[tuple[object, ...]]:
    rows = connection.execute(text(CATALOG[part]))
    return sorted((tuple(row) for row in rows if not row[0].startswith(VERSION_TABLE)), key=repr)


@pytest.mark.parametrize("name", ENUMS)
def test_a_check_lists_what_the_vocabulary_has(name: str) -> None:
    written = {c.name: str(c.sqltext) for t in tables.metadata.tables.values() for c in checks(t.constraints)}
    assert set(re.findall(r"'(\w+)'", written[name])) == {member.value for member in ENUMS[name]}


def checks(constraints: object) -> list[CheckConstraint]:
    assert isinstance(constraints, set)
    return [constraint for constraint in constraints if isinstance(constraint, CheckConstraint)]


def test_every_table_is_exported() -> None:
    assert {*tables.metadata.tables, "metadata"} == set(tables.__all__)
    assert all(getattr(tables, name) is table for name, table in tables.metadata.tables.items())
