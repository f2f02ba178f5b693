"""What a chain's waits ask for, as the config of a `wait` node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from korak.chains.naming import check_json, misuse, read_name
from korak.graphs import paths
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
    names = list(dict.fromkeys(filter(None, map(_read_name, given))))
    if not names:
        raise misuse("A wait needs the name of a signal that isn't blank.")
    return names


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
    if match_payload is not None and match_payload != {}:
        narrowed["match"] = _write_match(dict(_flatten(match_payload, ())))
    if correlation_key is not None:
        key = read_name(correlation_key, "correlation_key")
        if key.startswith("_"):
            raise misuse("correlation_key can't begin with _: such keys never enter the state.")
        _parse(key, "correlation_key")
        narrowed["correlation"] = key
    return narrowed


def _flatten(given: Mapping[str, Any], before: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    """Every leaf by its path: what stands beside it in the payload doesn't matter."""
    if not isinstance(given, Mapping) or not given:
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


def _write_match(match: JsonObject) -> JsonObject:
    """The same, so written that a payload's key such as `ref` isn't taken for a value form."""
    if get_form(match) is None:
        return match
    values = {path: compile_value(value) for path, value in match.items()}
    if not all(value.is_literal for value in values.values()):
        raise misuse(f"match_payload can't take {', '.join(values)} from elsewhere: alone it would be a value itself.")
    return {"literal": {path: value.resolve({}) for path, value in values.items()}}


def _check_value(value: Any, path: str) -> None:
    check_json(value, f"match_payload at {path}")
    try:
        compile_value(value)
    except Malformed as error:
        raise misuse(f"match_payload at {path} can't be used: {error.message}") from error


def _parse(path: str, what: str) -> None:
    try:
        paths.parse(path)
    except Malformed as error:
        raise misuse(f"{what}: {error.message}") from error


def _read_name(given: object) -> str:
    if not isinstance(given, str):
        raise misuse(f"A signal's name is a text: {given!r} is none.")
    name = given.strip()
    if len(name) > MAX_NAME:
        raise misuse(f"A signal's name has {MAX_NAME} characters at most; {name[:40]!r}... has {len(name)}.")
    check_json(name, "A signal's name")
    return name


def _check_result(result: Json) -> Json:
    try:
        compile_value(result)
    except Malformed as error:
        raise misuse(f"These names of signals are too long or too odd: {error.message}") from error
    return result


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
