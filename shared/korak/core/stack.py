"""The working copy of an instance's compensations: the newest that is kept, the one that runs, the newest failed."""

from __future__ import annotations

from collections.abc import Mapping

from korak.core import transitions
from korak.core.changes import Changes
from korak.core.rows import Compensation, StepRun, copy
from korak.model import CompensationStatus


class Stack:
    """Compensations under decision. `rows` are those in view, by `seq`: of the kept and the failed the newest alone.

    Those below it come into view when the one that runs is claimed, which loads the instance anew.
    """

    def __init__(self, rows: Mapping[int, Compensation]) -> None:
        self.rows: dict[int, Compensation] = dict(rows)
        self.edited: dict[int, Compensation] = {}
        self.added: list[Compensation] = []
        self.is_retried: bool = False

    @property
    def top(self) -> Compensation | None:
        """The newest that is kept."""
        return self._find_newest(CompensationStatus.KEPT)

    @property
    def failed(self) -> Compensation | None:
        """The newest that could not be undone."""
        return self._find_newest(CompensationStatus.FAILED)

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
        """Give it its new status, by an arrow that is drawn. One that is done goes out of view, or the older failed."""
        if row not in self.added and row.seq not in self.edited:
            row = self.edited[row.seq] = self.rows[row.seq] = copy(row)
        other = self.failed
        self._set_status(row, to)
        if to is CompensationStatus.COMPLETED:
            self.rows.pop(row.seq)
        elif to is CompensationStatus.FAILED and other is not None:
            self.rows.pop(min(row.seq, other.seq))

    def retry(self) -> None:
        """Keep all that could not be undone once more, to be undone under a call of its own."""
        newest = self.failed
        if newest is not None:
            self.is_retried = True
            self.move(newest, CompensationStatus.KEPT)
            self.rows[newest.seq].call += 1

    def finish(self, changes: Changes) -> None:
        """Tell what was pushed and how far the others have come, and what holds after that."""
        changes.compensations, changes.new_compensations = list(self.edited.values()), self.added
        changes.retries_undoing = self.is_retried
        changes.after.compensations = self.rows

    def _find_newest(self, status: CompensationStatus) -> Compensation | None:
        found = [row for row in self.rows.values() if row.status is status]
        return max(found, key=lambda row: row.seq, default=None)

    def _set_status(self, row: Compensation, to: CompensationStatus) -> None:
        transitions.check(transitions.COMPENSATION, row.status, to)
        row.status = to
