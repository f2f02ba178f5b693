"""Values as a person wants to see them: on one line, or a line a member where that would be a long one."""

from __future__ import annotations

from typing import Any, Final

import orjson
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

LONGEST: Final = 60
"""Characters of a value that stands beside something else."""
MOST: Final = 2_000
"""Characters of a result, in all its members."""
WIDE: Final = 120
"""Characters of a result that stays on one line, whatever it is."""


def compact(value: Any, most: int = LONGEST) -> str:
    """As JSON, cut behind so many characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"


def draw_result(result: Any) -> RenderableType:
    """What a run has come to: a line for each member of an object that is long, the short ones whole."""
    head = Text("result ", "bold green")
    if not isinstance(result, dict) or len(result) < 2 or len(compact(result, MOST)) <= WIDE:
        return Text.assemble(head, compact(result, MOST))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, show_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for name, value in result.items():
        table.add_row(Text(name, "bold"), Text(compact(value, max(LONGEST, MOST // 2 // len(result)))))
    return Group(head, Padding(table, (0, 0, 0, 2)))
