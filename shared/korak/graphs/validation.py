"""Whether a document may be published: every rule, and where it is broken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from korak.errors import Issue
from korak.graphs import configs, rules, shape
from korak.graphs.ancestry import Ancestry
from korak.graphs.contracts import Catalogue, TypeContract
from korak.graphs.document import Graph, GraphLimits, Node
from korak.graphs.examining import Examined
from korak.graphs.governing import check_inputs, check_settings
from korak.graphs.groups import check_groups
from korak.graphs.inputs import get_input_schema
from korak.graphs.limiting import list_flow_reads
from korak.graphs.lookups import Lookups
from korak.graphs.paths import Malformed
from korak.graphs.schemas import Schema, compile_schema
from korak.graphs.structure import check_structure
from korak.graphs.undoing import check_hooks
from korak.model import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with a document, and what is only odd. Without issues it may be published."""

    issues: tuple[Issue, ...] = ()
    warnings: tuple[Issue, ...] = ()

    @property
    def is_publishable(self) -> bool:
        """Whether nothing is wrong."""
        return not self.issues


def validate(document: Json, catalogue: Catalogue, limits: GraphLimits | None = None) -> Report:
    """Check a document against every rule of publish (spec 14, DESIGN 6). It never raises, whatever it is given.

    Sizes and form come first: what is too large or has the wrong form is not looked at further.
    """
    limits = limits or GraphLimits()
    graph, issues = shape.read(document, limits)
    if graph is None:
        return Report(tuple(issues))
    found = {(issue.code, issue.pointer, issue.message): issue for issue in _check(graph, catalogue, limits)}
    return Report(
        tuple(issue for issue in found.values() if not issue.is_warning),
        tuple(issue for issue in found.values() if issue.is_warning),
    )


def _check(graph: Graph, catalogue: Catalogue, limits: GraphLimits) -> Iterator[Issue]:
    contracts: dict[str, TypeContract] = {}
    outcomes: dict[str, Mapping[str, bool]] = {}
    schemas = _Schemas()
    for node in graph.nodes.values():
        contract = catalogue.get_contract(node.type, node.type_version)
        if contract is None:
            yield rules.get_unknown_type(node, catalogue)
            continue
        contracts[node.id] = contract
        issues = list(schemas.check(node, contract))
        yield from issues
        if not issues and (known := rules.get_outcomes(node, contract)) is not None:
            outcomes[node.id] = known
    inputs, issues = _read_inputs(graph)
    yield from issues
    examined = Examined(graph, limits, contracts, outcomes, inputs, Ancestry(graph))
    yield from check_structure(examined)
    yield from check_settings(graph, limits)
    yield from check_groups(graph)
    lookups = Lookups(examined)
    yield from _check_nodes(examined, lookups, schemas.sound)
    yield from check_hooks(examined, catalogue, lookups, schemas.check)


class _Schemas:
    """The config schemas of the types in use, each compiled once, and the nodes whose config fits theirs."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, int], Schema] = {}
        self.sound: set[str] = set()

    def check(self, node: Node, contract: TypeContract) -> Iterator[Issue]:
        name = (contract.key, contract.version)
        try:
            schema = self._compiled.get(name) or compile_schema(contract.config_schema)
        except Malformed as error:
            detail = f"The config schema of {node.type} can't be used: {error.message}"
            yield Issue("invalid_config", f"{node.pointer}/type", {"detail": detail}, node.id)
            return
        self._compiled[name] = schema
        issues = list(rules.check_config(node, schema))
        yield from issues
        if not issues:
            self.sound.add(node.id)


def _read_inputs(graph: Graph) -> tuple[JsonObject | None, list[Issue]]:
    trigger = graph.trigger
    if trigger is None:
        return None, []
    issues = list(check_inputs(trigger))
    return (None if issues else get_input_schema(trigger.config)), issues


def _check_nodes(examined: Examined, lookups: Lookups, sound: Collection[str]) -> Iterator[Issue]:
    for node in examined.graph.nodes.values():
        if node.id in examined.contracts:
            yield from rules.check_node(node, examined, lookups, is_sound=node.id in sound)
    settings = examined.graph.settings
    reads = (
        *configs.read_value(settings.get("label"), "/settings/label"),
        *list_flow_reads(settings.get("flow"), "/settings/flow"),
    )
    for read in reads:
        if isinstance(read, Malformed):
            yield read.issue
        else:
            yield from lookups.check(None, read)
