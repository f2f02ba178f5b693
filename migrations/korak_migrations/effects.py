"""The role behind `once()`: it owns nothing and may call two functions of the schema, and nothing else."""

from __future__ import annotations

import psycopg
from psycopg import errors, sql

from korak.store import urls

FUNCTIONS = ["effect_begin", "effect_end"]

FIND_FUNCTIONS = """
select p.oid::regprocedure::text as signature from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = %s and p.proname = any(%s)
"""

FIND_ROLE = """
select rolsuper or rolcreaterole or rolbypassrls or rolname = current_user
    or exists (select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
               where n.nspname = %(schema)s and c.relowner = r.oid)
    or exists (select 1 from pg_auth_members m where m.member = r.oid) as is_mighty
from pg_roles r where rolname = %(role)s
"""


class MightyRole(ValueError):
    """The role that was named for effects may do more than an effect should, so it is left as it is."""


def grant_effects(url: str, schema: str, role: str, password: str) -> str | None:
    """Make the login role `role` and let it call the two functions; gives the address for `KORAK_DATABASE__EFFECT_URL`.

    None where the migrating role may not make roles or grants: then nothing was changed. May be repeated; the password
    is set anew. Raises MightyRole if the role is there already and owns tables of the schema, is a member of another
    role, or is one that migrates or administers.
    """
    with psycopg.connect(urls.plain(url)) as connection:
        try:
            _make_role(connection, schema, role, password)
            _grant(connection, schema, role)
        except errors.InsufficientPrivilege:
            connection.rollback()
            return None
    return urls.with_role(url, role, password)


def _make_role(connection: psycopg.Connection, schema: str, role: str, password: str) -> None:
    found = connection.execute(FIND_ROLE, {"schema": schema, "role": role}).fetchone()
    if found is None:
        statement = "create role {role} login noinherit password {password}"
    elif found[0]:
        raise MightyRole(f"The role {role} may do more than call the two functions of once(): name another one.")
    else:
        statement = "alter role {role} login noinherit password {password}"
    connection.execute(sql.SQL(statement).format(role=sql.Identifier(role), password=sql.Literal(password)))


def _grant(connection: psycopg.Connection, schema: str, role: str) -> None:
    names = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    for statement in (
        "revoke all on all tables in schema {schema} from {role}",
        "revoke all on all sequences in schema {schema} from {role}",
        "revoke all on schema {schema} from {role}",
        "grant usage on schema {schema} to {role}",
    ):
        connection.execute(sql.SQL(statement).format(**names))
    signatures = connection.execute(FIND_FUNCTIONS, (schema, FUNCTIONS)).fetchall()
    for (signature,) in signatures:
        # pg_catalog wrote the signature, quoted where it must be.
        connection.execute(sql.SQL("grant execute on function {} to {}").format(sql.SQL(signature), names["role"]))
