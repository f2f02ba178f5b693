"""compensate_with, compensate_on_failure, on_cancel and on_deadline of a chain: the document, and what then runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from korak import chain, ref
from korak.core.facts import CancelAsked, DeadlinePassed, RetryAsked
from korak.errors import Conflict, Invalid
from korak.model import InstanceStatus, StepRole
from tests.support import links
from tests.support.chained import go_on, run
from tests.support.runs import Run


def get_node(document: Any, name: str) -> Any:
    [node] = [node for node in document["nodes"] if node["id"] == name]
    return node


def get_hooks(begun: Run) -> list[tuple[str, str, Any]]:
    return [(step.role.value, step.node_id, step.input) for step in begun.hooks]


def test_an_undo_is_a_member_of_its_node_and_bound_like_any_handler() -> None:
    document = chain("x").then(links.fetch).compensate_with(links.price, currency="USD").document()
    assert get_node(document, "s0")["compensate"] == {
        "type": "tests.support.links.price",
        "type_version": 1,
        "config": {"currency": "USD", "fetched": {"ref": "state.fetched"}},
    }


def test_what_the_chain_says_of_its_handlers_holds_for_what_cleans_up() -> None:
    built = chain("x").then(links.fetch).compensate_with(links.slow).on_cancel(links.count).on_deadline("links.known")
    document: Any = built.max_attempts(5).on_queue("pipelines").must_complete_within(hours=1).document()
    many = {"max_attempts": 5}
    undo, settings = get_node(document, "s0")["compensate"], document["settings"]
    assert undo == {"type": "links.slow", "type_version": 3, "retry": many}
    assert settings["on_cancel"]["retry"] == settings["on_deadline"]["retry"] == many
    assert settings["on_cancel"]["queue"] == "pipelines"
    assert settings["on_deadline"] == {"type": "links.known", "retry": many, "queue": "pipelines"}
    assert {made.key for made in built.step_types} >= {"links.slow", "tests.support.links.count"}


def test_every_kind_of_step_has_its_undo_where_it_has_settled() -> None:
    built = (
        chain("x")
        .parallel([links.count, links.secretive])
        .compensate_with(links.publish)
        .for_each("items", links.score, reducer=links.gather)
        .compensate_with(links.publish)
        .delay(seconds=1)
        .compensate_with(links.publish)
        .wait_for_signal("go")
        .compensate_with(links.publish)
        .then(links.count, "again")
        .repeat_until("again", "rounds", 2)
        .compensate_with(links.publish)
    )
    nodes: Any = built.document()["nodes"]
    assert [node["id"] for node in nodes if "compensate" in node] == [
        "s0",
        "s1_reducer",
        "delay_0",
        "wait_for_go",
        "repeat_until_5",
    ]


def test_the_options_are_part_of_the_checksum() -> None:
    plain = chain("x").then(links.fetch)
    told = {
        plain.checksum,
        chain("x").then(links.fetch).compensate_with(links.publish).checksum,
        chain("x").then(links.fetch).compensate_on_failure().checksum,
        chain("x").then(links.fetch).on_cancel(links.publish).checksum,
        chain("x").then(links.fetch).on_deadline(links.publish).checksum,
    }
    assert len(told) == 5


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "before any step": (lambda c: c.compensate_with(links.publish), "means the step added last, and there is none"),
    "twice": (
        lambda c: c.then(links.fetch, "a").compensate_with(links.publish).compensate_with(links.publish),
        "said twice of the step 'a'",
    ),
    "lambda": (
        lambda c: c.then(links.fetch).compensate_with(links.NAMELESS[0]),
        "compensation of '0' can't be a lambda",
    ),
    "strange parameter": (
        lambda c: c.then(links.fetch).compensate_with(links.price, curency="EUR"),
        "Is currency meant",
    ),
    "waiting": (lambda c: c.on_cancel(links.Await), "The handler of on_cancel can't wait for anything: links.await"),
    "built in": (lambda c: c.on_deadline("wait"), "The handler of on_deadline is the key of a step type"),
    "secret": (lambda c: c.then(links.fetch).compensate_with(links.charge).document(), "needs token"),
}


@pytest.mark.parametrize("case", CASES)
def test_misuse_is_told_at_once(case: str) -> None:
    act, message = CASES[case]
    with pytest.raises(Invalid, match=message):
        act(chain("x"))


def test_t_comp_1_and_2_a_chain_is_undone_with_the_state_of_each_step() -> None:
    built = (
        chain("x")
        .then(links.fetch)
        .compensate_with(links.publish)
        .then(links.price)
        .compensate_with(links.greet, name=ref("state.price"))
        .wait_for_signal("go")
        .on_cancel(links.publish)
    )
    begun = run(built, {"order": "A-1"})
    begun.tell(CancelAsked())
    go_on(begun)
    first = {"order": "A-1", "fetched": "A-1"}
    assert get_hooks(begun) == [
        ("compensate", "s1", {"name": "3 EUR"}),
        ("compensate", "s0", {"state": first}),
        ("on_cancel", "$on_cancel", {"state": {**first, "price": "3 EUR"}}),
    ]


def test_t_comp_4_with_opt_in_a_failure_undoes() -> None:
    built = (
        chain("x").then(links.fetch).compensate_with(links.publish).then(links.flaky, times=9).compensate_on_failure()
    )
    begun = run(built.max_attempts(1), {"order": "A"})
    assert [step.role for step in begun.hooks] == [StepRole.COMPENSATE]
    with pytest.raises(Conflict):
        begun.tell(RetryAsked())


def test_t_comp_5_a_wait_is_undone_with_what_the_signal_brought() -> None:
    begun = run(chain("x").wait_for_signal("paid").compensate_with(links.publish).wait_for_signal("go"))
    begun.signal("paid", {"amount": 3})
    go_on(begun)
    begun.tell(CancelAsked())
    go_on(begun)
    assert get_hooks(begun) == [("compensate", "wait_for_paid", {"state": {"amount": 3}})]


def test_t_dl_2_on_deadline_gets_the_public_state() -> None:
    built = (
        chain("x").then(links.fetch).wait_for_signal("go").must_complete_within(seconds=60).on_deadline(links.publish)
    )
    begun = run(built, {"order": "A"})
    begun.pass_time(61)
    begun.tell(DeadlinePassed())
    go_on(begun)
    assert begun.instance.status is InstanceStatus.FAILED
    assert get_hooks(begun) == [("on_deadline", "$on_deadline", {"state": {"order": "A", "fetched": "A"}})]


def test_a_repeated_step_is_undone_once_a_round() -> None:
    """Spec 9: a step visited several times pushes several snapshots"""
    built = chain("x").then(links.count, "a").compensate_with(links.publish).repeat_until("a", "rounds", 3)
    begun = run(built.wait_for_signal("go"))
    begun.tell(CancelAsked())
    go_on(begun)
    assert [hook[2]["state"]["rounds"] for hook in get_hooks(begun)] == [3, 2, 1]
