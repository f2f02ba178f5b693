"""Bodies: what goes in comes out, 32 ids at most, and nothing else is taken for a message."""

from __future__ import annotations

import contextlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.broker.messages import (
    MAX_BODY,
    MAX_IDS,
    FireEscalation,
    MalformedMessage,
    Message,
    ResumeStep,
    RunStep,
    decode,
    decode_ended,
    encode,
    encode_ended,
    pack,
)
from korak.model import SignalKind

IDS = st.integers(min_value=1, max_value=2**63 - 1)
WAITS = st.tuples(IDS, st.none() | IDS, st.sampled_from(SignalKind))
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(RunStep, st.lists(IDS, max_size=100).map(tuple)),
    st.builds(ResumeStep, st.lists(WAITS, max_size=100).map(tuple)),
    st.builds(FireEscalation, st.lists(IDS, max_size=100).map(tuple)),
)


def test_bodies_are_those_of_the_design() -> None:
    assert encode(RunStep((1, 2, 3))) == b'{"kind":"RunStep","step_runs":[1,2,3]}'
    assert encode(ResumeStep(((1, 2, SignalKind.EVENT),))) == b'{"kind":"ResumeStep","waits":[[1,2,"event"]]}'
    assert encode(FireEscalation((3,))) == b'{"kind":"FireEscalation","escalations":[3]}'


@given(st.lists(MESSAGES, max_size=6))
def test_what_is_packed_and_encoded_comes_out_again(messages: list[Message]) -> None:
    """JB-2: ids only, each once, none lost, in bodies that a NOTIFY can carry too."""
    came: set[object] = set()
    packed = pack(messages)
    for message in packed:
        body = encode(message)
        assert len(body) <= MAX_BODY
        assert decode(body) == message == decode(body.decode())
        came |= _ids(message)
    assert came == {one for message in messages for one in _ids(message)}
    assert sum(len(message) for message in packed) == len(came)


@given(st.integers(min_value=0, max_value=500))
def test_packing_makes_as_few_messages_as_there_can_be(count: int) -> None:
    packed = pack([RunStep((number,)) for number in range(1, count + 1)])
    assert len(packed) == -(-count // MAX_IDS)
    assert all(0 < len(message) <= MAX_IDS for message in packed)


@pytest.mark.parametrize("count", [0, MAX_IDS + 1])
def test_encoding_refuses_what_packing_would_change(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 32"):
        encode(RunStep(tuple(range(1, count + 1))))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"kind": "RunStep"}',
        b'{"kind": "RunStep", "step_runs": []}',
        b'{"kind": "RunStep", "step_runs": {"1": 1}}',
        b'{"kind": "RunStep", "step_runs": [true]}',
        b'{"kind": "RunStep", "step_runs": [1.0]}',
        b'{"kind": "RunStep", "step_runs": ["1"]}',
        b'{"kind": "RunStep", "step_runs": [0]}',
        b'{"kind": "RunStep", "step_runs": [-1]}',
        b'{"kind": "RunStep", "step_runs": [9223372036854775808]}',
        b'{"kind": "RunStep", "step_runs": [1e400]}',
        b'{"kind": "Runstep", "step_runs": [1]}',
        b'{"kind": ["RunStep"], "step_runs": [1]}',
        b'{"kind": "ResumeStep", "waits": [1]}',
        b'{"kind": "ResumeStep", "waits": [[1, 2]]}',
        b'{"kind": "ResumeStep", "waits": [[1, 2, "event", 4]]}',
        b'{"kind": "ResumeStep", "waits": [[1, 2, "never"]]}',
        b'{"kind": "ResumeStep", "waits": [[1, 2, null]]}',
        b'{"kind": "ResumeStep", "waits": [[1, 2, {}]]}',
        b'{"kind": "ResumeStep", "waits": [[null, 2, "event"]]}',
        b'{"kind": "FireEscalation", "escalations": 3}',
        b"[" * 100_000,
        orjson.dumps({"kind": "RunStep", "step_runs": list(range(1, 34))}),
        orjson.dumps({"kind": "RunStep", "step_runs": [1], "more": "x" * MAX_BODY}),
    ],
)
def test_what_is_no_message_says_why(body: bytes) -> None:
    with pytest.raises(MalformedMessage) as raised:
        decode(body)
    assert raised.value.code == "malformed_message"
    assert raised.value.why in raised.value.message


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(body: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        assert decode(body)


def test_members_of_a_later_release_are_left_out() -> None:
    assert decode(b'{"kind": "RunStep", "step_runs": [1], "hint": {"a": 1}}') == RunStep((1,))


@given(st.lists(st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26), max_size=700))
def test_the_ended_come_out_again(ulids: list[str]) -> None:
    bodies = encode_ended(ulids)
    assert [ulid for body in bodies for ulid in decode_ended(body)] == ulids
    assert all(0 < len(body) <= MAX_BODY for body in bodies)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"ended": 1}', b'{"ended": [1]}', b"{}"])
def test_what_tells_of_nobody_is_nobody(body: bytes) -> None:
    assert decode_ended(body) == []


def _ids(message: Message) -> set[object]:
    match message:
        case RunStep():
            return {("run", step_run) for step_run in message.step_runs}
        case ResumeStep():
            return {("resume", wait) for wait in message.waits}
        case FireEscalation():
            return {("fire", escalation) for escalation in message.escalations}
