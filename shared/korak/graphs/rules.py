"""The rules of publish about one node: its type, its config, and the members that say how it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from korak.errors import Issue
from korak.graphs import configs
from korak.graphs.comparing import check_comparisons
from korak.graphs.contracts import Catalogue, TypeContract
from korak.graphs.document import GraphLimits, Node
from korak.graphs.examining import Examined, NodeScope, list_mapped
from korak.graphs.governing import check_retry, check_timeout
from korak.graphs.limiting import check_flow, list_flow_reads
from korak.graphs.lookups import Lookups
from korak.graphs.paths import Malformed
from korak.graphs.references import find_conditions, find_forms_unread, find_node_ids
from korak.graphs.schemas import Schema
from korak.graphs.structure import LOOP
from korak.graphs.values import get_form
from korak.model import Json, JsonObject

CONTAINERS: Mapping[str, str] = {"parallel": "branches", "for_each": "body", "scope": "body"}
BOUNDED: Mapping[str, str] = {"for_each": "max_for_each_items", "start_workflows": "max_started_workflows"}
"""Which limit says how many `items` a node may have at most, by its type."""


def get_unknown_type(node: Node, catalogue: Catalogue) -> Issue:
    """What to say of a type that isn't there, or not in the version that is asked for."""
    is_known = catalogue.get_contract(node.type) is not None
    name = f"{node.type} version {node.type_version}" if is_known else node.type
    return Issue("unknown_type", f"{node.pointer}/{'type_version' if is_known else 'type'}", {"type": name}, node.id)


def check_config(node: Node, schema: Schema) -> Iterator[Issue]:
    """The config against the type's schema; value forms stand for anything."""
    for issue in schema.check_config(node.config):
        yield issue.at(f"{node.pointer}/config", node=node.id)


def get_outcomes(node: Node, contract: TypeContract) -> Mapping[str, bool] | None:
    """The ways out of a node with a sound config, those of its `on_error` too; None where its type fails to tell."""
    try:
        declared = {outcome.key: outcome.is_required for outcome in contract.outcomes(node.config)}
    except Exception:  # a type's own code, on a config that it has declared to be right
        return None
    return declared | {outcome: True for outcome in list_mapped(node) if outcome not in declared and outcome != "error"}


def check_node(node: Node, examined: Examined, lookups: Lookups, *, is_sound: bool) -> Iterator[Issue]:
    """All about a node whose type is known. Its type's own checks see only a config that fits the schema."""
    contract = examined.contracts[node.id]
    if is_sound:
        yield from _check_own_rules(node, contract, examined)
        yield from check_reads(node, contract, examined, lookups)
    yield from _check_members(node, contract)
    yield from check_timeout(node.raw.get("timeout"), f"{node.pointer}/timeout", node.id)
    yield from check_retry(node.raw.get("retry"), f"{node.pointer}/retry", examined.limits, node.id)
    yield from _check_iterations(node, examined.limits)
    yield from _check_items(node, examined)
    yield from _check_flow(node, contract, lookups)


def _check_flow(node: Node, contract: TypeContract, lookups: Lookups) -> Iterator[Issue]:
    pointer, raw = f"{node.pointer}/flow", node.raw.get("flow")
    if raw is not None and contract.is_pure:
        detail = f"{node.type} runs on no engine: there is nothing to limit."
        yield Issue("invalid_config", pointer, {"detail": detail}, node.id)
    yield from check_flow(raw, pointer, node.id)
    for read in list_flow_reads(raw, pointer):
        yield from [read.issue.at("", node=node.id)] if isinstance(read, Malformed) else lookups.check(node, read)


def _check_own_rules(node: Node, contract: TypeContract, examined: Examined) -> Iterator[Issue]:
    at = f"{node.pointer}/config"
    if node.id not in examined.outcomes:
        detail = f"{node.type} can't tell its outcomes for this config."
        yield Issue("invalid_config", at, {"detail": detail}, node.id)
    if contract.is_pure:
        for place in find_forms_unread(contract.config_schema, node.config):
            detail = "It is read when the graph is published: no value form may stand here."
            yield Issue("invalid_config", at + place.pointer, {"detail": detail}, node.id)
    yield from check_meaning(node, contract, examined)


def check_meaning(node: Node, contract: TypeContract, examined: Examined) -> Iterator[Issue]:
    """What a type itself says of a config that fits its schema."""
    at = f"{node.pointer}/config"
    if contract.validate is None:
        return
    inputs = cast("JsonObject", (examined.inputs or {}).get("properties") or {})
    scope = NodeScope(node.id, inputs, examined.ancestry)
    try:
        issues = list(contract.validate(node.config, scope))
    except Exception as error:  # a type's own code: what it raises is told to the author, not to the caller
        detail = f"{node.type} can't check this config: {type(error).__name__}."
        issues = [Issue("invalid_config", params={"detail": detail})]
    for issue in issues:
        yield issue.at(at, node=node.id)


def check_reads(node: Node, contract: TypeContract, examined: Examined, lookups: Lookups) -> Iterator[Issue]:
    """What a sound config reads: it must be there."""
    at = f"{node.pointer}/config"
    for read in configs.list_reads(contract.config_schema, node.config, contract.secret_members):
        if isinstance(read, Malformed):
            yield read.issue.at(at, node=node.id)
        else:
            for issue in lookups.check(node, read):
                yield issue.at(at)
    for place in find_conditions(contract.config_schema, node.config):
        for issue in check_comparisons(place.value, lookups.get_schema):
            yield issue.at(at + place.pointer, node=node.id)
    for place in find_node_ids(contract.config_schema, node.config):
        if place.value not in examined.graph.nodes:
            yield Issue("edge_unknown_node", at + place.pointer, {"id": place.value}, node.id)


def _check_members(node: Node, contract: TypeContract) -> Iterator[Issue]:
    """Members that a node may have only if its type allows for them."""
    for member, detail in _list_misplaced(node, contract):
        if member in node.raw:
            yield Issue("invalid_config", f"{node.pointer}/{member}", {"detail": detail}, node.id)
    needed = CONTAINERS.get(node.type)
    if needed is None and contract.is_pure and not node.is_trigger and "jumps" in node.raw:
        detail = f"{node.type} returns no _next_step."
        yield Issue("invalid_config", f"{node.pointer}/jumps", {"detail": detail}, node.id)
    if needed is not None and needed not in node.raw:
        yield Issue("invalid_config", node.pointer, {"detail": f"{node.type} needs {needed}."}, node.id)


def _list_misplaced(node: Node, contract: TypeContract) -> Iterator[tuple[str, str]]:
    if contract.waits:
        yield "timeout", f"{node.type} waits: its time limit is config.timeout."
    if contract.supports_escalations:
        yield "escalations", "`escalations` is not available in this version."
    else:
        yield "escalations", f"{node.type} takes no escalations."
    if not contract.can_fail:
        yield "on_error", f"{node.type} can't fail."
    for member in ("body", "branches"):
        if CONTAINERS.get(node.type) != member:
            yield member, f"{node.type} has no {member}."
    if node.is_trigger:
        for member in ("retry", "timeout", "queue", "priority", "save", "jumps"):
            yield member, "The trigger doesn't run."


def _check_iterations(node: Node, limits: GraphLimits) -> Iterator[Issue]:
    """LM-4: a loop may ask for no more rounds than the engine's limit."""
    asked: Json = node.config.get("max_iterations") if node.type == LOOP else None
    if isinstance(asked, int) and asked > limits.max_loop_iterations:
        detail = f"limits.max_loop_iterations is {limits.max_loop_iterations}: {asked} are too many."
        params: JsonObject = {"detail": detail, "limit": limits.max_loop_iterations}
        yield Issue("invalid_config", f"{node.pointer}/config/max_iterations", params, node.id)


def _check_items(node: Node, examined: Examined) -> Iterator[Issue]:
    """Items that are written out, be it as a literal, are no more than their limit allows: the node could only fail."""
    items = node.config.get("items")
    if isinstance(items, dict) and get_form(items) == "literal":
        items = items["literal"]
    limit = examined.get_limit(BOUNDED[node.type]) if node.type in BOUNDED else None
    if isinstance(items, list) and limit is not None and len(items) > limit:
        detail = f"limits.{BOUNDED[node.type]} is {limit}: {len(items)} items are too many."
        params: JsonObject = {"detail": detail, "limit": limit}
        yield Issue("invalid_config", f"{node.pointer}/config/items", params, node.id)
