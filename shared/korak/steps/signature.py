"""What a step function's parameters and return annotation say: its config, its output and how to call it."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from korak.errors import InvalidStepType, StepFailed
from korak.graphs import paths
from korak.model import JsonObject
from korak.steps import describing
from korak.steps.context import StepView
from korak.steps.contract import SECRET_MARK
from korak.steps.results import Outcome, StepResult

OPEN: Final = (dict, dict[str, Any], JsonObject, Mapping, Mapping[str, Any], Any)
"""Return annotations that say nothing about the output."""

JOINED: Final[JsonObject] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
"""The output of a stream that nothing else is made of."""

PLAIN: Final = (str, int, float, bool, dict, list)
"""Types whose JSON form is their own."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a step function, which is one member of its config."""

    name: str
    schema: JsonObject
    is_required: bool
    adapter: TypeAdapter[Any] | None
    plain: type | None

    @property
    def is_secret(self) -> bool:
        """Whether a secret may stand here."""
        return SECRET_MARK in self.schema

    def read(self, ctx: StepView) -> Any:
        """The argument, as the annotated type. Raises `invalid_input`."""
        raw = ctx.reveal(self.name) if self.is_secret else ctx.config[self.name]
        if self.adapter is None or type(raw) is self.plain:
            return raw
        try:
            return self.adapter.validate_python(raw)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            pointer = paths.pointer((self.name, *first["loc"]))
            raise StepFailed("invalid_input", pointer=pointer, detail=first["msg"], expected=first["type"]) from None


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters behind the context, and what is returned."""

    parameters: Mapping[str, Parameter]
    takes_others: bool
    config_schema: JsonObject
    output_schema: JsonObject | None
    returns: TypeAdapter[Any] | None
    streams: bool = False
    """Whether the function yields chunks; what it returns is then what its `complete` does."""

    def read_arguments(self, ctx: StepView, accepted: frozenset[str] | None = None) -> dict[str, Any]:
        """The keyword arguments for a call, from the resolved config; only those `accepted` where that is given."""
        arguments = {
            name: parameter.read(ctx)
            for name, parameter in self.parameters.items()
            if name in ctx.config and (accepted is None or name in accepted)
        }
        if self.takes_others and accepted is None:
            arguments = {**ctx.config, **arguments}
        return arguments

    def convert(self, returned: Any) -> Any:
        """What was returned, with the annotated types as JSON. Raises `invalid_output`."""
        if returned is None or isinstance(returned, (StepResult, Outcome)) or self.returns is None:
            return returned
        try:
            return self.returns.dump_python(returned, mode="json", warnings="error")
        except (PydanticSerializationError, ValueError, TypeError) as error:
            detail = str(error).splitlines()[0][:200]
            raise StepFailed("invalid_output", pointer="", detail=detail) from None


def read_signature(function: Callable[..., Any], *, complete: Callable[..., Any] | None = None) -> Signature:
    """Read a step function; of one that streams its `complete` tells the output.

    Raises InvalidStepType, naming what can't stand there.
    """
    where = function.__qualname__
    _, *rest = _list_parameters(function, where)
    named = [parameter for parameter in rest if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    hints = describing.read_annotations(function, [*(parameter.name for parameter in named), "return"])
    adapters = {p.name: describing.adapt(hints[p.name], f"{where}({p.name})") for p in named if p.name in hints}
    schemas, definitions = describing.describe(adapters, "validation", where)
    parameters = {
        p.name: _read_parameter(p, schemas.get(p.name, {}), adapters.get(p.name), hints.get(p.name)) for p in named
    }
    takes_others = len(named) < len(rest)
    streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if streams:
        _check_yielded(hints.get("return", Any), where)
        returns, output_schema = _read_completed(complete)
    else:
        returns, output_schema = _read_return(hints.get("return", Any), where)
    return Signature(
        parameters=parameters,
        takes_others=takes_others,
        config_schema=_compose(parameters, definitions, takes_others=takes_others),
        output_schema=output_schema,
        returns=returns,
        streams=streams,
    )


def list_accepted(function: Callable[..., Any], before: int, signature: Signature) -> frozenset[str] | None:
    """The config members that a hook takes behind its first `before` parameters; None for all of them."""
    rest = list(inspect.signature(function).parameters.values())[before:]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in rest):
        return None
    names = frozenset(parameter.name for parameter in rest)
    if unknown := sorted(names - signature.parameters.keys()):
        raise InvalidStepType(message=f"{function.__qualname__} takes {unknown[0]}, which the step itself doesn't")
    return names


def _list_parameters(function: Callable[..., Any], where: str) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise InvalidStepType(message=f"{where} takes no context: it comes first")
    for parameter in parameters[1:]:
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            raise InvalidStepType(message=f"{where}: {parameter.name} can't be given by name")
    return parameters


def _read_parameter(
    parameter: inspect.Parameter, schema: JsonObject, adapter: TypeAdapter[Any] | None, hint: Any
) -> Parameter:
    described: JsonObject = {"title": parameter.name.replace("_", " ").capitalize(), **_lift_secret(schema)}
    is_required = parameter.default is inspect.Parameter.empty
    if not is_required:
        try:
            described["default"] = to_jsonable_python(parameter.default)
        except PydanticSerializationError:
            described.pop("default", None)
    plain = next((kind for kind in PLAIN if hint is kind), None)
    return Parameter(parameter.name, described, is_required, adapter, plain)


def _lift_secret(schema: JsonObject) -> JsonObject:
    """The mark of a secret that may be left out, seen from the member."""
    members = schema.get("anyOf")
    is_secret = isinstance(members, list) and any(isinstance(each, dict) and SECRET_MARK in each for each in members)
    return {**schema, SECRET_MARK: True} if is_secret else schema


def _compose(parameters: Mapping[str, Parameter], definitions: JsonObject, *, takes_others: bool) -> JsonObject:
    schema: JsonObject = {
        "type": "object",
        "properties": {name: parameter.schema for name, parameter in parameters.items()},
        "additionalProperties": takes_others,
    }
    if required := [parameter.name for parameter in parameters.values() if parameter.is_required]:
        schema["required"] = [*required]
    return {**schema, "$defs": definitions} if definitions else schema


def _read_return(hint: Any, where: str) -> tuple[TypeAdapter[Any] | None, JsonObject | None]:
    members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    outputs = [member for member in members if member not in (None, type(None)) and not _is_result(member)]
    if any(output in OPEN for output in outputs) or (not outputs and len(members) > 1):
        return None, None
    if not outputs:
        return None, None if _is_result(hint) else {"type": "object", "additionalProperties": False}
    adapter = describing.adapt(reduce(or_, outputs), f"{where}, returned")
    schemas, definitions = describing.describe({"": adapter}, "serialization", where)
    schema = _resolve(schemas[""], definitions)
    if len(outputs) > 1:
        return adapter, None
    if schema.get("type") != "object":
        raise InvalidStepType(message=f"{where} returns {outputs[0]!r}, which is no object")
    if len(members) > 1:
        schema = {keyword: value for keyword, value in schema.items() if keyword != "required"}
    return adapter, {**schema, "$defs": definitions} if definitions else schema


def _check_yielded(hint: Any, where: str) -> None:
    """A stream is of text: what is annotated must not say otherwise."""
    yielded = next(iter(typing.get_args(hint)), Any)
    if yielded not in (str, Any):
        raise InvalidStepType(message=f"{where} yields {yielded!r}: the chunks of a stream are strings")


def _read_completed(complete: Callable[..., Any] | None) -> tuple[TypeAdapter[Any] | None, JsonObject | None]:
    if complete is None:
        return None, JOINED
    hints = describing.read_annotations(complete, ["return"])
    return _read_return(hints.get("return", Any), complete.__qualname__)


def _resolve(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    target = schema.get("$ref")
    if not isinstance(target, str):
        return schema
    named = definitions[target.removeprefix("#/$defs/")]
    return named if isinstance(named, dict) else schema


def _is_result(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, (StepResult, Outcome))
