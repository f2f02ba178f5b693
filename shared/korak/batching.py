"""Natural batching: what arrives while a worker is busy is its next batch. Nobody waits for a timer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Self, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Batcher(Generic[Question, Answer]):
    """Answers questions in batches of at most `limit`. An async context manager.

    Each of `runs` is a worker of its own (it may hold a connection): it gets a batch and gives an answer a question, in
    order. An answer that is an exception is raised to its asker; one that a worker raises goes to the whole batch.
    """

    def __init__(
        self, runs: Sequence[Callable[[list[Question]], Awaitable[Sequence[Answer | BaseException]]]], limit: int
    ) -> None:
        self._runs = runs
        self._limit = limit
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._arrived = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._workers = [asyncio.create_task(self._work(run)) for run in self._runs]
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        for _question, future in self._waiting:
            future.cancel()

    async def ask(self, question: Question) -> Answer:
        """The answer, once the batch that the question went into is through."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        self._arrived.set()
        return await future

    async def _work(self, run: Callable[[list[Question]], Awaitable[Sequence[Answer | BaseException]]]) -> None:
        while True:
            await self._arrived.wait()
            batch = [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]
            if not self._waiting:
                self._arrived.clear()
            if batch:
                await _settle(run, batch)


async def _settle(
    run: Callable[[list[Question]], Awaitable[Sequence[Answer | BaseException]]],
    batch: list[tuple[Question, asyncio.Future[Answer]]],
) -> None:
    answers: Sequence[Answer | BaseException]
    try:
        answers = await run([question for question, _ in batch])
    except Exception as error:
        answers = [error] * len(batch)
    for (_question, future), answer in zip(batch, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
