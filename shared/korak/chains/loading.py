"""Which chains this process has: those found in the modules it was told to load, and in installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Final

from korak.chains.builder import Chain
from korak.errors import RegistrationError
from korak.steps.registry import Registry

ENTRY_POINTS: Final = "korak.chains"
"""The entry point group in which packages name their modules with chains."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A chain, and the module in which it was found first."""

    chain: Chain
    module: ModuleType


def load_chains(modules: Iterable[str]) -> list[Loaded]:
    """The chains in these modules and in installed packages' ones, each once.

    Raises RegistrationError where a module isn't there, or where two chains have one key.
    """
    found: dict[str, Loaded] = {}
    for module in _import(modules):
        for value in vars(module).values():
            if not isinstance(value, Chain):
                continue
            known = found.setdefault(value.key, Loaded(value, module))
            if known.chain is not value:
                where = f"in {known.module.__name__} and in {module.__name__}"
                raise RegistrationError("duplicate_chain", key=value.key, where=where)
    return list(found.values())


def register(chains: Iterable[Loaded], registry: Registry) -> None:
    """Register what the chains run, and the step types that stand beside them in their modules."""
    chains = list(chains)
    for module in {loaded.module.__name__: loaded.module for loaded in chains}.values():
        registry.load_module(module)
    for loaded in chains:
        for made in loaded.chain.step_types:
            registry.add(made)


def _import(modules: Iterable[str]) -> Iterator[ModuleType]:
    for name in modules:
        try:
            yield import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
            raise RegistrationError("module_missing", name=name) from error
    for entry in entry_points(group=ENTRY_POINTS):
        loaded = entry.load()
        if isinstance(loaded, ModuleType):
            yield loaded
