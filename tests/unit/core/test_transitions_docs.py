"""The arrows that docs/state-machine.md draws are those of the tables, no more and no fewer (spec 2.10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from korak.core import transitions

PAGE = Path(__file__).parents[3] / "docs" / "state-machine.md"
TABLES: Mapping[str, Mapping[Any, str]] = {
    "Instance": transitions.INSTANCE,
    "Step": transitions.STEP,
    "Wait": transitions.WAIT,
    "Escalation": transitions.ESCALATION,
    "Compensation": transitions.COMPENSATION,
}
ARROW = re.compile(r"^\s*(\S+) --> (\S+) : (\w+)$", re.M)


def read_drawn(title: str) -> list[tuple[str | None, str, str]]:
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]
    (section,) = [text for text in sections if text.startswith(f"{title}\n")]
    return [(None if before == "[*]" else before, after, name) for before, after, name in ARROW.findall(section)]


@pytest.mark.parametrize("title", TABLES)
def test_every_arrow_of_the_table_is_drawn_and_no_other(title: str) -> None:
    table = [
        (None if before is None else before.value, after.value, name) for (before, after), name in TABLES[title].items()
    ]
    assert sorted(read_drawn(title), key=str) == sorted(table, key=str)


def test_the_page_draws_nothing_else() -> None:
    drawn = ARROW.findall(PAGE.read_text())
    assert len(drawn) == sum(len(table) for table in TABLES.values())
