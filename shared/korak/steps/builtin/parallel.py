"""parallel: runs its branches at the same time, and goes on when all have succeeded."""

from __future__ import annotations

from collections.abc import Sequence

from korak.model import JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Entry, Opened, PureResult, PureType
from korak.steps.results import NEXT, Outcome


class Parallel(PureType[None]):
    """Its output has each branch's under the branch's name. What the branches write is merged in their order."""

    key = "parallel"
    label = "In parallel"
    description: str | None = "Runs branches at the same time and waits for all of them."
    config_schema: JsonObject = shapes.shape({})

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """One."""
        return (Outcome(NEXT, label="Then"),)

    def compile(self, config: JsonObject) -> None:
        """Nothing: the branches stand in the node."""

    def begin(self, program: None, entry: Entry) -> PureResult:
        """Begin every branch."""
        return Opened(entry.branches)
