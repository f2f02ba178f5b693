"""The README of an example as a newcomer reads it: commands to call, and pictures of what they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

COMMAND = re.compile(r"^    (?:PYTHONPATH=\S+ )?korak (?P<words>.+)$", re.MULTILINE)
PICTURE = re.compile(r"^```\n(?P<picture>.*?)^```$", re.MULTILINE | re.DOTALL)
LISTING = re.compile(r"^```\w+\n.*?^```$", re.MULTILINE | re.DOTALL)

DEEP = 20
"""Columns before a line that is the rest of the one above it."""

INSTANCE = re.compile(r"\b01[0-9A-Z]{24}\b|\bINSTANCE\b")
SHIFTING = (
    (re.compile(r"\b01[0-9A-Z]{24}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "HASH"),
    (re.compile(r"\b[0-9.]+ (ms|s|min|h|d)\b"), "TIME"),
    (re.compile(r"\{[^{}…]*\}"), "{}"),
    (re.compile(r'(\{"|\["|\[\{|"|\{\}$).*'), "JSON"),
)
"""What is another in every run, or cut where the time beside it leaves off."""


class Called(NamedTuple):
    """A command, and what the README says that it prints, where it says so."""

    words: Sequence[str]
    picture: str | None

    def fill(self, instance: str) -> Sequence[str]:
        """The words, with the id of a run in the place of the README's."""
        return [INSTANCE.sub(instance, word) for word in self.words]


def read(text: str) -> list[Called]:
    """The commands of a README up to its last picture, in their order."""
    text = LISTING.sub("", text)
    pictures = {found.end(): found["picture"] for found in PICTURE.finditer(text)}
    commands = [found for found in COMMAND.finditer(text) if found.end() < max(pictures)]
    ends = [found.start() for found in commands[1:]] + [len(text)]
    called = []
    for command, end in zip(commands, ends, strict=True):
        shown = [picture for at, picture in pictures.items() if command.end() < at <= end]
        called.append(Called(shlex.split(command["words"]), shown[0] if shown else None))
    return called


def outline(picture: str) -> list[str]:
    """The lines of a picture without what is another in every run: ids, times, and the JSON that fills the rest."""
    lines: list[str] = []
    for line in filter(str.strip, picture.splitlines()):
        if lines and not line[:DEEP].strip():
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(" ".join(line.split()))
    for pattern, word in SHIFTING:
        lines = [pattern.sub(word, line) for line in lines]
    return [" ".join(line.split()) for line in lines]
