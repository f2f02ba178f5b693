"""A publication: it waits for a research, is revised until its reader is content, and is published once."""

from __future__ import annotations

from typing import Any

from korak import BlockingContext, chain


def write(
    ctx: BlockingContext, research: dict[str, Any], remarks: list[str] | None = None, drafts: int = 0
) -> dict[str, Any]:
    """Write the article, with all that its reader has remarked so far."""
    quotes = [f"- {quote['text']} ({quote['shelf']})" for quote in research["quotes"]]
    notes = [f"Note: {remark}" for remark in remarks or ()]
    return {"text": "\n".join([f"# {research['topic'].capitalize()}", *quotes, *notes, ""]), "drafts": drafts + 1}


def read_review(ctx: BlockingContext, review: dict[str, Any], remarks: list[str] | None = None) -> dict[str, Any]:
    """Make of a decision what the loop looks at, and remember the remarks."""
    remark = review["data"].get("remark")
    return {"approved": review["outcome"] == "approved", "remarks": [*(remarks or ()), *([remark] if remark else ())]}


def publish(ctx: BlockingContext, text: str) -> dict[str, Any]:
    """Leave the article with the run: what is large stays out of the state."""
    return {"article": ctx.artifact("article.md", text)}


publication = (
    chain("publication", "Publish what a research has found")
    .version("1")
    .max_transitions(60)
    .max_state_bytes(100_000)
    .wait_for_workflow("research_id", result_key="research", name="await_research")
    .then(write, "write")
    .wait_for_decision(result_key="review", name="review")
    .then(read_review, "read_review")
    .repeat_until("write", "approved", max_iterations=5)
    .then(publish, "publish")
)
