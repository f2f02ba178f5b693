"""One claimed attempt, as the engine holds it between its two transactions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from korak.core.rows import StepRun
from korak.core.snapshot import Snapshot
from korak.model import Json


@dataclass(eq=False, slots=True)
class Work:
    """An attempt under its token (`step.claim_token`), with the config resolved and the snapshot after the claim.

    `version` is the number of the definition's version. `deadline` is when its time is over, on the monotonic clock; 0
    as long as the handler hasn't begun, also while it waits for a thread or a process. `in_a_row` counts the steps that
    its instance ran here without going back to its queue. `held_since` is when it was claimed, `cancel_at` when a lost
    one is ended, both on the monotonic clock. `is_cancelled`: the instance was
    cancelled or the token lost, so `ctx.cancelled`. `is_settled`: a result was posted for it already. `thread` is done
    when the thread that the handler runs in has ended, however long after it was abandoned; None without a thread.
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
