"""Which chains this process has: those found in the modules it was told to load, and in installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Final

from korak.chains.builder import Chain
from korak.errors import RegistrationError
from korak.steps import modules
from korak.steps.registry import Registry

ENTRY_POINTS: Final = "korak.chains"
"""The entry point group in which packages name their modules with chains."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A chain, and the module in which it was found first."""

    chain: Chain
    module: ModuleType


def load_chains(names: Iterable[str]) -> list[Loaded]:
    """The chains in these modules and in installed packages' ones, each once.

    Raises MissingModule, BrokenModule, and RegistrationError where two chains have one key.
    """
    found: dict[str, Loaded] = {}
    for module in _import(names):
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
            with modules.blaming_definition(loaded.module.__name__, made):
                registry.add(made)


def _import(names: Iterable[str]) -> Iterator[ModuleType]:
    for name in names:
        yield modules.find(name, "chains")
    for entry in entry_points(group=ENTRY_POINTS):
        with modules.blaming(entry.module):
            loaded = entry.load()
        if isinstance(loaded, ModuleType):
            yield loaded
