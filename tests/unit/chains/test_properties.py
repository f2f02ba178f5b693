"""Whatever methods are called in whatever order: what isn't refused may be published, and is always the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from korak import chain
from korak.chains import Chain
from korak.errors import Invalid
from korak.graphs.checksum import checksum
from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.graphs.validation import validate
from korak.steps.registry import Registry
from tests.support import links

Call = Callable[[Chain], Any]

NAMES = st.sampled_from([None, "a", "b", "0", "1", "2", "Some name", "é", "x" * 70])
KEYS = st.sampled_from(["rounds", "k", "more", "my key"])
RESULTS = st.sampled_from([None, "k", "result"])
HANDLERS = st.sampled_from(
    [links.count, links.fetch, links.price, links.publish, links.secretive, links.fork, links.twice, links.slow]
)
TARGETS = st.sampled_from(["0", "1", "2", "a", "b", "Some name", "$end"])
TEXTS = st.text(max_size=12)
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS | st.just({"ref": "x"}) | st.lists(st.integers(0, 3))
LIMITS = st.sampled_from([None, 5, "PT1H", {"ref": "state.limit"}])


def call(name: str, /, *given: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    """A call of a method with arguments that are drawn."""
    drawn = st.tuples(st.tuples(*given), st.fixed_dictionaries(named))
    return drawn.map(lambda both: lambda built: getattr(built, name)(*both[0], **both[1]))


CALLS = st.one_of(
    call("then", HANDLERS, NAMES),
    call("then", st.just(links.leap), NAMES, to=VALUES),
    call("then", st.just(links.Ship), NAMES, note=VALUES),
    call("parallel", st.lists(HANDLERS, max_size=3), NAMES),
    call(
        "for_each",
        KEYS,
        st.sampled_from([links.score, links.fork, links.count]),
        RESULTS,
        st.sampled_from(["all", "quorum", "first_success"]),
        st.sampled_from([None, 0, 2]),
        st.sampled_from([None, links.gather, links.fork]),
        NAMES,
    ),
    call("jumps", TARGETS),
    call("jumps"),
    call("repeat_until", TARGETS, KEYS, VALUES, max_iterations=st.sampled_from([None, 1, 7, 1_000, 1_001])),
    call("repeat_while", TARGETS, condition=st.just({"ref": "state.rounds", "op": "lt", "value": 3})),
    call("delay", st.floats(-1, 1e6), days=st.integers(0, 40)),
    call("delay", until=KEYS),
    call("wait_for_signal", TEXTS, RESULTS, NAMES),
    call("wait_for_signals", st.lists(TEXTS, max_size=3), st.sampled_from(["all", "any"]), RESULTS, NAMES),
    call("wait_for_decision", TEXTS, TEXTS, RESULTS, NAMES),
    call(
        "wait_for_approval",
        name=NAMES,
        match_payload=st.dictionaries(TEXTS, VALUES, max_size=2),
        correlation_key=st.sampled_from([None, "order", "a.b", "a b"]),
    ),
    call("wait_for_input", name=NAMES, timeout=LIMITS, timed_out=st.sampled_from([None, "a", "b", "$end"])),
    call("on_queue", st.sampled_from(["slow", "a b"])),
    call("with_priority", st.sampled_from(["high", 0, 3, 4])),
    call("max_attempts", st.integers(0, 10)),
    call("version", TEXTS),
    call("max_transitions", st.integers(0, 10_000)),
    call("max_for_each_items", st.integers(0, 10_001)),
    call("max_state_bytes", st.integers(0, 5_000)),
    call("must_complete_within", st.integers(0, 100), hours=st.integers(0, 5)),
)


def make(calls: list[Call]) -> Chain:
    """The chain of these calls, without those that are refused."""
    built = chain("x")
    for each in calls:
        with suppress(Invalid):
            each(built)
    return built


@given(st.lists(CALLS, max_size=12))
@settings(max_examples=300, deadline=None)
def test_what_is_not_refused_may_be_published(calls: list[Call]) -> None:
    """T-GUARD-8"""
    built = make(calls)
    try:
        document = built.document()
    except Invalid:
        return
    registry = Registry()
    for made in built.step_types:
        registry.add(made)
    report = validate(document, registry)
    assert report.issues == (), [(issue.pointer, issue.message) for issue in report.issues]
    assert build(document, freeze(document, registry)).start == "begin"
    again = make(calls)
    assert again.document() == document
    assert built.checksum == again.checksum == checksum(document)
