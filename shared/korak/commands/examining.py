"""What `korak doctor` looks at, check by check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.text import Text

import korak_migrations
from korak import surveying
from korak.clock import Clock
from korak.config import Settings
from korak.connecting import connect_broker
from korak.errors import KorakError, SchemaOlder, TransientError
from korak.logs import scrub
from korak.loop import wait
from korak.metrics import Metrics
from korak.store import checking, stuck
from korak.store.clocks import measure
from korak.store.database import Database, Session

OLDEST = 15
"""The oldest Postgres that serves."""
PATIENCE = 5.0
SHOWN = 20


class Verdict(StrEnum):
    """What a check comes to. Only `wrong` makes the command fail."""

    WELL = "well"
    NOTED = "noted"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, how it is, and what to know or to do about it."""

    name: str
    verdict: Verdict
    detail: str


Check = Callable[[Settings, Database], Awaitable[Sequence[Finding]]]

GLYPHS = {Verdict.WELL: ("✓", "green"), Verdict.NOTED: ("!", "yellow"), Verdict.WRONG: ("✗", "red")}


async def examine(settings: Settings) -> list[Finding]:
    """All checks. What needs the tables is left out where they aren't there."""
    group = settings.database
    async with Database(group.require_url(), group.schema, pool=2, timeout=PATIENCE, name="korak doctor") as database:
        findings = await run(check_server, settings, database)
        if is_wrong(findings):
            return findings
        schema = await run(check_migrations, settings, database)
        findings += schema + await run(check_broker, settings, database)
        for check in () if is_wrong(schema) else (check_effects, check_stuck):
            findings += await run(check, settings, database)
    return findings


async def run(check: Check, settings: Settings, database: Database) -> list[Finding]:
    """One check; whatever it raises is what is wrong."""
    try:
        return list(await check(settings, database))
    except Exception as error:
        why = error.params.get("why") if isinstance(error, KorakError) else None
        name = check.__name__.removeprefix("check_")
        return [Finding(name, Verdict.WRONG, scrub(str(why or error) or type(error).__name__))]


async def check_server(settings: Settings, database: Database) -> Sequence[Finding]:
    """The database answers, is new enough, and its clock is near ours."""
    async with database.acquire() as connection:
        major, name = await checking.get_version(connection)
        clock = Clock()
        await measure(Session(connection), clock)
    skew = clock.offset.total_seconds()
    verdict = Verdict.WELL if major >= OLDEST else Verdict.WRONG
    needed = "" if major >= OLDEST else f": {OLDEST} is the oldest that serves"
    ahead = f", its clock {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} ours" if abs(skew) >= 1 else ""
    return [Finding("database", verdict, f"PostgreSQL {name}{needed}{ahead}")]


async def check_migrations(settings: Settings, database: Database) -> Sequence[Finding]:
    """The schema is this build's."""
    fault = await surveying.find_fault(database)
    if fault is None:
        return [Finding("migrations", Verdict.WELL, f"schema {database.schema} is at {korak_migrations.head()}")]
    verdict = Verdict.WRONG if isinstance(fault, SchemaOlder) else Verdict.NOTED
    return [Finding("migrations", verdict, fault.message)]


async def check_broker(settings: Settings, database: Database) -> Sequence[Finding]:
    """The broker can be reached."""
    name = "RabbitMQ" if settings.broker.url else "Postgres, by LISTEN and NOTIFY"
    async with AsyncExitStack() as stack:
        broker = await connect_broker(stack, settings, Metrics())
        clock = Clock()
        began = clock.monotonic()
        while not broker.is_connected and clock.monotonic() - began < PATIENCE:
            await wait(0.05)
        if broker.is_connected:
            return [Finding("broker", Verdict.WELL, name)]
    return [Finding("broker", Verdict.WRONG, f"{name} can't be reached; steps go on at the waker's pace")]


async def check_effects(settings: Settings, database: Database) -> Sequence[Finding]:
    """The role behind once() can do nothing else."""
    url, schema = settings.database.effect_url, settings.database.schema
    if url is None:
        hint = "KORAK_DATABASE__EFFECT_URL isn't set: once() works, on a login that may do more than an effect needs"
        return [Finding("effects", Verdict.NOTED, f"{hint} (korak migrate --effect-role)")]
    async with Database(url, schema, pool=1, timeout=PATIENCE) as effects, effects.acquire() as connection:
        reachable = await checking.list_reachable(connection, schema)
    if reachable:
        return [Finding("effects", Verdict.WRONG, f"the role of once() reaches tables: {', '.join(reachable[:5])}")]
    return [Finding("effects", Verdict.WELL, "the role of once() reaches no table")]


async def check_stuck(settings: Settings, database: Database) -> Sequence[Finding]:
    """No instance is stuck."""
    try:
        async with database.acquire() as connection:
            clock = Clock()
            await measure(Session(connection), clock)
            found = await stuck.list_stuck(Session(connection), clock.now(), SHOWN)
    except TransientError as error:
        return [Finding("stuck", Verdict.WRONG, f"it can't be told: {error.params.get('why')}")]
    if not found:
        return [Finding("stuck", Verdict.WELL, "no instance is stuck")]
    return [Finding("stuck", Verdict.WRONG, _tell(each)) for each in found]


def is_wrong(findings: Sequence[Finding]) -> bool:
    """Whether one of them is."""
    return any(finding.verdict is Verdict.WRONG for finding in findings)


def draw(findings: Sequence[Finding]) -> RenderableType:
    """A line a finding."""
    return Group(*(Text.assemble(GLYPHS[each.verdict], f" {each.name:<11}", each.detail) for each in findings))


def _tell(each: stuck.Stuck) -> str:
    where = f" at {each.node}" if each.node else ""
    return f"{each.ulid} of {each.definition}{where}: {each.reason} since {each.since:%Y-%m-%d %H:%M:%S} UTC"
