"""The schema's history: Alembic revisions, from the tree and from the wheel."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from korak.errors import SchemaError, SchemaNewer, SchemaOlder
from korak_migrations.connecting import DEFAULT_SCHEMA, VERSION_TABLE, connect, lock
from korak_migrations.effects import grant_effects

__all__ = ["DEFAULT_SCHEMA", "compare", "current", "grant_effects", "head", "upgrade"]

_alembic = Lock()
"""Alembic keeps the migration that is running in a global of its own."""


def upgrade(url: str, schema: str = DEFAULT_SCHEMA) -> None:
    """Bring `schema` of the database to the newest revision. Makes it where it is missing; repeated, does nothing.

    Several callers at once are safe: one works, the others wait for it and find nothing to do. Blocking. Raises
    SchemaNewer where a newer build was there, and TransientError where the database can't be reached.
    """
    with _alembic, connect(url, schema) as connection, lock(connection, schema):
        fault = compare(_read(connection), schema)
        connection.commit()
        if isinstance(fault, SchemaNewer):
            raise fault
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def current(url: str, schema: str = DEFAULT_SCHEMA) -> str | None:
    """The revision that `schema` of the database is at; None where nothing was migrated yet."""
    with connect(url, schema) as connection:
        return _read(connection)


def compare(found: str | None, schema: str = DEFAULT_SCHEMA) -> SchemaError | None:
    """What is to be said of a schema at that revision: nothing where it is this build's newest."""
    newest = head()
    if found == newest:
        return None
    known = {revision.revision for revision in ScriptDirectory.from_config(_config()).walk_revisions()}
    kind = SchemaOlder if found is None or found in known else SchemaNewer
    return kind(schema=schema, found=found or "none", needed=newest)


def head() -> str:
    """The newest revision of this build."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


def _read(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
