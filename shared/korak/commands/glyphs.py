"""The sign of a status, and its colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.text import Text

from korak.model import StepStatus

GLYPHS: Final[Mapping[str, tuple[str, str]]] = {
    StepStatus.QUEUED: ("◌", "dim"),
    StepStatus.RUNNING: ("▶", "cyan"),
    StepStatus.WAITING: ("◷", "yellow"),
    StepStatus.COMPLETED: ("✓", "green"),
    StepStatus.FAILED: ("✗", "red"),
    StepStatus.CANCELLED: ("⊘", "dim"),
    "paused": ("‖", "magenta"),
}


def draw_glyph(status: str) -> Text:
    """The sign."""
    glyph, style = GLYPHS.get(status, ("●", ""))
    return Text(glyph, style)
