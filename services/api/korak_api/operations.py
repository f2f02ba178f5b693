"""What one route is: the one table from which the router, the checks of a request and OpenAPI are made."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from korak.errors import Invalid, Issue
from korak.graphs import instants
from korak.graphs.schemas import Schema, compile_schema
from korak.model import Json, JsonObject
from korak.owners.reach import Reach
from korak.owners.roles import Verb, is_allowed
from korak.owners.tokens import Credential
from korak_api.parameters import Parameter
from korak_api.resources import Resources
from korak_api.spooling import Spool


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read and allowed: who asks, for whom, and with what."""

    resources: Resources
    credential: Credential
    reach: Reach
    path: Mapping[str, str]
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    body: JsonObject
    now: datetime
    seed: str | None = None
    """The same for every repeat under one Idempotency-Key: what a call makes up is made from it."""
    lines: Spool | None = None
    """What came, where the operation takes lines."""
    address: tuple[str, str] | None = None
    """The definition's key and the caller's own id, where the instance is named by these."""

    @property
    def owner_scope(self) -> str:
        """Whose things the request is about."""
        return self.reach.owner.scope

    @property
    def scope_or_all(self) -> str | None:
        """The same for lists; None where it is about everybody's."""
        return None if self.reach.is_over_all else self.owner_scope

    @property
    def sees_failures(self) -> bool:
        """Whether the text and trace of an unknown exception are shown."""
        return is_allowed(self.credential.roles, Verb.FAILURES_READ)

    @property
    def ceilings(self) -> Mapping[str, int | None]:
        """The engine's own limits on what one instance may use."""
        return {**self.resources.limits.run, "max_depth": self.resources.settings.limits.max_depth}

    @property
    def actor(self) -> JsonObject:
        """Who acts, as history keeps it."""
        return {"user": self.credential.user, "token": self.credential.name}

    def get_later(self, name: str) -> datetime | None:
        """The time to come, with its zone, that stands in the body under that name. Raises Invalid for another."""
        text = self.body.get(name)
        if not isinstance(text, str):
            return None
        moment = instants.parse(text)
        if moment is None or moment <= self.now:
            detail = {"detail": "It is a time to come, with its zone"}
            raise Invalid("invalid_request", issues=[Issue("invalid_value", f"/{name}", detail)])
        return moment


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call comes to. Without a body the answer is empty."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterable[bytes] | None = None
    """What is sent piece by piece in place of a body: server-sent events, unless `media_type` says otherwise."""
    media_type: str = "text/event-stream"
    kept: Any = None
    """What is kept of the body for a repeat, where that isn't all of it."""


Handler: TypeAlias = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries: its members, those that it must have, and those that a later version will take."""

    members: Mapping[str, JsonObject]
    required: tuple[str, ...] = ()
    unserved: frozenset[str] = frozenset()
    checked: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "checked", compile_schema(self.to_schema()))

    def to_schema(self) -> JsonObject:
        """As JSON Schema."""
        return {
            "type": "object",
            "properties": dict(self.members),
            "required": [*self.required],
            "additionalProperties": False,
        }


@dataclass(frozen=True, slots=True)
class Lines:
    """A body of many lines, which is kept in a file until it is whole. `shape` is the schema of one."""

    media_type: str
    shape: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method at one address. `verb` is what the credential must be allowed; None: nothing but being known.

    `answer` names a schema of `korak_api.shapes`; `statuses` are the answers besides problems.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    verb: Verb | None = None
    answer: str | None = None
    statuses: tuple[int, ...] = (200,)
    problems: tuple[int, ...] = ()
    body: Body | None = None
    query: tuple[Parameter, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    lines: Lines | None = None
    is_public: bool = False
    is_kept: bool = False
    """Whether the answer is kept for a repeat under the same Idempotency-Key."""
    translate: Callable[[Mapping[str, str], Json], Json] | None = None
    """Makes the body of this route from another form that it may come in."""
    others: Mapping[int, str] = field(default_factory=dict)
    """The schemas of statuses whose answer is another thing."""
