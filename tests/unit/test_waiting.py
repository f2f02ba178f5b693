"""The one wait of the tests: it ends with the claim, with the claim's own error, or at its deadline."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import eventually
from tests.support.waiting import eventually_blocking


def count() -> Iterator[int]:
    yield from range(1, 1000)


async def test_the_first_truthy_answer_is_given() -> None:
    answers = iter([None, 0, "", "there", "later"])
    assert await eventually(lambda: next(answers)) == "there"


async def test_an_async_check_is_awaited() -> None:
    numbers = count()

    async def check() -> int:
        number = next(numbers)
        return number if number == 3 else 0

    assert await eventually(check) == 3


async def test_an_assertion_is_a_no_until_the_deadline() -> None:
    numbers = count()

    def check() -> bool:
        assert next(numbers) > 3, "not yet"
        return True

    assert await eventually(check)


async def test_the_deadline_tells_what_was_missing() -> None:
    def check() -> bool:
        assert next(iter([False])), "one is not two"
        return True

    with pytest.raises(TimeoutError, match="one is not two"):
        await eventually(check, timeout=0)


async def test_any_other_error_is_told_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 / 0)


def test_a_test_without_a_loop_waits_too() -> None:
    numbers = count()
    assert eventually_blocking(lambda: next(numbers) == 3)
