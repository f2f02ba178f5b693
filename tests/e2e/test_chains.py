"""Chains as an author has them: a module that `korak dev` publishes and its engine runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import devs
from tests.support.devs import Dev, start_dev
from tests.support.waiting import eventually_blocking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

EDITED = """
from korak import chain
from pipeline.report import collect, rank, total

report = chain("report").for_each("regions", collect, reducer=rank).then(total)
bad = chain("bad").wait_for_signal("a").then("nobody.has_this")
"""


def call(dev: Dev, *arguments: str, code: int = 0) -> Any:
    """What a command answers under --json, in the directory of a `korak dev`."""
    environ = devs.get_environ()
    done = subprocess.run(
        [devs.find_korak(), *arguments, "--json"],
        cwd=dev.directory,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=40,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def await_review(dev: Dev, instance: str, drafts: int) -> None:
    """Until so many drafts have been written and one waits for its review."""

    def look() -> bool:
        steps = dev.list_steps(instance)
        written = sum(step["node"] == "draft" and step["status"] == "completed" for step in steps)
        return written == drafts and (steps[-1]["node"], steps[-1]["status"]) == ("review", "waiting")

    eventually_blocking(look, 30, message=f"draft {drafts} isn't reviewed")


def test_a_report_is_drafted_until_it_is_approved(tmp_path: Path, database_url: str) -> None:
    """T-MODEL-1, T-PAR-1, T-FE-1, T-FE-6, T-SIG-7, T-REP-5, T-DELAY-2 with real processes"""
    with start_dev(tmp_path, "--chains", "pipeline.report", KORAK_DATABASE__URL=database_url) as dev:
        instance = dev.start("report", {"regions": ["south", "north"]})
        await_review(dev, instance, 1)
        call(dev, "signal", instance, "rejected", "--payload", '{"note": "the fair is missing"}')
        await_review(dev, instance, 2)
        call(dev, "signal", instance, "approved")
        ended = dev.finish(instance)
        assert ended["status"] == "completed"
        assert "version:1" in ended["labels"]
        result = ended["result"]
        published_at = result.pop("published_at")
        assert published_at > ended["started_at"]
        sales = result.pop("sales")
        assert (sales["total"], sales["succeeded"], sales["failed"]) == (2, 2, 0)
        assert result == {
            "regions": ["south", "north"],
            "ranking": [{"region": "north", "sold": 295}, {"region": "south", "sold": 100}],
            "total": 395,
            "headline": "North is ahead",
            "text": "North is ahead. 395 sold this week. Note: the fair is missing.",
            "drafts": 2,
            "note": "the fair is missing",
            "decision_outcome": "approved",
            "decision_signal": "approved",
        }
        assert dev.finish(dev.start("report", {"regions": ["east"]}))["status"] == "failed"


def test_chains_are_published_once(tmp_path: Path, database_url: str) -> None:
    """T-MODEL-2, T-GUARD-8"""
    with start_dev(tmp_path, "--chains", "pipeline.report", KORAK_DATABASE__URL=database_url) as dev:
        begun = dev.start("report", {"regions": ["south"]})
        await_review(dev, begun, 1)
        [told] = call(dev, "sync", "--chains", "pipeline.report")
        assert (told["key"], told["version"], told["result"]) == ("report", 1, "unchanged")
        (tmp_path / "edited.py").write_text(EDITED)
        report, bad = call(dev, "sync", "--chains", "edited", code=1)
        assert (report["version"], report["result"]) == (2, "published")
        assert bad["result"] == "refused"
        assert any("nobody.has_this" in problem["message"] for problem in bad["problems"])
        assert call(dev, "sync", code=2) is None
        call(dev, "signal", begun, "approved")
        assert "published_at" in dev.finish(begun)["result"]
        assert dev.finish(dev.start("report", {"regions": ["south"]}))["result"]["total"] == 100
