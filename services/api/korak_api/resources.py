"""What every call of the API may use: built once by the service and passed down."""

from __future__ import annotations

from dataclasses import dataclass

from korak.broker.port import Broker
from korak.clock import Clock
from korak.commander import Commander
from korak.config import Settings
from korak.graphs.contracts import Catalogue
from korak.graphs.document import GraphLimits
from korak.informing import Informer
from korak.matching import Matcher
from korak.metrics import Metrics
from korak.service import Health
from korak.starting import Opener
from korak.store.database import Database
from korak.store.plans import Plans
from korak_api.credentials import Identifying
from korak_api.feeds import Feeds
from korak_api.importer import Importer
from korak_api.spooling import Spools
from korak_api.starting import Starts
from korak_api.waiting import Waiter


@dataclass(frozen=True, slots=True)
class Ground:
    """What an API stands on."""

    settings: Settings
    database: Database
    broker: Broker
    catalogue: Catalogue
    clock: Clock
    metrics: Metrics
    health: Health


@dataclass(frozen=True, slots=True)
class Resources:
    """The library's parts, and the API's own."""

    settings: Settings
    clock: Clock
    database: Database
    catalogue: Catalogue
    limits: GraphLimits
    plans: Plans
    metrics: Metrics
    health: Health
    credentials: Identifying
    starts: Starts
    opener: Opener
    importer: Importer
    spools: Spools
    commander: Commander
    informer: Informer
    matcher: Matcher
    waiter: Waiter
    feeds: Feeds


def get_graph_limits(settings: Settings) -> GraphLimits:
    """What a document may at most hold, as the settings say."""
    graph, limits = settings.graph, settings.limits
    return GraphLimits(
        max_nodes=graph.max_nodes,
        max_edges=graph.max_edges,
        max_bytes=graph.max_bytes,
        max_attempts=settings.retry.cap,
        max_loop_iterations=limits.max_loop_iterations,
        run={
            "max_steps": limits.max_steps,
            "max_transitions": limits.max_transitions,
            "max_for_each_items": limits.max_for_each_items,
            "max_state_bytes": limits.max_state_bytes,
            "max_started_workflows": limits.max_started_workflows,
            "max_cost_units": limits.max_cost_units,
            "max_starts_per_minute": limits.max_starts_per_minute,
        },
    )
