"""What an attempt came to, as the one closed union: from what was returned, and from what was raised."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, assert_never

import orjson

from korak.core.facts import Depend, HandlerResult, Raised, Spawn
from korak.errors import KorakError, StepError, StepFailed, TransientError
from korak.graphs import hygiene
from korak.model import JsonObject, WaitKind
from korak.steps.results import Complete, Fail, Result, Wait, read_result
from korak.steps.secrets import scrub, scrub_json
from korak.steps.waits import WaitItem, WaitSpec
from korak_engine import texts

MAX_CODE: Final = 64
MAX_MESSAGE: Final = 2_000
MAX_OUTCOME: Final = 191
MAX_PARAMS: Final = 16 << 10
MAX_TRACE: Final = 64 << 10
MAX_TYPE: Final = 191

WRITTEN: Final = ("key", "correlation", "condition", "poll", "outcome", "since", "mode", "group")
"""What of a wait is JSON as the handler gave it."""


def settle(call: Callable[[], object], now: Callable[[], datetime], limit: int) -> object:
    """Call a handler; what it raised, or what it returned as the union, or an awaitable that is still to be awaited."""
    try:
        returned = call()
        return returned if inspect.isawaitable(returned) else read(returned, limit)
    except BaseException as error:  # sys.exit and the like end the attempt, never the thread or the engine
        return describe(error, now())


def read(returned: object, limit: int) -> HandlerResult:
    """What a handler returned; what can't be stored, or is over `limit` bytes, is `invalid_output` (LM-6, RT-8)."""
    try:
        return _own(read_result(returned, max_bytes=limit), limit)
    except StepFailed as refused:
        params: JsonObject = {name: value for name, value in refused.params.items() if value is not None}
        return Raised(refused.code, refused.message, params, is_retryable=False)
    except BaseException as error:  # what is returned may be of a class that does anything when it is read
        detail = f"reading it raised {type(error).__name__}"
        return Raised("invalid_output", None, {"pointer": "", "detail": detail}, is_retryable=False)


def describe(error: BaseException, now: datetime) -> Raised:
    """What a handler raised: the raised exception decides whether it is tried again, its causes stand in the trace.

    `StepError` speaks for itself. Any other error of Korak's is permanent with its own code, unless it passes by itself
    (RT-8). All else is `exception`, and retried (RT-10).
    """
    kind, trace = texts.name_type(error), texts.format_trace(error)
    try:
        if not isinstance(error, KorakError):
            return Raised("exception", texts.say(error), type=kind, trace=trace)
        after = texts.resolve_after(error.after, now) if isinstance(error, StepError) else None
        is_retryable = error.is_retryable if isinstance(error, StepError) else isinstance(error, TransientError)
        return Raised(error.code, error.message, error.params, bool(is_retryable), after, type=kind, trace=trace)
    except BaseException:  # its own members may raise, too
        return Raised("exception", type=kind, trace=trace)


def clean(result: HandlerResult) -> HandlerResult:
    """The same, able to be stored: what a handler's own error carries may be anything."""
    match result:
        case Complete() | Wait() | Spawn() | Depend():
            return result
        case Fail(code, message, params):
            return Fail(_clean_code(code), _clean_text(message), _clean_params(params))
        case Raised():
            return replace(
                result,
                code=_clean_code(result.code),
                message=_clean_text(result.message),
                params=_clean_params(result.params),
                type=_clean_text(result.type),
                trace=_clean_text(result.trace),
            )
        case _:
            assert_never(result)


def tidy(result: HandlerResult, secrets: Collection[str], limit: int) -> HandlerResult:
    """What is recorded: clean, without the secrets that were revealed in the attempt, and no longer than it may be."""
    result = clean(result)
    if secrets:
        result = _scrub(result, secrets, limit)
    match result:
        case Complete() | Wait() | Spawn() | Depend():
            return result
        case Fail(code, message, params):
            return Fail(code[:MAX_CODE], texts.clip(message, MAX_MESSAGE), _bound(params))
        case Raised():
            return replace(
                result,
                code=result.code[:MAX_CODE],
                message=texts.clip(result.message, MAX_MESSAGE),
                params=_bound(result.params),
                type=texts.clip(result.type, MAX_TYPE),
                trace=texts.clip_bytes(result.trace, MAX_TRACE),
            )
        case _:
            assert_never(result)


def _scrub(result: HandlerResult, secrets: Collection[str], limit: int) -> HandlerResult:
    match result:
        case Spawn() | Depend():
            return result
        case Complete(outcome, output):
            return read(Complete(scrub(outcome, secrets), _scrub_object(output, secrets)), limit)
        case Wait(spec, output):
            items = tuple(_scrub_item(item, secrets) for item in spec.items)
            return read(Wait(WaitSpec(items, spec.wants_probe), _scrub_object(output, secrets)), limit)
        case Fail(code, message, params):
            return Fail(scrub(code, secrets), _scrub_text(message, secrets), _scrub_object(params, secrets))
        case Raised():
            return replace(
                result,
                code=scrub(result.code, secrets),
                message=_scrub_text(result.message, secrets),
                params=_scrub_object(result.params, secrets),
                trace=_scrub_text(result.trace, secrets),
            )
        case _:
            assert_never(result)


def _scrub_item(item: WaitItem, secrets: Collection[str]) -> WaitItem:
    due = item.due if isinstance(item.due, datetime) else scrub_json(item.due, secrets)
    match = None if item.match is None else _scrub_object({**item.match}, secrets)
    scrubbed: Any = {name: scrub_json(getattr(item, name), secrets) for name in WRITTEN}
    return replace(item, **scrubbed, due=due, match=match)


def _scrub_text(text: str | None, secrets: Collection[str]) -> str | None:
    return None if text is None else scrub(text, secrets)


def _scrub_object(value: JsonObject, secrets: Collection[str]) -> JsonObject:
    scrubbed = scrub_json(value, secrets)
    return scrubbed if isinstance(scrubbed, dict) else {}


def _own(result: Result, limit: int) -> HandlerResult:
    """A copy that the handler can't change any more, of what may be in a subclass."""
    match result:
        case Complete(outcome, output):
            return Complete(_own_outcome(outcome), _own_object(output))
        case Wait(spec, output):
            return Wait(_own_spec(spec, limit), _own_object(output))
        case Fail(code, message, params):
            return Fail(code, message, params)
        case _:
            assert_never(result)


def _own_outcome(outcome: object) -> str:
    if not isinstance(outcome, str) or len(outcome) > MAX_OUTCOME:
        raise _refuse("/outcome", "an outcome is named by a short string")
    plain = str.__str__(outcome)
    if plain.isascii() and plain.isprintable():
        return plain
    if issue := hygiene.check_json(plain):
        raise _refuse("/outcome", str(issue.params["why"]))
    return plain


def _own_object(output: object) -> JsonObject:
    if type(output) is not dict:
        raise _refuse("", f"an output is an object, not {type(output).__name__}")
    return orjson.loads(orjson.dumps(output)) if output else {}


def _own_spec(spec: object, limit: int) -> WaitSpec:
    if not isinstance(spec, WaitSpec):
        raise _refuse("/spec", f"a step waits for a WaitSpec, not {type(spec).__name__}")
    items = tuple(_own_item(item, f"/spec/{number}", limit) for number, item in enumerate(spec.items))
    return WaitSpec(items, bool(spec.wants_probe))


def _own_item(item: object, where: str, limit: int) -> WaitItem:
    if not isinstance(item, WaitItem) or not isinstance(item.kind, WaitKind):
        raise _refuse(where, "it isn't made by WaitSpec")
    due: Any = item.due
    written = {name: getattr(item, name) for name in WRITTEN}
    written["match"] = None if item.match is None else dict(item.match)
    written["due"] = None if isinstance(due, datetime) else due
    if issue := hygiene.check_json(written):
        raise _refuse(where + issue.pointer, str(issue.params["why"]))
    if (size := hygiene.size(written)) > limit:
        raise _refuse(where, f"it is {size} bytes, {limit} at most")
    if not all(isinstance(written[name], str | None) for name in ("key", "correlation", "outcome", "group")):
        raise _refuse(where, "names are strings")
    if isinstance(due, datetime) and due.tzinfo is None:
        raise _refuse(f"{where}/due", "a time needs a time zone")
    owned = orjson.loads(orjson.dumps(written))
    return WaitItem(item.kind, **{**owned, "due": due if isinstance(due, datetime) else owned["due"]})


def _refuse(pointer: str, detail: str) -> StepFailed:
    return StepFailed("invalid_output", pointer=pointer, detail=detail)


def _clean_code(code: object) -> str:
    text = code if isinstance(code, str) else texts.say(code)
    return texts.clean(text) or "exception"


def _clean_text(text: object) -> str | None:
    if text is None:
        return None
    return texts.clean(text if isinstance(text, str) else texts.say(text))


def _clean_params(params: object) -> JsonObject:
    if type(params) is not dict:
        return {}
    kept = {name: value for name, value in params.items() if hygiene.check_json({name: value}) is None}
    return orjson.loads(orjson.dumps(kept)) if kept else {}


def _bound(params: JsonObject) -> JsonObject:
    return params if hygiene.size(params) <= MAX_PARAMS else {"truncated": True}
