"""What a value or condition may read: the roots of a path, as one place of one instance sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from korak.core.rows import Instance, Scope, StepRun
from korak.core.scopes import get_state, list_path
from korak.graphs.document import REDUCED
from korak.graphs.plans import Plan
from korak.model import Json, JsonObject


class Sight(Protocol):
    """As much of a snapshot as values may read."""

    @property
    def plan(self) -> Plan:
        """The graph."""
        ...

    @property
    def instance(self) -> Instance:
        """The run."""
        ...

    @property
    def steps(self) -> Mapping[int, StepRun]:
        """The live attempts, those of the containers around the place among them."""
        ...

    @property
    def ended(self) -> Mapping[tuple[int | None, str], JsonObject]:
        """The newest ended visit of each node, by scope."""
        ...


def get_roots(
    sight: Sight, scopes: Mapping[int, Scope], now: datetime, *, scope_id: int | None = None
) -> dict[str, Any]:
    """The roots `input state steps subject trigger loops instance now` of a scope; `item` and `index` inside items."""
    plan, instance = sight.plan, sight.instance
    roots = {
        "input": instance.input,
        "state": instance.state,
        "steps": _get_steps(sight, ()),
        "subject": None,
        "trigger": {"on": instance.trigger_type, "key": instance.trigger_key, "payload": instance.trigger_payload},
        "loops": (instance.walk or {}).get("loops") or {},
        "instance": {
            "id": instance.ulid,
            "definition": plan.key,
            "owner": None if instance.owner_id is None else instance.owner_scope,
            "timezone": plan.settings.timezone,
            "started_at": (instance.started_at or now).isoformat(),
        },
        "now": now.isoformat(),
    }
    return roots if scope_id is None else {**roots, **_get_inner(sight, scopes, scope_id)}


def _get_steps(sight: Sight, places: Sequence[int]) -> JsonObject:
    """The newest ended visits as a place sees them: its own, then outward."""
    ended = sight.ended
    steps: JsonObject = {node: what for (place, node), what in ended.items() if place is None}
    for inner in places:
        steps |= {node: ended[inner, node] for node in sight.plan.nodes if (inner, node) in ended}
    return steps


def _get_inner(sight: Sight, scopes: Mapping[int, Scope], scope_id: int) -> dict[str, Any]:
    """What a scope sees otherwise than the outermost level."""
    path = list_path(scopes, scope_id)
    loops: dict[str, Json] = {}
    turn: dict[str, Json] = {}
    places: tuple[Instance | Scope, ...] = (sight.instance, *path)
    for place in places:
        kept = (place.walk or {}).get("loops")
        loops |= kept if isinstance(kept, dict) else {}
        if isinstance(place, Scope) and place.name in (None, REDUCED):
            turn = {"item": place.item, "index": place.item_index}
            container = sight.steps.get(place.step_run_id)
            if container is not None:
                loops[container.node_id] = dict(turn)
    return {
        "state": get_state(sight.instance, scopes, scope_id),
        "steps": _get_steps(sight, [scope.id for scope in path]),
        "loops": loops,
        **turn,
    }
