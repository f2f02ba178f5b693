"""The constraints of the migration, by their names, for rows in memory."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from korak.core.rows import Delivery, Instance, Scope, StepRun, Wait
from korak.model import DeliveryKind, InstanceStatus, ParkedFor, StepStatus, WaitStatus


def check_instance(row: Instance) -> None:
    is_ended = row.status in (InstanceStatus.COMPLETED, InstanceStatus.FAILED, InstanceStatus.CANCELLED)
    assert row.status is not None, "winst_status_check"
    assert (row.ended_at is not None) == is_ended, "winst_ended_check"
    assert (row.closed_reason is None) == (row.ended_at is None), "winst_closed_check"
    assert row.status is not InstanceStatus.FAILED or row.failure_code is not None, "winst_failure_check"


def check_step(row: StepRun) -> None:
    claim: tuple[str | int | datetime | None, ...]
    claim = (row.claim_token, row.engine_id, row.claimed_at, row.lease_until)
    assert row.status is not None, "wstep_status_check"
    assert row.ulid, "ulid is null"
    assert row.execution_id, "execution_id is null"
    assert row.status is not StepStatus.RUNNING or None not in claim, "wstep_claim_check"
    assert (row.finished_at is not None) == (not row.status.is_live), "wstep_finished_check"
    assert row.ready_at is None or row.status in (StepStatus.QUEUED, StepStatus.WAITING), "wstep_ready_check"
    assert row.sent_at is None or row.ready_at is not None, "wstep_sent_check"
    assert row.probe is None or row.status is StepStatus.WAITING, "wstep_probe_check"
    is_parked = row.status is StepStatus.QUEUED and row.ready_at is None
    assert row.parked_for is None or is_parked, "wstep_parked_check"
    assert row.parked_for in (None, *ParkedFor), "wstep_parked_for_check"


def check_steps(rows: Collection[StepRun]) -> None:
    keys = {(row.node_id, row.visit, row.attempt, row.role, row.call) for row in rows}
    assert len(keys) == len(rows), "wstep_attempt_unique"


def check_wait(row: Wait) -> None:
    assert (row.fired_at is not None) == (row.status is WaitStatus.FIRED), "wwait_fired_check"
    assert row.remaining is None or row.status is WaitStatus.SUSPENDED, "wwait_suspended_check"
    assert row.sent_at is None or row.due_at is not None, "wwait_sent_check"
    assert row.mode in (None, "any", "all"), "wwait_mode_check"


def check_scopes(rows: Collection[Scope]) -> None:
    assert len({(row.step_run_id, row.name, row.item_index) for row in rows}) == len(rows), "wscope_body_unique"
    assert all(row.status is not None for row in rows), "wscope_status_check"


def check_signals(rows: Collection[Delivery]) -> None:
    assert len({(row.wait_id, row.source_id) for row in rows}) == len(rows), "wsig_source_unique"
    for row in rows:
        assert row.buffered_at is None or row.kind is DeliveryKind.SIGNAL, "wsig_buffered_check"
