"""loop: the one way back in a graph; goes round its body while a condition holds, or once an item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from korak.errors import Issue, StepFailed
from korak.graphs.conditions import Condition, compile_condition
from korak.graphs.contracts import Scope
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, Failed, LoopState, PureResult, PureType
from korak.steps.results import Outcome

BODY, DONE = "body", "done"
FORMS = ("while", "over")


@dataclass(frozen=True, slots=True)
class Rounds:
    """What decides whether the body is entered again, and how often it may be."""

    condition: Condition | None
    over: Value | None
    max_iterations: int
    fails: bool


class Loop(PureType[Rounds]):
    """Leaves by `body` for another round, by `done` when there is none.

    It looks at every entry, the first included; `over` is resolved anew each time, and the round's number is the index.
    Its count starts anew when it leaves by `done`. With `max_iterations` rounds made it leaves by `done`, or fails
    where `on_max` says so; a list that is through, or a condition that no longer holds, comes first.
    """

    key = "loop"
    label = "Loop"
    description: str | None = "Goes round while a condition holds, or once for each item of a list."
    config_schema: JsonObject = shapes.shape(
        {
            "while": shapes.titled(shapes.CONDITION, "While"),
            "over": shapes.titled(shapes.VALUE, "Items"),
            "max_iterations": {"title": "Rounds at most", "type": "integer", "minimum": 1},
            "on_max": {"title": "With all rounds made", "enum": [DONE, "fail"], "default": DONE},
        },
        required=["max_iterations"],
    )
    output_schema: JsonObject | None = shapes.shape(
        {"index": {"type": ["integer", "null"]}, "item": {}, "count": {"type": "integer"}},
        required=["index", "item", "count"],
    )

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """Both must be connected."""
        return (Outcome(BODY, label="Again"), Outcome(DONE, label="Done"))

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """One of the two forms."""
        return shapes.exactly_one(config, FORMS)

    def compile(self, config: JsonObject) -> Rounds:
        """The form that is written, and its bound."""
        return Rounds(
            condition=None if "over" in config else compile_condition(config.get("while")),
            over=compile_value(config["over"]) if "over" in config else None,
            max_iterations=int(cast("int", config["max_iterations"])),
            fails=config.get("on_max") == "fail",
        )

    def begin(self, program: Rounds, entry: Entry) -> PureResult:
        """Another round, or none."""
        made = entry.loop.count if entry.loop else 0
        item = _next_item(program, entry, made)
        if item is None:
            return _done(made)
        if made >= program.max_iterations:
            told: JsonObject = {"pointer": "/max_iterations", "limit": made}
            return Failed("loop_exhausted", told) if program.fails else _done(made)
        state = LoopState(made + 1, item[0])
        return Completed(BODY, state.to_json(), loop=state)


def _next_item(program: Rounds, entry: Entry, made: int) -> tuple[Json] | None:
    """What the next round is for; None where there is no next round."""
    if program.over is None:
        holds = program.condition is not None and program.condition.holds(entry.roots)
        return (None,) if holds else None
    items = program.over.resolve(entry.roots)
    if not isinstance(items, list):
        raise StepFailed("invalid_input", pointer="/over", detail="a list is expected")
    return (items[made],) if made < len(items) else None


def _done(made: int) -> Completed:
    return Completed(DONE, {"index": None, "item": None, "count": made})
