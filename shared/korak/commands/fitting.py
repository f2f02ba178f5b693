"""Tables that keep what matters on a narrow screen: they leave out a column rather than a part of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

Row: TypeAlias = tuple[Text, ...]
"""A glyph, then a cell for each name."""
GAP: Final = 2
NOTE: Final = 36
"""Characters that the last column wants, whose text is folded into what there is."""


class Kept(Text):
    """A cell that is told before the last one where its column isn't shown."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rows below their names; the column `spare` isn't shown where the last one would have too little room."""

    names: Sequence[str]
    rows: Sequence[Row]
    spare: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """As wide as there is room."""
        shown = [True, *(name != self.spare for name in self.names)]
        if self._count_needed() <= options.max_width:
            shown = [True] * len(shown)
        table = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", show_edge=False)
        for place, name in enumerate(("", *self.names)):
            is_last = place == len(self.names)
            if shown[place]:
                table.add_column(name, no_wrap=not is_last, overflow="fold" if is_last else "ellipsis")
        for row in self.rows:
            cells = [cell for cell, is_shown in zip(row, shown, strict=True) if is_shown]
            for cell, is_shown in zip(row, shown, strict=True):
                if isinstance(cell, Kept) and not is_shown:
                    cells[-1] = Text.assemble(cell, "  ", cells[-1])
            table.add_row(*cells)
        yield table

    def _count_needed(self) -> int:
        """Characters of all columns, of the last one so many as it wants or has."""
        columns = zip(*((Text(), *map(Text, self.names)), *self.rows), strict=True)
        widths: list[int] = [max(cell.cell_len for cell in column) for column in columns]
        return sum(widths[:-1]) + min(widths[-1], NOTE) + GAP * len(widths)
