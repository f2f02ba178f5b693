"""What a step of a chain runs: a decorated function, a plain one, a StepType class, or a registered name."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from korak.chains.given import misuse, show
from korak.errors import InvalidStepType, RegistrationError
from korak.model import JsonObject
from korak.steps import registry
from korak.steps.builtin import RESERVED
from korak.steps.contract import StepType
from korak.steps.function import FunctionStep, get_step_type, step

Given: TypeAlias = "str | type[StepType] | StepType | Callable[..., Any]"
"""A handler as a method takes it."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)+")
_NO_CONTEXT: Final = frozenset({"state", "item", "index", "results", "payload"})
"""Names of a first parameter that tell that somebody has forgotten the context."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A step type by its key; a registered name comes without the type itself."""

    key: str
    type: StepType | None = None

    @property
    def schema(self) -> JsonObject:
        """The schema of the config that it takes; of a registered name nothing is known."""
        return {"type": "object"} if self.type is None else self.type.config_schema


def read_handler(given: Given, what: str = "A handler") -> Handler:
    """The step type that a handler stands for. Raises Invalid where no other process could find it."""
    if isinstance(given, str):
        return _read_registered(given, what)
    try:
        made = _make(given, what)
        registry.check(made)
    except RegistrationError as error:
        raise misuse(f"{what} can't be used: {error.message}") from error
    return Handler(made.key, made)


def _read_registered(given: str, what: str) -> Handler:
    key = given.strip()
    if key in RESERVED or not _NAME.fullmatch(key):
        raise misuse(
            f"{what} is the key of a step type, names joined by dots such as 'shop.price': {show(given)} isn't."
        )
    return Handler(key)


def _make(given: Any, what: str) -> StepType:
    if isinstance(given, StepType) and not isinstance(given, FunctionStep):
        given = type(given)
    if isinstance(given, type):
        return _make_from_class(given, what)
    function = given.function if isinstance(given, FunctionStep) else given
    if not inspect.isfunction(function):
        raise misuse(f"{what} is a function, a StepType class or the key of a step type: {show(given)} is none.")
    _check_function(function, what)
    return get_step_type(function) or _register(function, what)


def _make_from_class(given: type, what: str) -> StepType:
    if not issubclass(given, StepType) or issubclass(given, FunctionStep) or not given.key:
        raise misuse(
            f"{what} is a function, a StepType class with a key or the key of a step type: {show(given)} is none."
        )
    _check_place(given, what)
    try:
        return given()
    except TypeError as error:
        raise InvalidStepType(message=f"{given.__qualname__} can't be made without arguments: {error}") from error


def _check_function(function: Any, what: str) -> None:
    if function.__name__ == "<lambda>":
        raise misuse(f"{what} can't be a lambda, which no other process can find: write a function in a module.")
    _check_place(function, what)
    if function.__closure__:
        raise misuse(f"{what} can't be a closure, which no other process can find: {function.__qualname__}.")


def _check_place(given: Any, what: str) -> None:
    """A handler stands in a module by its own name."""
    name, module = given.__qualname__, given.__module__
    if "<locals>" in name or "." in name:
        raise misuse(f"{what} must stand in a module, not inside of something: {name} can't be found elsewhere.")
    if module == "__main__":
        raise misuse(f"{what} {name} must stand in a module that engines can import, and __main__ is none.")


def _register(function: Callable[..., Any], what: str) -> StepType:
    """The step type of a plain function, `<module>.<name>`, made once and found again by every other chain."""
    name = function.__qualname__
    if getattr(sys.modules.get(function.__module__), name, None) is not function:
        raise misuse(f"{what} {name} isn't what its module has by that name.")
    first = next(iter(inspect.signature(function).parameters), None)
    if first in _NO_CONTEXT:
        raise misuse(f"{what} {name} takes no context: it comes first, as in def {name}(ctx, {first}).")
    step(f"{function.__module__}.{name}")(function)
    made = get_step_type(function)
    assert made is not None, "the decorator leaves the type at the function"
    return made
