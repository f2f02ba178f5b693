"""What a person sees of an instance, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from korak.commands.drawing import draw_instance, draw_list
from korak.commands.spans import show_span

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def draw(rendered: RenderableType, width: int = 140) -> list[str]:
    console = Console(file=StringIO(), width=width)
    console.print(rendered)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def make_instance(**members: Any) -> dict[str, Any]:
    return {
        "id": "01A",
        "definition": "order",
        "version": 2,
        "status": "running",
        "input": {"n": 1},
        "created_at": at(-5),
        "waiting_for": [],
        **members,
    }


def make_step(node: str, status: str, **members: Any) -> dict[str, Any]:
    return {"node": node, "type": f"shop.{node}", "status": status, "visit": 1, "attempt": 1, **members}


def draw_steps(*steps: dict[str, Any], **members: Any) -> list[str]:
    return draw(draw_instance(make_instance(**members), steps, now=NOW))


def test_the_head_says_what_and_since_when() -> None:
    lines = draw_steps()
    assert lines == ["▶ running  01A  order version 2  5.0 s", '  input  {"n":1}']


def test_the_head_says_the_caller_s_id_and_which_run_of_it() -> None:
    [first, *_] = draw_steps(business_id="A-17", run=1)
    [second, *_] = draw_steps(business_id="A-17", run=2)
    assert first == "▶ running  01A  order version 2  A-17  5.0 s"
    assert second == "▶ running  01A  order version 2  A-17 run 2  5.0 s"


def test_the_head_says_how_far_it_is_where_steps_are_a_line() -> None:
    [head, *_] = draw_steps(progress={"name": "sign", "index": 1, "total": 3})
    assert head == "▶ running  01A  order version 2  5.0 s  1 of 3 steps"
    for progress in (None, {"name": None, "index": 3, "total": 3}):
        assert draw_steps(progress=progress)[0] == "▶ running  01A  order version 2  5.0 s"


def test_the_head_says_what_it_belongs_to_and_comes_from() -> None:
    members = {"definition_hash": "0123456789abcdef", "version_label": "spring", "root": "01A", "parent": None}
    lines = draw_steps(**members, labels=["forked_from:01F", "vip"])
    assert lines[0] == "▶ running  01A  order version 2 (spring)  5.0 s"
    assert lines[2] == "  graph  0123456789ab  labels  forked_from:01F, vip"
    assert draw_steps(parent="01P", root="01P", labels=[])[2] == "  parent  01P"
    assert draw_steps(parent="01P", root="01R")[2] == "  parent  01P  root  01R"


def test_keys_that_the_state_drops_are_not_drawn() -> None:
    output = {"_secret": 1, "_next_step": "x", "kept": {"_inner": 2}}
    assert draw_steps(make_step("big", "completed", output=output))[4].endswith(' {"kept":{"_inner":2}}')
    assert draw_steps(make_step("big", "completed", output={"_secret": 1}))[4].split() == ["✓", "big", "shop.big"]


def test_what_runs_in_a_branch_is_named_and_indented() -> None:
    outer = make_step("all", "waiting")
    item = make_step("ship", "completed", branch="3", visit=4)
    lines = draw_steps(outer, item, make_step("x", "queued", branch="3/a"))
    names = [line.split("shop.")[0].rstrip()[5:] for line in lines[4:]]
    assert names == ["all", "  ship [3]", "    x [3/a]"]


def test_what_a_step_has_started_is_drawn_below_it() -> None:
    children = [
        {"id": "01C", "definition": "child", "status": "completed", "trigger": {"payload": {"node": "sub"}}},
        {
            "id": "01D",
            "definition": "child",
            "status": "failed",
            "failure": {"code": "acme.no"},
            "trigger": {"payload": {"node": "sub"}},
        },
    ]
    sub = make_step("sub", "completed", type="start_workflows")
    lines = [line.split() for line in draw_steps(sub, make_step("after", "completed"), children=children)]
    assert [line[:3] for line in lines][-4:] == [
        ["✓", "sub", "start_workflows"],
        ["✓", "01C", "child"],
        ["✗", "01D", "child"],
        ["✓", "after", "shop.after"],
    ]
    assert lines[-2][-1] == "acme.no"


def test_a_child_is_drawn_below_the_visit_that_started_it() -> None:
    """Items, rounds and attempts of one node each have their own; one that doesn't say which is below the newest."""
    steps = [
        make_step("sub", "failed", execution="01X", branch="0"),
        make_step("sub", "completed", execution="01X", branch="0", attempt=2),
        make_step("sub", "completed", execution="01Y", branch="1"),
    ]
    told = [
        ("01A1", {"execution": "01X"}),
        ("01B1", {"execution": "01Y"}),
        ("01C1", {}),
        ("01D1", {"execution": "01Z"}),
    ]
    children = [
        {"id": name, "definition": "child", "status": "completed", "trigger": {"payload": {"node": "sub", **visit}}}
        for name, visit in told
    ]
    names = [line.split()[1] for line in draw_steps(make_step("all", "completed"), *steps, children=children)[4:]]
    assert names == ["all", "sub", "sub", "01A1", "sub", "01B1", "01C1"]


def test_a_child_is_told_from_the_others_by_what_is_its_own() -> None:
    trigger = {"payload": {"node": "sub"}}
    given = {"topic": "tea", "start_item_index": 0, "shelf": "trade"}
    failure = {"code": "acme.no", "message": "Nothing there."}
    child = {"id": "01C", "definition": "child", "trigger": trigger, "input": given}
    children = [{**child, "status": "running"}, {**child, "status": "failed", "failure": failure}]
    lines = draw_steps(make_step("sub", "completed"), children=children, input={"topic": "tea"}, state={"x": 1})
    assert lines[-2].endswith('{"shelf":"trade"}  running')
    assert lines[-1].endswith('{"shelf":"trade"}  acme.no  Nothing there.')


def test_a_long_result_has_a_line_for_each_member() -> None:
    result = {"summary": "Tea is old.", "quotes": ["x" * 3_000], "shelves": ["trade"]}
    head, *lines = draw_steps(status="completed", result=result)[3:]
    assert head.split() == ["result"]
    assert lines[0].split(maxsplit=1) == ["summary", '"Tea is old."']
    assert lines[1].split()[0] == "quotes"
    assert lines[-1].split() == ["shelves", '["trade"]']
    assert sum(map(len, lines)) < 900
    whole = draw_steps(status="completed", result={"text": "x" * 300})
    assert "".join(line.strip() for line in whole[3:]).endswith("x" * 300 + '"}')


def test_a_wait_says_whether_one_is_enough() -> None:
    wait = {"node": "review", "kind": "signal", "mode": "any", "remaining": ["approved", "rejected"]}
    assert draw_steps(status="waiting", waiting_for=[wait])[-1].endswith("for signal approved or rejected")


def test_attempts_are_numbered_where_there_are_several() -> None:
    error = {"code": "busy", "message": "Try later."}
    first = make_step("ship", "failed", error=error, started_at=at(-4), finished_at=at(-3.75))
    second = make_step("ship", "queued", attempt=2, scheduled_for=at(90))
    lines = draw_steps(first, second, make_step("bill", "queued"))
    assert lines[4].split() == ["✗", "ship", "shop.ship", "1", "250", "ms", "busy", "Try", "later."]
    assert lines[5].split() == ["◌", "ship", "shop.ship", "2", "again", "in", "1", "min"]
    assert lines[6].split() == ["◌", "bill", "shop.bill", "queued"]


def test_visits_are_numbered_where_there_are_several() -> None:
    lines = draw_steps(make_step("go", "completed"), make_step("go", "completed", visit=2), make_step("x", "completed"))
    assert [line.split()[1] for line in lines[4:]] == ["go", "go", "x"]
    assert "go #2" in lines[5]


def test_a_wait_says_for_what_and_until_when() -> None:
    wait = {"node": "paid", "kind": "event", "remaining": ["payment.settled"], "names": [], "due_at": at(3600)}
    lines = draw_steps(make_step("paid", "waiting", started_at=at(-2)), status="waiting", waiting_for=[wait])
    assert lines[4].endswith("for event payment.settled, due in 1 h")
    assert lines[-1].strip() == "waits at paid for event payment.settled, due in 1 h"


def test_a_wait_in_a_branch_is_told_where_it_stands() -> None:
    waits = [{"node": "ask", "branch": branch, "kind": "signal", "names": [branch]} for branch in ("0", "1")]
    steps = [make_step("ask", "waiting", branch=branch, started_at=at(-2)) for branch in ("0", "1")]
    lines = draw_steps(*steps, status="waiting", waiting_for=waits)
    assert [line.rstrip().rpartition("for ")[2] for line in lines[4:6]] == ["signal 0", "signal 1"]
    assert lines[-1].strip() == "waits at ask [1] for signal 1"


def test_ends_say_how() -> None:
    failure = {"code": "no_pen", "message": "Nobody has a pen.", "node": "sign"}
    assert draw_steps(status="failed", failure=failure)[-1].strip() == "failed at sign: Nobody has a pen. (no_pen)"
    inside = {**failure, "node": "all", "params": {"node": "sign", "branch": "b/7213"}}
    assert draw_steps(status="failed", failure=inside)[-1].strip().startswith("failed at all, in sign [b/7213]: Nobody")
    assert draw_steps(status="cancelled", cancel_reason="late")[-1].strip() == "cancelled: late"
    assert draw_steps(status="completed", result={"a": 1})[-1].strip() == 'result {"a":1}'


def test_an_outcome_is_shown_unless_it_is_the_usual_one() -> None:
    step = make_step("big", "completed", outcome="true", output={"result": True})
    assert draw_steps(step)[4].endswith('→ true  {"result":true}')
    assert "→" not in draw_steps(make_step("big", "completed", outcome="next"))[4]


def test_what_runs_says_how_far_it_is_and_when_it_said_so() -> None:
    running = make_step("write", "running", started_at=at(-9), progress={"done": 3}, heartbeat_at=at(-2))
    assert draw_steps(running)[4].endswith('{"done":3}  2.0 s ago')
    assert draw_steps(make_step("write", "completed", progress=1))[4].split() == ["✓", "write", "shop.write"]


def test_what_it_keeps_is_named() -> None:
    assert draw_steps(artifacts={"count": 2, "keys": ["a", "b"]})[-1].strip() == "artifacts a, b"
    assert draw_steps(artifacts={"count": 9, "keys": ["a"]})[-1].strip() == "artifacts a and 8 more"
    assert len(draw_steps(artifacts={"count": 0, "keys": []})) == 2


def test_an_output_takes_one_line_however_narrow_it_is() -> None:
    lines = draw(draw_instance(make_instance(), [make_step("n" * 60, "completed", output={"a": "x" * 90})], now=NOW))
    assert len(lines) == 5
    assert lines[4].endswith("…")


def test_on_a_narrow_screen_the_type_makes_room_for_what_happened() -> None:
    error = {"code": "busy", "message": "Try later."}
    steps = [make_step("wait_for_agent_group", "failed", type="t" * 26, error=error, started_at=at(-1))]
    narrow = draw(draw_instance(make_instance(), steps, now=NOW), 80)
    assert narrow[4].split() == ["✗", "wait_for_agent_group", "1.0", "s", "busy", "Try", "later."]
    assert "t" * 26 in draw(draw_instance(make_instance(), steps, now=NOW), 100)[4]
    listed = draw(draw_list([make_instance(id="0" * 26, definition="d" * 24, nodes=["sign", "n" * 20])], now=NOW), 80)
    assert listed[1].split()[:3] == ["▶", "0" * 26, "d" * 24]
    assert "sign," in listed[1]


def test_what_a_user_wrote_is_no_markup() -> None:
    lines = draw_steps(make_step("x", "failed", error={"code": "odd", "message": "[bold]loud[/bold] [/]"}))
    assert "[bold]loud[/bold] [/]" in lines[4]
    listed = draw(draw_list([make_instance(definition="[red]x", nodes=["[/]"])], now=NOW))
    assert "[red]x v2" in listed[1]


def test_a_list_shows_where_instances_are_or_why_they_failed() -> None:
    failed = make_instance(status="failed", failure={"code": "no_pen"})
    lines = draw(draw_list([make_instance(nodes=["ship"]), failed], now=NOW))
    assert lines[1].split()[-1] == "ship"
    assert lines[2].split()[-1] == "no_pen"
    assert draw(draw_list([], now=NOW)) == ["There are no instances."]


def test_what_cleans_up_stands_below_a_line_with_its_role() -> None:
    steps = [
        make_step("book", "completed", role="step"),
        make_step("book", "failed", role="compensate", error={"code": "busy", "message": "Later."}),
        make_step("book", "running", role="compensate", attempt=2),
        make_step("$on_cancel", "queued", role="on_cancel"),
    ]
    lines = draw_steps(*steps, status="cancelled", compensation={"kept": 0, "pending": 1, "completed": 2, "failed": 0})
    assert lines[4].split()[:2] == ["✓", "book"]
    assert lines[5].strip() == "── cleaning up ── 1 pending, 2 completed to undo"
    assert [line.split()[1:3] for line in lines[7:9]] == [["compensate", "book"]] * 2
    assert lines[7].split()[4] == "1"
    assert lines[9].split()[1] == "on_cancel"


def test_kept_compensations_are_no_line() -> None:
    kept = {"kept": 1, "pending": 0, "completed": 0, "failed": 0}
    assert "cleaning up" not in "".join(draw_steps(make_step("book", "completed", role="step"), compensation=kept))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, ""),
        (0.25, "250 ms"),
        (5, "5.0 s"),
        (59.94, "59.9 s"),
        (61, "1 min"),
        (3660, "1 h 1 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_spans_have_their_two_largest_units(seconds: float, shown: str) -> None:
    assert show_span(timedelta(seconds=seconds)) == shown


def test_no_span_is_nothing() -> None:
    assert show_span(None) == ""
