"""Which step types this process has: the built-in ones, and those found in the modules it was told to load."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Final

from korak.errors import DuplicateStepType, InvalidStepType
from korak.graphs.contracts import TypeContract
from korak.graphs.schemas import check_schema
from korak.steps import builtin, modules
from korak.steps.contract import StepType, is_async
from korak.steps.function import FunctionStep, get_step_type

ENTRY_POINTS: Final = "korak.steps"
"""The entry point group in which packages name their step modules."""

OWN: Final = "korak.steps."
"""Where the classes are defined that nobody registers."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)+")
_OUTCOME = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]{0,31}")
MAX_KEY: Final = 120


class Registry:
    """The types by key and version, several versions side by side. Passed down, never global."""

    def __init__(self, builtins: Iterable[StepType] | None = None) -> None:
        self._types: dict[str, dict[int, StepType]] = {}
        for made in builtin.list_types() if builtins is None else builtins:
            self._types[made.key] = {made.version: made}

    def add(self, given: StepType | type[StepType] | Callable[..., Any]) -> StepType:
        """Register a class, an instance or a decorated function; the same one again changes nothing (ST-3).

        Raises InvalidStepType, DuplicateStepType.
        """
        made = _make(given)
        known = self._types.get(made.key, {}).get(made.version)
        if known is not None and _identify(known) is _identify(made):
            return known
        check(made)
        if known is not None:
            message = f"{_name(made)}: {made.key} is {_name(known)} already, in version {made.version}"
            raise DuplicateStepType(message=message)
        self._types.setdefault(made.key, {})[made.version] = made
        return made

    def get(self, key: str, version: int | None = None) -> StepType | None:
        """The type, the newest version of it unless one is named; None where this process lacks it."""
        versions = self._types.get(key)
        if versions is None:
            return None
        return versions[max(versions)] if version is None else versions.get(version)

    def get_contract(self, key: str, version: int | None = None) -> TypeContract | None:
        """What the rest of Korak knows of the type."""
        made = self.get(key, version)
        return None if made is None else made.contract()

    def list_types(self) -> Sequence[StepType]:
        """Every version of every type, by key."""
        return [versions[number] for _, versions in sorted(self._types.items()) for number in sorted(versions)]

    def list_contracts(self) -> Sequence[TypeContract]:
        """Every contract, by key."""
        return [made.contract() for made in self.list_types()]

    def load(self, names: Iterable[str]) -> None:
        """Import modules by name and register what is found in them. Raises MissingModule, BrokenModule."""
        for name in names:
            self.load_module(modules.find(name, "step types"))

    def load_module(self, module: ModuleType) -> None:
        """Register the step types found in a module, by whatever name they stand there. Raises BrokenModule."""
        for found in _find(module):
            with modules.blaming_definition(module.__name__, found):
                self.add(found)

    def load_installed(self) -> None:
        """Register what installed packages offer as `korak.steps` entry points. Raises BrokenModule."""
        for entry in entry_points(group=ENTRY_POINTS):
            with modules.blaming(entry.module):
                found = entry.load()
            if isinstance(found, ModuleType):
                self.load_module(found)
            else:
                with modules.blaming_definition(entry.module, found):
                    self.add(found)


def check(made: StepType) -> None:
    """Whether a type can be registered (ST-2, ST-3). Raises InvalidStepType."""
    where = _name(made)
    if made.key in builtin.RESERVED or "." not in made.key:
        raise InvalidStepType(message=f"{where}: the key {made.key!r} needs a dot; keys without one are Korak's own")
    if len(made.key) > MAX_KEY or not _KEY.fullmatch(made.key):
        raise InvalidStepType(message=f"{where}: the key {made.key!r} isn't names joined by dots")
    if not isinstance(made.version, int) or made.version < 1:
        raise InvalidStepType(message=f"{where}: the version {made.version!r} isn't a number from 1")
    if not isinstance(made.cost, int) or made.cost < 0:
        raise InvalidStepType(message=f"{where}: the cost {made.cost!r} isn't a number from 0")
    _check_schemas(made, where)
    _check_outcomes(made, where)
    _check_methods(made, where)


def _check_schemas(made: StepType, where: str) -> None:
    for name, schema in (("config schema", made.config_schema), ("output schema", made.output_schema)):
        if schema is None:
            continue
        for issue in check_schema(schema):
            raise InvalidStepType(message=f"{where}: the {name} at {issue.pointer or '/'}: {issue.message}")
        if schema.get("type", "object") != "object":
            raise InvalidStepType(message=f"{where}: the {name} isn't an object's: type is {schema['type']!r}")


def _check_outcomes(made: StepType, where: str) -> None:
    try:
        keys = [outcome.key for outcome in made.outcomes({})]
    except Exception:  # outcomes that depend on a config may need one: publish has it
        return
    for key in keys:
        if key == "error" or not _OUTCOME.fullmatch(key):
            raise InvalidStepType(message=f"{where}: {key!r} can't be an outcome")
    if len(set(keys)) < len(keys):
        raise InvalidStepType(message=f"{where}: an outcome is declared twice")


def _check_methods(made: StepType, where: str) -> None:
    own = type(made)
    if own.handle is StepType.handle:
        raise InvalidStepType(message=f"{where} has no handle()")
    names = ("handle", "resume", "cancel", "simulate")
    methods = [getattr(own, name) for name in names if getattr(own, name) is not getattr(StepType, name)]
    if len({is_async(method) for method in methods}) > 1:
        raise InvalidStepType(message=f"{where}: {', '.join(names)} must all be async, or none")
    for name, method in ((name, getattr(own, name)) for name in (*names[1:], "complete")):
        if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
            raise InvalidStepType(message=f"{where}: {name} yields, and only handle may")
    if is_async(own.complete) and not is_async(own.handle):
        raise InvalidStepType(message=f"{where}: complete may be async only where handle is")


def _make(given: StepType | type[StepType] | Callable[..., Any]) -> StepType:
    if isinstance(given, StepType):
        return given
    if isinstance(given, type) and issubclass(given, StepType):
        try:
            return given()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise InvalidStepType(message=f"{given.__qualname__} can't be made without arguments: {why}") from error
    made = get_step_type(given)
    if made is None:
        raise InvalidStepType(message=f"{given!r} is no step type: a StepType class or a function with @step is one")
    return made


def _find(module: ModuleType) -> Iterator[StepType | type[StepType] | Callable[..., Any]]:
    for found in list(vars(module).values()):
        if isinstance(found, type):
            if issubclass(found, StepType) and found.key and not found.__module__.startswith(OWN):
                yield found
        elif isinstance(found, StepType) or (callable(found) and get_step_type(found)):
            yield found


def _identify(made: StepType) -> object:
    return made.function if isinstance(made, FunctionStep) else type(made)


def _name(made: StepType) -> str:
    return made.function.__qualname__ if isinstance(made, FunctionStep) else type(made).__qualname__
