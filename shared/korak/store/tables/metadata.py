"""The one MetaData and its naming convention. Without a schema: the search path decides."""

from __future__ import annotations

from sqlalchemy import DateTime, MetaData

metadata: MetaData = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_unique",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(constraint_name)s",
    }
)
"""Names that aren't given follow Postgres' own for keys; a CHECK is always named by hand."""

Moment: DateTime = DateTime(timezone=True)
"""A time that knows its zone."""
