"""The example with agents and people as a newcomer has it: `korak dev` with its chains, real processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.devs import Dev, start_dev
from tests.support.servers import ROOT
from tests.support.waiting import eventually_blocking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

CHAINS = "agents.research,agents.review,agents.publication"


@pytest.fixture
def shelves(tmp_path: Path) -> Path:
    """The shelves of a copy of the example, which a test may add to."""
    copy = tmp_path / "examples" / "agents"
    shutil.copytree(ROOT / "examples" / "agents", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy / "shelves"


@pytest.fixture
def dev(tmp_path: Path, shelves: Path, database_url: str) -> Iterator[Dev]:
    """One that runs that copy."""
    path = str(shelves.parent.parent)
    with start_dev(tmp_path, "--chains", CHAINS, KORAK_DATABASE__URL=database_url, PYTHONPATH=path) as running:
        yield running


def send(dev: Dev, instance: str, name: str, **payload: Any) -> None:
    """A signal from a person."""
    with dev.client as client:
        body = {"name": name, "payload": payload}
        client.post(f"/v1/instances/{instance}/signal", json=body).raise_for_status()


def retry(dev: Dev, instance: str) -> None:
    """Let a failed run go on."""
    with dev.client as client:
        client.post(f"/v1/instances/{instance}/retry").raise_for_status()


def list_agents(dev: Dev, instance: str) -> dict[str, dict[str, Any]]:
    """The agents of a research, by their shelves, once they have all ended."""

    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = dev.get("/v1/instances", parent=instance, limit=50)["items"]
        return found if all(each["ended_at"] for each in found) else None

    found = eventually_blocking(look, 30, message="an agent doesn't end") or []
    return {each["input"]["shelf"]: each for each in found}


def count(dev: Dev, instance: str, node: str) -> int:
    """How often a step was made."""
    return sum(step["node"] == node for step in dev.list_steps(instance))


def await_review(dev: Dev, instance: str, drafts: int) -> None:
    """Until so many drafts have been written and the newest waits for its reader."""

    def look() -> bool:
        reviews = [step["status"] for step in dev.list_steps(instance) if step["node"] == "review"]
        return len(reviews) == drafts and reviews[-1] == "waiting"

    eventually_blocking(look, 30, message=f"draft {drafts} isn't reviewed")


def sign_research(dev: Dev, topic: str) -> str:
    """A research that has completed."""
    research = dev.start("research", {"topic": topic})
    dev.await_step(research, "sign", "waiting")
    send(dev, research, "approval")
    assert dev.finish(research)["status"] == "completed"
    return research


def test_t_ag_1_two_agents_of_three_are_enough(dev: Dev) -> None:
    """T-AG-1: nothing is on the third shelf; the synthesis has two results, and an agent's run is one of its own."""
    research = dev.start("research", {"topic": "Coffee"})
    dev.await_step(research, "sign", "waiting")
    agents = list_agents(dev, research)
    statuses = {shelf: agent["status"] for shelf, agent in agents.items()}
    assert statuses == {"history": "completed", "making": "completed", "trade": "failed"}
    assert agents["trade"]["failure"]["code"] == "nothing_found"
    send(dev, research, "approval", by="Ana")
    ended = dev.finish(research)
    state = ended["result"]
    assert ended["status"] == "completed"
    assert set(state["agent_results"]) == {agents["history"]["id"], agents["making"]["id"]}
    assert state["summary"] == "Coffee: 5 sentences on 2 of 3 shelves."
    assert (state["shelves"], state["missing"], state["approval"]) == (["history", "making"], ["trade"], {"by": "Ana"})
    assert (state["checked"]["total"], state["checked"]["failed"]) == (5, 0)


def test_t_ag_2_and_where_all_three_are_needed_it_fails_until_the_third_is_tried_again(dev: Dev, shelves: Path) -> None:
    """T-AG-2: and the way out, which is to retry the agent and then its parent."""
    research = dev.start("thorough-research", {"topic": "coffee"})
    failed = dev.finish(research)
    agent = list_agents(dev, research)["trade"]
    assert (failed["status"], failed["failure"]["code"]) == ("failed", "wait_impossible")
    assert agent["id"] in failed["failure"]["message"]
    with (shelves / "trade.txt").open("a") as shelf:
        shelf.write("Coffee is traded in New York.\n")
    retry(dev, agent["id"])
    assert dev.finish(agent["id"])["status"] == "completed"
    retry(dev, research)
    dev.await_step(research, "sign", "waiting")
    send(dev, research, "approval")
    ended = dev.finish(research)
    assert (ended["status"], ended["result"]["shelves"]) == ("completed", ["history", "making", "trade"])
    assert count(dev, research, "start_agents") == 1


def test_t_ag_3_a_draft_that_is_rejected_and_corrected_by_notes(dev: Dev) -> None:
    """T-AG-3: and one that is approved, which asks for none."""
    text = {"text": "Tea is a drink. It is old."}
    rejected, approved = dev.start("summary", text), dev.start("summary", text)
    for instance in (rejected, approved):
        dev.await_step(instance, "review", "waiting")
    send(dev, rejected, "rejected", reason="too short")
    dev.await_step(rejected, "notes", "waiting")
    send(dev, rejected, "input", text="It is drunk hot.")
    state = dev.finish(rejected)["result"]
    assert (state["summary"], state["reason"]) == ("Tea is a drink. It is drunk hot.", "too short")
    assert state["review"]["outcome"] == "rejected"
    send(dev, approved, "approved")
    assert dev.finish(approved)["result"]["summary"] == "Tea is a drink."
    assert count(dev, approved, "notes") == 0


def test_t_ag_4_a_publication_of_a_research_that_has_completed_already(dev: Dev) -> None:
    """T-AG-4: it goes on; another one, begun before its research has completed, stands there until it does."""
    research = sign_research(dev, "tea")
    publication = dev.start("publication", {"research_id": research})
    dev.await_step(publication, "review", "waiting")
    [found] = [step for step in dev.list_steps(publication) if step["node"] == "await_research"]
    assert (found["status"], found["output"]["topic"]) == ("completed", "tea")

    later = dev.start("research", {"topic": "chocolate"})
    dev.await_step(later, "sign", "waiting")
    early = dev.start("publication", {"research_id": later})
    dev.await_step(early, "await_research", "waiting")
    [wait] = dev.get(f"/v1/instances/{early}")["waiting_for"]
    assert (wait["kind"], wait["remaining"]) == ("workflows", [later])
    send(dev, later, "approval")
    dev.await_step(early, "review", "waiting")
    for each in (publication, early):
        send(dev, each, "approved")
        ended = dev.finish(each)
        assert (ended["status"], ended["artifacts"]["keys"]) == ("completed", ["article.md"])


def test_t_ag_5_two_rejections_and_an_approval_publish_once(dev: Dev) -> None:
    """T-AG-5: three drafts, each decision for its own round."""
    publication = dev.start("publication", {"research_id": sign_research(dev, "tea")})
    for drafts, remark in enumerate(["no prices", "too short"], 1):
        await_review(dev, publication, drafts)
        send(dev, publication, "rejected", remark=remark)
    await_review(dev, publication, 3)
    send(dev, publication, "approved")
    ended = dev.finish(publication)
    state = ended["result"]
    assert (ended["status"], state["approved"], state["drafts"]) == ("completed", True, 3)
    assert state["remarks"] == ["no prices", "too short"]
    assert [count(dev, publication, node) for node in ("write", "review", "publish")] == [3, 3, 1]
    assert "Note: too short" in state["text"]
    [article] = dev.get(f"/v1/instances/{publication}/artifacts")["items"]
    assert (article["key"], article["kind"]) == ("article.md", "text")
