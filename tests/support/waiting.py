"""The one way in which a test waits: for a claim to hold, with a deadline."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(check: Callable[[], Awaitable[T]], timeout: float = ..., *, message: str = ...) -> T: ...
@overload
async def eventually(check: Callable[[], T], timeout: float = ..., *, message: str = ...) -> T: ...
async def eventually(check: Callable[[], Any], timeout: float = 10.0, *, message: str = "") -> Any:
    """The first truthy answer of `check` (a function, plain or async), which may also say no by an AssertionError."""
    deadline = time.monotonic() + timeout
    pause = 0.002
    while True:
        try:
            answer = check()
            result = await answer if inspect.isawaitable(answer) else answer
            if result:
                return result
            refusal: Exception | None = None
        except AssertionError as error:
            refusal = error
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {timeout} s: {message or refusal or check}") from refusal
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def eventually_blocking(check: Callable[[], T], timeout: float = 10.0, *, message: str = "") -> T:
    """The same for a test or a fixture that has no event loop."""
    return asyncio.run(eventually(check, timeout, message=message))
