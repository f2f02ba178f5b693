"""Which of many children are shown."""

from __future__ import annotations

from collections import Counter

import pytest

from korak.commands.arranging import MOST, SAMPLE
from korak.commands.gathering import choose


def choose_places(*statuses: str, most: int = MOST) -> list[int]:
    """The places of those that are shown."""
    children = [{"id": f"{place:03}", "status": status} for place, status in enumerate(statuses)]
    return [int(child["id"]) for child in choose(children, Counter(statuses), most)]


def test_few_are_all_shown() -> None:
    assert choose_places(*["paused"] * MOST) == list(range(MOST))


def test_of_many_the_first_and_the_failed_and_the_open_unlike_the_others_are() -> None:
    statuses = ["completed"] * 300
    statuses[40], statuses[200], statuses[299] = "failed", "waiting", "running"
    assert choose_places(*statuses) == [*range(SAMPLE), 40, 200, 299]


@pytest.mark.parametrize("status", ["paused", "running", "completed"])
def test_of_many_that_stand_alike_the_first_are(status: str) -> None:
    assert choose_places(*[status] * 300) == list(range(SAMPLE))


def test_the_failed_come_first_where_there_is_little_room() -> None:
    statuses = ["waiting"] * 30 + ["completed"] * 60 + ["failed"] * 30
    assert choose_places(*statuses) == list(range(90, 90 + MOST))
    assert choose_places(*statuses, most=3) == [90, 91, 92]
    assert choose_places(*statuses, most=0) == []
