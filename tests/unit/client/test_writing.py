"""What a client refuses to send, with a code and a place, and what it sends as it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from korak.client import writing
from korak.errors import Invalid

ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)

WRONG: dict[str, tuple[Any, str]] = {
    "set": ({"input": {"a": {1}}}, "/input/a"),
    "key": ({"input": {1: 2}}, "/input/1"),
    "long integer": ({"input": {"a": 2**64}}, "/input/a"),
    "surrogate": ({"input": {"a": "\ud800"}}, "/input/a"),
    "no number": ({"input": {"a": float("nan")}}, "/input/a"),
    "no number in a tuple": ({"input": {"a": (1, float("inf"))}}, "/input/a/1"),
    "object": ({"input": {"a": object()}}, "/input/a"),
    "endless": ({"input": ENDLESS}, "/input" + "/0" * 63),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_body_that_is_no_json_is_not_sent(case: str) -> None:
    body, pointer = WRONG[case]
    with pytest.raises(Invalid) as refused:
        writing.write(body)
    assert (refused.value.code, [issue.pointer for issue in refused.value.issues]) == ("invalid_json", [pointer])


def test_what_can_be_written_is() -> None:
    assert writing.write({"a": (1, 2), "at": datetime(2026, 1, 2, tzinfo=UTC)}) == (
        b'{"a":[1,2],"at":"2026-01-02T00:00:00+00:00"}'
    )
    assert writing.write({"é": None, "n": 1.5}) == '{"é":null,"n":1.5}'.encode()


@pytest.mark.parametrize("key", ["", "x" * 192, "é", "a\nb", 5, ["a"]])
def test_an_empty_key_or_none_at_all_is_not_one_of_the_request_s_own(key: Any) -> None:
    with pytest.raises(Invalid, match="Idempotency-Key is wrong: it has 1 to 191 printable characters"):
        writing.read_key(key)
    assert writing.read_key(None) != writing.read_key(None)
    assert writing.read_key("2026-W14") == "2026-W14"


@pytest.mark.parametrize("wait", ["x", -1, float("nan"), float("inf"), True, None])
def test_a_wait_is_a_number_of_seconds(wait: Any) -> None:
    with pytest.raises(Invalid, match="wait is wrong: it is a number of seconds"):
        writing.read_wait(wait)
    assert writing.read_wait(2.5) == 2.5
