"""What `korak sync` answers and draws."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from korak.commands.publishing import Result
from korak.commands.syncing import Synced, draw, load


def test_a_line_a_chain_and_why_it_was_refused() -> None:
    found = [
        Synced("shop.reports", "report", Result.PUBLISHED, 2),
        Synced("shop.reports", "bad", Result.REFUSED, lines=("No step type is known here.",)),
    ]
    drawn = StringIO()
    Console(file=drawn, width=80).print(draw(found))
    assert [line.rstrip() for line in drawn.getvalue().splitlines()] == [
        "● report version 2 published · shop.reports",
        "✗ bad refused · shop.reports",
        "  No step type is known here.",
    ]
    assert [each.to_json() for each in found] == [
        {"module": "shop.reports", "key": "report", "version": 2, "result": "published"},
        {
            "module": "shop.reports",
            "key": "bad",
            "version": None,
            "result": "refused",
            "problems": ["No step type is known here."],
        },
    ]


def test_the_pipeline_is_found() -> None:
    [loaded] = load(["pipeline.report"])
    assert (loaded.chain.key, loaded.module.__name__) == ("report", "pipeline.report")
