"""Running a handler: on the loop, in a thread or in a process, inside its owner's context, to one of a closed union."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, assert_never, cast

from korak import config, logs
from korak.clock import Clock
from korak.core.facts import Depend, HandlerResult, Raised, Spawn
from korak.errors import TransientError
from korak.graphs.plans import PlannedNode
from korak.model import StepRole
from korak.owners import context
from korak.steps.contract import Complete, Fail, Isolation, StepType, Wait
from korak.steps.registry import Registry
from korak.steps.waits import Signal
from korak_engine import outcomes
from korak_engine.authorizing import authorize, get_owner
from korak_engine.calling import Method, call
from korak_engine.containing import contained
from korak_engine.contexts import AsyncContext, Means, ThreadContext, View, get_node
from korak_engine.nesting import Asked
from korak_engine.processes import Order, Processes
from korak_engine.threads import Threads
from korak_engine.work import Work

MAX_OUTPUT: Final = 2 << 20
"""The most bytes that a type may ask for its output."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one handler. `revealed` fills with the secrets that it asks for."""

    work: Work
    kind: StepType
    place: Isolation
    signal: Signal | None
    limit: int
    revealed: set[str]

    @property
    def method(self) -> Method:
        """What the step is due (EX-5)."""
        if self.work.step.role is StepRole.CANCEL:
            return "cancel"
        return "handle" if self.signal is None else "resume"

    def call(self, ctx: View) -> object:
        """Call that method."""
        return call(self.kind, self.method, ctx, self.signal)


class Handlers:
    """An async context manager: the step types of this engine, and the threads and processes that run some of them.

    The caller enforces time limits: past `work.deadline` it posts what it will, sets `work.is_settled` and cancels the
    task that runs `run`. A thread is then left behind (`work.thread` tells when it has ended), a process killed.
    """

    def __init__(
        self,
        registry: Registry,
        means: Means,
        *,
        settings: config.Engine,
        limits: config.Limits,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._means = means
        self._settings = settings
        self._limits = limits
        self._clock = clock
        self._threads = Threads(settings.threads, "korak-step")
        self._processes = Processes(settings.processes, clock)
        self._stack = ExitStack()
        self._is_closing = False

    async def __aenter__(self) -> Self:
        self._stack.enter_context(contained(asyncio.get_running_loop()))
        self._stack.callback(self._processes.close)
        self._stack.callback(self._threads.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        self._stack.close()

    def close(self) -> None:
        """From now on a cancelled task is one that the engine gives up: what its handler came to isn't told."""
        self._is_closing = True

    @property
    def lost_threads(self) -> int:
        """The threads whose handlers were abandoned and haven't ended yet."""
        return self._threads.lost

    @property
    def has_lost_half(self) -> bool:
        """Whether half of the threads are lost: the engine had better drain and be replaced."""
        return self._threads.has_lost_half

    def runs(self, key: str, version: int) -> bool:
        """Whether this process has the step type."""
        return self._registry.get(key, version) is not None

    def get_timeout(self, work: Work) -> float:
        """How many seconds one attempt may take: the node's or type's, else the engine's."""
        return get_node(work).timeout or self._settings.timeout

    async def run(self, work: Work) -> HandlerResult:
        """Run the handler to what it comes to.

        Raises nothing but CancelledError, and that only where the caller gave the work up: whatever a handler itself
        raises ends its attempt as Raised.
        """
        revealed: set[str] = set()
        limit = self._limits.max_output_bytes
        try:
            attempt = self._prepare(work, revealed)
            limit = attempt.limit
            with context.within(get_owner(work)), logs.hiding(revealed), _told_of(work):
                result = await self._run(attempt)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._is_given_up(work):
                raise
            result = outcomes.describe(error, self._clock.now())
        await self._disregard_cancel(work)
        return outcomes.tidy(result, revealed, limit)

    def _prepare(self, work: Work, revealed: set[str]) -> Attempt:
        node, stored = get_node(work), work.step.resume_signal
        kind = self._registry.get(work.step.node_type, work.step.type_version)
        if kind is None:
            raise TransientError("no_engine_for_type", type=work.step.node_type)
        signal = None if stored is None else Signal.from_json(stored)
        return Attempt(work, kind, kind.runs_in, signal, self._get_limit(kind, node), revealed)

    def _get_limit(self, kind: StepType, node: PlannedNode) -> int:
        given = kind.max_output or node.max_output
        return min(given, MAX_OUTPUT) if given else self._limits.max_output_bytes

    async def _run(self, attempt: Attempt) -> HandlerResult:
        work, kind = attempt.work, attempt.kind
        work.deadline = self._get_deadline(work)
        if kind.streams:
            await self._means.keeper.recall(work)
        view = self._make_view(attempt)
        if kind.has_side_effects and work.step.role is not StepRole.CANCEL:
            await authorize(self._means.authorizer, work, kind.ability_for(view))
        match attempt.place:
            case "async":
                called = attempt.call(view)
                returned = await called if isinstance(called, Awaitable) else called
                if isinstance(returned, Asked) and self._means.nesting is not None:
                    returned = await self._means.nesting.settle(work, returned)
                return (
                    returned
                    if isinstance(returned, (Spawn, Depend, Raised))
                    else outcomes.read(returned, attempt.limit)
                )
            case "thread":
                return await self._run_in_thread(attempt, view)
            case "process":
                return await self._run_in_process(attempt, view)
            case place:
                assert_never(place)

    def _make_view(self, attempt: Attempt) -> AsyncContext | ThreadContext:
        given = attempt.work, self._means, attempt.signal, attempt.revealed
        if attempt.place == "async":
            return AsyncContext(*given)
        return ThreadContext(*given, asyncio.get_running_loop())

    async def _run_in_thread(self, attempt: Attempt, view: View) -> HandlerResult:
        work = attempt.work
        own = copy_context()
        call = partial(own.run, outcomes.settle, partial(attempt.call, view), self._clock.now, attempt.limit)
        work.deadline = 0.0
        returned = await self._threads.run(call, partial(self._begin, work))
        if isinstance(returned, (Complete, Wait, Fail, Raised)):
            return returned
        return outcomes.read(await cast("Awaitable[object]", returned), attempt.limit)

    async def _run_in_process(self, attempt: Attempt, view: View) -> HandlerResult:
        work = attempt.work
        work.deadline = 0.0
        order = Order(attempt.kind, attempt.method, view, get_owner(work), attempt.limit)

        def begin() -> None:
            work.deadline = self._get_deadline(work)

        return await self._processes.run(order, begin)

    def _begin(self, work: Work, thread: asyncio.Future[None]) -> None:
        work.thread = thread
        work.deadline = self._get_deadline(work)

    def _get_deadline(self, work: Work) -> float:
        return self._clock.monotonic() + self.get_timeout(work)

    def _is_given_up(self, work: Work) -> bool:
        return work.is_settled or work.is_cancelled or self._is_closing

    async def _disregard_cancel(self, work: Work) -> None:
        """A handler that has cancelled its own task hasn't cancelled the engine's: what is pending is taken back."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # the loop is gone, and this is only being closed
            return
        if task is None or not task.cancelling() or self._is_given_up(work):
            return
        while task.uncancel():
            pass
        try:
            await _Turn()
        except asyncio.CancelledError:
            if self._is_given_up(work):
                raise


def _told_of(work: Work) -> Any:
    """A context in which every line says whose it is."""
    step, instance = work.step, work.snapshot.instance
    return logs.about(instance=instance.ulid, node=step.node_id, attempt=step.ulid, owner=instance.owner_scope)


class _Turn:
    """Awaited, it lets the loop turn once."""

    def __await__(self) -> Generator[None, None, None]:
        yield
