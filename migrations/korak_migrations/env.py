"""Alembic's environment, for `korak migrate` and for the alembic command in a tree."""

from __future__ import annotations

import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

from korak.store import tables
from korak_migrations.connecting import DEFAULT_SCHEMA, VERSION_TABLE, connect, lock


def run() -> None:
    """Migrate on the caller's connection, else on one of our own (`-x url=`, `-x schema=`, else the settings)."""
    if context.is_offline_mode():
        raise CommandError("Migrations run on a database: revisions ask it for its schema.")
    given: Connection | None = context.config.attributes.get("connection")
    if given is not None:
        migrate(given)
        return
    options = context.get_x_argument(as_dictionary=True)
    url = options.get("url") or os.environ.get("KORAK_DATABASE__URL")
    if not url:
        raise CommandError("Say which database: KORAK_DATABASE__URL, or -x url=postgresql://...")
    schema = options.get("schema") or os.environ.get("KORAK_DATABASE__SCHEMA") or DEFAULT_SCHEMA
    with connect(url, schema) as connection, lock(connection, schema):
        migrate(connection)


def migrate(connection: Connection) -> None:
    """One transaction a revision. The search path puts the version table inside the schema."""
    context.configure(
        connection=connection,
        target_metadata=tables.metadata,
        version_table=VERSION_TABLE,
        transaction_per_migration=True,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
