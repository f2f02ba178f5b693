"""The methods of a chain that wait for signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from korak.chains import listening, naming
from korak.chains.given import misuse
from korak.chains.numbers import read_limit
from korak.chains.steps import Listen, Step
from korak.graphs.builder import Duration
from korak.model import JsonObject


class Listening:
    """The part of a chain that waits: for signals here, and by `_listen` for whatever else a step can wait for."""

    def wait_for_signal(
        self,
        signal: str,
        result_key: str | None = None,
        name: str | None = None,
        match_payload: Mapping[str, Any] | None = None,
        correlation_key: str | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for a signal; its payload is kept under a key, else merged into the state.

        `match_payload` is what the payload must contain; under `correlation_key` payload and state must have the same.
        After `timeout` the chain goes on at the step `timed_out`, a later one or `$end`.
        """
        [read] = listening.read_signals([signal])
        config = listening.narrow(listening.listen([read], "all", result_key), match_payload, correlation_key)
        return self._listen(f"wait_for_{read}" if name is None else name, config, result_key, timeout, timed_out)

    def wait_for_signals(
        self,
        names: Sequence[str],
        mode: Literal["all", "any"] = "all",
        result_key: str | None = None,
        name: str | None = None,
        match_payload: Mapping[str, Any] | None = None,
        correlation_key: str | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for all or any of several signals; under the key is a payload for each name that came."""
        config = listening.listen(listening.read_signals(names), listening.read_mode(mode), result_key)
        config = listening.narrow(config, match_payload, correlation_key)
        return self._listen("wait_for_signals" if name is None else name, config, result_key, timeout, timed_out)

    def wait_for_approval(
        self,
        signal: str = "approval",
        result_key: str | None = "approval",
        name: str | None = None,
        match_payload: Mapping[str, Any] | None = None,
        correlation_key: str | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for the signal of somebody who approves."""
        config = listening.narrow(listening.ask(signal, result_key, "approval"), match_payload, correlation_key)
        return self._listen("wait_for_approval" if name is None else name, config, result_key, timeout, timed_out)

    def wait_for_input(
        self,
        signal: str = "input",
        result_key: str | None = "input",
        name: str | None = None,
        match_payload: Mapping[str, Any] | None = None,
        correlation_key: str | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for the signal of somebody who brings what is missing."""
        config = listening.narrow(listening.ask(signal, result_key, "input"), match_payload, correlation_key)
        return self._listen("wait_for_input" if name is None else name, config, result_key, timeout, timed_out)

    def wait_for_decision(
        self,
        approve_signal: str = "approved",
        reject_signal: str = "rejected",
        result_key: str | None = "decision",
        name: str | None = None,
        match_payload: Mapping[str, Any] | None = None,
        correlation_key: str | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for one of two signals; the key has `outcome` (approved or rejected), `signal` and `data`.

        Without a key the state gets `decision_outcome`, `decision_signal` and what the payload has.
        """
        [approve], [reject] = listening.read_signals([approve_signal]), listening.read_signals([reject_signal])
        config = listening.decide(approve, reject, result_key)
        config = listening.narrow(config, match_payload, correlation_key)
        return self._listen("wait_for_decision" if name is None else name, config, result_key, timeout, timed_out)

    def _listen(
        self,
        name: str,
        config: JsonObject,
        result_key: str | None,
        timeout: Duration | None,
        timed_out: str | None,
        kind: str = "wait",
    ) -> Self:
        if (timeout is None) is not (timed_out is None):
            raise misuse("timeout and timed_out go together: how long, and the step to go on with then.")
        if timeout is not None:
            config = {**config, "timeout": read_limit(timeout, "timeout")}
        key = None if result_key is None else naming.read_key(result_key, "result_key")
        target = None if timed_out is None else naming.read_name(timed_out, "timed_out")
        return self._add(Listen(self._name(name), config, key, target, kind))

    def _name(self, given: str | None) -> str:
        raise NotImplementedError

    def _add(self, step: Step) -> Self:
        raise NotImplementedError
