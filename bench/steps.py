"""The trivial step of the workload."""

from __future__ import annotations

from korak import StepContext, step


@step("bench.nothing")
async def nothing(ctx: StepContext) -> dict[str, int]:
    """Do nothing"""
    return {"ok": 1}
