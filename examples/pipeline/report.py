"""The weekly report: its chain, and the handlers that it runs."""

from __future__ import annotations

from typing import Any

from korak import BlockingContext, StepFailed, chain

SALES = {"north": [120, 80, 95], "south": [40, 60]}


def collect(ctx: BlockingContext, item: str) -> dict[str, Any]:
    """Collect a region's sales."""
    if item not in SALES:
        raise StepFailed("unknown_region", f"There is no region {item}: {', '.join(SALES)} are known.")
    return {"region": item, "sold": sum(SALES[item])}


def rank(ctx: BlockingContext, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the best region first."""
    found = [row["output"] for row in results]
    return {"ranking": sorted(found, key=lambda each: each["sold"], reverse=True)}


def total(ctx: BlockingContext, ranking: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up what was sold."""
    return {"total": sum(each["sold"] for each in ranking)}


def headline(ctx: BlockingContext, ranking: list[dict[str, Any]]) -> dict[str, Any]:
    """Name the best region."""
    return {"headline": f"{ranking[0]['region'].title()} is ahead" if ranking else "Nothing to report"}


def draft(ctx: BlockingContext, headline: str, total: int, note: str | None = None, drafts: int = 0) -> dict[str, Any]:
    """Write the report, with what its reader has missed."""
    remark = f" Note: {note}." if note else ""
    return {"text": f"{headline}. {total} sold this week.{remark}", "drafts": drafts + 1}


def publish(ctx: BlockingContext, text: str) -> dict[str, Any]:
    """Put it where everybody sees it."""
    return {"published_at": ctx.now.isoformat()}


report = (
    chain("report", "Weekly report")
    .version("1")
    .must_complete_within(days=7)
    .for_each("regions", collect, "sales", reducer=rank, name="collect")
    .parallel([total, headline], "summary")
    .then(draft, "draft")
    .wait_for_decision(result_key=None, name="review")
    .repeat_until("draft", "decision_outcome", "approved", max_iterations=5)
    .delay(1)
    .then(publish, "publish")
)
