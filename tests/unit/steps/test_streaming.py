"""Steps that yield: what the decorator and the class make of them, and what is refused when they are registered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest

from korak import Outcome, StepType, chain, step
from korak.errors import InvalidStepType
from korak.graphs.freezing import freeze
from korak.model import JsonObject
from korak.steps.function import FunctionStep, get_step_type
from korak.steps.registry import Registry
from tests.support.plans import plan_of, registry


@step("shop.write")
async def write(ctx: Any, topic: str) -> AsyncIterator[str]:
    """Write about something"""
    yield topic


@step("shop.write_blocking")
def write_blocking(ctx: Any) -> Iterator[str]:
    yield "a"


def count(ctx: Any, chunks: Sequence[str], topic: str) -> dict[str, int]:
    return {"count": len(chunks), "letters": len(topic)}


@step("shop.count", complete=count)
async def counted(ctx: Any, topic: str) -> AsyncIterator[str]:
    yield topic


async def plain_stream(ctx: Any) -> AsyncIterator[str]:
    yield "in a chain"


def made(function: Callable[..., Any]) -> FunctionStep:
    found = get_step_type(function)
    assert found is not None
    return found


def test_a_function_that_yields_streams() -> None:
    contract = made(write).contract()
    assert (contract.streams, made(write).runs_in, made(write_blocking).runs_in) == (True, "async", "thread")
    assert contract.label == "Write about something"
    assert contract.config_schema["required"] == ["topic"]
    assert contract.output_schema == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }


def test_its_complete_tells_the_output() -> None:
    schema = made(counted).contract().output_schema
    assert schema is not None
    assert schema["additionalProperties"] == {"type": "integer"}


def test_publishing_keeps_that_a_type_streams_and_adds_nothing_to_the_others() -> None:
    types = Registry()
    types.add(write)
    document: JsonObject = {
        "schema": "korak.graph/v1",
        "key": "w",
        "name": "w",
        "nodes": [
            {"id": "start", "type": "trigger", "config": {"on": "manual"}},
            {"id": "write", "type": "shop.write", "config": {"topic": "t"}},
            {"id": "done", "type": "end", "config": {}},
        ],
        "edges": [{"from": "start", "to": "write"}, {"from": "write", "to": "done"}],
    }
    frozen: Any = freeze(document, types)["types"]
    assert (frozen["shop.write@1"]["streams"], "streams" in frozen["end@1"]) == (True, False)


def test_a_chain_takes_what_streams_as_it_stands() -> None:
    built = chain("stream").then(plain_stream)
    for kind in built.step_types:
        registry().add(kind)
    [node] = [node for node in plan_of(built.document()).nodes.values() if node.type.endswith(".plain_stream")]
    assert node.streams


class Streaming(StepType):
    key = "shop.class"

    async def handle(self, ctx: Any) -> AsyncIterator[str]:
        yield "a"


def test_a_class_streams_too() -> None:
    kind = Registry().add(Streaming)
    assert (kind.streams, kind.runs_in, kind.contract().streams) == (True, "async", True)
    assert kind.complete(None, ["a", "b"]) == {"text": "ab"}


async def other_type(ctx: Any) -> AsyncIterator[int]:
    yield 1


async def plain(ctx: Any) -> dict[str, Any]:
    return {}


async def joins(ctx: Any, chunks: Sequence[str]) -> dict[str, Any]:
    return {}


def stray(ctx: Any, chunks: Sequence[str], nothing: int) -> dict[str, Any]:
    return {}


def lists(ctx: Any, chunks: Sequence[str]) -> list[str]:
    return []


def blocking(ctx: Any) -> Iterator[str]:
    yield "a"


REFUSED: list[tuple[Callable[..., Any], Any, str]] = [
    (other_type, None, "strings"),
    (plain, joins, "yields nothing"),
    (blocking, joins, "must both be async"),
    (plain_stream, stray, "nothing"),
    (plain_stream, lists, "no object"),
]


@pytest.mark.parametrize(("function", "complete", "why"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(function: Callable[..., Any], complete: Any, why: str) -> None:
    with pytest.raises(InvalidStepType, match=why):
        step("shop.bad", complete=complete)(function)


class YieldsElsewhere(StepType):
    key = "shop.elsewhere"

    async def handle(self, ctx: Any) -> Outcome:
        return Outcome("next")

    async def resume(self, ctx: Any, signal: Any) -> AsyncIterator[str]:  # type: ignore[override]  # what is tested
        yield "a"


class CompletesAsync(StepType):
    key = "shop.async"

    def handle(self, ctx: Any) -> Iterator[str]:
        yield "a"

    async def complete(self, ctx: Any, chunks: Sequence[str]) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("kind", "why"), [(YieldsElsewhere, "resume yields"), (CompletesAsync, "complete may be async")]
)
def test_a_class_that_does_not_fit_is_refused(kind: type[StepType], why: str) -> None:
    with pytest.raises(InvalidStepType, match=why):
        Registry().add(kind)
