"""A catalogue of contracts for tests of the graph rules: data, no step's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from korak.errors import Issue
from korak.graphs.contracts import OutcomeSpec, RetryPolicy, Scope, TypeContract
from korak.model import Json, JsonObject

VALUE: JsonObject = {"$ref": "#/$defs/value"}
CONDITION: JsonObject = {"$ref": "#/$defs/condition"}


@dataclass(frozen=True)
class ListedCatalogue:
    """Contracts by key and version."""

    contracts: tuple[TypeContract, ...]
    known: dict[tuple[str, int | None], TypeContract] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for contract in sorted(self.contracts, key=lambda each: each.version):
            self.known[contract.key, contract.version] = contract
            self.known[contract.key, None] = contract

    def get_contract(self, key: str, version: int | None = None) -> TypeContract | None:
        return self.known.get((key, version))

    def list_contracts(self) -> Sequence[TypeContract]:
        return [contract for (_, version), contract in sorted(self.known.items(), key=str) if version is None]


def contract(key: str, *outcomes: str, config: JsonObject | None = None, **members: Any) -> TypeContract:
    """A contract with fixed outcomes, `next` if none is named."""
    ways = [OutcomeSpec(name) for name in outcomes or ("next",)]
    members = {"version": 1, "label": key, **members}
    return TypeContract(key, config_schema=config or {"type": "object"}, outcomes=lambda _: ways, **members)


def shape(properties: JsonObject, *required: str) -> JsonObject:
    """An object schema that takes nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": cast("Json", list(required)),
        "additionalProperties": False,
    }


def _get_cases(config: JsonObject) -> Sequence[OutcomeSpec]:
    cases = cast("list[JsonObject]", config["cases"])
    return [OutcomeSpec(str(case["key"])) for case in cases] + [OutcomeSpec("default")]


def _get_wait_outcomes(config: JsonObject) -> Sequence[OutcomeSpec]:
    return [OutcomeSpec("next")] + ([OutcomeSpec("timed_out")] if "timeout" in config else [])


def _refuse_zero(config: JsonObject, scope: Scope) -> Sequence[Issue]:
    if config.get("amount") == 0:
        return [Issue("invalid_config", "/amount", {"detail": "Nothing to charge."})]
    after = config.get("after")
    if isinstance(after, str) and not scope.is_ancestor(after):
        return [Issue("invalid_config", "/after", {"detail": f"{after} is no ancestor of {scope.node}."})]
    return []


def _break(config: JsonObject, scope: Scope | None = None) -> Sequence[Any]:
    raise RuntimeError("a bug in a type")


BUILTIN = (
    contract("trigger", has_side_effects=False, can_fail=False),
    contract("condition", "true", "false", config=shape({"if": CONDITION}, "if"), is_pure=True, has_side_effects=False),
    TypeContract(
        "branch",
        1,
        "Branch",
        shape({"cases": {"type": "array", "items": shape({"key": {"type": "string"}, "if": CONDITION})}}, "cases"),
        _get_cases,
        is_pure=True,
    ),
    contract("set_field", config=shape({"field": {"type": "string"}, "value": VALUE}, "field", "value"), is_pure=True),
    contract(
        "loop",
        "body",
        "done",
        config=shape(
            {"while": CONDITION, "over": VALUE, "max_iterations": {"type": "integer", "minimum": 1}}, "max_iterations"
        ),
        output_schema=shape({"index": {}, "item": {}, "count": {}}),
        is_pure=True,
    ),
    TypeContract(
        "wait",
        1,
        "Wait",
        shape(
            {"event": VALUE, "signal": VALUE, "signals": VALUE, "for": VALUE, "timeout": VALUE, "condition": CONDITION}
        ),
        _get_wait_outcomes,
        output_schema=shape({"key": {"type": "string"}, "payload": {}}),
        is_pure=True,
        waits=True,
    ),
    TypeContract(
        "end", 1, "End", shape({"result": VALUE}), lambda _: [], is_pure=True, can_fail=False, output_schema=shape({})
    ),
)

OWN = (
    contract("test.open"),
    contract("test.quote", output_schema=shape({"total": {"type": "number"}, "_trace": {"type": "string"}})),
    contract(
        "test.charge",
        "paid",
        "declined",
        config=shape(
            {
                "amount": {"type": "number"},
                "note": {"type": "string"},
                "after": {"type": "string", "format": "node-id"},
                "token": {**VALUE, "x-korak-secret": True},
            },
            "amount",
        ),
        output_schema=shape({"receipt": {"type": "string"}}),
        secret_members=frozenset({"token"}),
        retry=RetryPolicy(4, (1, "PT1M"), 0.5),
        timeout=20.0,
        queue="payments",
        max_output=100_000,
        ability="charge",
        has_cancel_hook=True,
        validate=_refuse_zero,
    ),
    contract("test.ask", "approved", waits=True, supports_escalations=True),
    contract("test.versioned"),
    contract("test.versioned", "next", "other", version=2),
    contract("test.odd", config={"type": "object", "if": {}}),
    contract("test.rude", validate=_break),
    TypeContract("test.lost", 1, "Lost", {"type": "object"}, _break),
)

CONTAINERS = (
    contract("parallel", is_pure=True),
    contract("for_each", config=shape({"items": VALUE}, "items"), is_pure=True),
    contract("scope", is_pure=True),
)

CATALOGUE = ListedCatalogue(BUILTIN + OWN)
WITH_CONTAINERS = ListedCatalogue(BUILTIN + OWN + CONTAINERS)
