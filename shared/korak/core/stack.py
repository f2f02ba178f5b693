"""The working copy of an instance's compensations: the newest that is kept, and the one that runs."""

from __future__ import annotations

from collections.abc import Mapping

from korak.core import transitions
from korak.core.changes import Changes
from korak.core.rows import Compensation, StepRun, copy
from korak.model import CompensationStatus


class Stack:
    """Compensations under decision. `rows` are those in view, by `seq`: of the kept ones the newest alone.

    Those below it come into view when the one that runs is claimed, which loads the instance anew.
    """

    def __init__(self, rows: Mapping[int, Compensation]) -> None:
        self.rows: dict[int, Compensation] = dict(rows)
        self.edited: dict[int, Compensation] = {}
        self.added: list[Compensation] = []

    @property
    def top(self) -> Compensation | None:
        """The newest that is kept."""
        kept = [row for row in self.rows.values() if row.status is CompensationStatus.KEPT]
        return max(kept, key=lambda row: row.seq, default=None)

    def find(self, hook: StepRun) -> Compensation | None:
        """What a hook undoes, if it is in view."""
        return self.rows.get(hook.hook_order or 0)

    def push(self, row: Compensation) -> None:
        """A new one; what was the newest before it goes out of view."""
        self.rows = {seq: other for seq, other in self.rows.items() if other.status is not CompensationStatus.KEPT}
        self._set_status(row, CompensationStatus.KEPT)
        self.rows[row.seq] = row
        self.added.append(row)

    def move(self, row: Compensation, to: CompensationStatus) -> None:
        """Give it its new status, by an arrow that is drawn. One that is over goes out of view."""
        if row not in self.added and row.seq not in self.edited:
            row = self.edited[row.seq] = self.rows[row.seq] = copy(row)
        self._set_status(row, to)
        if to is not CompensationStatus.UNDOING:
            self.rows.pop(row.seq)

    def finish(self, changes: Changes) -> None:
        """Tell what was pushed and how far the others have come, and what holds after that."""
        changes.compensations, changes.new_compensations = list(self.edited.values()), self.added
        changes.after.compensations = self.rows

    def _set_status(self, row: Compensation, to: CompensationStatus) -> None:
        transitions.check(transitions.COMPENSATION, row.status, to)
        row.status = to
