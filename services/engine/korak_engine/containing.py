"""Keeps what a handler's own tasks raise from ending the loop: asyncio lets SystemExit of any task out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from korak.owners.context import has_owner


class Exited(Exception):
    """A task of a handler asked for the end of the process."""


class Contained(Coroutine[Any, Any, Any]):
    """A coroutine that raises Exited where it would raise SystemExit or KeyboardInterrupt."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def send(self, value: Any) -> Any:
        """Go on."""
        return _contain(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error."""
        return _contain(self._coroutine.throw, *error)

    def close(self) -> None:
        """End it."""
        _contain(self._coroutine.close)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


@contextmanager
def contained(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Inside of it, tasks made in an owner's context, thus by handlers, don't end the loop."""
    before = loop.get_task_factory()
    make: Any = before or _make_task

    def contain(loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> Any:
        return make(loop, Contained(coroutine) if has_owner() else coroutine, **given)

    loop.set_task_factory(contain)
    try:
        yield
    finally:
        loop.set_task_factory(before)


def _make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coroutine, loop=loop, **given)


def _contain(go: Callable[..., Any], *given: Any) -> Any:
    try:
        return go(*given)
    except (SystemExit, KeyboardInterrupt) as error:
        raise Exited(f"{type(error).__name__}: {error}") from error
