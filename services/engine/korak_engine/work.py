"""One claimed attempt, as the engine holds it between its two transactions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from korak.core.facts import HandlerResult, Left, Raised
from korak.core.rows import StepRun
from korak.core.snapshot import Snapshot
from korak.errors import StaleClaim
from korak.model import Json, JsonObject
from korak.steps.artifacts import Made
from korak.steps.contract import Fail


@dataclass(eq=False, slots=True)
class Leaving:
    """What a handler leaves beside its result, as it comes: chunks, which are stored already, artifacts, heartbeats.

    `size` is the bytes of all chunks. `heartbeat` is the last one, `is_beating` whether it is still to be written.
    """

    chunks: list[str] = field(default_factory=list)
    size: int = 0
    has_streamed: bool = False
    artifacts: dict[str, Made] = field(default_factory=dict)
    heartbeat: JsonObject = field(default_factory=dict)
    is_beating: bool = False


@dataclass(eq=False, slots=True)
class Work:
    """An attempt under its token (`step.claim_token`), with the config resolved and the snapshot after the claim.

    `version` is the number of the definition's version. `deadline` is when its time is over, on the monotonic clock; 0
    as long as the handler hasn't begun, also while it waits for a thread or a process. `in_a_row` counts the steps that
    its instance ran here without going back to its queue. `held_since` is when it was claimed, `cancel_at` when a lost
    one is ended, both on the monotonic clock. `is_cancelled`: the instance was
    cancelled or the token lost, so `ctx.cancelled`. `is_settled`: a result was posted for it already. `thread` is done
    when the thread that the handler runs in has ended, however long after it was abandoned; None without a thread.
    `leaving` is None as long as the handler has left nothing.
    """

    step: StepRun
    input: Json
    snapshot: Snapshot
    version: int
    deadline: float = 0.0
    in_a_row: int = 1
    held_since: float = 0.0
    cancel_at: float = 0.0
    is_cancelled: bool = False
    is_settled: bool = False
    task: asyncio.Task[None] | None = None
    thread: asyncio.Future[None] | None = None
    leaving: Leaving | None = None

    def leave(self) -> Leaving:
        """Where the handler leaves what it leaves."""
        if self.leaving is None:
            self.leaving = Leaving()
        return self.leaving

    def list_left(self, result: HandlerResult) -> Left | None:
        """What is recorded with that result: what failed leaves nothing."""
        if self.leaving is None or isinstance(result, (Raised, Fail)):
            return None
        return Left(tuple(self.leaving.artifacts.values()), self.leaving.has_streamed)

    def check_held(self) -> None:
        """Raise StaleClaim once nothing that the attempt comes to will count."""
        if self.is_cancelled or self.is_settled:
            raise StaleClaim
