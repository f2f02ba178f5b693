"""A summary that a person reads: approved as it is, or rejected and corrected by notes."""

from __future__ import annotations

from typing import Any

from korak import BlockingContext, chain


def draft(ctx: BlockingContext, text: str) -> dict[str, Any]:
    """Summarise a text by its first sentence."""
    return {"draft": f"{text.partition('.')[0].strip()}."}


def read_review(ctx: BlockingContext, review: dict[str, Any]) -> dict[str, Any]:
    """Ask for notes unless the draft was approved."""
    if review["outcome"] == "approved":
        return {"_next_step": "apply"}
    return {"reason": review["data"].get("reason", "no reason was given")}


def apply(ctx: BlockingContext, draft: str, notes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Put the notes into the draft."""
    return {"summary": f"{draft} {notes.get('text', '')}".strip() if notes else draft}


summary = (
    chain("summary", "Summarise a text")
    .version("1")
    .then(draft, "draft")
    .wait_for_decision(result_key="review", name="review")
    .then(read_review, "read_review")
    .jumps("apply")
    .wait_for_input(result_key="notes", name="notes")
    .then(apply, "apply")
)
