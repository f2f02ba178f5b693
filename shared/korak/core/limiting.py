"""`flow` in a decision: the keys of a visit, the room that it needs, and the parking of what got none."""

from __future__ import annotations

from dataclasses import dataclass

from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.rooms import Demand, FlowKey, list_demands, shorten
from korak.core.roots import get_roots
from korak.core.rows import StepRun
from korak.errors import KorakError
from korak.graphs.hygiene import dumps
from korak.graphs.limiting import FlowRule
from korak.graphs.plans import PlannedNode
from korak.model import Json, JsonObject, ParkedFor, StepRole, StepStatus


@dataclass(frozen=True, slots=True)
class RunFlow:
    """What a run's own bookkeeping says of its limits: its keys, and whether it has been let in."""

    keys: tuple[str, ...]
    is_in: bool

    @classmethod
    def of(cls, draft: Draft) -> RunFlow | None:
        """As it was kept; None before anything of the run was limited."""
        kept = draft.get_walk("flow")
        keys = kept.get("keys")
        return (
            cls(tuple(shorten(str(key)) for key in keys), kept.get("is_in") is True) if isinstance(keys, list) else None
        )

    def keep(self, draft: Draft) -> None:
        """Write it down."""
        draft.set_walk("flow", {"keys": list(self.keys), "is_in": self.is_in})


def resolve(draft: Draft, node: PlannedNode, step: StepRun) -> Raised | None:
    """Find the keys of a new visit (`step.flow`), or what is wrong with one. A retried one keeps those that it had."""
    if node.is_pure or not (node.flow or draft.plan.settings.flow):
        return None
    keys = step.flow or _find_keys(draft, node, step)
    if isinstance(keys, Raised):
        return keys
    step.flow = keys
    return None


def _find_keys(draft: Draft, node: PlannedNode, step: StepRun) -> list[str] | Raised:
    run = RunFlow.of(draft)
    own = _resolve_keys(draft, node.flow, step, "")
    if isinstance(own, Raised) or run is not None:
        return own if isinstance(own, Raised) or run is None else [*own, *run.keys]
    of_run = _resolve_keys(draft, draft.plan.settings.flow, step, "/settings")
    if isinstance(of_run, Raised):
        return of_run
    if of_run:
        RunFlow(tuple(of_run), is_in=False).keep(draft)
    return [*own, *of_run]


def _resolve_keys(draft: Draft, rules: tuple[FlowRule, ...], step: StepRun, where: str) -> list[str] | Raised:
    """A key that is nothing limits nobody, so it is an error (`missing_value`), like a path of a condition."""
    if not rules:
        return []
    roots = get_roots(draft, draft.scopes.rows, draft.now, scope_id=step.scope_id)
    keys: list[str] = []
    for index, rule in enumerate(rules):
        pointer = f"{where}/flow/{index}/key"
        try:
            value = rule.key.resolve(roots)
        except KorakError as error:
            return Raised(error.code, error.message, {**error.params, "pointer": pointer}, is_retryable=False)
        if value is None or value == "":
            told: JsonObject = {"path": rule.text, "pointer": pointer}
            return Raised("missing_value", None, told, is_retryable=False)
        keys.append(_name(value))
    return keys


def _name(value: Json) -> str:
    return shorten(value if isinstance(value, str) else dumps(value).decode())


def admit(draft: Draft, node: PlannedNode, step: StepRun) -> bool | Raised:
    """Whether the step may run, as far as limits go. What it needs is asked of the store, which decides once more
    where a key is full; then it is parked, or queued behind those who are.
    """
    if step.role is not StepRole.STEP or not (node.flow or draft.plan.settings.flow):
        return True
    keys = step.flow or _find_keys(draft, node, step)
    if isinstance(keys, Raised):
        return keys
    demands = _list_demands(draft, node, step, keys)
    if not demands:
        return True
    if draft.snapshot.denials is None:
        draft.needs.demands.extend(demands)
        _let_in(draft)
        return True
    _put_back(draft, step, {demand.key for demand in demands})
    return False


def _list_demands(draft: Draft, node: PlannedNode, step: StepRun, keys: list[str]) -> list[Demand]:
    """The run's own come first; a key that the run counts under already isn't counted again for its step."""
    is_inline = step.status is None
    run = RunFlow.of(draft)
    found: dict[FlowKey, Demand] = {}
    if run is not None:
        for rule, name in zip(draft.plan.settings.flow, run.keys, strict=False):
            for demand in list_demands(rule, name, step, is_of_run=True, is_inline=is_inline):
                found.setdefault(demand.key, demand)
    of_run = set(found)
    if run is not None and run.is_in:
        found.clear()
    for rule, name in zip(node.flow, keys, strict=False):
        for demand in list_demands(rule, name, step, is_of_run=False, is_inline=is_inline):
            if demand.key not in of_run:
                found.setdefault(demand.key, demand)
    return list(found.values())


def _let_in(draft: Draft) -> None:
    """The run has room from now on: what else of it stood before the same door may go through."""
    run = RunFlow.of(draft)
    if run is None or run.is_in:
        return
    RunFlow(run.keys, is_in=True).keep(draft)
    for step in list(draft.steps.values()):
        if step.parked_for is ParkedFor.LIMIT:
            draft.make_ready(step)


def _put_back(draft: Draft, step: StepRun, keys: set[FlowKey]) -> None:
    denial = next((denial for denial in draft.snapshot.denials or () if denial.key in keys), None)
    if step.status is StepStatus.WAITING:
        step = draft.move(step, StepStatus.RUNNING)
    if step.status is not StepStatus.QUEUED:
        step = draft.move(step, StepStatus.QUEUED)
    if denial is None or denial.is_behind:
        draft.make_ready(step)
        return
    step = draft.clear_ready(step)
    step.parked_for = ParkedFor.LIMIT
    draft.needs.parkings.append((step, denial))


def settle(draft: Draft) -> None:
    """Ask for no room for what was begun and ended in the same decision; a run that has ended gives its own back."""
    needs = draft.needs
    begun = [
        demand
        for demand in needs.demands
        if (step := draft.steps.get(demand.step.id)) is not None and step.status is StepStatus.RUNNING
    ]
    if len(begun) < len(needs.demands):
        run = RunFlow.of(draft)
        if run is not None and any(demand.is_of_run for demand in needs.demands):
            RunFlow(run.keys, is_in=False).keep(draft)
        needs.demands = begun
    if draft.instance.is_ended:
        needs.leaves = _leave(draft)


def _leave(draft: Draft) -> bool:
    """Whether the run held room of its own, which it gives back."""
    run = RunFlow.of(draft)
    if run is None or not run.is_in:
        return False
    RunFlow(run.keys, is_in=False).keep(draft)
    return True
