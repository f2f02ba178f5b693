"""How far a run is: at which of its steps, where these follow each other in one line."""

from __future__ import annotations

from korak.model import InstanceStatus, StepRole
from korak.store.instances import View
from korak_api.rendering import Shown


def show_progress(view: View) -> Shown | None:
    """The step where a run stands or has failed, and how many lie before it; None where its steps are no line.

    A run that has completed has them all before it. Of a cancelled one nobody knows.
    """
    line = () if view.plan is None else view.plan.line
    index = _get_index(view)
    if not line or index is None:
        return None
    return {"name": _get_name(view, line[index]) if index < len(line) else None, "index": index, "total": len(line)}


def _get_index(view: View) -> int | None:
    if view.plan is None or view.instance.status is InstanceStatus.COMPLETED:
        return None if view.plan is None else len(view.plan.line)
    outermost = (step.node_id for step in view.steps if step.role is StepRole.STEP and step.scope_id is None)
    node = next(outermost, view.instance.failed_node_id)
    return None if node is None else view.plan.places.get(node)


def _get_name(view: View, node_id: str) -> str:
    node = None if view.plan is None else view.plan.nodes.get(node_id)
    return node_id if node is None or node.label is None else node.label
