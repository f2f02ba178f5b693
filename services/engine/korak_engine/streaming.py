"""Running a handler that yields: each text is stored before the next one is asked for, then `complete` has them all."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing, suppress
from typing import Any, cast

from korak.errors import KorakError
from korak.steps.contract import StepType


async def stream(kind: StepType, ctx: Any) -> object:
    """What a handler that streams on the loop comes to.

    What keeps a chunk from being stored is raised where the handler yielded it; nothing is stored behind it, whatever
    the handler makes of that.
    """
    chunks = cast("AsyncGenerator[object, None]", kind.handle(ctx))
    async with aclosing(chunks):
        async for text in chunks:
            try:
                await ctx.store_chunk(text)
            except KorakError as refused:
                with suppress(StopAsyncIteration):
                    await chunks.athrow(refused)
                raise
    returned = kind.complete(ctx, ctx.chunks)
    return await returned if inspect.isawaitable(returned) else returned


def stream_blocking(kind: StepType, ctx: Any) -> object:
    """The same in a thread or a process."""
    chunks = cast("Generator[object, None, None]", kind.handle(ctx))
    with closing(chunks):
        for text in chunks:
            try:
                ctx.store_chunk(text)
            except KorakError as refused:
                with suppress(StopIteration):
                    chunks.throw(refused)
                raise
    return kind.complete(ctx, ctx.chunks)
