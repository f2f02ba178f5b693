"""Handlers on the loop and in threads: hostile ones, the owner around them, the authorizer before them, their end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from korak import logs
from korak.clock import ManualClock
from korak.core.facts import Raised
from korak.errors import TransientError
from korak.model import ActorMode, SignalKind, StepRole
from korak.owners.authorizer import AuthorizationRequest, Denial
from korak.owners.context import has_owner
from korak.steps.contract import Complete, Signal
from korak.steps.function import step
from tests.support import eventually
from tests.support.attempts import NOW, ULID, Bench, benched
from tests.unit.engine import hostile

SECRET = "hunter22-" + "x" * 30


@dataclass
class Recording:
    """Denies some abilities and notes what it was asked, and whether that was inside an owner's context."""

    denied: frozenset[str | None] = frozenset()
    asked: list[AuthorizationRequest] = field(default_factory=list)
    was_inside: list[bool] = field(default_factory=list)

    async def authorize(self, request: AuthorizationRequest) -> Denial | None:
        self.asked.append(request)
        self.was_inside.append(has_owner())
        return Denial("not you") if request.ability in self.denied else None


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with benched(threads=2, secrets={"api": SECRET}) as made:
        yield made


@pytest.fixture
def released() -> Iterator[None]:
    """What hangs in a thread ends with the test."""
    hostile.RELEASED.clear()
    yield
    hostile.RELEASED.set()


async def test_an_async_handler_runs_inside_its_owners_context_and_nothing_is_left_of_it(bench: Bench) -> None:
    work = bench.make(hostile.fine, config={"order": "9"})

    assert await bench.handlers.run(work) == Complete("next", {"order": "9", "owner": "team:42"})
    assert not has_owner()


async def test_ow_6_the_context_is_left_also_after_an_exception(bench: Bench) -> None:
    assert isinstance(await bench.handlers.run(bench.make(hostile.exits)), Raised)
    assert not has_owner()


async def test_a_thread_runs_inside_the_owners_context(bench: Bench) -> None:
    result = await bench.run(hostile.threaded, owner=None)

    assert isinstance(result, Complete)
    assert result.output["owner"] == "*"
    assert str(result.output["thread"]).startswith("korak-step-")


@pytest.mark.parametrize("what", sorted(hostile.RAISED))
async def test_whatever_a_handler_raises_ends_its_attempt_and_nothing_else(bench: Bench, what: str) -> None:
    result = await bench.run(hostile.raises, config={"what": what})

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("exception", True)
    assert await bench.run(hostile.fine) == Complete("next", {"order": "7", "owner": "team:42"})


@pytest.mark.parametrize("given", [hostile.exits, hostile.exits_below, hostile.threaded_exits])
async def test_sys_exit_ends_the_attempt_wherever_it_is_called(bench: Bench, given: Any) -> None:
    result = await bench.run(given)

    assert isinstance(result, Raised)
    assert result.code == "exception"
    assert "sys.exit(3)" in (result.trace or "")


async def test_a_handler_that_cancels_its_own_task_has_cancelled_nothing(bench: Bench) -> None:
    async def run_both() -> list[Any]:
        first = await bench.handlers.run(bench.make(hostile.cancels_itself))
        second = await bench.handlers.run(bench.make(hostile.cancels_itself_and_waits))
        return [first, second]

    first, second = await asyncio.create_task(run_both())

    assert first == Complete("next", {"still": "here"})
    assert isinstance(second, Raised)
    assert second.code == "exception"


async def test_a_timed_out_handler_is_cancelled_and_raises_that_to_the_engine(bench: Bench) -> None:
    work = bench.make(hostile.never_returns, node={"timeout": 7})
    task = bench.start(work)
    await eventually(lambda: work.deadline)

    assert bench.handlers.get_timeout(work) == 7
    work.is_settled = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.thread is None


async def test_a_handler_that_clings_sees_that_it_is_cancelled(bench: Bench) -> None:
    work = bench.make(hostile.clings)
    task = bench.start(work)
    await eventually(lambda: work.deadline)
    work.is_cancelled = True
    task.cancel()

    assert await task == Complete("next", {"cancelled": True})


async def test_a_task_that_is_cancelled_while_the_engine_closes_is_not_told(bench: Bench) -> None:
    work = bench.make(hostile.never_returns)
    task = bench.start(work)
    await eventually(lambda: work.deadline)
    bench.handlers.close()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_deadline_counts_from_the_beginning_by_the_monotonic_clock() -> None:
    clock = ManualClock()
    clock.advance(100)
    async with benched(clock=clock, timeout=50) as bench:
        work = bench.make(hostile.fine)
        await bench.handlers.run(work)

    assert work.deadline == 150


# threads


async def test_a_thread_handlers_time_begins_when_a_thread_is_free(bench: Bench, released: None) -> None:
    stuck = [bench.make(hostile.stuck) for _ in range(3)]
    tasks = [bench.start(work) for work in stuck]
    await eventually(lambda: [bool(work.deadline) for work in stuck] == [True, True, False])
    assert stuck[2].thread is None

    hostile.RELEASED.set()
    assert await asyncio.gather(*tasks) == [Complete("next", {"cancelled": False})] * 3
    assert all(work.thread is not None and work.thread.done() for work in stuck)


async def test_a_thread_past_its_time_is_left_behind_counted_and_replaced(bench: Bench, released: None) -> None:
    work = bench.make(hostile.stuck)
    task = bench.start(work)
    await eventually(lambda: work.thread is not None)
    work.is_settled = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert bench.handlers.lost_threads == 1
    assert bench.handlers.has_lost_half
    both = await asyncio.gather(bench.run(hostile.threaded), bench.run(hostile.threaded))
    assert all(isinstance(result, Complete) for result in both)

    assert work.thread is not None
    assert not work.thread.done()
    hostile.RELEASED.set()
    await work.thread
    assert bench.handlers.lost_threads == 0
    assert not bench.handlers.has_lost_half


async def test_a_handler_that_still_waits_for_a_thread_is_given_up_without_one(bench: Bench, released: None) -> None:
    held = [bench.make(hostile.stuck) for _ in range(2)]
    running = [bench.start(work) for work in held]
    work = bench.make(hostile.stuck)
    waiting = bench.start(work)
    await eventually(lambda: all(other.thread is not None for other in held))
    work.is_settled = True
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    hostile.RELEASED.set()
    await asyncio.gather(*running)
    assert work.thread is None
    assert bench.handlers.lost_threads == 0


# secrets


@pytest.mark.parametrize("given", [hostile.tells, hostile.tells_in_output, hostile.tells_in_failure])
async def test_no_secret_that_a_handler_has_seen_is_left_in_what_it_comes_to(bench: Bench, given: Any) -> None:
    result = await bench.run(given, config={"key": {"template": "Bearer ${secret.api}"}})

    assert SECRET not in repr(result)
    assert "[secret]" in repr(result)


@pytest.mark.parametrize("given", [hostile.says_in_logs, hostile.says_in_logs_of_a_thread])
async def test_the_lines_of_a_handler_say_whose_they_are_and_show_no_secret(bench: Bench, given: Any) -> None:
    result = await bench.run(given, config={"key": {"secret": "api"}})

    assert isinstance(result, Complete)
    assert result.output["line"] == f"the key is {logs.MASK}"
    assert result.output.keys() == {"line", "instance", "node", "attempt", "owner"}
    assert logs.scrub(SECRET) == SECRET


async def test_a_secret_that_is_not_there_fails_the_step_for_good(bench: Bench) -> None:
    result = await bench.run(hostile.tells, config={"key": {"secret": "other"}})

    assert isinstance(result, Raised)
    assert (result.code, result.params, result.is_retryable) == ("secret_missing", {"name": "other"}, False)


# authorization


async def test_au_4_the_authorizer_is_asked_before_every_side_effect_also_for_no_ability() -> None:
    authorizer = Recording()
    async with benched(authorizer=authorizer) as bench:
        await bench.run(hostile.fine, starter="user-7")
        await bench.run(hostile.threaded)

    assert [request.ability for request in authorizer.asked] == [None, None]
    first, second = authorizer.asked
    assert (first.instance, first.definition, first.node, first.step_type) == (ULID, "order", "n", "test.fine")
    assert (first.actor, first.user) == (ActorMode.ON_BEHALF_OF, "user-7")
    assert (second.actor, second.user) == (ActorMode.SYSTEM, None)
    assert first.owner.scope == "team:42"
    assert authorizer.was_inside == [True, True]


async def test_a_step_without_side_effects_asks_nobody() -> None:
    @step("test.harmless", side_effects=False)
    async def harmless(ctx: Any) -> dict[str, Any]:
        return {}

    authorizer = Recording()
    async with benched(authorizer=authorizer) as bench:
        assert await bench.run(harmless) == Complete("next", {})
    assert authorizer.asked == []


async def test_au_5_the_ability_may_depend_on_the_run() -> None:
    authorizer = Recording()
    async with benched(authorizer=authorizer) as bench:
        await bench.run(hostile.Asking, attempt=3)

    assert [request.ability for request in authorizer.asked] == ["sign-3"]


async def test_au_8_a_denial_fails_the_step_for_good_before_its_handler(bench: Bench) -> None:
    result = await bench.run(hostile.Asking)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("authorization_denied", False)
    assert result.params == {"detail": "nobody was granted the ability sign-1"}


@pytest.mark.parametrize("given", [hostile.asks, hostile.asks_on_the_loop])
async def test_au_12_a_handler_may_ask_for_itself(given: Any) -> None:
    authorizer = Recording(frozenset({"pay"}))
    async with benched(authorizer=authorizer) as bench:
        allowed = await bench.run(given, config={"ability": "look"})
        denied = await bench.run(given, config={"ability": "pay"})

    assert allowed == Complete("next", {"allowed": "look"})
    assert isinstance(denied, Raised)
    assert (denied.code, denied.is_retryable) == ("authorization_denied", False)
    assert all(authorizer.was_inside)


async def test_an_authorizer_that_fails_lets_nothing_pass() -> None:
    class Broken:
        async def authorize(self, request: AuthorizationRequest) -> Denial | None:
            raise TransientError("unavailable", what="The directory")

    async with benched(authorizer=Broken()) as bench:
        result = await bench.run(hostile.fine)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("unavailable", True)


# which method


async def test_ex_5_a_step_with_a_signal_is_resumed_also_when_it_is_tried_again(bench: Bench) -> None:
    signal = Signal(SignalKind.EVENT, "paid", {"amount": 7}, wait=3, at=NOW)
    resumed = await bench.run(hostile.Resuming, signal=signal, parked={"asked": True}, attempt=2)
    handled = await bench.run(hostile.Resuming)

    assert isinstance(resumed, Complete)
    expected = {"method": "resume", "kind": "event", "payload": {"amount": 7}, "parked": {"asked": True}}
    assert resumed.output == expected
    assert handled == Complete("next", {"method": "handle", "signal": False})


async def test_wt_15_a_function_without_a_resume_goes_by_the_rule(bench: Bench) -> None:
    timeout = Signal(SignalKind.TIMEOUT, outcome="late", at=NOW)

    for given in (hostile.fine, hostile.threaded):
        assert await bench.run(given, signal=timeout, parked={"a": 1}) == Complete("late", {"a": 1})


async def test_cn_5_a_cancel_hook_sees_the_output_and_asks_nobody(bench: Bench) -> None:
    hostile.CALLS.clear()

    assert await bench.run(hostile.Asking, role=StepRole.CANCEL, parked={"id": 7}) == Complete("next", {})
    assert hostile.CALLS == [("cancel", {"id": 7})]


# what an engine has


async def test_an_engine_runs_what_it_has_registered_in_that_version(bench: Bench) -> None:
    bench.registry.add(hostile.fine)

    assert bench.handlers.runs("test.fine", 1)
    assert not bench.handlers.runs("test.fine", 2)
    assert not bench.handlers.runs("test.other", 1)


async def test_a_type_that_went_missing_is_tried_again(bench: Bench) -> None:
    work = bench.make(hostile.fine)
    work.step.type_version = 2
    result = await bench.handlers.run(work)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("no_engine_for_type", True)


async def test_a_row_edited_by_hand_fails_its_attempt_only(bench: Bench) -> None:
    works = [bench.make(hostile.fine) for _ in range(3)]
    works[0].step.node_id = "gone"
    works[1].step.resume_signal = {"kind": "nonsense"}
    works[2].snapshot.instance.owner_id = None

    for work in works:
        assert isinstance(await bench.handlers.run(work), Raised)


@pytest.mark.parametrize(("size", "code"), [(64 << 10, None), ((64 << 10) + 1, "invalid_output")])
async def test_lm_6_the_bound_of_an_output_is_the_engines(bench: Bench, size: int, code: str | None) -> None:
    @step("test.large")
    async def large(ctx: Any, text: str) -> dict[str, Any]:
        return {"text": text}

    result = await bench.run(large, config={"text": "x" * (size - len('{"text":""}'))})

    assert (result.code if isinstance(result, Raised) else None) == code


async def test_a_type_may_raise_the_bound_of_its_output(bench: Bench) -> None:
    @step("test.larger", max_output=100_000)
    def larger(ctx: Any, size: int) -> dict[str, Any]:
        return {"text": "x" * size}

    assert isinstance(await bench.run(larger, config={"size": 99_000}), Complete)
    refused = await bench.run(larger, config={"size": 100_001})
    assert isinstance(refused, Raised)
    assert refused.params["limit"] == 100_000


async def test_what_an_attempt_comes_to_is_json(bench: Bench) -> None:
    result = await bench.run(hostile.raises, config={"what": "unspeakable"})

    assert isinstance(result, Raised)
    assert json.dumps([result.code, result.message, result.params, result.type, result.trace])
