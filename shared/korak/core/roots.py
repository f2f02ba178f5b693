"""What a value or condition may read: the roots of a path, as one place of one instance sees them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from korak.core.rows import Instance
from korak.graphs.plans import Plan
from korak.model import JsonObject


def get_roots(
    plan: Plan,
    instance: Instance,
    ended: Mapping[tuple[int | None, str], JsonObject],
    now: datetime,
    *,
    scope_id: int | None = None,
) -> dict[str, Any]:
    """The roots `input state steps subject trigger loops instance now` as they stand in a scope."""
    loops = (instance.walk or {}).get("loops")
    return {
        "input": instance.input,
        "state": instance.state,
        "steps": {node: visit for (scope, node), visit in ended.items() if scope in (None, scope_id)},
        "subject": None,
        "trigger": {"on": instance.trigger_type, "key": instance.trigger_key, "payload": instance.trigger_payload},
        "loops": loops or {},
        "instance": {
            "id": instance.ulid,
            "definition": plan.key,
            "owner": None if instance.owner_id is None else instance.owner_scope,
            "timezone": plan.settings.timezone,
            "started_at": (instance.started_at or now).isoformat(),
        },
        "now": now.isoformat(),
    }
