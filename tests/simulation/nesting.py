"""What a step asks of other runs, looked up before its record as the engine does it (`korak_engine.nesting`)."""

from __future__ import annotations

from random import Random
from typing import TypeAlias, assert_never

from korak.core import forking
from korak.core.facts import Depend, HandlerResult, Raised, Spawn
from korak.core.opening import Opening, Version
from korak.core.rows import Instance, StepRun
from korak.model import EventType, InstanceStatus, JsonObject, TriggerKind
from korak.steps.children import Awaiting, Collecting, Starting, collect
from korak.steps.results import Complete
from tests.simulation.definitions import OWNER, Definitions
from tests.support.memory import Memory

Asked: TypeAlias = Starting | Awaiting | Collecting


class Nesting:
    """Sees other runs on behalf of steps. Now and then a start is refused, or a limit on starts lets few pass."""

    def __init__(self, random: Random, memory: Memory, definitions: Definitions) -> None:
        self._random = random
        self._memory = memory
        self._definitions = definitions
        self._last = 0

    def make_ulid(self) -> str:
        """The id of one more run."""
        self._last += 1
        return f"01J{self._last:023}"

    def settle(self, step: StepRun, asked: Asked) -> HandlerResult:
        """What the step comes to."""
        match asked:
            case Starting():
                return self._start(asked)
            case Awaiting():
                return self._await(step, asked)
            case Collecting():
                there = [ulid for ulid in asked.ulids if ulid in self._memory.ulids]
                rows = {ulid: self._memory.find_ulid(ulid).instance for ulid in there}
                return Complete(
                    output=collect(asked, {ulid: row.result for ulid, row in rows.items() if _is_done(row)})
                )
            case _:
                assert_never(asked)

    def _start(self, asked: Starting) -> HandlerResult:
        version = self._definitions.find(asked.definition, asked.checksum)
        if version is None:
            return Raised("child_not_started", None, {"key": asked.definition}, is_retryable=False)
        inputs = asked.inputs
        if not asked.is_single and self._random.random() < 0.3:
            inputs = inputs[: self._random.randint(0, len(inputs))]
        openings: list[Opening] = []
        for given in inputs:
            accepted, issues = version.plan.accept(given, self._memory.policy.limits["max_state_bytes"])
            if issues:
                return Raised("child_not_started", None, {"key": asked.definition}, is_retryable=False)
            openings.append(self._open(version, asked, accepted))
        ulids = [*asked.before, *(made.ulid for made in openings)]
        rest = asked.rest + len(asked.inputs) - len(openings)
        return Spawn(
            openings=tuple(openings),
            output={asked.result_key: ulids[0] if asked.is_single else list(ulids)},
            offset=len(asked.before),
            rest=rest,
            pause=self._random.choice([None, 20.0]) if rest else None,
            awaits=asked.awaits,
            timeout=asked.timeout,
        )

    def _open(self, version: Version, asked: Starting, accepted: JsonObject) -> Opening:
        return Opening(
            self.make_ulid(), version, OWNER, accepted, trigger=TriggerKind.WORKFLOW, trigger_key=asked.group
        )

    def _await(self, step: StepRun, asked: Awaiting) -> HandlerResult:
        ulids = list(asked.ulids)
        if asked.group is not None:
            ulids = self._list_group(step.instance_id, asked.group)
        stranger = next((ulid for ulid in ulids if ulid not in self._memory.ulids), None)
        if stranger is not None:
            return Raised(
                "wait_impossible",
                None,
                {"pointer": "/ids", "detail": f"there is no run {stranger}"},
                is_retryable=False,
            )
        return Depend(tuple(ulids), asked.mode, asked.quorum, asked.timeout)

    def _list_group(self, instance_id: int, group: str) -> list[str]:
        """The runs of a group: some of those that hang below the run if any do, and others only in a fork.

        None may be left where the run went back.
        """
        ulids = self._memory.list_group(instance_id, group)
        children = (family.instance for family in self._memory.list_children(instance_id))
        own = {row.ulid for row in children if row.trigger_key == group}
        family = self._memory.families[instance_id]
        went_back = any(event.type is EventType.INSTANCE_REWOUND for event in family.events)
        assert not own or went_back or own.intersection(ulids), (own, ulids)
        labels = family.instance.labels
        assert own.issuperset(ulids) or any(label.startswith(forking.LABEL) for label in labels), (own, ulids)
        return ulids


def _is_done(row: Instance) -> bool:
    return row.status is InstanceStatus.COMPLETED
