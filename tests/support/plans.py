"""Plans for tests of the core: documents that pass publish, frozen, stored as JSON, read back and built."""

from __future__ import annotations

from functools import cache

from korak.graphs import hygiene
from korak.graphs.builder import GraphBuilder, graph
from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.graphs.plans import Plan
from korak.graphs.validation import validate
from korak.model import JsonObject
from korak.steps.registry import Registry
from tests.support.types import get_registry


@cache
def registry() -> Registry:
    """The types of these tests, registered once."""
    return get_registry()


def plan_of(built: GraphBuilder | JsonObject) -> Plan:
    """The plan of a document that may be published."""
    document = built.document() if isinstance(built, GraphBuilder) else built
    assert validate(document, registry()).issues == ()
    frozen = hygiene.loads(hygiene.dumps(freeze(document, registry())))
    return build(hygiene.loads(hygiene.dumps(document)), frozen)


def line(*steps: tuple[str, str, JsonObject]) -> GraphBuilder:
    """A graph of nodes one after the other, each an id, a type and a config; the last one leads to `done`, an end."""
    built = graph("line").trigger("manual")
    before = "start"
    for name, kind, config in steps:
        built = built.node(name, kind, config).edge(before, name)
        before = name
    return built.edge(before, "done").node("done", "end")
