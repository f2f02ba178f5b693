"""What an instance waits for and what may be done, in words; runs below runs; what a rewind has left behind."""

from __future__ import annotations

from typing import Any

import pytest

from korak.commands.drawing import draw_instance
from tests.unit.commands.test_drawing import NOW, at, draw, draw_steps, make_instance, make_step

WAITS: dict[str, tuple[dict[str, Any], str]] = {
    "limit": ({"kind": "limit", "names": ["erp"]}, "waits at a for room under the limit erp"),
    "hold": ({"kind": "hold", "names": ["step_type shop.a"]}, "waits at a until step type shop.a is released"),
    "held for now": (
        {"kind": "hold", "names": ["queue erp"], "due_at": at(3_600)},
        "waits at a until queue erp is released, due in 1 h",
    ),
    "pause": ({"kind": "pause", "names": []}, "waits at a until it is resumed"),
    "engine": ({"kind": "engine", "names": []}, "waits at a for an engine that has its type"),
    "child": ({"kind": "child", "names": ["01C"]}, "waits at a for the run 01C"),
    "runs": (
        {"kind": "workflows", "remaining": ["01B", "01C", "01D", "01E", "01F"]},
        "waits at a for the runs 01B, 01C, 01D, 2 more",
    ),
    "runs of which the first are named": (
        {
            "kind": "workflows",
            "remaining": ["01B", "01C", "01D"],
            "runs": {"total": 3_000, "completed": 9, "failed": 1},
        },
        "waits at a for the runs 01B, 01C, 01D, 2,987 more",
    ),
    "runs of nothing": ({"kind": "workflows", "names": []}, "waits at a for workflows"),
    "queue": (
        {"kind": "engine", "names": ["queue gpu"]},
        "waits at a for an engine: none that lives serves queue gpu",
    ),
    "held with a reason": (
        {"kind": "hold", "names": ["queue erp"], "reason": "the ERP is down"},
        "waits at a until queue erp is released (the ERP is down)",
    ),
    "paused timer": (
        {"kind": "timer", "names": [], "due_at": None, "remaining_seconds": 13.0},
        "waits at a for timer, 13.0 s left when it is resumed",
    ),
    "timer": ({"kind": "timer", "names": [], "due_at": at(5)}, "waits at a for timer, due in 5.0 s"),
}


def test_a_deadline_says_what_is_left() -> None:
    assert draw_steps(deadline_at=at(90))[-1].strip() == "deadline in 1 min"
    paused = draw_steps(status="paused", deadline_at=None, deadline_remaining_seconds=13)
    assert paused[-2].strip() == "deadline 13.0 s left when it is resumed"
    assert len(draw_steps(status="cancelled", deadline_at=at(90), ended_at=at(0))) == 2


@pytest.mark.parametrize("case", WAITS)
def test_a_wait_is_a_sentence(case: str) -> None:
    wait, told = WAITS[case]
    assert draw_steps(waiting_for=[{"node": "a", **wait}])[-1].strip() == told


def test_a_queued_step_that_is_parked_says_why() -> None:
    wait = {"node": "a", "kind": "limit", "names": ["erp"]}
    lines = draw_steps(make_step("a", "queued", parked_for="limit"), make_step("b", "queued"), waiting_for=[wait])
    assert lines[4].endswith("for room under the limit erp")
    assert lines[5].endswith("queued")


def test_a_queued_step_says_in_which_queue_and_that_nobody_serves_it() -> None:
    wait = {"node": "a", "kind": "engine", "names": ["queue gpu"]}
    step = make_step("a", "queued", queue="gpu")
    assert draw_steps(step)[4].endswith(" queued in gpu")
    assert draw_steps(make_step("a", "queued", queue="default"))[4].endswith(" queued")
    assert draw_steps(step, waiting_for=[wait])[4].endswith("for an engine: none that lives serves queue gpu")


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"status": "paused"}, "korak resume 01A lets it go on"),
        ({"status": "failed", "actions": {"retry": True}}, "korak retry 01A tries it again"),
        (
            {"status": "cancelled", "actions": {"retry": True}, "compensation": None},
            "korak retry 01A tries again what could not be undone",
        ),
        (
            {"status": "cancelled", "actions": {"retry": True}, "compensation": {"completed": 2, "failed": 1}},
            "korak retry 01A tries again what could not be undone",
        ),
        ({"waiting_for": [{"node": "a", "kind": "signal", "human": "approval"}]}, "korak approve 01A answers it"),
        (
            {"waiting_for": [{"node": "a", "kind": "signal", "human": "decision"}]},
            "korak approve 01A or korak reject 01A answers it",
        ),
        (
            {"waiting_for": [{"node": "a", "kind": "signal", "human": "input"}]},
            "korak input 01A --data JSON answers it",
        ),
    ],
    ids=["paused", "failed", "not_cleaned_up", "not_undone", "approval", "decision", "input"],
)
def test_what_may_be_done_is_said(members: dict[str, Any], told: str) -> None:
    assert draw_steps(**members)[-1].strip() == told


def test_what_a_run_below_asks_is_said_with_its_id() -> None:
    asks = {"node": "ask", "kind": "signal", "names": ["approval"], "human": "approval"}
    child = make_child("01C", "sub", children=[make_child("01D", "deeper", waiting_for=[asks])])
    assert draw_steps(make_step("sub", "waiting"), children=[child])[-1].strip() == "korak approve 01D answers it"


def test_what_can_not_be_retried_has_no_hint() -> None:
    failure = {"code": "x", "message": "No."}
    lines = draw_steps(status="failed", failure=failure, actions={"retry": "instance_not_retryable"})
    assert lines[-1].strip() == "failed: No. (x)"


def list_hints(**members: Any) -> list[str]:
    return [line.strip() for line in draw_steps(**members) if "korak" in line and "--parent" not in line]


def make_failed(id_: str, child: str | None = None, *, retry: bool = True, **members: Any) -> dict[str, Any]:
    """A failed run: by the end of a child, or by itself."""
    failure = {"code": "child_failed", "message": "No.", "params": {"child": child} if child else {}}
    actions = {"retry": retry or "instance_not_retryable"}
    return make_child(id_, "sub", status="failed", failure=failure, actions=actions, **members)


def test_what_is_paused_with_its_parent_is_resumed_with_it() -> None:
    children = [make_child(f"01C{n}", "sub", status="paused") for n in range(5)]
    assert list_hints(status="paused", children=children) == ["korak resume 01A lets it go on"]
    assert list_hints(status="waiting", children=children) == [
        "korak resume 01C0 lets it go on",
        "korak resume 01C1 lets it go on",
        "korak resume 01C2 lets it go on",
        "and 2 runs more: korak resume",
    ]


def test_the_retry_of_a_parent_is_its_child_s_too() -> None:
    assert list_hints(**make_failed("01A", "01C", children=[make_failed("01C")])) == ["korak retry 01A tries it again"]


def test_a_parent_that_failed_by_something_else_is_retried_after_its_children() -> None:
    assert list_hints(**make_failed("01A", children=[make_failed("01C")])) == [
        "korak retry 01C tries it again",
        "then korak retry 01A tries it again",
    ]


def test_a_loop_that_would_want_another_round_again_is_no_help_to_retry() -> None:
    exhausted = {"status": "failed", "actions": {"retry": True}, "failure": {"code": "loop_exhausted"}}
    assert list_hints(**exhausted) == []


def test_a_parent_whose_child_can_t_be_retried_isn_t_either() -> None:
    leaf = make_failed("01D", retry=False)
    middle = make_failed("01C", "01D", children=[leaf])
    assert list_hints(**make_failed("01A", "01C", children=[middle])) == []
    cancelled = make_child("01C", "sub", status="cancelled")
    assert list_hints(**make_failed("01A", "01C", children=[cancelled])) == []


def make_child(id_: str, node: str, **members: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "definition": f"of_{id_}",
        "status": "waiting",
        "trigger": {"payload": {"node": node}},
        **members,
    }


def test_runs_below_runs_are_drawn_below_them_with_what_they_wait_for() -> None:
    asks = {"node": "ask", "kind": "signal", "names": ["approval"]}
    leaf = make_child("01D", "deeper", waiting_for=[asks])
    child = make_child(
        "01C", "sub", children=[leaf], waiting_for=[{"node": "deeper", "kind": "child", "names": ["01D"]}]
    )
    lines = draw_steps(make_step("sub", "waiting"), make_step("next", "queued"), children=[child])
    assert [line.split() for line in lines[5:7]] == [
        ["◷", "01C", "of_01C", "waiting"],
        ["◷", "01D", "of_01D", "waiting", "at", "ask", "for", "signal", "approval"],
    ]
    assert lines[6].index("01D") == lines[5].index("01C") + 2
    assert lines[7].split()[1] == "next"


def test_more_runs_than_are_shown_are_counted_at_each_level() -> None:
    leaf = make_child("01D", "deeper")
    child = make_child("01C", "sub", children=[leaf], more_children={"failed": 1, "completed": 1_200})
    lines = draw_steps(make_step("sub", "waiting"), children=[child])
    told = "1,201 more 1 failed, 1,200 completed korak list --parent 01C"
    assert lines[-1].split() == told.split()
    assert lines[-1].index("1,201") == lines[-2].index("01D")


def test_the_rest_of_the_children_stands_once_below_the_last_step_that_has_some() -> None:
    steps = [make_step(name, "completed") for name in ("sub", "more", "after")]
    children = [make_child(f"01C{name}", name) for name in ("sub", "more")]
    lines = draw_steps(*steps, children=children, more_children={"completed": 7})
    assert [line.split()[1] for line in lines[4:]] == ["sub", "01Csub", "more", "01Cmore", "more", "after"]
    assert lines[8].split() == ["7", "more", "7", "completed", "korak", "list", "--parent", "01A"]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_child_names_its_definition_however_narrow_the_screen_is(width: int) -> None:
    starter = make_step("s18", "completed", type="start_workflow", input={"definition": "kid"})
    child = make_child("0" * 26, "s18", definition="kid", created_at=at(-4))
    told = "\n".join(draw(draw_instance(make_instance(children=[child]), [starter], now=NOW), width))
    assert told.count("kid") == 2


def visit(node: str, number: int, begun: float, status: str = "completed", **members: Any) -> dict[str, Any]:
    return make_step(node, status, visit=number, created_at=at(begun), finished_at=at(begun), **members)


def test_what_a_rewind_left_behind_is_one_line_where_it_is_much() -> None:
    left = [visit(node, 1, begun, undone_at=at(9)) for begun, node in enumerate("bcd", 1)]
    asked = visit("ask", 1, 4, "cancelled") | {"finished_at": at(9)}
    before, after = visit("a", 1, 0), visit("b", 2, 9)
    lines = draw_steps(before, *left, asked, after, visit("x", 1, 10, "cancelled"))
    assert [line.split()[:3] for line in lines[4:]] == [
        ["✓", "a", "shop.a"],
        ["↶", "4", "attempts"],
        ["✓", "b", "#2"],
        ["⊘", "x", "shop.x"],
    ]
    assert lines[5].endswith("undone by a rewind: b, c, d, ask")


def test_a_little_that_a_rewind_left_behind_is_shown() -> None:
    lines = draw_steps(visit("a", 1, 0), visit("b", 1, 1, undone_at=at(9)), visit("b", 2, 9))
    assert [line.split()[1:3] for line in lines[4:]] == [["a", "shop.a"], ["b", "#1"], ["b", "#2"]]
    assert lines[5].endswith("undone by a rewind")


def test_what_a_container_held_goes_with_it() -> None:
    each = visit("each", 1, 1, type="for_each", undone_at=at(9))
    items = [visit("item", number, 1, branch=str(number)) for number in range(4)]
    lines = draw_steps(visit("a", 1, 0), each, *items, visit("each", 2, 9, type="for_each"))
    assert [line.split()[1] for line in lines[4:]] == ["a", "5", "each"]
    assert lines[5].endswith("undone by a rewind: each")


def test_of_a_change_what_it_wrote_is_told_and_of_an_end_nothing() -> None:
    change = make_step("begin", "completed", type="set_field", output={"old": {}, "new": {"x": 1}})
    lines = draw_steps(change, make_step("end", "completed", type="end", output={"result": {"x": 1}}))
    assert lines[4].endswith(' {"x":1}')
    assert lines[5].split() == ["✓", "end", "end"]
