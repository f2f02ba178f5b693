"""Every setting, one frozen class a group, read from `KORAK_<GROUP>__<NAME>` and from nowhere else."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass, is_pydantic_dataclass
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from korak.errors import SettingsError
from korak.parsing import (
    AmqpUrl,
    Count,
    DatabaseUrl,
    Delays,
    HttpUrl,
    Interval,
    Modules,
    Names,
    Port,
    Seconds,
    Targets,
    Text,
)

PREFIX = "KORAK_"
FOREIGN = ("KORAK_TEST_",)
"""Names with our prefix that aren't ours to read: the tests'."""

HIDDEN = frozenset({"KORAK_DATABASE__URL", "KORAK_DATABASE__EFFECT_URL", "KORAK_BROKER__URL", "KORAK_CLIENT__TOKEN"})
"""What may hold a password and is never shown."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where the truth is kept."""

    url: DatabaseUrl = Field(default="", description="the database, as postgresql://user:password@host:port/name")
    schema: Text = Field(default="korak", description="the schema that holds Korak's tables")
    effect_url: DatabaseUrl | None = Field(
        default=None, description="the same database as the role that runs once() effects"
    )
    pool: Count = Field(default=10, description="connections a process holds at most for what isn't on the hot path")

    def require_url(self) -> str:
        """The address. Raises SettingsError where none is set."""
        if not self.url:
            raise SettingsError("invalid_setting", "KORAK_DATABASE__URL is missing: postgresql://user@host/name")
        return self.url


@dataclass(frozen=True, slots=True)
class Broker:
    """What nudges the services."""

    url: AmqpUrl | None = Field(
        default=None, description="RabbitMQ, as amqp://...; without it the Postgres broker serves"
    )


@dataclass(frozen=True, slots=True)
class Engine:
    """How an engine claims, runs and records."""

    lease: Seconds = Field(default=60.0, description="how long an engine is believed alive without renewing")
    grace: Seconds = Field(default=30.0, description="how long past its timeout a step keeps its lease")
    timeout: Seconds = Field(
        default=300.0, description="how long one attempt may take unless its type or node says otherwise"
    )
    block_limit: Seconds = Field(
        default=60.0, description="how long a step may block its event loop before the engine closes itself and exits"
    )
    requeue_after: Seconds = Field(
        default=30.0, description="after how long a sent step that nobody claimed is sent again"
    )
    concurrency: Count = Field(default=256, description="steps that run at once")
    threads: Count = Field(default=32, description="steps written as plain functions that run at once")
    processes: Count = Field(default=2, description="steps that run at once in processes of their own")
    queues: Names = Field(default=("default",), description="the queues it serves, with commas between")
    drain: Seconds = Field(default=30.0, description="how long it may finish what it runs once it is told to stop")
    batch: Count = Field(default=500, description="claims or results that go into one transaction")
    inline: Count = Field(
        default=64, description="steps in a row that one instance may run without going back to its queue"
    )


@dataclass(frozen=True, slots=True)
class Wake:
    """How the waker looks for what is due."""

    interval: Seconds = Field(default=1.0, description="the pause between two looks where nothing is due sooner")
    batch: Count = Field(default=500, description="rows that go into one transaction")
    poll: Seconds = Field(default=900.0, description="how often a condition is tried again where its wait doesn't say")
    timeout: Seconds = Field(default=30.0, description="how long one statement of a pass may take")


@dataclass(frozen=True, slots=True)
class Api:
    """How the API listens, and its bounds."""

    host: Text = Field(default="127.0.0.1", description="the address it listens on")
    port: Port = Field(default=8080, description="the port it listens on")
    max_body: Count = Field(default=1 << 20, description="bytes of one request")
    max_copy: Count = Field(default=256 << 20, description="bytes of one exported run")
    max_page: Count = Field(default=200, description="items of one page")
    wait_max: Seconds = Field(default=60.0, description="how long one request may wait for an instance to end")


@dataclass(frozen=True, slots=True)
class Health:
    """Where engine, waker and escalator tell how they are."""

    host: Text = Field(default="127.0.0.1", description="the address of /healthz, /readyz and /metrics")
    port: Port | None = Field(default=None, description="their port; without it they aren't served")


@dataclass(frozen=True, slots=True)
class Retry:
    """What holds for a step whose node, definition and type say nothing."""

    max_attempts: Count = Field(default=3, description="attempts in all, the first included")
    backoff: Delays = Field(
        default=(30.0, 120.0, 600.0), description="the pauses between attempts, with commas between"
    )
    jitter: float = Field(
        default=0.1, ge=0, le=1, description="the part of a pause by which it may be shorter or longer, 0 to 1"
    )
    cap: Count = Field(default=10, description="the most attempts that a node may ask for")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one instance may use. A definition may ask for less, never for more."""

    max_steps: Count = Field(default=200, description="visits of nodes")
    max_transitions: Count = Field(default=10_000, description="edges and jumps followed")
    max_depth: Count = Field(default=3, description="runs below one another")
    max_loop_iterations: Count = Field(default=1_000, description="rounds of one loop")
    max_for_each_items: Count = Field(default=10_000, description="items of one for_each")
    max_state_bytes: Count = Field(default=1 << 20, description="bytes of the state as JSON")
    max_started_workflows: Count = Field(default=10_000, description="runs that one run starts")
    max_cost_units: Count | None = Field(default=None, description="units that completed steps cost")
    max_starts_per_minute: Count | None = Field(default=None, description="starts of one definition in a minute")
    max_output_bytes: Count = Field(default=64 << 10, description="bytes of one output as JSON")
    max_input_bytes: Count = Field(default=64 << 10, description="bytes of one recorded input as JSON")
    max_chunks: Count = Field(default=10_000, description="chunks that one visit of a step may stream")
    max_chunk_bytes: Count = Field(default=64 << 10, description="bytes of one chunk")
    max_stream_bytes: Count = Field(default=16 << 20, description="bytes of all chunks of one visit")
    max_artifacts: Count = Field(default=100, description="artifacts that one attempt may leave")
    max_artifact_bytes: Count = Field(default=1 << 20, description="bytes of one artifact")


@dataclass(frozen=True, slots=True)
class Graph:
    """What a document may hold."""

    max_nodes: Count = Field(default=500, description="nodes")
    max_edges: Count = Field(default=1_000, description="edges")
    max_bytes: Count = Field(default=256 << 10, description="bytes of the document as JSON")


@dataclass(frozen=True, slots=True)
class Idempotency:
    """How long a repeated request is known."""

    ttl: Interval = Field(default=timedelta(days=30), description="how long the key of a start is kept")
    answers: Interval = Field(default=timedelta(days=1), description="how long the answer to any other key is kept")


@dataclass(frozen=True, slots=True)
class Events:
    """Events that nobody waits for yet."""

    ttl: Interval = Field(default=timedelta(hours=1), description="how long an emitted event is kept; 0 keeps none")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Calls to the outside."""

    allow: Targets = Field(
        default=(), description="addresses inside that may be called: host:port or a network, with commas"
    )
    timeout: Seconds = Field(default=30.0, description="how long the receiver may take")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where the values of secrets come from. The first source that has the name wins."""

    file: Path | None = Field(default=None, description="a JSON file of names and values")
    directory: Path | None = Field(default=None, description="a directory with one file a secret")
    environment: Text | None = Field(default=None, description="the beginning of the variables that hold secrets")


@dataclass(frozen=True, slots=True)
class Client:
    """Where the commands find the API."""

    url: HttpUrl | None = Field(default=None, description="the API, as http:// or https://")
    token: Text | None = Field(default=None, description="the bearer token")


@dataclass(frozen=True, slots=True)
class Logs:
    """What is logged, and how."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error"
    )
    format: Literal["json", "console"] = Field(default="json", description="json or console")


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where metrics are gathered."""

    directory: Path | None = Field(default=None, description="a directory that processes of one service share")


class Settings(BaseSettings):
    """All settings of a process. Made by `load_settings`, passed down, never changed."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=PREFIX, env_nested_delimiter="__", enable_decoding=False
    )

    database: Database = Database()
    broker: Broker = Broker()
    engine: Engine = Engine()
    wake: Wake = Wake()
    api: Api = Api()
    health: Health = Health()
    retry: Retry = Retry()
    limits: Limits = Limits()
    graph: Graph = Graph()
    idempotency: Idempotency = Idempotency()
    events: Events = Events()
    webhook: Webhook = Webhook()
    secrets: Secrets = Secrets()
    client: Client = Client()
    logs: Logs = Logs()
    metrics: Metrics = Metrics()
    steps: Modules = Field(default=(), description="modules with step types, with commas between")
    chains: Modules = Field(default=(), description="modules with chains, with commas between")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Nothing but what is given: `load_settings` alone reads an environment, the one that it is handed."""
        return (init_settings,)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings that the environment names; an empty variable counts as none.

    Raises SettingsError, a line for each variable that is unknown or wrong: its name, what was given, what is meant.
    """
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX) and value}
    known = dict(list_variables())
    strangers = [name for name in ours if name not in known and not _is_foreign(name, environ)]
    if strangers:
        raise SettingsError("invalid_setting", "\n".join(_refuse_unknown(name, known) for name in sorted(strangers)))
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in ours.items() if name in known}
    try:
        return Settings(**source())
    except ValidationError as error:
        lines = {_refuse_wrong(problem["loc"], problem["msg"], ours, known) for problem in error.errors()}
        raise SettingsError("invalid_setting", "\n".join(sorted(lines))) from None


def list_variables() -> Iterator[tuple[str, str]]:
    """Every variable with what it means."""
    for name, field in Settings.model_fields.items():
        group = field.annotation
        if isinstance(group, type) and is_pydantic_dataclass(group):
            for member, inner in group.__pydantic_fields__.items():
                yield f"{PREFIX}{name}__{member}".upper(), inner.description or ""
        else:
            yield f"{PREFIX}{name}".upper(), field.description or ""


def _is_foreign(name: str, environ: Mapping[str, str]) -> bool:
    secrets = environ.get("KORAK_SECRETS__ENVIRONMENT")
    return name.startswith(FOREIGN) or bool(secrets and name.startswith(secrets))


def _refuse_unknown(name: str, known: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Is {near[0]} meant: {known[near[0]]}?" if near else f" Known are: {', '.join(sorted(known))}."
    return f"{name} is no setting of Korak.{hint}"


def _refuse_wrong(loc: tuple[Any, ...], why: str, given: Mapping[str, str], known: Mapping[str, str]) -> str:
    name = next(
        name for name in (f"{PREFIX}{'__'.join(map(str, loc[:depth]))}".upper() for depth in (2, 1)) if name in known
    )
    shown = "not shown here" if name in HIDDEN else repr(given.get(name))
    return f"{name} is wrong: given was {shown}, meant is {known[name]} ({why.removeprefix('Value error, ')})."
