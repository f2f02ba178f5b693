"""What `korak sync` answers and draws."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from korak.commands.publishing import Result
from korak.commands.reasons import Reason
from korak.commands.syncing import Synced, draw, list_odd, load

CLAMPED = {
    "code": "retry_clamped",
    "pointer": "/nodes/1/retry",
    "message": "max_attempts is 20; 10 is used.",
    "node": "a",
}


def test_a_line_a_chain_and_why_it_was_refused() -> None:
    found = [
        Synced("shop.reports", "report", Result.PUBLISHED, 2, warnings=[CLAMPED]),
        Synced("shop.reports", "bad", Result.REFUSED, reason=Reason.of("unknown_type", "Nobody knows it.", "/nodes/1")),
    ]
    drawn = StringIO()
    Console(file=drawn, width=80).print(draw(found))
    assert [line.rstrip() for line in drawn.getvalue().splitlines()] == [
        "● report version 2 published · shop.reports",
        "  /nodes/1/retry in node a: max_attempts is 20; 10 is used. (retry_clamped)",
        "✗ bad refused · shop.reports",
        "  Nobody knows it.",
    ]
    assert [each.to_json() for each in found] == [
        {"module": "shop.reports", "key": "report", "version": 2, "result": "published", "warnings": [CLAMPED]},
        {
            "module": "shop.reports",
            "key": "bad",
            "version": None,
            "result": "refused",
            "problems": [
                {
                    "code": "unknown_type",
                    "message": "Nobody knows it.",
                    "pointer": "/nodes/1",
                    "node": None,
                    "edge": None,
                    "params": {},
                }
            ],
        },
    ]


def test_a_chain_may_read_what_only_its_payload_brings() -> None:
    assert list_odd([{"code": "unknown_reference"}, CLAMPED]) == [CLAMPED]


def test_the_pipeline_is_found() -> None:
    [loaded] = load(["pipeline.report"])
    assert (loaded.chain.key, loaded.module.__name__) == ("report", "pipeline.report")
