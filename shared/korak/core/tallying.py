"""How far a wait for several runs is: what has ended of them, and whether the rest still matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, cast

from korak.model import InstanceStatus, Json, JsonObject

ENDED: Final[Mapping[str, str]] = {InstanceStatus.FAILED: "has failed", InstanceStatus.CANCELLED: "was cancelled"}
"""What is said of a run that has ended otherwise than by completing."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Of `total` runs all, any or `quorum` must complete. `failed` are those that ended otherwise, with their status.

    `impossible` says why it can't come true any more.
    """

    total: int
    mode: str = "all"
    quorum: int = 1
    completed: int = 0
    failed: Mapping[str, Json] = field(default_factory=dict)
    impossible: str | None = None

    @property
    def needed(self) -> int:
        """How many must complete."""
        return {"all": self.total, "any": 1}.get(self.mode, self.quorum)

    @property
    def is_satisfied(self) -> bool:
        """Whether enough have completed."""
        return self.completed >= self.needed

    @property
    def is_settled(self) -> bool:
        """Whether nothing that may still come changes anything."""
        return self.is_satisfied or self.impossible is not None

    def hear(self, told: JsonObject) -> Tally:
        """One run has ended, for the first time or again after a retry; or the runs wait for one another."""
        if self.is_settled:
            return self
        cycle = told.get("cycle")
        if isinstance(cycle, list):
            return replace(self, impossible=f"the runs wait for one another: {' -> '.join(map(str, cycle))}")
        ulid, status = str(told.get("instance")), str(told.get("status"))
        others = {known: ended for known, ended in self.failed.items() if known != ulid}
        if status == InstanceStatus.COMPLETED:
            return replace(self, completed=self.completed + 1, failed=others)
        return replace(self, failed={**others, ulid: status}).judge(ulid)

    def judge(self, culprit: str | None = None) -> Tally:
        """The same, with what is impossible about it; `culprit` is the run that ended last."""
        if self.needed <= self.total - len(self.failed) and self.total > 0:
            return self
        if self.is_satisfied:
            return self
        if culprit is None:
            return replace(self, impossible=f"{self.needed} must complete, and there are only {self.total}")
        why = f"the run {culprit} {ENDED.get(str(self.failed[culprit]), ENDED[InstanceStatus.FAILED])}"
        if self.mode != "all":
            why += f", and {self.needed} of {self.total} must complete"
        return replace(self, impossible=why)

    def to_json(self) -> JsonObject:
        """As it is kept with the wait."""
        return {**asdict(self), "failed": dict(self.failed)}

    @classmethod
    def from_json(cls, stored: Json) -> Tally:
        """Read back what `to_json` wrote."""
        given = cast("dict[str, Any]", stored)
        return cls(**given)
