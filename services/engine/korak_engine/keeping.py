"""Keeping what a handler leaves on its way: chunks at once, heartbeats each second, artifacts with the record."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from korak import config
from korak.clock import Clock
from korak.errors import StaleClaim, StepFailed, TransientError
from korak.graphs import hygiene
from korak.loop import Backoff, wait
from korak.model import Json, JsonObject
from korak.steps.artifacts import Made
from korak.steps.secrets import scrub, scrub_json
from korak.store import chunks, heartbeats
from korak.store.database import Database
from korak_engine.work import Leaving, Work

MAX_PROGRESS: Final = 16 << 10
"""Bytes of a heartbeat's progress as JSON."""


BACKOFF: Final = Backoff(most=2.0)

T = TypeVar("T")

log: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Keeper:
    """What all contexts of an engine keep things with. Without a database nothing can be streamed."""

    limits: config.Limits = field(default_factory=config.Limits)
    clock: Clock = field(default_factory=Clock)
    database: Database | None = None

    async def recall(self, work: Work) -> None:
        """Have the chunks that earlier attempts of the visit have stored; a first attempt has none."""
        leaving = work.leave()
        if work.step.attempt > 1:
            visit = work.step.instance_id, work.step.execution_id
            leaving.chunks = await self._insist(work, lambda: chunks.load(self._require(), *visit))
            leaving.size = sum(len(text.encode()) for text in leaving.chunks)
        leaving.has_streamed = bool(leaving.chunks)

    async def append(self, work: Work, text: object, hidden: Collection[str]) -> None:
        """Store the next chunk of a visit, if the step still runs under its token; it counts as a heartbeat.

        Raises StepFailed (`invalid_output`) for what is no text, or too much, and StaleClaim where the token is lost:
        then nothing was written, and the handler works for nothing.
        """
        work.check_held()
        leaving = work.leave()
        chunk = self._check_chunk(leaving, text, hidden)
        token, now = work.step.claim_token or "", self.clock.now()
        numbered = len(leaving.chunks), chunk
        is_held = await self._insist(work, lambda: chunks.append(self._require(), work.step.id, token, numbered, now))
        if not is_held:
            work.is_cancelled = True
            raise StaleClaim
        leaving.chunks.append(chunk)
        leaving.size += len(chunk.encode())
        leaving.has_streamed = True
        self._touch(leaving)

    async def _insist(self, work: Work, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat what a fault that passes keeps from happening, as long as the attempt has time: it is worth more."""
        failures = 0
        while True:
            try:
                return await call()
            except TransientError as error:
                failures += 1
                log.warning("step %s waits for its database: %s", work.step.ulid, error.message)
            await wait(BACKOFF.after(failures))
            work.check_held()

    def beat(self, work: Work, progress: object, hidden: Collection[str]) -> None:
        """Note a heartbeat, which `write_beats` writes. Raises StepFailed (`invalid_output`) and StaleClaim."""
        work.check_held()
        leaving = work.leave()
        if progress is not None:
            leaving.heartbeat = {"progress": _check_progress(progress, hidden)}
        self._touch(leaving)

    def _touch(self, leaving: Leaving) -> None:
        leaving.heartbeat = {**leaving.heartbeat, "at": self.clock.now().isoformat()}
        leaving.is_beating = True

    async def write_beats(self, works: Iterable[Work]) -> None:
        """Write the heartbeats that are new, in one statement; those of rows that somebody works on stay new."""
        beating = {
            work.step.id: (work, work.leaving, work.leaving.heartbeat)
            for work in works
            if work.leaving is not None and work.leaving.is_beating and not work.is_settled
        }
        if not beating:
            return
        beats = [(step_id, work.step.claim_token or "", beat) for step_id, (work, _, beat) in beating.items()]
        async with self._require().acquire() as connection:
            written = await heartbeats.keep(connection, beats)
        for step_id in written:
            _, leaving, beat = beating[step_id]
            leaving.is_beating = leaving.heartbeat is not beat

    def keep(self, work: Work, made: Made) -> JsonObject:
        """Keep an artifact for the record. Raises StepFailed (`invalid_output`) for one too many, and StaleClaim."""
        work.check_held()
        artifacts, limit = work.leave().artifacts, self.limits.max_artifacts
        if made.key not in artifacts and len(artifacts) >= limit:
            raise _refuse(f"/artifacts/{made.key}", f"an attempt leaves {limit} artifacts at most")
        artifacts[made.key] = made
        return made.reference

    def _check_chunk(self, leaving: Leaving, text: object, hidden: Collection[str]) -> str:
        index, limits = len(leaving.chunks), self.limits
        where = f"/chunks/{index}"
        if not isinstance(text, str):
            raise _refuse(where, f"a stream yields strings, not {type(text).__name__}")
        chunk = scrub(str.__str__(text), hidden) if hidden else str.__str__(text)
        if issue := hygiene.check_json(chunk):
            raise _refuse(where, str(issue.params["why"]))
        size = len(chunk.encode())
        if size > limits.max_chunk_bytes:
            raise _refuse(where, f"it is {size} bytes, {limits.max_chunk_bytes} at most: yield it in parts")
        if index >= limits.max_chunks:
            raise _refuse(where, f"a visit streams {limits.max_chunks} chunks at most: yield larger ones")
        if leaving.size + size > limits.max_stream_bytes:
            raise _refuse(where, f"a visit streams {limits.max_stream_bytes} bytes at most")
        return chunk

    def _require(self) -> Database:
        assert self.database is not None, "an engine's keeper has its database"
        return self.database


def _check_progress(progress: object, hidden: Collection[str]) -> Json:
    if issue := hygiene.check_json(progress):
        raise _refuse("/progress" + issue.pointer, str(issue.params["why"]))
    given: Any = progress
    checked = scrub_json(given, hidden)
    if (size := hygiene.size(checked)) > MAX_PROGRESS:
        raise _refuse("/progress", f"it is {size} bytes, {MAX_PROGRESS} at most")
    return checked


def _refuse(pointer: str, detail: str) -> StepFailed:
    return StepFailed("invalid_output", pointer=pointer, detail=detail)
