"""The working copy of the scopes: each body's state, bookkeeping and end, and what becomes of all of a container's."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime

from korak.core import transitions
from korak.core.rows import Instance, Scope, StepRun, copy
from korak.model import Json, JsonObject, ScopeStatus


def list_path(scopes: Mapping[int, Scope], scope_id: int | None) -> list[Scope]:
    """The scopes around a place, outermost first; one that isn't there ends the way out."""
    path: list[Scope] = []
    while scope_id is not None and (scope := scopes.get(scope_id)) is not None:
        path.append(scope)
        scope_id = scope.parent_scope_id
    return path[::-1]


def get_state(instance: Instance, scopes: Mapping[int, Scope], scope_id: int | None) -> JsonObject:
    """The state as a place sees it: a scope keeps only what was written in it.

    What stands around it doesn't change while it lives, since its container holds the token there.
    """
    state = instance.state
    for scope in list_path(scopes, scope_id):
        if scope.state:
            state = {**state, **scope.state}
    return state


class Scopes:
    """Scopes under decision. `rows` are those in view; `closed` are containers whose open scopes all end with them.

    `adopted` are failed containers' attempts, with the one that goes on with the scopes, and whether it was decided.
    """

    def __init__(self, rows: Mapping[int, Scope], now: datetime) -> None:
        self.rows: dict[int, Scope] = dict(rows)
        self.edited: dict[int, Scope] = {}
        self.added: list[Scope] = []
        self.closed: list[int] = []
        self.adopted: list[tuple[int, int, bool]] = []
        self._pending: dict[int, deque[int]] = {}
        self._now = now

    @property
    def is_touched(self) -> bool:
        """Whether anything became of any of them."""
        return bool(self.edited or self.closed or self.added)

    def list_of(self, step: StepRun) -> list[Scope]:
        """The container's scopes that are in view, in the order of their declaration."""
        found = [scope for scope in self.rows.values() if scope.step_run_id == step.id]
        return sorted(found, key=lambda scope: scope.item_index or 0)

    def list_pending(self, step: StepRun) -> deque[int]:
        """Those in view that haven't been started, by id, the next one first. Kept: the caller takes from the left."""
        if step.id not in self._pending:
            found = [scope for scope in self.rows.values() if scope.step_run_id == step.id]
            pending = [scope for scope in found if scope.status is ScopeStatus.PENDING]
            self._pending[step.id] = deque(
                scope.id for scope in sorted(pending, key=lambda scope: scope.item_index or 0)
            )
        return self._pending[step.id]

    def edit(self, scope_id: int) -> Scope:
        """The scope's copy that may be changed."""
        scope = self.rows[scope_id]
        if scope_id > 0 and scope_id not in self.edited:
            self.edited[scope_id] = self.rows[scope_id] = copy(scope)
        return self.rows[scope_id]

    def add(self, scope_id: int, step: StepRun, index: int, *, name: str | None = None, item: Json = None) -> Scope:
        """A new scope that waits for its start."""
        scope = Scope(
            id=scope_id,
            instance_id=step.instance_id,
            step_run_id=step.id,
            created_at=self._now,
            parent_scope_id=step.scope_id,
            name=name,
            item_index=index,
            item=item,
            status=ScopeStatus.PENDING,
        )
        self.rows[scope_id] = scope
        self.added.append(scope)
        if step.id in self._pending:
            self._pending[step.id].append(scope_id)
        return scope

    def move(self, scope_id: int, to: ScopeStatus) -> Scope:
        """The scope with its new status, by an arrow that is drawn."""
        scope = self.edit(scope_id)
        transitions.check(transitions.SCOPE, scope.status, to)
        scope.status = to
        scope.ended_at = None if to is ScopeStatus.RUNNING else self._now
        return scope

    def close(self, step: StepRun) -> None:
        """The container ends: whatever of it is open is cancelled, what isn't in view too. None of it stays in view."""
        self.closed.append(step.id)
        self._pending.pop(step.id, None)
        for scope in self.list_of(step):
            is_written = scope.id < 0 or scope.id in self.edited
            if is_written and scope.status in (ScopeStatus.PENDING, ScopeStatus.RUNNING):
                self.move(scope.id, ScopeStatus.CANCELLED)
            self.rows.pop(scope.id)

    def adopt(self, failed: StepRun, step: StepRun, *, is_decided: bool) -> None:
        """A failed container's scopes are those of the attempt that goes on. None of them is in view.

        What hasn't succeeded waits for its start, where it was halted; of a container that was decided its reducer.
        """
        self.adopted.append((failed.id, step.id, is_decided))
        for scope in self.list_of(failed):
            self.drop(scope.id)

    def drop(self, scope_id: int) -> None:
        """Out of view; what was changed of it is written all the same."""
        self.rows.pop(scope_id, None)
