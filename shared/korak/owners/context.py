"""In whose name code runs right now: every job, start, fan-out and command is inside its owner's context (OW-1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context

from korak.errors import KorakError
from korak.owners.scopes import Owner

_current: ContextVar[Owner | None] = ContextVar("korak_owner", default=None)


class OutsideOwner(KorakError):
    """Code that needs an owner ran in nobody's context: it fails rather than see what isn't its own."""

    code = "internal"


def get_owner() -> Owner:
    """The owner of what runs now. Raises OutsideOwner outside of any context."""
    owner = _current.get()
    if owner is None:
        raise OutsideOwner
    return owner


def has_owner() -> bool:
    """Whether anything's context is entered."""
    return _current.get() is not None


@contextmanager
def within(owner: Owner) -> Iterator[Owner]:
    """Run a block in the owner's context; what stood before stands again afterwards, also after an exception (OW-6)."""
    before = _current.get()
    _current.set(owner)
    try:
        yield owner
    finally:
        # Not reset(): a coroutine that was driven by hand and then given to a task leaves in a copy of the first.
        _current.set(before)


def bind(owner: Owner) -> Context:
    """A copy of the calling context inside the owner's, to run a handler in: nothing that it sets leaks out of it.

    `context.run(function)`, or `loop.create_task(coroutine, context=context)`; a coroutine that is driven by hand first
    keeps its owner only if the task goes on in the same context.
    """
    context = copy_context()
    context.run(_current.set, owner)
    return context
