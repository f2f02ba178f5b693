"""The library that the agents read: a text file a shelf, a sentence a line."""

from __future__ import annotations

import re
from pathlib import Path

SHELVES = Path(__file__).with_name("shelves")


def list_shelves() -> list[str]:
    """What is written on the shelves."""
    return sorted(file.stem for file in SHELVES.glob("*.txt"))


def find_lines(shelf: str, topic: str) -> list[str]:
    """The sentences on a shelf that have the topic as a word."""
    word = re.compile(rf"\b{re.escape(topic)}\b", re.IGNORECASE)
    return [line for line in read_shelf(shelf) if word.search(line)]


def read_shelf(shelf: str) -> list[str]:
    """All that stands there, as it stands there now."""
    return (SHELVES / f"{shelf}.txt").read_text().splitlines()
