"""Threads for handlers written as plain functions; one that doesn't end is left behind, counted and replaced."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Job(Generic[T]):
    """A call for a thread. `result` is cancelled when nobody waits for it any more; `ended` is when it has returned."""

    call: Callable[[], T]
    begin: Callable[[asyncio.Future[None]], None]
    result: asyncio.Future[T]
    ended: asyncio.Future[None]
    has_begun: bool = False
    is_lost: bool = False


@dataclass(eq=False, slots=True)
class Worker:
    """One thread with what it is to do next; None ends it."""

    inbox: SimpleQueue[Job[object] | None] = field(default_factory=SimpleQueue)


class Threads:
    """At most `size` calls at once, in daemon threads. Everything but the calls happens on the loop, so without locks.

    Of the threads that were left behind as many as half of `size` are replaced.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._waiting: deque[Job[object]] = deque()
        self._idle: list[Worker] = []
        self._busy = 0
        self._lost = 0
        self._is_closed = False
        self._numbers = itertools.count(1)

    @property
    def lost(self) -> int:
        """The threads that were left behind and haven't ended yet."""
        return self._lost

    @property
    def has_lost_half(self) -> bool:
        """Whether so many are lost that the process had better be replaced."""
        return self._lost * 2 >= self._size

    async def run(self, call: Callable[[], T], begin: Callable[[asyncio.Future[None]], None]) -> T:
        """What `call`, which must not raise, returns; cancelling leaves its thread behind.

        `begin` is called when a thread is free, with a future that is done when the thread has returned.
        """
        loop = asyncio.get_running_loop()
        job: Job[T] = Job(call, begin, loop.create_future(), loop.create_future())
        self._waiting.append(job)  # type: ignore[arg-type]  # a job is handed its own result
        self._dispatch()
        try:
            return await job.result
        finally:
            if job.has_begun and not job.ended.done():
                self._leave(job)

    def close(self) -> None:
        """End the threads that do nothing; the others end when they return, or with the process."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().inbox.put(None)

    def _dispatch(self) -> None:
        while self._waiting and self._busy < self._size - max(0, self._lost - self._size // 2):
            job = self._waiting.popleft()
            if job.result.done():
                continue
            try:
                worker = self._idle.pop() if self._idle else self._start()
            except RuntimeError as error:  # the machine gives no more threads
                job.result.set_exception(error)
                continue
            self._busy += 1
            job.has_begun = True
            job.begin(job.ended)
            worker.inbox.put(job)

    def _start(self) -> Worker:
        worker = Worker()
        name = f"{self._name}-{next(self._numbers)}"
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, args=(worker, loop), name=name, daemon=True).start()
        return worker

    def _work(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        while (job := worker.inbox.get()) is not None:
            result = job.call()
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._end, worker, job, result)
            del job, result

    def _leave(self, job: Job[T]) -> None:
        job.is_lost = True
        self._lost += 1
        self._busy -= 1
        self._dispatch()

    def _end(self, worker: Worker, job: Job[object], result: object) -> None:
        job.ended.set_result(None)
        if job.is_lost:
            self._lost -= 1
        else:
            self._busy -= 1
        if not job.result.done():
            job.result.set_result(result)
        if self._is_closed or len(self._idle) + self._busy >= self._size:
            worker.inbox.put(None)
        else:
            self._idle.append(worker)
        self._dispatch()
