"""The rules of publish about hooks: their type can run after the end of a run, and what they read is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from korak.errors import Issue
from korak.graphs import rules
from korak.graphs.contracts import Catalogue, TypeContract
from korak.graphs.document import Node
from korak.graphs.examining import Examined
from korak.graphs.governing import check_retry, check_timeout
from korak.graphs.hooks import SETTINGS, list_hooks
from korak.graphs.lookups import Lookups

CheckConfig = Callable[[Node, TypeContract], Iterator[Issue]]
"""The config of a node against its type's schema."""


def check_hooks(
    examined: Examined, catalogue: Catalogue, lookups: Lookups, check_config: CheckConfig
) -> Iterator[Issue]:
    """All about the compensations of nodes and the hooks of the settings."""
    for node in examined.graph.nodes.values():
        if "compensate" in node.raw and (node.is_trigger or node.type == "end"):
            detail = f"{node.type} does nothing that could be undone."
            yield Issue("invalid_config", f"{node.pointer}/compensate", {"detail": detail}, node.id)
    for hook in list_hooks(examined.graph):
        for issue in _check_hook(hook, examined, catalogue, lookups, check_config):
            yield replace(issue, node=None) if hook.id in SETTINGS.values() else issue


def _check_hook(
    hook: Node, examined: Examined, catalogue: Catalogue, lookups: Lookups, check_config: CheckConfig
) -> Iterator[Issue]:
    contract = catalogue.get_contract(hook.type, hook.type_version)
    if contract is None:
        yield rules.get_unknown_type(hook, catalogue)
        return
    if why := _find_obstacle(hook, contract):
        yield Issue("invalid_config", f"{hook.pointer}/type", {"detail": f"{hook.type} {why}"}, hook.id)
        return
    issues = list(check_config(hook, contract))
    yield from issues
    if not issues:
        yield from rules.check_meaning(hook, contract, examined)
        yield from rules.check_reads(hook, contract, examined, lookups)
    yield from check_timeout(hook.raw.get("timeout"), f"{hook.pointer}/timeout", hook.id)
    yield from check_retry(hook.raw.get("retry"), f"{hook.pointer}/retry", examined.limits, hook.id)


def _find_obstacle(hook: Node, contract: TypeContract) -> str | None:
    """Why a type can't clean up after a run."""
    if hook.is_trigger or contract.is_pure:
        return "belongs to the way of a run: what cleans up is a type that an engine runs."
    if contract.waits:
        return "waits: what cleans up runs when nothing waits any more."
    return None
