"""Stage: what lies in the inbox is begun, each row in the transaction that takes it out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from ulid import ULID

from korak.core.changes import Changes
from korak.dispatch import Dispatcher
from korak.emitting import MEMBERS as EVENT
from korak.emitting import read_emit
from korak.errors import Invalid, KorakError, Problem, TransientError
from korak.graphs import hygiene
from korak.graphs.schemas import Schema, compile_schema
from korak.matching import Matcher
from korak.model import InboxKind, JsonObject
from korak.owners.scopes import parse_owner
from korak.starting import MEMBERS as START
from korak.starting import Opener, Started, Wish, read_wish
from korak.store import emits, inbox, runs
from korak.store.database import Hot, Runner
from korak.store.inbox import Entry, Postponed
from korak.store.starts import Start

SOON: Final = timedelta(seconds=0.2)
"""After how long a row is looked at again whose start waits for an open run to end."""

SCHEMAS: Final[dict[InboxKind, Schema]] = {
    kind: compile_schema({"type": "object", "properties": dict(members), "additionalProperties": False})
    for kind, members in ((InboxKind.START, START), (InboxKind.EMIT, EVENT))
}
NAMED: Final = frozenset(
    {
        "invalid_parameter",
        "definition_not_found",
        "definition_archived",
        "definition_not_published",
        "version_not_found",
    }
)
"""What is wrong with the name of a start, rather than with its body."""

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Batch:
    """What one transaction does with the rows that it holds."""

    done: list[int] = field(default_factory=list)
    wrong: list[tuple[int, JsonObject]] = field(default_factory=list)
    postponed: list[Postponed] = field(default_factory=list)
    changes: list[Changes] = field(default_factory=list)
    emitted: list[int] = field(default_factory=list)


class Inbox:
    """Begins what is due. On a connection of its own; one call at a time is at it, others wait."""

    def __init__(
        self, hot: Hot, opener: Opener, dispatcher: Dispatcher, matcher: Matcher, *, ttl: timedelta, size: int
    ) -> None:
        self._hot = hot
        self._opener = opener
        self._dispatcher = dispatcher
        self._matcher = matcher
        self._ttl = ttl
        self._size = size
        self._busy = asyncio.Lock()

    async def run_once(self, now: datetime) -> int:
        """Begin all that is due; how many rows that were. A row that is wrong is kept with its error."""
        count = 0
        async with self._busy:
            while True:
                taken = await self._take(now)
                count += taken
                if taken < self._size:
                    return count

    async def _take(self, now: datetime) -> int:
        try:
            return await self._begin(now, self._size)
        except TransientError:
            raise
        except Exception as error:
            log.warning("inbox_split", exc_info=error)
        # Something about one row is to blame: each stands alone, so that it stops no other.
        async with self._hot.alone() as runner:
            ids = await inbox.list_due(runner, now, self._size)
        return sum([await self._take_alone(now, entry_id) for entry_id in ids])

    async def _take_alone(self, now: datetime, entry_id: int) -> int:
        try:
            return await self._begin(now, 1, only=entry_id)
        except TransientError:
            raise
        except Exception as error:
            if runs.is_taken(error):  # a retried run has its id: the next look sees that
                return 0
            log.exception("inbox_row_failed", row=entry_id)
            refused = error if isinstance(error, KorakError) else KorakError("internal")
            async with self._hot.alone() as runner:
                await inbox.fail(runner, [(entry_id, _tell(refused))], now)
            return 1

    async def _begin(self, now: datetime, count: int, *, only: int | None = None) -> int:
        batch = Batch()
        async with self._hot.transaction() as runner:
            entries = await inbox.take(runner, now, count, only=only)
            if not entries:
                return 0
            await self._emit(runner, [each for each in entries if each.kind is InboxKind.EMIT], batch, now)
            await self._start(runner, [each for each in entries if each.kind is InboxKind.START], batch, now)
            await inbox.drop(runner, batch.done)
            await inbox.fail(runner, batch.wrong, now)
            await inbox.postpone(runner, batch.postponed)
        await self._dispatcher.send(batch.changes)
        for emit_id in batch.emitted:
            await self._matcher.match(emit_id, now)
        return len(entries)

    async def _emit(self, runner: Runner, entries: Sequence[Entry], batch: Batch, now: datetime) -> None:
        for entry in entries:
            try:
                owner, body = parse_owner(entry.owner_scope), _read_body(entry)
                _check_name(entry)
                event = read_emit(body, entry.name, owner.scope, now, source_id=f"inbox:{entry.id}", ttl=self._ttl)
            except Problem as refused:
                batch.wrong.append((entry.id, _tell(refused)))
                continue
            kept = await emits.keep(runner, event)
            batch.emitted.append(kept.id)
            batch.done.append(entry.id)

    async def _start(self, runner: Runner, entries: Sequence[Entry], batch: Batch, now: datetime) -> None:
        wishes: list[tuple[Entry, Wish]] = []
        for entry in entries:
            try:
                wishes.append((entry, _read_wish(entry, now)))
            except Problem as refused:
                batch.wrong.append((entry.id, _tell(refused)))
        if not wishes:
            return
        outcome = await self._opener.start(runner, [wish for _, wish in wishes], now)
        batch.changes += outcome.changes
        for (entry, _), answer in zip(wishes, outcome.answers, strict=True):
            _settle(batch, entry, answer, now)


def _settle(batch: Batch, entry: Entry, answer: Started | Problem, now: datetime) -> None:
    match answer:
        case Problem():
            batch.wrong.append((entry.id, _tell(answer)))
        case Started(Start(held=run)) if run is not None:
            batch.postponed.append((entry.id, now + SOON, run.ulid))
        case Started(Start(refusal=refusal)) if refusal is not None:
            batch.postponed.append((entry.id, now + timedelta(seconds=refusal.retry_after), None))
        case Started():
            batch.done.append(entry.id)


def _read_body(entry: Entry) -> JsonObject:
    body = hygiene.loads(entry.body.encode())
    issues = SCHEMAS[entry.kind].check(body, code="invalid_value")
    if issues:
        raise Invalid("invalid_request", issues=issues)
    assert isinstance(body, dict)
    return body


def _check_name(entry: Entry) -> None:
    if not entry.name:
        raise Invalid("invalid_parameter", name="name", detail="an event has one")


def _read_wish(entry: Entry, now: datetime) -> Wish:
    """The wish of a row; a limit on starts puts it off."""
    owner, body = parse_owner(entry.owner_scope), _read_body(entry)
    wish = read_wish(body, ulid=str(ULID.from_datetime(now)), owner=owner, key=entry.name, starter=entry.starter_id)
    if wish.identity is not None:
        wish = replace(wish, identity=replace(wish.identity, replaces=entry.replaces))
    return replace(wish, digest=entry.digest, fingerprint=entry.fingerprint or wish.fingerprint, is_patient=True)


def _tell(refused: KorakError) -> JsonObject:
    """What is kept with a row that is wrong: its code, and where in the row it is."""
    issues = refused.issues if isinstance(refused, Problem) else ()
    told: list[JsonObject] = [issue.at("/body").to_json() for issue in issues]
    pointer = "/name" if refused.code in NAMED else "/owner_scope" if refused.code == "invalid_owner" else "/body"
    first = issues[0].at("/body").pointer if issues else pointer
    return {"code": refused.code, "message": refused.message, "pointer": first, "errors": [*told]}
