"""What publishing keeps of the step types that a graph uses, to be read without their code."""

from __future__ import annotations

import hashlib
from typing import cast

from korak.errors import Invalid
from korak.graphs import hygiene
from korak.graphs.contracts import Catalogue, OutcomeSpec, RetryPolicy, TypeContract
from korak.graphs.document import Node, read_graph
from korak.graphs.hooks import list_hooks
from korak.model import Json, JsonObject


def freeze(document: Json, catalogue: Catalogue) -> JsonObject:
    """The contracts of the types that a checked document uses, as JSON: each type once, each node's outcomes.

    Raises Invalid("unknown_type") where the catalogue lacks one.
    """
    types: JsonObject = {}
    nodes: JsonObject = {}
    graph = read_graph(document)
    for node in graph.nodes.values():
        if node.is_trigger:
            continue
        contract = _get_contract(node, catalogue)
        name = _add_type(types, contract)
        nodes[node.id] = {"type": name, "outcomes": _freeze_outcomes(contract.outcomes(node.config))}
    hooks = {hook.id: _add_type(types, _get_contract(hook, catalogue)) for hook in list_hooks(graph)}
    frozen: JsonObject = {"format": 1, "types": types, "nodes": nodes}
    return {**frozen, "hooks": {name: {"type": kind} for name, kind in hooks.items()}} if hooks else frozen


def _add_type(types: JsonObject, contract: TypeContract) -> str:
    name = f"{contract.key}@{contract.version}"
    if name not in types:
        types[name] = _freeze_type(contract)
    return name


def get_digest(contract: TypeContract) -> str:
    """SHA-256 over what a live instance relies on: config schema, plain outcomes, output schema, side effects."""
    return hashlib.sha256(
        hygiene.canonical(
            {
                "config_schema": contract.config_schema,
                "outcomes": _get_outcomes_without_config(contract),
                "output_schema": contract.output_schema,
                "has_side_effects": contract.has_side_effects,
            }
        )
    ).hexdigest()


def _get_contract(node: Node, catalogue: Catalogue) -> TypeContract:
    contract = catalogue.get_contract(node.type, node.type_version)
    if contract is None:
        raise Invalid("unknown_type", type=node.type)
    return contract


def _freeze_type(contract: TypeContract) -> JsonObject:
    return {
        "key": contract.key,
        "version": contract.version,
        "config_schema": contract.config_schema,
        "retry": _freeze_retry(contract.retry),
        "timeout": contract.timeout,
        "queue": contract.queue,
        "max_output": contract.max_output,
        "cost": contract.cost,
        "ability": contract.ability,
        "is_pure": contract.is_pure,
        "has_side_effects": contract.has_side_effects,
        "has_cancel_hook": contract.has_cancel_hook,
        "waits": contract.waits,
        **({"streams": True} if contract.streams else {}),
        "secret_members": cast("Json", sorted(contract.secret_members)),
        "digest": get_digest(contract),
    }


def _freeze_retry(retry: RetryPolicy | None) -> Json:
    if retry is None:
        return None
    return {"max_attempts": retry.max_attempts, "backoff": list(retry.backoff), "jitter": retry.jitter}


def _freeze_outcomes(outcomes: object) -> JsonObject:
    return {outcome.key: outcome.is_required for outcome in cast("list[OutcomeSpec]", outcomes)}


def _get_outcomes_without_config(contract: TypeContract) -> Json:
    """The outcomes of a node whose config is empty; None where the type can't tell without one."""
    try:
        return _freeze_outcomes(contract.outcomes({}))
    except Exception:  # a type's own code: what it raises on an empty config is its own affair
        return None
