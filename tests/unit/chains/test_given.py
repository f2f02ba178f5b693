"""Whatever is given to the methods of a chain: it is taken as it is at that moment, or refused in a few words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from korak import chain
from korak.chains import Chain
from korak.errors import Invalid
from korak.graphs.validation import validate
from korak.model import Json
from korak.steps.registry import Registry
from tests.support import links
from tests.support.chained import go_on, run

ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
DEEP: dict[str, Any] = {}
for _ in range(3_000):
    DEEP = {"a": DEEP}

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**64, 10**400, 1.5, -0.0, float("nan"), float("inf"), 1e300, 1j, Decimal(1)),
    *("", " ", "a", "_a", "a b", "é", "a.b", "$end", "end", "\0", "\ud800", "a" * 300, "x" * 100_000, b"a"),
    *([], ["a"], ["a", "a"], [None], [[]], (), ("a",), {}, {"a": 1}, {"ref": "state.x"}, {"ref": 5}, {1: 2}, {"": 1}),
    *({"\0": 1}, {"a": {"b": float("nan")}}, {1}, range(3), timedelta(1), object(), len, int, ENDLESS, DEEP),
    *(links.count, links.NAMELESS[0], links.Ship, chain("kid").then(links.count), chain("empty")),
)
NEEDED: dict[str, Any] = {
    "handler": links.count,
    "handlers": [links.count],
    "items_key": "items",
    "target_step": "0",
    "signal": "go",
    "names": ["go"],
    "name": "kid",
    "workflow": "k",
    "workflows": "k",
    "child": chain("kid").then(links.count),
    "group_key": "g",
    "queue": "q",
    "priority": 1,
    "attempts": 2,
    "version": "1",
    "limit": 5,
    "key": "k",
}
BESIDE: dict[str, dict[str, Any]] = {
    "timeout": {"timed_out": "$end"},
    "timed_out": {"timeout": 5},
    "quorum": {"mode": "quorum"},
}
OTHERS = ("dispatch", "document", "prepare")
METHODS = [name for name, _ in inspect.getmembers(Chain, inspect.isfunction) if name[0] != "_" and name not in OTHERS]


def list_parameters(method: str) -> list[inspect.Parameter]:
    """Those that have a name."""
    given = inspect.signature(getattr(Chain, method)).parameters.values()
    return [each for each in given if each.name != "self" and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]


def make_arguments(method: str, parameter: str, value: Any) -> dict[str, Any]:
    """A call that is right but for this one argument."""
    needed = {each.name: NEEDED[each.name] for each in list_parameters(method) if each.default is each.empty}
    made = {**needed, **BESIDE.get(parameter, {}), parameter: value}
    if method.startswith("repeat") and parameter not in ("state_key", "condition"):
        made["state_key"] = "k"
    return made


def find_refusal(method: str, given: dict[str, Any]) -> Invalid | None:
    """Why a call is refused. What isn't may be published, but for handlers that nobody has."""
    built = chain("x").then(links.leap)
    try:
        getattr(built, method)(**given)
        document = built.document()
    except Invalid as error:
        return error
    registry = Registry()
    for made in built.step_types:
        registry.add(made)
    assert [issue for issue in validate(document, registry).issues if issue.code != "unknown_type"] == []
    return None


@pytest.mark.parametrize("method", METHODS)
def test_what_is_given_is_taken_or_refused_in_a_few_words(method: str) -> None:
    for parameter in list_parameters(method):
        for value in ODD:
            refused = find_refusal(method, make_arguments(method, parameter.name, value))
            if refused is not None:
                assert refused.code == "invalid_document"
                assert len(refused.message) < 500, (parameter.name, refused.message[:200])


def test_a_chain_is_named_or_refused_in_a_few_words() -> None:
    for value in ODD:
        with suppress(Invalid):
            chain(value).then(links.count).document()
        with suppress(Invalid):
            chain("x", value).then(links.count).document()


CHANGED: dict[str, Callable[[Any], Chain]] = {
    "parameter": lambda value: chain("x").then(links.strange, kind="a", more=value),
    "bound": lambda value: chain("x").then(links.strange, kind="a").bind(more=value),
    "of a for_each": lambda value: chain("x").for_each("items", links.strange).bind(kind="a", more=value),
    "compensation": lambda value: chain("x").then(links.count).compensate_with(links.strange, kind="a", more=value),
    "on_cancel": lambda value: chain("x").then(links.count).on_cancel(links.strange, kind="a", more=value),
    "match": lambda value: chain("x").wait_for_signal("a", match_payload=value),
    "expected": lambda value: chain("x").then(links.count).repeat_until("0", "k", value),
    "condition": lambda value: (
        chain("x").then(links.count).repeat_until("0", condition={"ref": "state.k", "op": "eq", "value": value})
    ),
    "timeout": lambda value: chain("x").wait_for_signal(
        "a", timeout={"ref": "state.t", "default": value}, timed_out="$end"
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_becomes_of_a_value_later_changes_no_chain(case: str) -> None:
    value: dict[str, Json] = {"a": {"b": 1}}
    built = CHANGED[case](value)
    before = built.checksum
    inner: Any = value["a"]
    inner["b"], value["c"] = 2, 3
    assert built.checksum == before


def test_a_child_stays_what_its_parent_has_pinned() -> None:
    value = [1]
    parent = chain("parent").run_workflow("kid", chain("kid").then(links.strange, kind="a", more=value))
    value.append(2)
    nodes: Any = parent.document()["nodes"]
    assert [child.checksum for child in parent.children] == [nodes[2]["config"]["checksum"]]


@pytest.mark.parametrize("key", ["ref", "cel", "template", "relative", "secret", "literal"])
def test_a_payload_is_matched_by_a_key_that_is_called_like_a_value(key: str) -> None:
    """Spec 11.9: what the payload must contain is a key and its value, whatever the key is."""
    begun = run(chain("x").wait_for_signal("go", match_payload={key: "state"}))
    begun.signal("go", {key: "another"})
    assert begun.waits != []
    begun.signal("go", {key: "state", "more": 1})
    go_on(begun)
    assert begun.instance.state == {key: "state", "more": 1}


def test_what_stands_in_a_payload_may_be_a_value() -> None:
    begun = run(chain("x").wait_for_signal("go", match_payload={"order": {"ref": "state.id"}}), {"id": 7})
    begun.signal("go", {"order": 8})
    begun.signal("go", {"order": 7})
    assert begun.instance.state == {"id": 7, "order": 7}


KEYS: list[Any] = ["", "  ", "x" * 192, "a\nb", "ključ", 5, ["a"]]


@pytest.mark.parametrize("key", KEYS)
def test_a_dispatch_is_refused_under_what_is_no_key(key: Any) -> None:
    """Spec 10: an empty key is a mistake, and not a start without one."""
    with pytest.raises(Invalid, match="idempotency key"):
        chain("x").then(links.count).prepare({}, {"idempotency_key": key})
