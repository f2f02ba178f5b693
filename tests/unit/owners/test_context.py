"""The owner's context: OW-1, OW-3, OW-6."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator

import pytest

from korak.owners.context import OutsideOwner, bind, get_owner, has_owner, within
from korak.owners.scopes import APPLICATION, Owner

A = Owner("team", "a")
B = Owner("team", "b")


@types.coroutine
def pause() -> Generator[None]:
    """Give way once, as any await may."""
    yield


class Boom(BaseException):
    """What no handler catches."""


def test_ow_1_outside_of_a_context_there_is_no_owner() -> None:
    assert not has_owner()
    with pytest.raises(OutsideOwner):
        get_owner()


def test_ow_1_the_application_is_an_owner_too() -> None:
    with within(APPLICATION) as owner:
        assert owner is get_owner() is APPLICATION


def test_ow_3_the_inner_context_holds_and_the_outer_one_comes_back() -> None:
    with within(B):
        with within(A):
            assert get_owner() == A
        assert get_owner() == B
    assert not has_owner()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Boom])
def test_ow_6_the_context_is_left_by_an_exception_too(error: type[BaseException]) -> None:
    def fail() -> None:
        with within(A):
            raise error

    with within(B):
        with pytest.raises(error):
            fail()
        assert get_owner() == B
    assert not has_owner()


async def test_ow_6_tasks_side_by_side_have_their_own() -> None:
    entered = asyncio.Barrier(2)

    async def work(owner: Owner) -> Owner:
        with within(owner):
            await entered.wait()
            return get_owner()

    first, second = await asyncio.gather(work(A), work(B))
    assert (first, second) == (A, B)
    assert not has_owner()


async def test_ow_6_a_cancelled_task_leaves_nothing_behind() -> None:
    async def work() -> None:
        with within(A):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.wait([task], timeout=0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not has_owner()


@pytest.mark.parametrize("is_bound", [True, False])
async def test_ow_6_a_coroutine_begun_by_hand_may_be_ended_by_a_task(is_bound: bool) -> None:
    async def work() -> bool:
        with within(A):
            await pause()
            return has_owner()

    coroutine = work()
    context = bind(B)
    context.run(coroutine.send, None)

    async def go_on() -> bool:
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
        return bool(ended.value.value)

    assert await asyncio.create_task(go_on(), context=context if is_bound else None) == is_bound
    assert context.run(get_owner) == (B if is_bound else A)
    assert not has_owner()


def test_bind_makes_a_context_that_nothing_leaks_from() -> None:
    context = bind(A)

    assert context.run(get_owner) == A
    assert not has_owner()
    with within(B):
        assert context.run(get_owner) == A
        assert get_owner() == B
