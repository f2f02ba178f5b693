"""Steps as a person reads them: below their containers, and counted where they are many."""

from __future__ import annotations

from typing import Any

import pytest

from korak.commands.arranging import MOST, SAMPLE, Rest, arrange
from korak.commands.drawing import draw_instance
from tests.unit.commands.test_drawing import NOW, draw, make_instance


def make(node: str, branch: str | None = None, at: int = 0, kind: str = "test.ok", **members: Any) -> dict[str, Any]:
    step = {"node": node, "type": kind, "branch": branch, "status": "completed", "created_at": f"2030-01-01T00:{at:02}"}
    return {"visit": 1, "attempt": 1, **step, **members}


def name(line: Any) -> Any:
    return (line.depth, dict(line.counts)) if isinstance(line, Rest) else (line["node"], line["branch"])


def test_what_a_container_holds_stands_below_it_body_by_body() -> None:
    steps = [
        make("both", at=1, kind="parallel"),
        make("each", "left", at=1, kind="for_each"),
        make("a", "right", at=1),
        make("item", "left/0", at=1),
        make("item", "left/1", at=1),
        make("b", "left/0", at=2),
        make("c", "right", at=3),
        make("last", at=4),
    ]
    assert [name(line) for line in arrange(steps)] == [
        ("both", None),
        ("each", "left"),
        ("item", "left/0"),
        ("b", "left/0"),
        ("item", "left/1"),
        ("a", "right"),
        ("c", "right"),
        ("last", None),
    ]


def test_two_containers_of_one_body_keep_what_is_theirs() -> None:
    steps = [
        make("first", at=1, kind="for_each"),
        make("one", "0", at=1),
        make("second", at=2, kind="for_each"),
        make("two", "0", at=2),
        make("three", "0", at=3),
    ]
    assert [line["node"] for line in arrange(steps) if not isinstance(line, Rest)] == [
        "first",
        "one",
        "second",
        "two",
        "three",
    ]


def test_of_many_bodies_those_that_ask_for_a_look_are_shown_and_the_rest_is_counted() -> None:
    statuses = {7: "failed", 4_000: "waiting", 5_999: "running"}
    items = [make("item", str(n), at=1, status=statuses.get(n, "completed")) for n in range(6_000)]
    lines = arrange([make("each", at=1, kind="for_each"), *items, make("end", at=2)])
    shown = [line["branch"] for line in lines if not isinstance(line, Rest) and line["branch"]]
    assert shown == ["0", "1", "2", "3", "4", "7", "4000", "5999"]
    assert name(lines[-2]) == (1, {"completed": 6_000 - 3 - SAMPLE})
    assert name(lines[-1]) == ("end", None)


def test_what_a_container_counts_is_told_of_what_was_not_read() -> None:
    bodies = {"completed": 5_900, "failed": 1, "running": 3, "pending": 96}
    statuses = ["completed"] * 5 + ["failed", "queued", "waiting"]
    items = [make("item", str(n), at=1, status=status) for n, status in enumerate(statuses)]
    lines = arrange([make("each", at=1, kind="for_each", bodies=bodies), *items])
    assert len(lines) == 1 + len(items) + 1
    assert name(lines[-1]) == (1, {"completed": 5_895, "open": 1, "to come": 96})
    assert name(arrange([make("each", kind="for_each", bodies={"pending": 2})])[-1]) == (1, {"to come": 2})


def test_the_failed_bodies_come_before_those_that_live() -> None:
    statuses = ["running"] * 100 + ["failed"]
    items = [make("item", str(n), at=1, status=status) for n, status in enumerate(statuses)]
    lines = arrange([make("each", at=1, kind="for_each"), *items])
    assert name(lines[-2]) == ("item", "100")
    assert name(lines[-1]) == (1, {"running": 101 - MOST})


def test_a_body_that_was_tried_again_stands_as_its_last_attempt_does() -> None:
    """With what still lives in it, however much has settled after that."""
    steps = [make("each", kind="for_each")]
    for number in range(MOST + 2):
        steps += [make("item", str(number), status="failed"), make("item", str(number), attempt=2)]
    assert name(arrange(steps)[-1]) == (1, {"completed": MOST + 2 - SAMPLE})
    outer = make("inner", "0", kind="parallel", status="waiting"), make("x", "0/a"), make("x", "0/b")
    lines = arrange([make("each", kind="for_each"), *outer, *(make("item", str(n + 1)) for n in range(5))], most=1)
    assert [name(line) for line in lines] == [
        ("each", None),
        ("inner", "0"),
        ("x", "0/a"),
        (2, {"completed": 1}),
        (1, {"completed": 5}),
    ]


@pytest.mark.timeout(20)
def test_a_run_of_many_items_and_waits_is_a_page() -> None:
    items = [make("item", str(n), at=1, status="waiting") for n in range(10_000)]
    waits = [{"node": "item", "branch": str(n), "kind": "signal", "names": ["go"]} for n in range(500)]
    instance = make_instance(waiting_for=waits)
    lines = draw(draw_instance(instance, [make("each", kind="for_each"), *items], now=NOW))
    assert len(lines) < 60
    assert lines[-1].strip() == f"and waits {500 - MOST} times more"
    assert any(line.split() == ["9,980", "more", "9,980", "waiting"] for line in lines)
