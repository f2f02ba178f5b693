"""set_field: writes one place of the state, or several of its keys at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from korak.errors import Issue, StepFailed
from korak.graphs import paths
from korak.graphs.contracts import Scope
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, PureResult, PureType


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where to write below the state, and what. Without names an object is merged into the state itself."""

    field: str
    names: tuple[str, ...]
    value: Value


class SetField(PureType[Assignment]):
    """Writes `state.<name>`, or a member of an object in it; objects on the way are made.

    Where the field is `state` itself the value is an object, whose members replace the state's of their names.
    """

    key = "set_field"
    label = "Set field"
    description: str | None = "Writes a value into the state."
    config_schema: JsonObject = shapes.shape(
        {
            "field": {"title": "Field", "type": "string", "format": "field-path"},
            "value": shapes.titled(shapes.VALUE, "Value"),
        },
        required=["field", "value"],
    )
    output_schema: JsonObject | None = shapes.shape({"old": {}, "new": {}}, required=["old", "new"])

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """Only names below `state` that no engine key takes can be written."""
        try:
            names = read_field(config.get("field"))
        except (StepFailed, paths.Malformed) as error:
            return [shapes.wrong("/field", error.message)]
        if not names and not isinstance(config.get("value"), dict):
            return [shapes.wrong("/value", "What is merged into the state is an object, or a value form.")]
        return []

    def compile(self, config: JsonObject) -> Assignment:
        """The place and the value."""
        names = read_field(config.get("field"))
        return Assignment(str(config["field"]), names, compile_value(config.get("value")))

    def begin(self, program: Assignment, entry: Entry) -> PureResult:
        """Replace the state's key by one in which the place is written."""
        state: Mapping[str, Any] = entry.roots.get("state") or {}
        if not program.names:
            return _merge(state, program.value.resolve(entry.roots))
        old = paths.lookup(("state", *program.names), entry.roots)
        new = program.value.resolve(entry.roots)
        first, *rest = program.names
        patch: JsonObject = {first: _write(state.get(first), rest, new, program.field)}
        return Completed(output={"old": None if old is paths.MISSING else old, "new": new}, state_patch=patch)


def read_field(field: Json) -> tuple[str, ...]:
    """The names below `state`, none for the state itself. Raises Malformed, or `field_not_writable`."""
    root, *names = paths.parse(field)
    texts = tuple(name for name in names if isinstance(name, str))
    if root != "state" or len(texts) != len(names) or (texts and texts[0].startswith("_")):
        raise StepFailed("field_not_writable", field=str(field))
    return texts


def _merge(state: Mapping[str, Any], new: Json) -> Completed:
    if not isinstance(new, dict):
        raise StepFailed("invalid_input", pointer="/value", detail="an object is expected")
    if reserved := next((name for name in new if name.startswith("_")), None):
        raise StepFailed("field_not_writable", field=paths.render(("state", reserved)))
    old: JsonObject = {name: state[name] for name in new if name in state}
    return Completed(output={"old": old, "new": new}, state_patch=new)


def _write(container: Any, names: Sequence[str], value: Json, field: str) -> Json:
    if not names:
        return value
    if container is not None and not isinstance(container, dict):
        raise StepFailed("field_not_writable", field=field)
    first, *rest = names
    members: JsonObject = container or {}
    return {**members, first: _write(members.get(first), rest, value, field)}
