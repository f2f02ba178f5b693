"""What a chain's waits ask for, as the config of a `wait` node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from korak.chains.given import misuse, plain, show, take
from korak.chains.naming import read_name
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
        raise misuse(f"wait_for_signals takes a list of names: {show(given)} is none.")
    if strangers := [name for name in given if not isinstance(name, str)]:
        raise misuse(f"A signal's name is a text: {show(strangers[0])} is none.")
    names = list(dict.fromkeys(plain(name).strip() for name in given if name.strip()))
    if not names:
        raise misuse("A wait needs the name of a signal that isn't blank.")
    return [_check_length(name) for name in names]


def read_mode(given: str) -> str:
    """How many of the signals are waited for."""
    if given not in MODES:
        raise misuse(f"Signals are waited for in the mode all or any: {show(given)} is neither.")
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
    if match_payload is not None:
        narrowed |= _match(match_payload)
    if correlation_key is not None:
        key = read_name(correlation_key, "correlation_key")
        if key.startswith("_"):
            raise misuse("correlation_key can't begin with _: such keys never enter the state.")
        _parse(key, "correlation_key")
        narrowed["correlation"] = key
    return narrowed


def _match(match_payload: object) -> JsonObject:
    """The member `match`, if there is anything to match; written such that it is no value form by its one key."""
    if not isinstance(match_payload, Mapping):
        raise misuse(f"match_payload is a mapping: {show(match_payload)} is none.")
    taken = take(dict(match_payload), "match_payload")
    assert isinstance(taken, dict), "it was one"
    match: JsonObject = dict(_flatten(taken, ())) if taken else {}
    if get_form(match) is None:
        return {"match": match} if match else {}
    if any(get_form(value) is not None for value in match.values()):
        raise misuse(f"match_payload can't have {next(iter(match))} alone, and a value that is read there.")
    return {"match": {"literal": match}}


def _flatten(given: JsonObject, before: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    """Every leaf by its path: what stands beside it in the payload doesn't matter."""
    if not given:
        raise misuse(f"match_payload has nothing at {paths.render(before)}: leave it out.")
    for name, value in given.items():
        at = (*before, name)
        if isinstance(value, dict) and get_form(value) is None:
            yield from _flatten(value, at)
        else:
            path = paths.render(at)
            _parse(path, "match_payload")
            _check_value(value, path)
            yield path, value


def _check_value(value: Json, path: str) -> None:
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
        raise misuse(f"A signal's name has {MAX_NAME} characters at most; {show(name)} has {len(name)}.")
    if issue := hygiene.check_json(name):
        raise misuse(f"The signal {show(name)} can't be waited for: {issue.params['why']}.")
    return name


def _check_result(result: Json) -> Json:
    try:
        compile_value(result)
    except Malformed as error:
        raise misuse(f"These names of signals are too long or too odd: {error.message}") from error
    return result


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
