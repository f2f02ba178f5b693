"""A new instance, as a start makes it: pinned to its version, with the input that was accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from korak.core.identity import Greeting, Identity
from korak.core.rows import Child, Instance
from korak.core.snapshot import Policy, Snapshot
from korak.errors import KorakError
from korak.graphs.plans import Plan
from korak.model import ActorMode, JsonObject, TriggerKind


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose things these are; `scope` is `type:id`, or `*` for what is app-wide."""

    scope: str
    type: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """The version that a start pins its instance to."""

    definition_id: int
    version_id: int
    checksum: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Parent:
    """The run and the attempt that start another one. `paused_at`: a child of a paused run begins paused."""

    instance_id: int
    step_run_id: int
    depth: int
    paused_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """Everything that a start decides. `input` has been accepted by the plan. Times are seconds."""

    ulid: str
    version: Version
    owner: Owner
    input: JsonObject
    trigger: TriggerKind = TriggerKind.MANUAL
    trigger_key: str | None = None
    trigger_payload: JsonObject | None = None
    starter: str | None = None
    labels: tuple[str, ...] = ()
    priority: int | None = None
    execution_timeout: float | None = None
    digest: str | None = None
    fingerprint: str | None = None
    state: JsonObject = field(default_factory=dict)
    identity: Identity | None = None
    greeting: Greeting | None = None
    run_number: int = 1
    is_patient: bool = False
    """Whether a limit on starts leaves nothing behind: who asks will ask again."""
    parent: Parent | None = None


def open_instance(opening: Opening, policy: Policy, now: datetime) -> Snapshot:
    """The snapshot of an instance that doesn't exist yet: `decide` it with Started."""
    plan, owner, settings = opening.version.plan, opening.owner, opening.version.plan.settings
    deadline = _get_deadline(opening, now)
    priority = settings.priority if opening.priority is None else opening.priority
    instance = Instance(
        id=0,
        ulid=opening.ulid,
        definition_id=opening.version.definition_id,
        version_id=opening.version.version_id,
        owner_type=owner.type,
        owner_id=owner.id,
        owner_scope=owner.scope,
        trigger_type=opening.trigger,
        trigger_key=opening.trigger_key,
        trigger_payload=opening.trigger_payload,
        input=opening.input,
        definition_hash=opening.version.checksum,
        created_at=now,
        updated_at=now,
        actor_mode=ActorMode(settings.actor),
        starter_type=None if opening.starter is None else "user",
        starter_id=opening.starter,
        idempotency_digest=opening.digest,
        business_id=None if opening.identity is None else opening.identity.id,
        run_number=opening.run_number,
        state=opening.state,
        labels=[*opening.labels, *_get_label(opening, now)],
        priority=priority or 0,
        queue=settings.queue,
        deadline_at=deadline,
        deadline_seconds=None if deadline is None else (deadline - now).total_seconds(),
    )
    return Snapshot(instance if opening.parent is None else _adopt(instance, opening.parent), plan, policy)


def _adopt(instance: Instance, parent: Parent) -> Child:
    """The same instance as somebody's child. While it is paused it has no deadline, only seconds for one."""
    child = object.__new__(Child)
    child.__dict__ = {**instance.__dict__, "parent_instance_id": parent.instance_id, "depth": parent.depth + 1}
    child.parent_step_run_id = parent.step_run_id
    if parent.paused_at is not None:
        child.paused_at, child.deadline_at = parent.paused_at, None
    return child


def _get_deadline(opening: Opening, now: datetime) -> datetime | None:
    settings = opening.version.plan.settings
    due = settings.execution_timeout.after(now, settings.timezone) if settings.execution_timeout else None
    if opening.execution_timeout is not None:
        asked = datetime.fromtimestamp(now.timestamp() + opening.execution_timeout, now.tzinfo)
        due = asked if due is None else min(asked, due)
    return due


def _get_label(opening: Opening, now: datetime) -> tuple[str, ...]:
    label = opening.version.plan.settings.label
    if label is None:
        return ()
    roots = {"input": opening.input, "trigger": opening.trigger_payload, "now": now.isoformat(), "state": opening.state}
    try:
        resolved = label.resolve(roots)
    except KorakError:
        return ()
    return () if resolved is None else (str(resolved),)
