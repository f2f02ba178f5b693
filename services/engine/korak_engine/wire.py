"""What an engine and its process say to each other, as JSON: nothing that comes from there is ever unpickled."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final, assert_never, cast

import orjson

from korak.core.facts import Depend, HandlerResult, Raised, Spawn
from korak.errors import KorakError, StaleClaim, StepFailed, TransientError
from korak.graphs import hygiene
from korak.model import Json, JsonObject, WaitKind
from korak.steps.contract import Complete, Fail, Wait, WaitItem, WaitSpec

RAISED: Final[tuple[type[KorakError], ...]] = (StepFailed, StaleClaim, TransientError, KorakError)
"""What the context raises, the nearest class first: it tells whether the attempt is tried again."""


def dumps(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent."""
    return orjson.dumps(message)


def loads(raw: bytes) -> dict[str, Any]:
    """A message as it came. Raises ValueError for what is none."""
    message = orjson.loads(raw)
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    return message


def encode_result(result: HandlerResult) -> JsonObject:
    """What a handler came to; it must have passed `outcomes.clean`."""
    match result:
        case Complete(outcome, output):
            return {"kind": "complete", "outcome": outcome, "output": output}
        case Wait(spec, output):
            items: Any = [_encode_item(item) for item in spec.items]
            return {"kind": "wait", "items": items, "wants_probe": spec.wants_probe, "output": output}
        case Fail(code, message, params):
            return {"kind": "fail", "code": code, "message": message, "params": params}
        case Raised():
            after = result.after.isoformat() if result.after else None
            told: dict[str, Any] = {
                name: getattr(result, name) for name in ("code", "message", "params", "type", "trace")
            }
            return {"kind": "raised", **told, "is_retryable": result.is_retryable, "after": after}
        case Spawn() | Depend():
            raise TypeError("what is asked of other runs never comes from a process")
        case _:
            assert_never(result)


def decode_result(told: Mapping[str, Any]) -> HandlerResult:
    """Read back what `encode_result` wrote, as an object that is still to be checked. Raises for anything else."""
    match told["kind"]:
        case "complete":
            return Complete(told["outcome"], told["output"])
        case "wait":
            items = tuple(_decode_item(item) for item in told["items"])
            return Wait(WaitSpec(items, bool(told["wants_probe"])), told["output"])
        case "fail":
            return Fail(told["code"], told["message"], told["params"])
        case "raised":
            return Raised(
                told["code"],
                told["message"],
                told["params"],
                bool(told["is_retryable"]),
                datetime.fromisoformat(told["after"]).astimezone(UTC) if told["after"] else None,
                type=told["type"],
                trace=told["trace"],
            )
        case kind:
            raise ValueError(f"a handler comes to no {kind}")


def encode_artifact(key: object, content: object, kind: object, metadata: object) -> list[Json]:
    """The arguments of `artifact()`: bytes in base64, the rest as JSON. Raises `invalid_output`."""
    if isinstance(content, (bytes, bytearray, memoryview)):
        told: Json = {"base64": base64.b64encode(content).decode()}
    else:
        told = {"json": check("/artifacts", content)}
    return [check("/artifacts", key), told, check("/artifacts", kind), check("/artifacts", metadata)]


def decode_artifact(arguments: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """Read back what `encode_artifact` wrote. Raises for anything else."""
    key, content, kind, metadata = arguments
    is_raw = "base64" in content
    return key, base64.b64decode(content["base64"]) if is_raw else content["json"], kind, metadata


def check(pointer: str, value: object) -> Json:
    """A value that JSON can carry. Raises `invalid_output` for any other."""
    if issue := hygiene.check_json(value):
        raise StepFailed("invalid_output", pointer=pointer + issue.pointer, detail=str(issue.params["why"]))
    return cast("Json", value)


def encode_error(error: KorakError) -> JsonObject:
    """An error of the context's, for the handler that asked."""
    kind = next(kind for kind in RAISED if isinstance(error, kind))
    return {"code": error.code, "message": error.message, "params": error.params, "kind": kind.__name__}


def decode_error(told: Mapping[str, Any]) -> KorakError:
    """The error to raise there."""
    kind = next(kind for kind in RAISED if kind.__name__ == told["kind"])
    error = kind(told["code"], told["message"])
    error.params = dict(told["params"])
    return error


def _encode_item(item: WaitItem) -> JsonObject:
    told = asdict(item)
    is_time = isinstance(item.due, datetime)
    return {**told, "due": item.due.isoformat() if isinstance(item.due, datetime) else item.due, "is_time": is_time}


def _decode_item(told: dict[str, Any]) -> WaitItem:
    given = {name: value for name, value in told.items() if name != "is_time"}
    due = datetime.fromisoformat(told["due"]) if told["is_time"] else told["due"]
    return WaitItem(**{**given, "kind": WaitKind(told["kind"]), "due": due})
