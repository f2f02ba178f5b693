"""The three messages: ids and nothing else, at most 32 a body (JB-1, JB-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, assert_never

import orjson

from korak.errors import KorakError
from korak.model import Json, JsonObject, SignalKind

MAX_IDS: Final = 32
"""How many ids one body carries."""

MAX_BODY: Final = 8000
"""Bytes of a body, so that a NOTIFY can carry it too; 32 of the longest ids take a quarter of it."""

MAX_ENDED: Final = 200
"""How many ulids one body carries that tells which instances have ended."""

_MAX_ID: Final = 2**63 - 1

T = TypeVar("T")

ResumedWait: TypeAlias = tuple[int, int | None, SignalKind]
"""A step run, the wait that woke it (None for a probe) and what it is told about it."""


class MalformedMessage(KorakError):
    """A body that can't be read. It goes to the dead letters; nothing else does."""

    code = "malformed_message"

    def __init__(self, why: str) -> None:
        super().__init__(why=why)
        self.why = why


@dataclass(frozen=True, slots=True)
class RunStep:
    """These step runs are ready to be claimed."""

    step_runs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.step_runs)


@dataclass(frozen=True, slots=True)
class ResumeStep:
    """These parked step runs have something that wakes them."""

    waits: tuple[ResumedWait, ...]

    def __len__(self) -> int:
        return len(self.waits)


@dataclass(frozen=True, slots=True)
class FireEscalation:
    """These levels of escalation are due."""

    escalations: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.escalations)


Message: TypeAlias = RunStep | ResumeStep | FireEscalation
"""What a body carries. `len()` of one is how many ids it has."""


def pack(messages: Iterable[Message]) -> list[Message]:
    """The same ids in as few messages as possible, each with at most `MAX_IDS`, each id of a kind once."""
    step_runs: dict[int, None] = {}
    waits: dict[ResumedWait, None] = {}
    escalations: dict[int, None] = {}
    for message in messages:
        match message:
            case RunStep():
                step_runs.update(dict.fromkeys(message.step_runs))
            case ResumeStep():
                waits.update(dict.fromkeys(message.waits))
            case FireEscalation():
                escalations.update(dict.fromkeys(message.escalations))
            case _:
                assert_never(message)
    return [
        *(RunStep(part) for part in _pages(step_runs)),
        *(ResumeStep(part) for part in _pages(waits)),
        *(FireEscalation(part) for part in _pages(escalations)),
    ]


def encode(message: Message) -> bytes:
    """The body of one message. A ValueError for one that `pack` would split or drop."""
    if not 0 < len(message) <= MAX_IDS:
        raise ValueError(f"a message carries 1 to {MAX_IDS} ids, this one has {len(message)}")
    match message:
        case RunStep():
            return orjson.dumps({"kind": "RunStep", "step_runs": message.step_runs})
        case ResumeStep():
            return orjson.dumps({"kind": "ResumeStep", "waits": message.waits})
        case FireEscalation():
            return orjson.dumps({"kind": "FireEscalation", "escalations": message.escalations})
        case _:
            assert_never(message)


def decode(body: bytes | str) -> Message:
    """The message of a body; MalformedMessage says why it is none. Members that aren't known are left out."""
    if len(body) > MAX_BODY:
        raise MalformedMessage(f"the body has more than {MAX_BODY} bytes")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedMessage(f"the body isn't JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedMessage("the body isn't an object")
    match document.get("kind"):
        case "RunStep":
            return RunStep(_read(document, "step_runs", _read_id))
        case "ResumeStep":
            return ResumeStep(_read(document, "waits", _read_wait))
        case "FireEscalation":
            return FireEscalation(_read(document, "escalations", _read_id))
        case _:
            raise MalformedMessage("the kind isn't known")


def encode_ended(ulids: Sequence[str]) -> list[bytes]:
    """The bodies that tell that these instances have ended."""
    pages = (ulids[start : start + MAX_ENDED] for start in range(0, len(ulids), MAX_ENDED))
    return [orjson.dumps({"ended": list(page)}) for page in pages]


def decode_ended(body: bytes | str) -> list[str]:
    """The ulids of such a body; none of one that can't be read, since who waits for them also looks."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    ulids = document.get("ended") if isinstance(document, dict) else None
    return [ulid for ulid in ulids if isinstance(ulid, str)] if isinstance(ulids, list) else []


def _pages(ids: dict[T, None]) -> Iterable[tuple[T, ...]]:
    listed = tuple(ids)
    return (listed[start : start + MAX_IDS] for start in range(0, len(listed), MAX_IDS))


def _read(document: JsonObject, name: str, read: Callable[[Json], T]) -> tuple[T, ...]:
    ids = document.get(name)
    if not isinstance(ids, list) or not 0 < len(ids) <= MAX_IDS:
        raise MalformedMessage(f"{name} isn't a list of 1 to {MAX_IDS} ids")
    return tuple(read(value) for value in ids)


def _read_id(value: Json) -> int:
    if type(value) is not int or not 0 < value <= _MAX_ID:
        raise MalformedMessage("an id isn't a positive 64-bit integer")
    return value


def _read_wait(value: Any) -> ResumedWait:
    if not isinstance(value, list) or len(value) != 3:
        raise MalformedMessage("a wait isn't [step run, wait, kind]")
    step_run, wait, kind = value
    try:
        signal = SignalKind(kind)
    except ValueError:
        raise MalformedMessage("the kind of a wait isn't known") from None
    return _read_id(step_run), None if wait is None else _read_id(wait), signal
