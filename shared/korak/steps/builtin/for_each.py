"""for_each: runs its body once for each item of a list, many at a time, and gathers what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from korak.errors import Issue, StepFailed
from korak.graphs.contracts import Scope
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, Failed, Opened, PureResult, PureType
from korak.steps.results import NEXT, Outcome

MODES = ("all", "first_success", "quorum")
POSITIVE: JsonObject = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, slots=True)
class Gathering:
    """What runs over which list, and when it is done."""

    items: Value
    mode: Literal["all", "first_success", "quorum"]
    quorum: Value
    concurrency: Value
    is_reduced: bool


class ForEach(PureType[Gathering]):
    """The list is frozen as it is entered. `all` needs every item to succeed, `quorum` so many, `first_success` one.

    As soon as that is so, or can't be any more, what still runs is cancelled. No items at all satisfy only `all`.
    A reducer runs once after that; it reads what was gathered as `item`, and what it returns is merged over it.
    """

    key = "for_each"
    label = "For each"
    description: str | None = "Runs its body for each item of a list."
    config_schema: JsonObject = shapes.shape(
        {
            "items": shapes.titled(shapes.VALUE, "Items"),
            "mode": {"title": "Done when", "enum": list(MODES), "default": "all"},
            "quorum": {"title": "How many must succeed", **POSITIVE},
            "concurrency": {"title": "At a time", **POSITIVE},
            "reducer": {
                "title": "Then, over the results",
                "x-korak-node": True,
                **shapes.shape(
                    {
                        "type": {"type": "string"},
                        "type_version": POSITIVE,
                        "config": {"type": "object"},
                        "retry": {"type": "object"},
                        "timeout": {},
                    },
                    required=["type"],
                ),
            },
        },
        required=["items"],
    )
    output_schema: JsonObject | None = shapes.shape(
        {
            "mode": {"type": "string"},
            "quorum": {"type": ["integer", "null"]},
            "total": {"type": "integer"},
            "succeeded": {"type": "integer"},
            "failed": {"type": "integer"},
            "settled": {"type": "integer"},
            "winner": {"type": ["integer", "null"]},
            "results": {
                "type": "array",
                "items": shapes.shape({"index": {"type": "integer"}, "item": {}, "output": {}}),
            },
            "failures": {
                "type": "array",
                "items": shapes.shape({"index": {"type": "integer"}, "item": {}, "error": {"type": "object"}}),
            },
        }
    )

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """One."""
        return (Outcome(NEXT, label="Then"),)

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """A quorum goes with its mode and no other; items that are written out are a list, and enough for it."""
        issues: list[Issue] = []
        if (config.get("mode") == "quorum") != ("quorum" in config):
            issues.append(shapes.wrong("/quorum", "A quorum goes with the mode quorum, which needs one."))
        if config.get("mode", "all") not in MODES:
            issues.append(shapes.wrong("/mode", f"One of {', '.join(MODES)} is expected, written out."))
        items = config.get("items")
        if not shapes.may_be_list(items):
            issues.append(shapes.wrong("/items", "A list or a value form is expected."))
        written = shapes.get_written(items)
        return [*issues, *_check_enough(config, len(written))] if isinstance(written, list) else issues

    def compile(self, config: JsonObject) -> Gathering:
        """Each member by what it is."""
        mode = cast("Literal['all', 'first_success', 'quorum']", config.get("mode", "all"))
        values = (compile_value(config.get(name)) for name in ("items", "quorum", "concurrency"))
        items, quorum, concurrency = values
        return Gathering(items, mode, quorum, concurrency, "reducer" in config)

    def begin(self, program: Gathering, entry: Entry) -> PureResult:
        """Begin the items, or be done at once where there are none."""
        items = program.items.resolve(entry.roots)
        if not isinstance(items, list):
            raise StepFailed("invalid_input", pointer="/items", detail="a list is expected")
        quorum = _count(program.quorum.resolve(entry.roots), "/quorum") if program.mode == "quorum" else 1
        needed = {"all": 0, "first_success": 1, "quorum": quorum or 1}[program.mode]
        if needed > len(items):
            pointer = "/quorum" if program.mode == "quorum" else "/items"
            lack: JsonObject = {"needed": needed, "total": len(items), "failed": 0}
            return Failed("quorum_unreachable", {"pointer": pointer, **lack})
        if not items and not program.is_reduced:
            return Completed(output=_make_empty(program.mode))
        concurrency = _count(program.concurrency.resolve(entry.roots), "/concurrency")
        return Opened(len(items), program.mode, quorum or 1, concurrency, {"items": items})


def _check_enough(config: JsonObject, count: int) -> list[Issue]:
    quorum = config.get("quorum")
    if isinstance(quorum, int) and quorum > count:
        return [shapes.wrong("/quorum", f"{quorum} of {count} items can't succeed.")]
    if config.get("mode") == "first_success" and count == 0:
        return [shapes.wrong("/items", "Of no items none can succeed.")]
    return []


def _count(given: Json, pointer: str) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise StepFailed("invalid_input", pointer=pointer, detail="a whole number above 0 is expected")
    return given


def _make_empty(mode: str) -> JsonObject:
    counts: JsonObject = dict.fromkeys(("total", "succeeded", "failed", "settled"), 0)
    return {"mode": mode, "quorum": None, **counts, "winner": None, "results": [], "failures": []}
