"""The weekly report: its chain, and the handlers that it runs."""

from __future__ import annotations

from typing import Any

from korak import BlockingContext, StepFailed, chain

SALES = {"north": [120, 80, 95], "south": [40, 60]}


def collect(ctx: BlockingContext, region: str) -> dict[str, Any]:
    """Collect a region's sales."""
    if region not in SALES:
        raise StepFailed("unknown_region", f"There is no region {region}: {', '.join(SALES)} are known.")
    return {"sales": SALES[region]}


def total(ctx: BlockingContext, sales: list[int]) -> dict[str, Any]:
    """Add them up."""
    return {"total": sum(sales)}


def draft(ctx: BlockingContext, region: str, total: int, note: str | None = None, drafts: int = 0) -> dict[str, Any]:
    """Write the report, with what its reader has missed."""
    remark = f" Note: {note}." if note else ""
    return {"text": f"{region}: {total} sold this week.{remark}", "drafts": drafts + 1}


def publish(ctx: BlockingContext, text: str) -> dict[str, Any]:
    """Put it where everybody sees it."""
    return {"published_at": ctx.now.isoformat()}


report = (
    chain("report", "Weekly report")
    .version("1")
    .must_complete_within(days=7)
    .then(collect)
    .then(total)
    .then(draft, "draft")
    .wait_for_decision(result_key=None, name="review")
    .repeat_until("draft", "decision_outcome", "approved", max_iterations=5)
    .delay(1)
    .then(publish)
)
