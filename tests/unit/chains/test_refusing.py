"""What a chain refuses while it is built: one clear message each (spec 2, build-time validation)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from korak import StepType, chain, step
from korak.errors import Invalid
from korak.graphs.validation import validate
from tests.support import links
from tests.support.plans import registry

Case = Callable[[Any], Any]


def make_local() -> Any:
    def local(ctx: Any) -> dict[str, Any]:
        return {}

    return local


class Nested:
    """Holds what no module has by its own name."""

    class Inner(StepType):
        key = "links.inner"

    @staticmethod
    def method(ctx: Any) -> dict[str, Any]:
        return {}


class Keyless(StepType):
    """Has no key."""


@step("links.outer")
def outer(ctx: Any, needed: Any = None) -> dict[str, Any]:
    return {}


ENDLESS: dict[str, Any] = {}
ENDLESS["a"] = ENDLESS

HANDLERS: dict[str, tuple[Any, str]] = {
    "lambda": (links.NAMELESS[0], "can't be a lambda"),
    "closure": (links.make_closure("x"), "must stand in a module"),
    "local": (make_local(), "must stand in a module"),
    "method": (Nested.method, "must stand in a module"),
    "bound": (Keyless().handle, "is a function, a StepType class or the key"),
    "partial": (functools.partial(links.count, rounds=1), "is a function, a StepType class or the key"),
    "builtin": (len, "is a function, a StepType class or the key"),
    "number": (7, "is a function, a StepType class or the key"),
    "nested class": (Nested.Inner, "must stand in a module"),
    "keyless class": (Keyless, "a StepType class with a key"),
    "any class": (dict, "a StepType class with a key"),
    "no dot": ("price", "names joined by dots"),
    "blank": (" ", "names joined by dots"),
    "built in": ("wait", "names joined by dots"),
    "without context": (links.careless, "takes no context: it comes first, as in def careless(ctx, state)"),
}

CASES: dict[str, tuple[Case, str]] = {
    "no steps": (lambda c: c.version("1").max_attempts(2).document(), "has no steps"),
    "name twice": (lambda c: c.then(links.count, "a").then(links.count, "a"), "Two steps are named 'a'"),
    "index name twice": (lambda c: c.then(links.count, "1").then(links.count), "Two steps are named '1'"),
    "signal name twice": (
        lambda c: c.wait_for_approval().wait_for_approval(),
        "Two steps are named 'wait_for_approval'",
    ),
    "end name": (lambda c: c.then(links.count, "$end"), "what a jump to the end is called"),
    "NUL name": (lambda c: c.then(links.count, "a\0"), "a string holds NUL"),
    "child name": (lambda c: c.run_workflow("a" * 201, "b"), "The name of a child has 200 characters at most"),
    "one id": (lambda c: c.then(links.count, "a b").then(links.count, "a_b"), "would both be the node a_b"),
    "index id": (lambda c: c.then(links.count).then(links.count, "s0"), "would both be the node s0"),
    "own node": (lambda c: c.then(links.count, "end"), "every chain has a node end of its own"),
    "blank name": (lambda c: c.then(links.count, " "), "The name of a step is a text that isn't empty"),
    "empty name": (lambda c: c.wait_for_signal("a", name=""), "The name of a step is a text that isn't empty"),
    "long name": (lambda c: c.then(links.count, "a" * 201), "has 200 characters at most"),
    "name of a branch": (
        lambda c: c.parallel([links.count], "a").then(links.count, "a_0").document(),
        "The steps 'a' and 'a_0' would both make the node a_0",
    ),
    "name of an item": (
        lambda c: c.then(links.count, "a_item").for_each("n", links.score, name="a").document(),
        "The steps 'a_item' and 'a' would both make the node a_item",
    ),
    "unknown parameter": (lambda c: c.then(links.price, curency="EUR"), "takes no curency. Is currency meant?"),
    "class parameter": (lambda c: c.then(links.Ship, to="x"), "links.ship takes no to"),
    "no JSON": (lambda c: c.then(links.price, currency=timedelta(1)), "currency isn't JSON"),
    "wrong type": (lambda c: c.then(links.price, currency=5), "doesn't take this at /currency: string is expected"),
    "bad path": (lambda c: c.then(links.price, currency={"ref": "stat.x"}), "currency can't be used"),
    "reserved parameter": (
        lambda c: c.then(links.demanding).document(),
        "needs _own, which must be given",
    ),
    "default": (lambda c: c.then(links.endless).document(), "the default of limit isn't JSON: inf is no JSON number"),
    "bind first": (lambda c: c.bind(a=1), "bind() means the handler"),
    "bind a wait": (lambda c: c.delay(1).bind(a=1), "bind() means the handler"),
    "bind twice": (lambda c: c.then(links.price, currency="EUR").bind(currency="USD"), "a second time"),
    "parallel none": (lambda c: c.parallel([]), "a list of one handler or more"),
    "parallel text": (lambda c: c.parallel("shop.price"), "a list of one handler or more"),
    "parallel lambda": (lambda c: c.parallel([links.count, links.NAMELESS[0]]), "can't be a lambda"),
    "items key": (lambda c: c.for_each("", links.score), "items_key is a text"),
    "items key reserved": (lambda c: c.for_each("_a", links.score), "items_key can't begin with _"),
    "mode": (lambda c: c.for_each("a", links.score, mode="most"), "is one of all, first_success, quorum"),
    "quorum missing": (lambda c: c.for_each("a", links.score, mode="quorum"), "that mode needs one"),
    "quorum without mode": (lambda c: c.for_each("a", links.score, quorum=1), "goes with the mode quorum"),
    "quorum 0": (lambda c: c.for_each("a", links.score, mode="quorum", quorum=0), "quorum is a whole number from 1"),
    "concurrency": (lambda c: c.for_each("a", links.score, concurrency=0), "concurrency is a whole number from 1"),
    "result key": (lambda c: c.for_each("a", links.score, "_r"), "result_key can't begin with _"),
    "reducer": (lambda c: c.for_each("a", links.score, reducer=links.NAMELESS[0]), "A reducer can't be a lambda"),
    "repeat nothing": (lambda c: c.repeat_until("a", "k"), "names 'a': no step of that name was added before"),
    "repeat later": (
        lambda c: c.then(links.count).repeat_until("a", "k").then(links.count, "a"),
        "no step of that name was added before",
    ),
    "repeat blank": (lambda c: c.then(links.count).repeat_until("", "k"), "target_step is a text"),
    "repeat neither": (lambda c: c.then(links.count).repeat_until("0"), "exactly one of state_key and condition"),
    "repeat both": (
        lambda c: c.then(links.count).repeat_while("0", "k", condition={"cel": "true"}),
        "exactly one of state_key and condition",
    ),
    "repeat blank key": (lambda c: c.then(links.count).repeat_until("0", " "), "state_key is a text"),
    "repeat bad condition": (
        lambda c: c.then(links.count).repeat_until("0", condition={"cel": "1 +"}),
        "condition can't be used",
    ),
    "repeat handler": (
        lambda c: c.then(links.count).repeat_until("0", condition=links.count),
        "condition is written as in a graph",
    ),
    "repeat expected": (lambda c: c.then(links.count).repeat_until("0", "k", {1, 2}), "expected isn't JSON"),
    "iterations 0": (
        lambda c: c.then(links.count).repeat_until("0", "k", max_iterations=0),
        "max_iterations is a whole number from 1",
    ),
    "iterations many": (
        lambda c: c.then(links.count).repeat_until("0", "k", max_iterations=1_001),
        "max_iterations is 1000 at most",
    ),
    "delay negative": (lambda c: c.delay(-1), "seconds is a number from 0"),
    "delay text": (lambda c: c.delay("1"), "seconds is a number from 0"),
    "delay huge": (lambda c: c.delay(10**400), "a hundred years at most"),
    "delay for ever": (lambda c: c.delay(days=1e9), "a hundred years at most"),
    "delay twice": (lambda c: c.delay(1, until="due"), "a duration or until, not both"),
    "signal blank": (lambda c: c.wait_for_signal(" "), "needs the name of a signal"),
    "signals none": (lambda c: c.wait_for_signals([]), "needs the name of a signal"),
    "signals blank": (lambda c: c.wait_for_signals(["", " "]), "needs the name of a signal"),
    "signals text": (lambda c: c.wait_for_signals("a"), "takes a list of names"),
    "signals null": (lambda c: c.wait_for_signals([None]), "A signal's name is a text: None is none"),
    "signals number": (lambda c: c.wait_for_signals([1]), "A signal's name is a text"),
    "signal long": (lambda c: c.wait_for_signal("a" * 192), "191 characters at most"),
    "signals quorum": (lambda c: c.wait_for_signals(["a"], "quorum"), "in the mode all or any"),
    "signal key": (lambda c: c.wait_for_signal("a", "_k"), "result_key can't begin with _"),
    "signal key odd": (lambda c: c.wait_for_signal("a", "a.b"), "result_key is a name of letters"),
    "match empty": (lambda c: c.wait_for_signal("a", match_payload={"a": {}}), "match_payload has nothing at a"),
    "match odd": (lambda c: c.wait_for_signal("a", match_payload={"a": {1}}), "match_payload isn't JSON at /a: set is"),
    "match text": (lambda c: c.wait_for_signal("a", match_payload=""), "match_payload is a mapping: '' is none"),
    "match endless": (lambda c: c.wait_for_signal("a", match_payload=ENDLESS), "nested more than 64 deep"),
    "match form": (
        lambda c: c.wait_for_signal("a", match_payload={"ref": {"ref": "state.x"}}),
        "match_payload can't have ref alone",
    ),
    "correlation reserved": (lambda c: c.wait_for_signal("a", correlation_key="_a"), "correlation_key can't begin"),
    "inherit": (lambda c: c.start_workflows("a", "b", inherit_state="no"), "inherit_state is True or False"),
    "correlation blank": (lambda c: c.wait_for_signal("a", correlation_key=""), "correlation_key is a text"),
    "decision alike": (lambda c: c.wait_for_decision("a", "a"), "A decision needs two signals"),
    "timeout alone": (lambda c: c.wait_for_input(timeout=5), "timeout and timed_out go together"),
    "timeout odd": (lambda c: c.wait_for_input(timeout="soon", timed_out="$end"), "timeout: "),
    "timeout back": (
        lambda c: c.then(links.count, "a").wait_for_input(timeout=5, timed_out="a").document(),
        "names the step 'a', which isn't among those after it",
    ),
    "jumps first": (lambda c: c.jumps("a"), "jumps() means the step"),
    "jumps twice": (lambda c: c.then(links.leap).jumps("a").jumps("b"), "said twice"),
    "jumps nowhere": (lambda c: c.then(links.leap).jumps("a").document(), "names the step 'a', which isn't there"),
    "queue": (lambda c: c.on_queue("a b"), "A queue's name has only letters"),
    "priority": (lambda c: c.with_priority("highest"), "A priority is one of low, normal, high, urgent"),
    "priority number": (lambda c: c.with_priority(4), "A priority is one of"),
    "priority float": (lambda c: c.with_priority(1.0), "A priority is one of"),
    "attempts": (lambda c: c.max_attempts(0), "max_attempts is a whole number from 1"),
    "attempts true": (lambda c: c.max_attempts(True), "max_attempts is a whole number from 1"),
    "version blank": (lambda c: c.version(" "), "A version is a text"),
    "version long": (lambda c: c.version("a" * 101), "100 characters at most"),
    "deadline none": (lambda c: c.must_complete_within(), "needs more than no time"),
    "transitions": (lambda c: c.max_transitions(0), "max_transitions is a whole number from 1"),
    "transitions many": (lambda c: c.max_transitions(10_001), "max_transitions is 10000 at most"),
    "items": (lambda c: c.max_for_each_items(10_001), "max_for_each_items is 10000 at most"),
    "bytes": (lambda c: c.max_state_bytes(-1), "max_state_bytes is a whole number from 1"),
    "too many steps": (lambda c: [c.then(links.count) for _ in range(500)][-1].document(), "over its limit"),
}


@pytest.mark.parametrize("case", HANDLERS)
def test_a_handler_that_no_other_process_would_find(case: str) -> None:
    handler, message = HANDLERS[case]
    with pytest.raises(Invalid) as caught:
        chain("x").then(handler)
    assert caught.value.code == "invalid_document"
    assert message in caught.value.message


@pytest.mark.parametrize("case", CASES)
def test_misuse(case: str) -> None:
    misuse, message = CASES[case]
    with pytest.raises(Invalid) as caught:
        misuse(chain("x"))
    told = "\n".join([caught.value.message, *(issue.message for issue in caught.value.issues)])
    assert message in told, told


def test_a_chain_of_more_steps_than_a_run_makes_is_not_published() -> None:
    """Spec 2: the payload's entry and the end are visits too."""
    built = chain("x")
    for _ in range(198):
        built.then("test.ok")
    assert validate(built.document(), registry()).issues == ()
    [issue] = validate(built.then("test.ok").document(), registry()).issues
    assert issue.code == "graph_too_long"


@pytest.mark.parametrize("key", ["", " x", "a b", "é", None, "a" * 192])
def test_a_key_that_no_address_takes(key: Any) -> None:
    with pytest.raises(Invalid, match="The key of a chain"):
        chain(key)


def test_a_refused_step_leaves_the_chain_as_it_was() -> None:
    built = chain("x").then(links.count)
    before = built.document()
    with pytest.raises(Invalid):
        built.then(links.count, "0")
    assert built.document() == before
