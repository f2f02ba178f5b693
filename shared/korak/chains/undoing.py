"""What of a chain is undone, and what runs when a run was cancelled or was out of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from korak.chains.binding import bind, read_parameters
from korak.chains.compiling import Options, run
from korak.chains.given import misuse
from korak.chains.governing import Governed
from korak.chains.handlers import Given, Handler, read_handler
from korak.chains.steps import Step
from korak.model import JsonObject


@dataclass(frozen=True, slots=True)
class Hook:
    """A handler that cleans up, with what was bound of it; `what` is what it is called in a refusal."""

    handler: Handler
    parameters: JsonObject
    what: str

    def compile(self, options: Options) -> JsonObject:
        """The member of a node or of the settings."""
        hook: JsonObject = {"type": self.handler.key, **run(self.handler, options)}
        config = bind(self.handler, self.parameters, self.what)
        return {**hook, "config": config} if config else hook


class Undoing(Governed):
    """The part of a chain that says how what it did is taken back."""

    _steps: list[Step]

    def __init__(self) -> None:
        super().__init__()
        self._undo: dict[str, Hook] = {}
        self._hooks: dict[str, Hook] = {}

    def compensate_with(self, handler: Given, **parameters: Any) -> Self:
        """Run a handler when a run is cancelled after the step added last has completed, the newest step's first.

        What isn't bound comes from the state as it was after that step; `state` is all of it.
        """
        if not self._steps:
            raise misuse("compensate_with() means the step added last, and there is none.")
        name = self._steps[-1].name
        if name in self._undo:
            raise misuse(f"compensate_with() is said twice of the step {name!r}.")
        self._undo[name] = _read(handler, parameters, f"The compensation of {name!r}")
        return self

    def compensate_on_failure(self) -> Self:
        """Undo what has completed when a run fails, too; it can't be retried then."""
        return self._set("compensate_on_failure", True)

    def on_cancel(self, handler: Given, **parameters: Any) -> Self:
        """Run a handler once when a run was cancelled, after its compensations; it takes keys of the last state."""
        self._hooks["on_cancel"] = _read(handler, parameters, "The handler of on_cancel")
        return self

    def on_deadline(self, handler: Given, **parameters: Any) -> Self:
        """Run a handler when a run wasn't completed in time (`must_complete_within`) and has failed."""
        self._hooks["on_deadline"] = _read(handler, parameters, "The handler of on_deadline")
        return self

    def _compile_undo(self) -> dict[str, JsonObject]:
        return {name: hook.compile(self._options) for name, hook in self._undo.items()}

    def _get_settings(self) -> JsonObject:
        return super()._get_settings() | {name: hook.compile(self._options) for name, hook in self._hooks.items()}

    def _list_hook_handlers(self) -> Iterator[Handler]:
        for hook in (*self._undo.values(), *self._hooks.values()):
            yield hook.handler


def _read(given: Given, parameters: dict[str, Any], what: str) -> Hook:
    handler = read_handler(given, what)
    if handler.type is not None and handler.type.parks:
        raise misuse(f"{what} can't wait for anything: {handler.key} does.")
    return Hook(handler, read_parameters(handler, parameters, what), what)
