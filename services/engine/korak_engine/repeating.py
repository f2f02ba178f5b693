"""Doing with a batch what must be done with each of it: repeated while a fault passes, given up on any other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from korak.errors import TransientError
from korak.loop import Backoff, wait

log: logging.Logger = logging.getLogger(__name__)


class Item(Protocol):
    """One of a batch. `is_settled`: it has had its answer, which it gets once."""

    is_settled: bool


T = TypeVar("T", bound=Item)


async def settle_all(
    batch: Sequence[T], work: Callable[[Sequence[T]], Awaitable[list[T]]], give_up: Callable[[T], None], what: str
) -> None:
    """Call `work` until it leaves nothing. A fault that passes repeats what isn't settled, as it is: a token stays.

    `what` says what waits for what, for the log.
    """
    backoff, failures = Backoff(), 0
    while batch:
        try:
            batch = await work(batch)
        except TransientError as error:
            failures += 1
            batch = [item for item in batch if not item.is_settled]
            log.warning("%s %s: %s", len(batch), what, error.message)
            await wait(backoff.after(failures))
        except Exception:
            log.exception("%s %s: given up", len(batch), what)
            for item in batch:
                give_up(item)
            return
