"""branch: a fork with one way out a case, of which the first that holds is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from korak.errors import Issue
from korak.graphs.conditions import Condition, compile_condition
from korak.graphs.contracts import Scope
from korak.model import JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, PureResult, PureType
from korak.steps.results import Outcome

DEFAULT = "default"
RESERVED = (DEFAULT, "error")

Cases: TypeAlias = tuple[tuple[str, Condition], ...]


class Branch(PureType[Cases]):
    """Leaves by the key of the first case that holds, else by `default`."""

    key = "branch"
    label = "Branch"
    description: str | None = "Goes the way of the first case that holds."
    config_schema: JsonObject = shapes.shape(
        {
            "cases": {
                "title": "Cases",
                "type": "array",
                "minItems": 1,
                "maxItems": 20,
                "items": shapes.shape(
                    {
                        "key": {"title": "Outcome", "type": "string", "pattern": shapes.OUTCOME_KEY},
                        "label": {"title": "Label", "type": "string", "maxLength": 191},
                        "if": shapes.titled(shapes.CONDITION, "If"),
                    },
                    required=["key", "if"],
                ),
            }
        },
        required=["cases"],
    )
    output_schema: JsonObject | None = shapes.shape({"matched": {"type": "string"}}, required=["matched"])

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """One a case, and `default`."""
        cases = [Outcome(str(case["key"]), label=_label(case)) for case in _list_cases(config) if "key" in case]
        return (*cases, Outcome(DEFAULT, label="Otherwise"))

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """Every key names one case, and none is taken already."""
        issues: list[Issue] = []
        seen: set[str] = set(RESERVED)
        for number, case in enumerate(_list_cases(config)):
            key = str(case.get("key"))
            if key in seen:
                issues.append(shapes.wrong(f"/cases/{number}/key", f"The outcome {key} is taken."))
            seen.add(key)
        return issues

    def compile(self, config: JsonObject) -> Cases:
        """The cases in order."""
        return tuple((str(case["key"]), compile_condition(case["if"])) for case in _list_cases(config))

    def begin(self, program: Cases, entry: Entry) -> PureResult:
        """Look at the cases in order."""
        matched = next((key for key, condition in program if condition.holds(entry.roots)), DEFAULT)
        return Completed(matched, {"matched": matched})


def _list_cases(config: JsonObject) -> list[JsonObject]:
    cases = config.get("cases")
    return [case for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []


def _label(case: JsonObject) -> str | None:
    label = case.get("label")
    return label if isinstance(label, str) else None
