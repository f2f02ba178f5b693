"""end: the end of the instance, or of the body it stands in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from korak.graphs.values import Value, compile_value
from korak.model import JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, PureResult, PureType
from korak.steps.results import Outcome


@dataclass(frozen=True, slots=True)
class Ending:
    """What an end gives as the result, and whether it ends the instance from inside a body."""

    result: Value | None
    terminates: bool


class End(PureType[Ending]):
    """Has no way out. Without `result` the last output is the result."""

    key = "end"
    label = "End"
    description: str | None = "Ends the workflow with a result."
    can_fail = False
    config_schema: JsonObject = shapes.shape(
        {
            "result": shapes.titled(shapes.VALUE, "Result"),
            "terminate": {"title": "End the whole workflow from inside a body", "type": "boolean", "default": False},
        }
    )
    output_schema: JsonObject | None = shapes.shape({"result": {}})

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """None."""
        return ()

    def compile(self, config: JsonObject) -> Ending:
        """The result's value."""
        result = compile_value(config["result"]) if "result" in config else None
        return Ending(result, config.get("terminate") is True)

    def begin(self, program: Ending, entry: Entry) -> PureResult:
        """End here."""
        if program.result is None:
            return Completed(ends=True, terminates=program.terminates)
        result = program.result.resolve(entry.roots)
        return Completed(output={"result": result}, result=result, ends=True, terminates=program.terminates)
