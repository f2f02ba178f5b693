"""What a chain's waits ask for, as the config of a `wait` node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from korak.chains.naming import misuse, read_name
from korak.graphs import hygiene, paths
from korak.graphs.paths import Malformed
from korak.graphs.values import compile_value, get_form
from korak.model import Json, JsonObject

MODES = ("all", "any")
PAYLOAD = "signal.payload"
MAX_NAME = 191


def read_signals(given: Sequence[str]) -> list[str]:
    """The names to wait for, trimmed, without blank ones and each once."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise misuse(f"wait_for_signals takes a list of names: {given!r} is none.")
    if stranger := next((name for name in given if not isinstance(name, str)), None):
        raise misuse(f"A signal's name is a text: {stranger!r} is none.")
    names = list(dict.fromkeys(name.strip() for name in given if name.strip()))
    if not names:
        raise misuse("A wait needs the name of a signal that isn't blank.")
    return [_check_length(name) for name in names]


def read_mode(given: str) -> str:
    """How many of the signals are waited for."""
    if given not in MODES:
        raise misuse(f"Signals are waited for in the mode all or any: {given!r} is neither.")
    return given


def listen(names: Sequence[str], mode: str, result_key: str | None) -> JsonObject:
    """A wait for these signals, and what its output is (spec 11.9)."""
    if len(names) == 1:
        return {"signal": names[0], "result": {"ref": PAYLOAD}}
    payloads: list[Json] = [{"ref": paths.render(("signal", "payload", name))} for name in names]
    result = _check_result(payloads if result_key is None else {"ref": PAYLOAD})
    return {"signals": [*names], "mode": mode, "result": result}


def decide(approve: str, reject: str, result_key: str | None) -> JsonObject:
    """A wait for one of two signals, told by the words approved and rejected whatever they are called."""
    if approve == reject:
        raise misuse(f"A decision needs two signals: both are named {approve!r}.")
    was_approved = f"{_quote(approve)} in {PAYLOAD}"
    outcome: JsonObject = {"cel": f'{was_approved} ? "approved" : "rejected"'}
    signal: JsonObject = {"cel": f"{was_approved} ? {_quote(approve)} : {_quote(reject)}"}
    data: JsonObject = {"cel": f"{was_approved} ? {PAYLOAD}[{_quote(approve)}] : {PAYLOAD}[{_quote(reject)}]"}
    result: Json = {"outcome": outcome, "signal": signal, "data": data}
    if result_key is None:
        result = [data, {"decision_outcome": outcome, "decision_signal": signal}]
    return {"signals": [approve, reject], "mode": "any", "human": "decision", "result": _check_result(result)}


def ask(signal: str, result_key: str | None, human: str) -> JsonObject:
    """A wait for the signal of somebody who approves, or brings what is missing."""
    [read] = read_signals([signal])
    return {**listen([read], "all", result_key), "human": human}


def narrow(config: JsonObject, match_payload: Mapping[str, Any] | None, correlation_key: str | None) -> JsonObject:
    """The same wait for signals with this in their payload, and with what the state has under a key."""
    narrowed = dict(config)
    if match_payload:
        narrowed["match"] = dict(_flatten(match_payload, ()))
    if correlation_key is not None:
        key = read_name(correlation_key, "correlation_key")
        _parse(key, "correlation_key")
        narrowed["correlation"] = key
    return narrowed


def _flatten(given: Mapping[str, Any], before: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    """Every leaf by its path: what stands beside it in the payload doesn't matter."""
    if not isinstance(given, dict) or not given:
        raise misuse(f"match_payload is a mapping that isn't empty, and so is each in it: {given!r} isn't.")
    for name, value in given.items():
        if not isinstance(name, str):
            raise misuse(f"match_payload has keys that are text: {name!r} is none.")
        at = (*before, name)
        if isinstance(value, Mapping) and get_form(dict(value)) is None:
            yield from _flatten(value, at)
        else:
            path = paths.render(at)
            _parse(path, "match_payload")
            _check_value(value, path)
            yield path, value


def _check_value(value: Any, path: str) -> None:
    if issue := hygiene.check_json(value):
        raise misuse(f"match_payload at {path} isn't JSON: {issue.message}")
    try:
        compile_value(value)
    except Malformed as error:
        raise misuse(f"match_payload at {path} can't be used: {error.message}") from error


def _parse(path: str, what: str) -> None:
    try:
        paths.parse(path)
    except Malformed as error:
        raise misuse(f"{what}: {error.message}") from error


def _check_length(name: str) -> str:
    if len(name) > MAX_NAME:
        raise misuse(f"A signal's name has {MAX_NAME} characters at most; {name[:40]!r}... has {len(name)}.")
    if issue := hygiene.check_json(name):
        raise misuse(f"The signal {name!r} can't be waited for: {issue.message}")
    return name


def _check_result(result: Json) -> Json:
    try:
        compile_value(result)
    except Malformed as error:
        raise misuse(f"These names of signals are too long or too odd: {error.message}") from error
    return result


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
