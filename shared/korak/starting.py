"""Starts as they are asked for: checked, opened on their version, and begun in the caller's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from korak.core import opening
from korak.core.changes import Changes
from korak.core.identity import Greeting, Identity
from korak.core.opening import Opening, Version
from korak.errors import Conflict, Invalid, Issue, NotFound, Problem
from korak.graphs.durations import compile_duration
from korak.graphs.hygiene import canonical
from korak.graphs.paths import Malformed
from korak.graphs.plans import Plan
from korak.model import ActorMode, DefinitionStatus, Json, JsonObject, OnClosed, OnOpen, Priority
from korak.owners.scopes import Owner
from korak.store import rounds
from korak.store.database import Runner
from korak.store.plans import Plans
from korak.store.starts import Start, Starter

SEPARATOR: Final = "\x1f"
"""Between the parts of a digest (ID-11)."""

ID: Final = "^[A-Za-z0-9._:-]{1,191}$"
"""An id of the caller's own."""

PRIORITIES: Final = tuple(priority.name.lower() for priority in Priority)

MEMBERS: Final[Mapping[str, JsonObject]] = {
    "input": {"type": "object", "description": "What the trigger's `inputs` ask for."},
    "id": {"type": "string", "pattern": ID, "description": "Your own id of the run: one run of it is open at a time."},
    "on_open": {"enum": list(OnOpen), "description": "What becomes of a start whose id has an open run."},
    "on_closed": {"enum": list(OnClosed), "description": "What becomes of one whose id had a run that has ended."},
    "labels": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 191}, "maxItems": 20},
    "priority": {"enum": list(PRIORITIES)},
    "version": {
        "type": ["integer", "string"],
        "description": "Its number, or the checksum of its graph.",
        "minimum": 1,
        "maximum": 2**31 - 1,
        "pattern": "^[0-9a-f]{64}$",
    },
    "execution_timeout": {"$ref": "#/$defs/duration"},
}
"""What the body of a start may say, wherever it comes from."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A start as it is asked for. `fingerprint` tells whether a repeat under the same key asks for the same.

    `trigger_key` is the Idempotency-Key, `digest` what stands for one that was given before. `is_patient`: see Opening.
    """

    ulid: str
    owner: Owner
    key: str
    version: int | str | None
    input: JsonObject
    fingerprint: str
    labels: tuple[str, ...] = ()
    priority: int | None = None
    execution_timeout: Json = None
    starter: str | None = None
    trigger_key: str | None = None
    digest: str | None = None
    identity: Identity | None = None
    greeting: Greeting | None = None
    is_patient: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """What a start came to; `changes` are the new instance's, None for a repeat's."""

    start: Start
    version: int
    changes: Changes | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers to wishes, in their order, and what to nudge once the transaction has committed."""

    answers: list[Started | Problem]
    changes: list[Changes]


class Opener:
    """Opens and begins starts. `limit` is the engine's own of starts a minute, where it has one."""

    def __init__(self, starter: Starter, plans: Plans, limit: int | None) -> None:
        self._starter = starter
        self._plans = plans
        self._limit = limit

    async def start(self, runner: Runner, wishes: Sequence[Wish], now: datetime) -> Outcome:
        """Begin what is asked for, each wish as if it stood alone. In a transaction of the caller's."""
        opened = await self.open(runner, wishes, now)
        openings = [each for each in opened if isinstance(each, Opening)]
        if not openings:
            return Outcome([each for each in opened if isinstance(each, Problem)], [])
        limits = {each.version.definition_id: limit for each in openings if (limit := self._get_limit(each))}
        batch = await rounds.start(runner, self._starter, self._plans, openings, now, limits=limits)
        made = {each.instance.ulid: each for each in batch.changes}
        starts = iter(zip(openings, batch.starts, strict=True))
        answers = [each if isinstance(each, Problem) else self._tell(*next(starts), made) for each in opened]
        return Outcome(answers, batch.changes)

    def _tell(self, opened: Opening, start: Start | Problem, made: Mapping[str, Changes]) -> Started | Problem:
        if isinstance(start, Problem):
            return start
        changes = made.get(start.ulid) if start.is_created else None
        return Started(start, self._plans.get_number(opened.version.version_id), changes)

    async def open(self, runner: Runner, wishes: Sequence[Wish], now: datetime) -> list[Opening | Problem]:
        """Each wish on the version that it means, its input accepted; a Problem where it can't be started."""
        rows = await runner.fetch(
            "starts_resolve", wanted=[_get_place(place, wish) for place, wish in enumerate(wishes)]
        )
        found = {row["place"]: row for row in rows}
        plans = await self._plans.get(runner, {row["version_id"] for row in rows if row["version_id"]})
        opened: list[Opening | Problem] = []
        for place, wish in enumerate(wishes):
            try:
                opened.append(_open(wish, found.get(place), plans, now, self._starter.max_state))
            except Problem as refused:
                opened.append(refused)
        return opened

    def _get_limit(self, opened: Opening) -> int | None:
        """Starts a minute: the engine's limit, which a definition can only lower (LM-3)."""
        own = opened.version.plan.settings.limits.get("max_starts_per_minute")
        limits = [limit for limit in (self._limit, own) if limit]
        return min(limits) if limits else None


def read_wish(body: JsonObject, *, ulid: str, owner: Owner, key: str, starter: str | None = None) -> Wish:
    """The wish of a body that fits `MEMBERS`."""
    given = cast("dict[str, Any]", body)
    priority = given.get("priority")
    return Wish(
        ulid=ulid,
        owner=owner,
        key=key,
        version=given.get("version"),
        input=given.get("input", {}),
        fingerprint=hashlib.sha256(canonical(body)).hexdigest(),
        labels=tuple(given.get("labels", ())),
        priority=None if priority is None else int(Priority[priority.upper()]),
        execution_timeout=given.get("execution_timeout"),
        starter=starter,
        identity=_read_identity(given),
    )


def _read_identity(given: Mapping[str, Any]) -> Identity | None:
    if "id" in given:
        on_open, on_closed = given.get("on_open", OnOpen.FAIL), given.get("on_closed", OnClosed.ALLOW)
        return Identity(given["id"], OnOpen(on_open), OnClosed(on_closed))
    issues = [
        Issue("invalid_value", f"/{name}", {"detail": "It says something of an id, and none is given"})
        for name in ("on_open", "on_closed")
        if name in given
    ]
    if issues:
        raise Invalid("invalid_request", issues=issues)
    return None


def get_digest(*parts: str) -> str:
    """SHA-256 over the parts, in hex (ID-11)."""
    return hashlib.sha256(SEPARATOR.join(parts).encode()).hexdigest()


def _get_place(place: int, wish: Wish) -> tuple[int, str, str, int | None, str | None]:
    number, checksum = (None, wish.version) if isinstance(wish.version, str) else (wish.version, None)
    return place, wish.owner.scope, wish.key, number, checksum


def _open(wish: Wish, row: Any, plans: Mapping[int, Plan], now: datetime, max_state: int) -> Opening:
    plan = plans[_check_version(wish, row)]
    accepted, issues = plan.accept(wish.input, max_state)
    if issues:
        raise Invalid("invalid_request", issues=[issue.at("/input") for issue in issues])
    if plan.settings.actor == ActorMode.ON_BEHALF_OF and wish.starter is None:
        raise Invalid("missing_triggering_user")
    digest = wish.digest
    if wish.trigger_key is not None:
        digest = get_digest("start", str(row["definition_id"]), wish.owner.scope, wish.trigger_key)
    return Opening(
        ulid=wish.ulid,
        version=Version(row["definition_id"], row["version_id"], row["checksum"], plan),
        owner=opening.Owner(wish.owner.scope, wish.owner.type, wish.owner.id),
        input=accepted,
        starter=wish.starter,
        labels=wish.labels,
        priority=wish.priority,
        execution_timeout=_count_seconds(wish.execution_timeout, plan, now),
        digest=digest,
        fingerprint=wish.fingerprint,
        identity=wish.identity,
        greeting=wish.greeting,
        is_patient=wish.is_patient,
    )


def _check_version(wish: Wish, row: Any) -> int:
    """The id of the version that a wish means."""
    if row is None:
        raise NotFound("definition_not_found", key=wish.key)
    if row["status"] == DefinitionStatus.ARCHIVED:
        raise Conflict("definition_archived", key=wish.key)
    if row["version_id"] is None and wish.version is None:
        raise Conflict("definition_not_published", key=wish.key)
    if row["version_id"] is None:
        raise NotFound("version_not_found", key=wish.key, number=wish.version)
    return int(row["version_id"])


def _count_seconds(duration: Json, plan: Plan, now: datetime) -> float | None:
    if duration is None:
        return None
    seconds = count_seconds(duration, now, plan.settings.timezone, pointer="/execution_timeout")
    if seconds <= 0:
        raise refuse_duration("It is longer than nothing", pointer="/execution_timeout")
    return seconds


def count_seconds(duration: Json, now: datetime, timezone: str, *, pointer: str) -> float:
    """The seconds of a duration from now on. Raises Invalid with that pointer where it is none."""
    try:
        return (compile_duration(duration).after(now, timezone) - now).total_seconds()
    except (Malformed, OverflowError) as error:
        detail = error.message if isinstance(error, Malformed) else "it ends after all times"
        raise refuse_duration(detail, pointer=pointer) from None


def refuse_duration(detail: str, *, pointer: str) -> Invalid:
    """What is raised for a duration that can't be used."""
    return Invalid("invalid_request", issues=[Issue("invalid_duration", pointer, {"detail": detail})])
