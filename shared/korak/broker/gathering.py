"""Gathers what many callers send at once into one flush, and tells each of them how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True)
class _Batch(Generic[T]):
    done: asyncio.Future[None]
    items: list[T] = field(default_factory=list)


class Gathering(Generic[K, T]):
    """Keeps the items of a key until `delay` has passed since the first, and `spacing` since the key's last flush."""

    def __init__(
        self, flush: Callable[[K, list[T]], Awaitable[None]], *, delay: float = 0.0, spacing: float = 0.0
    ) -> None:
        self._flush = flush
        self._delay = delay
        self._spacing = spacing
        self._open: dict[K, _Batch[T]] = {}
        self._flushed_at: dict[K, float] = {}
        self._flushing: set[asyncio.Task[None]] = set()

    async def add(self, key: K, items: Iterable[T]) -> None:
        """Returns when the items' flush has; raises what it raised."""
        batch = self._open.get(key)
        if batch is None:
            batch = self._begin(key)
        batch.items.extend(items)
        await asyncio.shield(batch.done)

    async def close(self) -> None:
        """Flushes what is kept, and waits for what is being flushed."""
        for key in list(self._open):
            self._start(key)
        if self._flushing:
            await asyncio.wait(self._flushing)

    def _begin(self, key: K) -> _Batch[T]:
        loop = asyncio.get_running_loop()
        batch = self._open[key] = _Batch(loop.create_future())
        batch.done.add_done_callback(_retrieve)
        due = loop.time() + self._delay
        if self._spacing:
            due = max(due, self._flushed_at.get(key, 0.0) + self._spacing)
        loop.call_at(due, self._start, key)
        return batch

    def _start(self, key: K) -> None:
        batch = self._open.pop(key, None)
        if batch is None:
            return
        if self._spacing:
            self._flushed_at[key] = asyncio.get_running_loop().time()
        task = asyncio.create_task(self._run(key, batch))
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    async def _run(self, key: K, batch: _Batch[T]) -> None:
        try:
            await self._flush(key, batch.items)
        except Exception as error:
            batch.done.set_exception(error)
        else:
            batch.done.set_result(None)
        finally:
            batch.done.cancel()


def _retrieve(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
