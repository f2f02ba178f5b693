"""trigger: how instances start, and what a start must bring. It is a node, and is never executed."""

from __future__ import annotations

from collections.abc import Sequence

from korak.errors import Issue
from korak.graphs.contracts import Scope
from korak.model import Json, JsonObject
from korak.steps.builtin import shapes
from korak.steps.contract import StepType

MANUAL = "manual"

_ON: JsonObject = {
    "anyOf": [
        {"const": MANUAL},
        shapes.shape({"event": {"type": "string", "minLength": 1}, "if": shapes.CONDITION}, required=["event"]),
        shapes.shape(
            {
                "cron": {"type": "string", "format": "cron"},
                "timezone": {"type": "string", "format": "timezone"},
                "name": {"type": "string", "minLength": 1},
            },
            required=["cron"],
        ),
        shapes.shape({"webhook": {"const": True}}, required=["webhook"]),
    ]
}


class Trigger(StepType):
    """Where a graph begins."""

    key = "trigger"
    label = "Trigger"
    description: str | None = "How instances start, and the input a start must bring."
    category = "flow"
    has_side_effects = False
    can_fail = False
    config_schema: JsonObject = shapes.shape(
        {
            "on": {
                "title": "Started by",
                "anyOf": [_ON, {"type": "array", "items": _ON, "minItems": 1, "uniqueItems": True}],
                "default": MANUAL,
            },
            "inputs": {"title": "Inputs", "type": "object"},
        }
    )

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """Only what something starts may be published: so far that is a call."""
        on = config.get("on", MANUAL)
        return [
            shapes.wrong("/on", f"Nothing starts instances by {_name(kind)} yet: use {MANUAL}.")
            for kind in (on if isinstance(on, list) else [on])
            if kind != MANUAL
        ]


def _name(kind: Json) -> str:
    return next(iter(kind), "nothing") if isinstance(kind, dict) else str(kind)
