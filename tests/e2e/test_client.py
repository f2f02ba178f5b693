"""The client and the commands made of it, on a `korak dev` as an author has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from korak.client import Korak
from korak.errors import Conflict
from pipeline.report import report
from tests.e2e.test_chains import EDITED, await_review, call
from tests.support import devs
from tests.support.devs import Dev, start_dev

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

SCRIPT = """
import asyncio
from korak.client import Korak
from pipeline.report import report

print(asyncio.run(report.dispatch({"regions": ["south"]}, idempotency_key="monday")))
with Korak() as korak:
    print(report.dispatch({"regions": ["south"]}, client=korak, idempotency_key="monday"))
"""


def run(dev: Dev, source: str) -> list[str]:
    """The lines that a script writes, in the directory of a `korak dev`."""
    environ = devs.get_environ(PYTHONWARNINGS="error")
    command = [sys.executable, "-c", source]
    done = subprocess.run(
        command, cwd=dev.directory, env=environ, check=False, capture_output=True, text=True, timeout=40
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_report_is_dispatched_rejected_and_approved(tmp_path: Path, database_url: str) -> None:
    """T-GUARD-5, 11.9: by a script in the directory, by the commands, by the blocking client"""
    with (
        start_dev(tmp_path, "--chains", "pipeline.report", KORAK_DATABASE__URL=database_url) as dev,
        Korak(dev.url, dev.token) as korak,
    ):
        one, same = run(dev, SCRIPT)
        assert one == same
        await_review(dev, one, 1)
        with pytest.raises(Conflict, match="it waits for decision approved or rejected at review"):
            korak.submit_input(one, {})
        assert call(dev, "reject", one, "--reason", "too short", "--data", '{"note": "more"}')["delivered"]
        await_review(dev, one, 2)
        assert korak.get(one)["state"]["reason"] == "too short"
        assert call(dev, "approve", one, "--signal", "rejected", code=1) is None
        assert call(dev, "approve", one, "--node", "review")["delivered"]
        ended = korak.wait(one, timeout=30)
        assert (ended["status"], ended["definition_hash"]) == ("completed", report.checksum)
        assert [step["node"] for step in korak.steps(one)].count("draft") == 2
        assert call(dev, "approve", one, code=1) is None
        assert [each["id"] for each in korak.list(definition="report")] == [one]
        assert korak.start("report", {"regions": []}, wait=20)["created"]


def test_an_older_code_version_is_made_current_by_force_alone(tmp_path: Path, database_url: str) -> None:
    def sync(dev: Dev, module: str, *more: str, code: int = 0) -> Any:
        return next(each for each in call(dev, "sync", "--chains", module, *more, code=code) if each["key"] == "report")

    with start_dev(tmp_path, "--chains", "pipeline.report", KORAK_DATABASE__URL=database_url) as dev:
        (tmp_path / "edited.py").write_text(EDITED.replace("bad =", "_bad =").partition("_bad")[0])
        assert sync(dev, "edited")["result"] == "published"
        refused = sync(dev, "pipeline.report", code=1)
        [problem] = refused["problems"]
        edited = Korak(dev.url, dev.token)
        with edited:
            current = edited.call("GET", "/v1/definitions/report")["published_checksum"]
        assert refused["result"] == "refused"
        assert problem["code"] == "version_older"
        told = problem["params"]
        assert (told["checksum"], told["current_checksum"]) == (report.checksum, current)
        forced = sync(dev, "pipeline.report", "--force")
        assert (forced["result"], forced["version"]) == ("published", 1)
        assert sync(dev, "pipeline.report")["result"] == "unchanged"
        assert (sync(dev, "edited")["result"], sync(dev, "edited")["version"]) == ("published", 2)
