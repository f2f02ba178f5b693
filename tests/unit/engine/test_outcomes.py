"""The one place where what a handler did becomes one of a closed union (RT-8, RT-10, LM-6, 13.5, 13.6)."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.codes import MESSAGES
from korak.core.facts import Raised
from korak.errors import (
    Invalid,
    KorakError,
    StaleClaim,
    StepError,
    StepFailed,
    StepRetry,
    TransientError,
)
from korak.graphs import hygiene
from korak.graphs.paths import MissingValue
from korak.model import JsonObject, WaitKind
from korak.steps.contract import Complete, Fail, Outcome, StepResult, Wait, WaitItem, WaitSpec
from korak_engine import outcomes, texts
from tests.unit.engine import hostile

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LIMIT = 64 << 10


class Colour(StrEnum):
    RED = "red"


def read(returned: object, limit: int = LIMIT) -> Any:
    """As it would be recorded."""
    return outcomes.tidy(outcomes.read(returned, limit), (), limit)


def describe(error: BaseException, *secrets: str) -> Raised:
    """As it would be recorded."""
    result = outcomes.tidy(outcomes.describe(error, NOW), secrets, LIMIT)
    assert isinstance(result, Raised)
    return result


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, Complete("next", {})),
        ({"total": 7}, Complete("next", {"total": 7})),
        ({"colour": Colour.RED}, Complete("next", {"colour": "red"})),
        (Outcome("declined"), Complete("declined", {})),
        (Outcome("declined", {"why": "poor"}), Complete("declined", {"why": "poor"})),
        (StepResult.complete(), Complete("next", {})),
        (StepResult.complete("paid", {"id": 1}), Complete("paid", {"id": 1})),
        (StepResult.fail("no_stock", "none left"), Fail("no_stock", "none left")),
        (StepResult.wait(WaitSpec.signal("go"), {"a": 1}), Wait(WaitSpec.signal("go"), {"a": 1})),
    ],
)
def test_13_5_what_a_step_may_return(returned: object, expected: object) -> None:
    assert read(returned) == expected


@pytest.mark.parametrize(
    ("returned", "pointer"),
    [
        ([1, 2], ""),
        (7, ""),
        ("text", ""),
        (True, ""),
        (object(), ""),
        (Raised("exception"), ""),
        (OrderedDict(a=1), ""),
        ({"a": {1, 2}}, "/a"),
        ({"a": [1, (2,)]}, "/a/1"),
        ({"a": float("nan")}, "/a"),
        ({"a": float("inf")}, "/a"),
        ({"a": "\0"}, "/a"),
        ({"a": "\ud800"}, "/a"),
        ({"a": 1 << 70}, "/a"),
        ({"a": datetime(2030, 1, 1, tzinfo=UTC)}, "/a"),
        (Complete("next", [1]), ""),  # type: ignore[arg-type]  # what a handler may do all the same
        (Outcome("next", "x"), ""),  # type: ignore[arg-type]  # likewise
        (Complete(7, {}), "/outcome"),  # type: ignore[arg-type]  # likewise
        (Complete("\0", {}), "/outcome"),
        (Complete("x" * 192, {}), "/outcome"),
        (Wait("soon"), "/spec"),  # type: ignore[arg-type]  # likewise
        (Wait(WaitSpec(("soon",))), "/spec/0"),  # type: ignore[arg-type]  # likewise
        (Wait(WaitSpec.signal("go", {"a": {1}})), "/spec/0/match/a"),  # type: ignore[dict-item]  # likewise
        (Wait(WaitSpec.signal(7)), "/spec/0"),  # type: ignore[arg-type]  # likewise
        (Wait(WaitSpec((WaitItem(WaitKind.TIMER, due=datetime(2030, 1, 1)),))), "/spec/0/due"),  # noqa: DTZ001
        (Wait(WaitSpec.condition({"cel": "\0"})), "/spec/0/condition/cel"),
        (hostile.Evil(), ""),
    ],
)
def test_13_6_what_can_not_be_stored_is_invalid_output_with_its_pointer(returned: object, pointer: str) -> None:
    result = read(returned)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("invalid_output", False)
    assert result.params["pointer"] == pointer
    assert result.params["detail"]


def test_an_object_that_holds_itself_or_is_too_deep_is_invalid_output() -> None:
    cycle: dict[str, Any] = {}
    cycle["a"] = cycle["b"] = cycle
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}

    assert read(cycle).code == read(deep).code == "invalid_output"


def test_lm_6_64_kib_pass_and_one_byte_more_does_not() -> None:
    envelope = hygiene.size({"text": ""})
    largest: JsonObject = {"text": "x" * (LIMIT - envelope)}
    assert hygiene.size(largest) == LIMIT

    assert read(largest) == Complete("next", largest)
    refused = read({"text": "x" * (LIMIT - envelope + 1)})
    assert (refused.code, refused.params["size"], refused.params["limit"]) == ("invalid_output", LIMIT + 1, LIMIT)
    assert refused.is_retryable is False


def test_lm_6_a_wait_has_the_same_bound() -> None:
    assert read(Wait(WaitSpec.timer(60), {"text": "x" * LIMIT})).code == "invalid_output"
    assert read(Wait(WaitSpec.signal("go", {"a": "x" * LIMIT}))).code == "invalid_output"


def test_what_was_returned_is_the_handlers_and_what_is_recorded_is_not() -> None:
    kept: dict[str, Any] = {"list": [1]}
    match: dict[str, Any] = {"order": "7"}
    complete, wait = read(kept), read(Wait(WaitSpec.event("paid", MappingProxyType(match)), kept))
    kept["list"].append(object())
    match["order"] = object()

    assert complete.output == wait.output == {"list": [1]}
    assert wait.spec.items[0].match == {"order": "7"}


def test_a_wait_keeps_all_that_it_says() -> None:
    spec = (
        WaitSpec.signals(["a", "b"], "all", {"x": [1]}, correlation="order.id")
        .also_at(NOW)
        .timeout("P3D", "late")
        .probe()
    )

    assert read(Wait(spec)) == Wait(spec, {})


class Whim(StepFailed):
    """Says of itself whether it is tried again."""

    is_retryable = True


@pytest.mark.parametrize(
    ("error", "code", "is_retryable"),
    [
        (StepFailed("no_stock", "none"), "no_stock", False),
        (StepRetry("busy"), "busy", True),
        (StepError("odd"), "odd", False),
        (Whim("whim"), "whim", True),
        (MissingValue("state.x"), "missing_value", False),
        (Invalid("invalid_document", count=1), "invalid_document", False),
        (StaleClaim(), "stale_attempt", False),
        (KorakError(), "internal", False),
        (TransientError("unavailable", what="The database"), "unavailable", True),
        (ValueError("bad"), "exception", True),
        (SystemExit(3), "exception", True),
    ],
)
def test_rt_8_and_rt_10_the_raised_exception_decides(error: BaseException, code: str, is_retryable: bool) -> None:
    raised = describe(error)

    assert (raised.code, raised.is_retryable) == (code, is_retryable)


def test_the_raised_exception_decides_and_its_cause_is_recorded() -> None:
    def fail() -> None:
        try:
            raise StepRetry("busy", "try later")
        except StepRetry as error:
            raise StepFailed("gave_up", "for good") from error

    with pytest.raises(StepFailed) as caught:
        fail()
    raised = describe(caught.value)

    assert (raised.code, raised.message, raised.is_retryable) == ("gave_up", "for good", False)
    assert raised.type == "korak.errors.StepFailed"
    assert "try later" in (raised.trace or "")
    assert "direct cause" in (raised.trace or "")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (90, NOW + timedelta(seconds=90)),
        (0.5, NOW + timedelta(seconds=0.5)),
        (-5, NOW),
        (timedelta(hours=1), NOW + timedelta(hours=1)),
        (NOW + timedelta(days=1), NOW + timedelta(days=1)),
        (datetime(2030, 1, 2), datetime(2030, 1, 2, tzinfo=UTC)),  # noqa: DTZ001
        (datetime(2030, 1, 2, 1, tzinfo=UTC).astimezone(), datetime(2030, 1, 2, 1, tzinfo=UTC)),
        (float("inf"), NOW + texts.LONGEST_WAIT),
        (timedelta.max, NOW + texts.LONGEST_WAIT),
        (datetime.max.replace(tzinfo=UTC), NOW + texts.LONGEST_WAIT),
        (float("nan"), None),
        (True, None),
        ("soon", None),
        (None, None),
    ],
)
def test_rt_4_a_retry_may_say_when(after: Any, expected: datetime | None) -> None:
    assert describe(StepRetry("busy", after=after)).after == expected


def test_rt_10_an_unknown_exception_keeps_its_type_text_and_trace() -> None:
    try:
        raise ValueError("bad\0 \ud800 thing")
    except ValueError as error:
        raised = describe(error)

    assert (raised.message, raised.type) == ("bad\N{REPLACEMENT CHARACTER} ? thing", "ValueError")
    assert "test_outcomes.py" in (raised.trace or "")
    assert hygiene.check_json([raised.message, raised.trace]) is None


def test_long_texts_are_cut_the_message_behind_and_the_trace_in_front() -> None:
    raised = describe(ValueError("é" * 200_000))

    assert len(raised.message or "") == outcomes.MAX_MESSAGE
    assert len((raised.trace or "").encode()) <= outcomes.MAX_TRACE
    assert (raised.trace or "").endswith("é\n")


def test_an_error_whose_text_raises_is_recorded_all_the_same() -> None:
    raised = describe(hostile.Unspeakable())

    assert raised.code == "exception"
    assert raised.message == "a Unspeakable that can't be shown"


class Liar(KorakError):
    """Carries what nothing can store."""

    def __init__(self) -> None:
        super().__init__("lies")
        self.code: Any = ["a", "list"]
        self.params: Any = {"ok": 1, "bad": {1}, 3: "key", "nul": "\0"}
        self.message: Any = object()


class Trap(KorakError):
    """Raises when it is read."""

    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(name)


def test_what_an_error_carries_is_made_storable() -> None:
    raised = describe(Liar())

    assert raised.code == "['a', 'list']"
    assert raised.params == {"ok": 1}
    assert (raised.message or "").startswith("<object")
    assert describe(Trap()).code == "exception"
    assert read(Fail("x" * 100, 7)).code == "x" * 64  # type: ignore[arg-type]  # what a handler may do all the same
    assert describe(StepFailed("\0" * 100)).code == "\N{REPLACEMENT CHARACTER}" * 64
    assert describe(StepFailed("big", big="x" * 100_000)).params == {"truncated": True}


def test_secrets_are_scrubbed_before_anything_is_cut() -> None:
    secret = "s3cr3t-" + "k" * 40
    message = "x" * (outcomes.MAX_MESSAGE - 10) + secret
    raised = describe(StepFailed("bad_" + secret, message, key=secret, deep=[{secret: secret}]), secret)

    assert "s3cr3t" not in json.dumps([raised.code, raised.message, raised.params, raised.trace])
    assert raised.code == "bad_[secret]"


def test_secrets_are_scrubbed_from_results() -> None:
    secret = "hunter22"
    results: list[Complete | Wait | Fail] = [
        Complete("next", {"a": [secret]}),
        Complete(secret, {}),
        Wait(WaitSpec.signal("go", {"key": secret}).timeout("P1D"), {secret: 1}),
        Fail("no", secret, {"a": secret}),
    ]
    for result in results:
        scrubbed = outcomes.tidy(result, [secret], LIMIT)
        assert type(scrubbed) is type(result)
        assert secret not in repr(scrubbed)


def test_a_result_that_scrubbing_makes_too_long_is_invalid_output() -> None:
    grown = outcomes.tidy(Complete("next", {"a": "x" * 1000}), ["x"], 2000)

    assert isinstance(grown, Raised)
    assert grown.code == "invalid_output"


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
    max_leaves=20,
)


@given(ANYTHING | ANYTHING.map(lambda value: {"a": value}), st.integers(2, 200))
def test_anything_returned_becomes_an_output_that_can_be_stored_or_invalid_output(value: Any, limit: int) -> None:
    result = read(value, limit)

    match result:
        case Complete(outcome, output):
            assert outcome == "next"
            assert output == ({} if value is None else value)
            assert hygiene.check_json(output) is None
            assert hygiene.size(output) <= limit
        case Raised():
            assert (result.code, result.is_retryable) == ("invalid_output", False)
            assert value is not None
            is_storable = isinstance(value, dict) and hygiene.check_json(value) is None
            assert not is_storable or hygiene.size(value) > limit
        case _:
            pytest.fail("a value is neither a wait nor a failure")
    assert hygiene.check_json(getattr(result, "params", {})) is None


@given(
    st.one_of(st.sampled_from(sorted(MESSAGES)), st.text(), ANYTHING),
    ANYTHING,
    st.dictionaries(st.text(), ANYTHING),
    st.booleans(),
)
def test_anything_raised_can_be_stored(code: Any, message: Any, params: dict[str, Any], is_retryable: bool) -> None:
    error: StepError = StepRetry("x") if is_retryable else StepFailed("x")
    error.code, error.message, error.params = code, message, params
    raised = describe(error, "0")

    assert hygiene.check_json([raised.code, raised.message, raised.params, raised.type, raised.trace]) is None
    assert 0 < len(raised.code) <= outcomes.MAX_CODE
    assert raised.is_retryable is is_retryable
    assert hygiene.size(raised.params) <= outcomes.MAX_PARAMS


@given(st.text(min_size=1, max_size=12), st.text(max_size=30), st.text(max_size=30))
def test_no_secret_is_left_in_any_text(secret: str, before: str, after: str) -> None:
    raised = describe(ValueError(before + secret + after), secret)

    assert secret not in (raised.message or "").replace("[secret]", "")
