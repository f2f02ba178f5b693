"""condition: a fork with the two outcomes true and false."""

from __future__ import annotations

from collections.abc import Sequence

from korak.graphs.conditions import Condition, compile_condition
from korak.model import JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, PureResult, PureType
from korak.steps.results import Outcome


class ConditionStep(PureType[Condition]):
    """Leaves by `true` where its condition holds, else by `false`."""

    key = "condition"
    label = "Condition"
    description: str | None = "Goes one way or the other."
    config_schema: JsonObject = shapes.shape({"if": shapes.titled(shapes.CONDITION, "If")}, required=["if"])
    output_schema: JsonObject | None = shapes.shape({"result": {"type": "boolean"}}, required=["result"])

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """Both must be connected."""
        return (Outcome("true", label="Yes"), Outcome("false", label="No"))

    def compile(self, config: JsonObject) -> Condition:
        """The condition."""
        return compile_condition(config.get("if"))

    def begin(self, program: Condition, entry: Entry) -> PureResult:
        """Look once."""
        holds = program.holds(entry.roots)
        return Completed("true" if holds else "false", {"result": holds})
