"""The READMEs of the examples, followed word by word: what they show is what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.test_cli import Terminal
from tests.support import readmes
from tests.support.devs import start_dev
from tests.support.readmes import INSTANCE, outline
from tests.support.servers import ROOT
from tests.support.waiting import eventually_blocking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

WIDTH = {"COLUMNS": "100"}


@pytest.mark.parametrize(
    ("example", "chains", "pictures"),
    [("agents", "agents.research,agents.review,agents.publication", 3), ("pipeline", "pipeline.report", 3)],
)
def test_what_a_readme_shows_is_printed(
    tmp_path: Path, database_url: str, example: str, chains: str, pictures: int
) -> None:
    called = readmes.read((ROOT / "examples" / example / "README.md").read_text())
    assert sum(each.picture is not None for each in called) == pictures
    instance = ""
    with start_dev(tmp_path, "--chains", chains, KORAK_DATABASE__URL=database_url) as dev:
        korak = Terminal(tmp_path, dev)
        for each in called:
            words = each.fill(instance)
            printed = korak(*words, environ=WIDTH).out
            if words[0] == "start" and (found := INSTANCE.search(printed)):
                instance = found.group()
            if each.picture is not None:
                await_picture(korak, words, each.picture)


def await_picture(korak: Terminal, words: Sequence[str], picture: str) -> None:
    """Until a command prints that."""

    def look() -> bool:
        assert outline(korak(*words, environ=WIDTH).out) == outline(picture)
        return True

    eventually_blocking(look, 20)
