"""A research: a planner, an agent for each shelf of the library, and what two of them or more have found."""

from __future__ import annotations

from typing import Any

from agents.library import find_lines, list_shelves, read_shelf
from korak import BlockingContext, StepFailed, chain
from korak.chains import Chain


def plan(ctx: BlockingContext, topic: str) -> dict[str, Any]:
    """Decide what there is to do: a task for each shelf."""
    if not topic.strip():
        raise StepFailed("no_topic", "There is nothing to look for.")
    return {"topic": topic.strip().lower(), "agent_tasks": [{"shelf": shelf} for shelf in list_shelves()]}


def search(ctx: BlockingContext, shelf: str, topic: str) -> dict[str, Any]:
    """Read one shelf."""
    quotes = find_lines(shelf, topic)
    if not quotes:
        raise StepFailed("nothing_found", f"The shelf {shelf} has nothing about {topic}.")
    return {"quotes": quotes}


def gather(ctx: BlockingContext, agent_results: dict[str, Any]) -> dict[str, Any]:
    """Put together what the agents have found."""
    found = sorted(agent_results.values(), key=lambda result: str(result["shelf"]))
    return {"quotes": [{"shelf": each["shelf"], "text": text} for each in found for text in each["quotes"]]}


def check(ctx: BlockingContext, item: dict[str, str]) -> dict[str, Any]:
    """Look up whether a quote is one."""
    return {**item, "is_found": item["text"] in read_shelf(item["shelf"])}


def keep(ctx: BlockingContext, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Keep the quotes that are."""
    checked = [row["output"] for row in results]
    return {"quotes": [{"shelf": each["shelf"], "text": each["text"]} for each in checked if each["is_found"]]}


def synthesise(
    ctx: BlockingContext, topic: str, quotes: list[dict[str, str]], agent_tasks: list[dict[str, str]]
) -> dict[str, Any]:
    """Say what is known, from where, and what is missing."""
    shelves = sorted({quote["shelf"] for quote in quotes})
    missing = [task["shelf"] for task in agent_tasks if task["shelf"] not in shelves]
    summary = f"{topic.capitalize()}: {len(quotes)} sentences on {len(shelves)} of {len(agent_tasks)} shelves."
    return {"summary": summary, "shelves": shelves, "missing": missing}


agent = (
    chain("research-agent", "Read a shelf")
    .version("1")
    .then(search, "search")
)  # fmt: skip


def make_research(key: str, name: str, quorum: int) -> Chain:
    """A research that goes on when so many agents have found something."""
    return (
        chain(key, name)
        .version("1")
        .max_transitions(50)
        .max_for_each_items(100)
        .max_state_bytes(100_000)
        .then(plan, "plan")
        .start_agents("agent_tasks", agent, group_key="agents")
        .wait_for_agent_group(mode="quorum", quorum=quorum)
        .then(gather, "gather")
        .for_each("quotes", check, "checked", reducer=keep, name="check")
        .then(synthesise, "synthesise")
        .wait_for_approval(name="sign")
    )


research = make_research("research", "Research a topic", quorum=2)
thorough = make_research("thorough-research", "Research a topic on every shelf", quorum=3)
