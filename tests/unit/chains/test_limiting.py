"""Limits by key in a chain: where they stand in the document, what is refused, and which checksum that makes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from korak import chain, ref
from korak.chains import Chain
from korak.errors import Invalid
from korak.graphs.validation import validate
from korak.model import InstanceStatus, JsonObject
from korak.steps.registry import Registry
from tests.support import links
from tests.support.chained import run

CUSTOMER: JsonObject = {"template": "customer:${state.order}"}


def build() -> Chain:
    """A chain with a limit on every kind of step that may have one, and on its runs."""
    return (
        chain("limited")
        .then(links.fetch)
        .flow(CUSTOMER, concurrency=1)
        .flow("erp", concurrency=20, weight=2, rate=(100, timedelta(minutes=1)))
        .parallel([links.count, links.price])
        .flow("both", concurrency=2)
        .for_each("items", links.score)
        .flow(ref("item.region"), rate=(5, "PT1S"))
        .flow_of_runs(ref("input.order"), concurrency=3)
    )


def get_node(document: Any, name: str) -> Any:
    """A node of the document, in bodies too."""
    nodes = list(document["nodes"])
    for node in nodes:
        if node["id"] == name:
            return node
        bodies = [*node.get("branches", {}).values(), *([node["body"]] if "body" in node else [])]
        nodes += [each for body in bodies for each in body["nodes"]]
    raise AssertionError(name)


def test_each_handler_has_the_limits_of_its_step() -> None:
    document = build().document()
    assert get_node(document, "s0")["flow"] == [
        {"key": CUSTOMER, "concurrency": 1},
        {"key": "erp", "concurrency": 20, "weight": 2, "rate": {"limit": 100, "per": 60.0}},
    ]
    both = [{"key": "both", "concurrency": 2}]
    assert [get_node(document, f"s1_{number}")["flow"] for number in (0, 1)] == [both, both]
    assert get_node(document, "s2_item")["flow"] == [
        {"key": {"ref": "item.region"}, "rate": {"limit": 5, "per": "PT1S"}}
    ]
    assert ["flow" in get_node(document, name) for name in ("begin", "s1", "s2", "end")] == [False] * 4
    assert document["settings"] == {"flow": [{"key": {"ref": "input.order"}, "concurrency": 3}]}


def test_it_may_be_published_and_runs() -> None:
    built, known = build(), Registry()
    for made in built.step_types:
        known.add(made)
    assert validate(built.document(), known).issues == ()
    given: JsonObject = {"order": "A-1", "items": [{"region": "EU"}, {"region": "US"}]}
    assert run(built, given).instance.status is InstanceStatus.COMPLETED


def test_a_chain_without_limits_has_the_checksum_that_it_always_had() -> None:
    """T-GUARD-8"""
    plain = chain("x").then("shop.price").parallel(["shop.a", "shop.b"]).for_each("items", "shop.c")
    assert plain.checksum == "7db1111fb8b8900ef6012fab697e0a8441418bbb1529564b9406a298f711c96d"


CHANGES: dict[str, Callable[[Chain], Chain]] = {
    "none": lambda built: built,
    "one": lambda built: built.flow("k", concurrency=1),
    "two": lambda built: built.flow("k", concurrency=2),
    "another key": lambda built: built.flow("other", concurrency=1),
    "rate": lambda built: built.flow("k", rate=(1, 60)),
    "runs": lambda built: built.flow_of_runs("k", concurrency=1),
}


def test_a_limit_is_part_of_the_checksum() -> None:
    """T-GUARD-8"""
    first, second = (
        {name: change(chain("x").then(links.fetch)).checksum for name, change in CHANGES.items()} for _ in range(2)
    )
    assert first == second
    assert len(set(first.values())) == len(CHANGES)


def test_the_key_is_the_chains_own() -> None:
    key: Any = {"ref": "state.order"}
    built = chain("x").then(links.fetch).flow(key, concurrency=1)
    before = built.checksum
    key["ref"] = "state.other"
    assert built.checksum == before


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no step": (lambda c: c.flow("k", concurrency=1), "flow() means the handlers of the step added last"),
    "a wait": (lambda c: c.wait_for_input().flow("k", concurrency=1), "and there are none"),
    "a child": (lambda c: c.run_workflow("sub", "other").flow("k", concurrency=1), "and there are none"),
    "nothing": (lambda c: c.then(links.fetch).flow("k"), "flow() of '0' limits nothing"),
    "nothing of runs": (lambda c: c.flow_of_runs("k", weight=1), "flow_of_runs() limits nothing"),
    "concurrency": (lambda c: c.flow_of_runs("k", concurrency=0), "concurrency is a whole number from 1: 0 isn't"),
    "much": (lambda c: c.flow_of_runs("k", concurrency=1_000_001), "concurrency is 1000000 at most"),
    "weight": (lambda c: c.flow_of_runs("k", concurrency=2, weight=3), "It would never run: concurrency is 2"),
    "weight alone": (lambda c: c.flow_of_runs("k", rate=(1, 60), weight=3), "A weight counts against `concurrency`"),
    "rate": (lambda c: c.flow_of_runs("k", rate=5), "rate is how many and in which span, such as (100, 'PT1M'): 5"),
    "rate of none": (lambda c: c.flow_of_runs("k", rate=(0, 60)), "rate is a whole number from 1"),
    "span": (lambda c: c.flow_of_runs("k", rate=(1, "soon")), "flow_of_runs(): rate: "),
    "months": (lambda c: c.flow_of_runs("k", rate=(1, "P1M")), "A rate counts over a plain span"),
    "no key": (lambda c: c.flow_of_runs(None, concurrency=1), "A key is a text or a number"),
    "empty key": (lambda c: c.flow_of_runs("", concurrency=1), "A key is a text or a number"),
    "list key": (lambda c: c.flow_of_runs(["a"], concurrency=1), "A key is a text or a number"),
    "key": (lambda c: c.flow_of_runs({"ref": "state..x"}, concurrency=1), "flow_of_runs(): the key can't be used: "),
    "no JSON": (lambda c: c.flow_of_runs(timedelta(1), concurrency=1), "flow_of_runs(): the key isn't JSON"),
    "nine": (
        lambda c: [c.flow_of_runs(f"k{number}", concurrency=1) for number in range(9)],
        "flow_of_runs() is said more than 8 times",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_limit_is_refused_with_one_clear_message(case: str) -> None:
    misuse, message = CASES[case]
    with pytest.raises(Invalid) as caught:
        misuse(chain("x"))
    assert caught.value.code == "invalid_document"
    assert message in caught.value.message
