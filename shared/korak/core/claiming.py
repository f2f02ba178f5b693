"""An engine asks for a step: the claim that makes it running, or tells why not."""

from __future__ import annotations

from korak.core import failing, firing, hooks, nesting, starting, undoing, walking
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant
from korak.errors import KorakError
from korak.graphs.plans import PlannedNode
from korak.model import EventType, ParkedFor, Probe, SignalKind, StepRole, StepStatus, WaitKind, WaitStatus
from korak.steps.waits import Signal


def claim(draft: Draft, step_id: int, claimant: Claimant) -> None:
    """Answer a nudge. A step that is not live, not ready, paused or taken stays as it is (CL-3, CL-4, JB-9)."""
    step = draft.get_step(step_id)
    if step is None or step.ready_at is None or step.status is StepStatus.RUNNING:
        draft.dropped = "not_ready"
        return
    node = draft.plan.find(step.node_id, step.role)
    if node is None and step.role is StepRole.STEP:
        failing.give_up(draft, "invalid_graph", f"no node {step.node_id}")
    elif node is None:
        hooks.finish(draft, step, failing.broken_graph(f"no node {step.node_id}"))
    elif step.role is not StepRole.STEP:
        _claim_hook(draft, node, step, claimant)
    elif draft.instance.paused_at is not None:
        draft.hold(step)
        draft.dropped = "paused"
    elif step.status is StepStatus.WAITING:
        _claim_waiting(draft, node, step, claimant)
    else:
        _claim_queued(draft, node, step, claimant)


def _claim_hook(draft: Draft, node: PlannedNode, hook: StepRun, claimant: Claimant) -> None:
    if not claimant.runs(node.type, node.type_version):
        starting.park(draft, hook, ParkedFor.ENGINE)
        return
    _fire_retry(draft, hook)
    given = undoing.get_input(draft, node, hook)
    if isinstance(given, Raised):
        hooks.finish(draft, hook, given)
    else:
        starting.run_hook(draft, node, hook, claimant, given)


def _claim_queued(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant) -> None:
    if node.is_pure:
        _fire_retry(draft, step)
        signal = None if step.resume_signal is None else Signal.from_json(step.resume_signal)
        _decide(draft, node, step, signal)
    elif nesting.is_childs(step):
        _fire_retry(draft, step)
        nesting.retry(draft, step)
    elif not claimant.runs(node.type, node.type_version):
        starting.park(draft, step, ParkedFor.ENGINE)
        draft.dropped = "no_engine_for_type"
    elif starting.is_held(draft, step, claimant):
        _fire_retry(draft, step)
        starting.park(draft, step, ParkedFor.HOLD)
        draft.dropped = "held"
    else:
        _fire_retry(draft, step)
        _run(draft, node, step, claimant)


def _claim_waiting(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant) -> None:
    if any(wait.id < 0 for wait in draft.list_waits(step)):
        draft.dropped = "not_ready"  # it parked in this very decision: it looks at what came before right after it
        return
    probe = step.probe
    step = draft.clear_ready(step)
    if step.counters is not None:
        draft.containers.append(step.id)
        if not draft.list_waits(step):
            return
    if not wake(draft, node, step, claimant, probe):
        draft.dropped = None if draft.containers else "nothing_due"


def wake(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant | None, probe: Probe | None = None) -> bool:
    """Resume a parked step with what has come for it, or with the probe that it is owed; whether there was anything.

    A condition that can't be looked at fails the step: looking again would find the same.
    """
    try:
        signal = firing.choose(draft, step)
    except KorakError as error:
        refused = Raised(error.code, error.message, error.params, is_retryable=False)
        walking.walk(draft, failing.fail_step(draft, node, step, refused), step.scope_id)
        return True
    if signal is None and probe is Probe.RESUME:
        signal = Signal(SignalKind.PROBE, at=draft.now)
    if signal is not None:
        resume(draft, node, step, signal, claimant)
    return signal is not None


def resume(draft: Draft, node: PlannedNode, step: StepRun, signal: Signal, claimant: Claimant | None) -> None:
    """Wake a parked step with its signal, which is stored with it (CL-8): a pure one is decided, another one runs.

    Where no engine here has the type the signal waits with the step for one that does.
    """
    step = draft.edit(step)
    step.resume_signal = signal.to_json()
    if node.is_pure or signal.kind is SignalKind.CHILD:
        draft.record(EventType.STEP_RESUMED, step, {"visit": step.visit, "attempt": step.attempt})
        _decide(draft, node, step, signal)
    elif claimant is not None and claimant.runs(node.type, node.type_version):
        if starting.is_held(draft, step, claimant):
            starting.park(draft, draft.move(step, StepStatus.RUNNING), ParkedFor.HOLD)
        else:
            _run(draft, node, step, claimant)
    else:
        starting.park(draft, draft.move(step, StepStatus.RUNNING), ParkedFor.ENGINE)


def _decide(draft: Draft, node: PlannedNode, step: StepRun, signal: Signal | None = None) -> None:
    step = draft.move(step, StepStatus.RUNNING)
    if signal is not None and signal.kind is SignalKind.CHILD:
        target = nesting.settle(draft, node, step, signal)
    else:
        target = walking.decide_pure(draft, node, step, signal)
    walking.walk(draft, target, step.scope_id)


def _run(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant) -> None:
    error = starting.run(draft, node, step, claimant)
    if error is not None:
        walking.walk(draft, failing.fail_step(draft, node, step, error), step.scope_id)
    elif not draft.claimed:
        draft.dropped = "limit"


def _fire_retry(draft: Draft, step: StepRun) -> None:
    for wait in draft.list_waits(step):
        if wait.kind is WaitKind.RETRY and wait.status is WaitStatus.PENDING:
            draft.move_wait(wait, WaitStatus.FIRED)
