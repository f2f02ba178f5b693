"""All of Korak in one place: the database, the services in this process, the engine and its company as children."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import structlog

import korak_migrations
from korak import config, logs
from korak.catalogue import load_registry
from korak.clock import Clock
from korak.config import Settings
from korak.dev import embedded, home
from korak.dev.home import Home
from korak.dev.supervising import Program, Supervisor
from korak.errors import SettingsError, TransientError
from korak.loop import wait
from korak.model import OwnerRole
from korak.owners.scopes import APPLICATION
from korak.owners.tokens import Credential, create_secret, digest
from korak.service import get_service
from korak.serving import listen
from korak.store import fleet, tokens
from korak.store.database import Database

log: structlog.stdlib.BoundLogger = structlog.get_logger()

SERVICES = ("api", "waker", "escalator")
"""What runs in this process; the engine runs in one of its own, since step code may take it down."""

BACKOFF = (1.0, 2.0, 5.0)
"""The pauses between attempts where nobody says otherwise: a developer doesn't wait half a minute."""

EFFECT_ROLE = "korak_effect"
ADMIN = Credential.for_owner(APPLICATION, frozenset({OwnerRole.ADMIN}), name="korak dev")
LOOK = 0.05
DRAIN = 5.0
"""Seconds that an engine has beyond its drain before it is killed."""


@dataclass(frozen=True, slots=True)
class Options:
    """What `korak dev` is asked for. `beside` are modules, with arguments, to run beside Korak."""

    data: Path = home.DEFAULT
    port: int | None = None
    token: str | None = None
    beside: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, slots=True)
class Running:
    """What runs once everything is ready."""

    url: str
    token: str
    home: Home
    is_embedded: bool
    supervisors: Sequence[Supervisor]

    @property
    def pids(self) -> dict[str, int | None]:
        """The children's processes, by name."""
        return {supervisor.program.name: supervisor.pid for supervisor in self.supervisors}


Ready = Callable[[Running], Awaitable[None]]
Job = Callable[[asyncio.Event], Awaitable[None]]


async def run(stop: asyncio.Event, options: Options, settings: Settings, on_ready: Ready) -> None:
    """Run everything until `stop` is set, then end it in order; `on_ready` is told when the first start can be taken.

    Raises SettingsError where the port, the directory, the token or the database can't be had, RegistrationError where
    the step modules can't be; whatever else a service raises ends all and is raised.
    """
    clock = Clock()
    load_registry(settings)
    settings = choose_port(settings, options.port)
    async with AsyncExitStack() as stack:
        place = stack.enter_context(home.enter(options.data))
        is_embedded = not settings.database.url
        settings = await stack.enter_async_context(provide_database(settings, place, clock))
        database = await stack.enter_async_context(
            Database(settings.database.url, settings.database.schema, pool=2, name="korak dev")
        )
        token = await admit(database, place, options.token, clock)
        if is_embedded:
            await bury(database, clock)
        url = get_url(settings)
        supervisors = [
            Supervisor(program, clock, on_death=lambda pid: close_engine(database, pid, clock))
            for program in list_programs(settings, options, url=url, token=token)
        ]
        running = Running(url, token, place, is_embedded, supervisors)
        log.info("database_used", url=settings.database.url, is_embedded=is_embedded)
        place.leave_client(url, token)
        place.leave_database(settings.database.url, settings.database.effect_url)

        async def announce(stopping: asyncio.Event) -> None:
            if await is_up(stopping, running, database):
                await on_ready(running)
            await stopping.wait()

        services = [in_process(name, settings) for name in SERVICES]
        await run_together(stop, *services, *(supervisor.run for supervisor in supervisors), announce)


def choose_port(settings: Settings, port: int | None) -> Settings:
    """The settings with the port to listen on, 0 made a free one. Raises SettingsError where it is taken."""
    api = settings.api if port is None else replace(settings.api, port=port)
    with listen(api.host, api.port, setting="--port") as probe:
        api = replace(api, port=probe.getsockname()[1])
    return settings.model_copy(update={"api": api})


@asynccontextmanager
async def provide_database(settings: Settings, place: Home, clock: Clock) -> AsyncIterator[Settings]:
    """The settings with the database that is to be used, migrated: the one that is set, else an embedded one."""
    async with AsyncExitStack() as stack:
        given = settings.database
        if not given.url:
            given = replace(given, url=await stack.enter_async_context(embedded.serve(place.postgres, clock)))
        await migrate(given)
        if not settings.database.url:
            wall = await asyncio.to_thread(
                korak_migrations.grant_effects, given.url, given.schema, EFFECT_ROLE, create_secret()
            )
            given = replace(given, effect_url=wall)
        yield settings.model_copy(update={"database": given})


async def migrate(given: config.Database) -> None:
    """Bring the database to this build's schema. Raises SettingsError where it can't be reached, and SchemaNewer."""
    try:
        await asyncio.to_thread(korak_migrations.upgrade, given.url, given.schema)
    except TransientError as error:
        told = f"The database of KORAK_DATABASE__URL can't be reached: {error.params.get('why')}"
        raise SettingsError(message=told) from None


async def admit(database: Database, place: Home, given: str | None, clock: Clock) -> str:
    """The token of the whole application: the given one, else the one that is kept here. Raises SettingsError."""
    token = given or place.get_token()
    if await is_valid(database, token, clock):
        return token
    if given:
        raise SettingsError(message="The token of --token was revoked or isn't an administrator's: give another one.")
    token = place.change_token()
    if not await is_valid(database, token, clock):
        raise SettingsError(message=f"The token in {place.directory / 'token'} isn't taken: remove the file.")
    return token


async def is_valid(database: Database, token: str, clock: Clock) -> bool:
    """Whether the token is known here as an app-wide administrator's; it becomes that where nobody knew it."""
    now = clock.now()
    async with database.transaction() as connection:
        await tokens.create(connection, digest(token), credential=ADMIN, now=now)
        found = await tokens.get_by_digest(connection, digest(token), now=now)
    return found is not None and found.is_app_wide and OwnerRole.ADMIN in found.roles


async def bury(database: Database, clock: Clock) -> None:
    """Close what the engines of a killed `korak dev` have left: nobody else's can be in a database of our own."""
    async with database.transaction() as connection:
        closed = await fleet.close_all(connection, now=clock.now())
    if closed:
        log.info("engines_buried", count=closed)


async def close_engine(database: Database, pid: int, clock: Clock) -> None:
    """Close a dead child's row: its steps are taken over at once and not when its lease ends."""
    async with database.transaction() as connection:
        await fleet.close_dead(connection, socket.gethostname(), pid, now=clock.now())


def get_url(settings: Settings) -> str:
    """Where the API is reached from this machine."""
    host = settings.api.host
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.api.port}"


def list_programs(settings: Settings, options: Options, *, url: str, token: str) -> list[Program]:
    """The children: the engine, then what is to run beside it."""
    drain = settings.engine.drain + DRAIN
    engine = Program("engine", "korak", ("engine",), environ=get_environ(settings), grace=drain)
    client = {"KORAK_CLIENT__URL": url, "KORAK_CLIENT__TOKEN": token}
    return [engine, *(Program(name, name, tuple(rest), environ=client) for name, *rest in options.beside)]


def get_environ(settings: Settings) -> dict[str, str]:
    """The settings that this process has changed, as the engine reads them."""
    return {
        "KORAK_DATABASE__URL": settings.database.url,
        "KORAK_DATABASE__EFFECT_URL": settings.database.effect_url or "",
        "KORAK_STEPS": ",".join(settings.steps),
        "KORAK_CHAINS": ",".join(settings.chains),
        "KORAK_RETRY__BACKOFF": ",".join(f"{pause:g}" for pause in settings.retry.backoff),
        "KORAK_LOGS__FORMAT": settings.logs.format,
        "KORAK_LOGS__LEVEL": settings.logs.level,
    }


def in_process(name: str, settings: Settings) -> Job:
    """A service of this process. Its health is the api's to tell: several can't listen on one port."""
    service = get_service(name)
    alone = settings.model_copy(update={"health": config.Health()})

    async def serve(stop: asyncio.Event) -> None:
        with logs.about(service=name):
            await service(stop, alone)

    return serve


async def run_together(stop: asyncio.Event, *jobs: Job) -> None:
    """Run the jobs until `stop` is set; whichever ends first sets it. The first error is raised when all have ended."""
    errors: list[Exception] = []

    async def watch(job: Job) -> None:
        try:
            await job(stop)
        except Exception as error:
            errors.append(error)
        finally:
            stop.set()

    await asyncio.gather(*map(watch, jobs))
    if errors:
        raise errors[0]


async def is_up(stop: asyncio.Event, running: Running, database: Database) -> bool:
    """Wait until the API answers and the engine has its row; False where `stop` was set before."""
    async with httpx.AsyncClient(base_url=running.url, timeout=5, trust_env=False) as client:
        while not stop.is_set():
            if await is_answering(client) and await has_engine(database, running.pids["engine"]):
                return True
            await wait(LOOK, stop)
    return False


async def is_answering(client: httpx.AsyncClient) -> bool:
    """Whether the API is ready."""
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


async def has_engine(database: Database, pid: int | None) -> bool:
    """Whether the process has registered as an engine."""
    try:
        async with database.acquire() as connection:
            return pid is not None and pid in await fleet.list_pids(connection, socket.gethostname())
    except TransientError:
        return False
