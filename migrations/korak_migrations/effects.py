"""The role behind `once()`: it owns nothing and may call two functions of the schema, and nothing else."""

from __future__ import annotations

import psycopg
from psycopg import errors, sql

from korak.errors import SettingsError
from korak.store import urls

FUNCTIONS = ["effect_begin", "effect_end"]

FIND_FUNCTIONS = """
select p.oid, p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = %s and p.proname = any(%s)
"""

FIND_ROLE = """
select r.rolsuper or r.rolcreaterole or r.rolbypassrls or r.rolname = current_user
    or exists (select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
               where n.nspname = %(schema)s and c.relowner = r.oid)
    or exists (select 1 from pg_auth_members m where m.member = r.oid)
from pg_roles r where r.rolname = %(role)s
"""


def grant_effects(url: str, schema: str, role: str, password: str) -> str | None:
    """Make the login role `role` and let it call the two functions; gives the address for `KORAK_DATABASE__EFFECT_URL`.

    None where the migrating role may not make roles or grants: then nothing was changed. May be repeated; the password
    is set anew. Raises SettingsError if the role is there already and is one that migrates or administers, owns tables
    of the schema, or is a member of another role. What the effects themselves write to is for its owner to grant.
    """
    with psycopg.connect(urls.plain(url)) as connection:
        try:
            _make_role(connection, schema, role, password)
            is_granted = _grant(connection, schema, role)
        except errors.InsufficientPrivilege:
            is_granted = False
        if not is_granted:
            connection.rollback()
            return None
    return urls.with_role(url, role, password)


def _make_role(connection: psycopg.Connection, schema: str, role: str, password: str) -> None:
    found = connection.execute(FIND_ROLE, {"schema": schema, "role": role}).fetchone()
    if found is not None and found[0]:
        raise SettingsError("invalid_setting", f"The role {role} may do more than once() should: name another one.")
    statement = "{verb} role {role} login noinherit password {password}"
    verb = sql.SQL("create" if found is None else "alter")
    names = {"verb": verb, "role": sql.Identifier(role), "password": sql.Literal(password)}
    connection.execute(sql.SQL(statement).format(**names))


def _grant(connection: psycopg.Connection, schema: str, role: str) -> bool:
    """Whether the role has what it needs; a grantor who lacks the right gets a warning from Postgres, not an error."""
    names = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    for statement in (
        "revoke all on all tables in schema {schema} from {role}",
        "revoke all on all sequences in schema {schema} from {role}",
        "revoke all on schema {schema} from {role}",
        "grant usage on schema {schema} to {role}",
    ):
        connection.execute(sql.SQL(statement).format(**names))
    functions = connection.execute(FIND_FUNCTIONS, (schema, FUNCTIONS)).fetchall()
    for _, signature in functions:
        # Written, and quoted where it must be, by Postgres itself.
        connection.execute(sql.SQL("grant execute on function {} to {}").format(sql.SQL(signature), names["role"]))
    checked = connection.execute(
        "select has_schema_privilege(%(role)s, %(schema)s, 'usage')"
        " and bool_and(has_function_privilege(%(role)s, f, 'execute')) from unnest(%(functions)s::oid[]) f",
        {"role": role, "schema": schema, "functions": [oid for oid, _ in functions]},
    ).fetchone()
    return checked is not None and len(functions) == len(FUNCTIONS) and bool(checked[0])
