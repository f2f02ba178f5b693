"""How a command answers: one JSON line under --json, else drawn for a person. Logs go to stderr, answers to stdout."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import orjson
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

T = TypeVar("T")

OBEYED: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys or turns round instead of showing it; all but tabs and the ends of lines."""


def defuse(text: str) -> str:
    """A text as a terminal may have it. What runs tell was written by others: messages of errors, payloads, names."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


class Paper(Console):
    """A console on which only its own styles are obeyed, whatever stands in the texts: no markup, no `:smile:`."""

    def __init__(self, *, soft_wrap: bool = False) -> None:
        super().__init__(soft_wrap=soft_wrap, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of a drawing."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(defuse(piece.text), piece.style)


@dataclass(frozen=True, slots=True)
class Screen:
    """Where answers go. A command gets its own from `get_screen(ctx)`."""

    is_json: bool = False

    def show(self, answer: T, draw: Callable[[T], RenderableType] | None = None) -> None:
        """Answer with a value that JSON can carry; `draw` makes of it what a person sees."""
        if self.is_json:
            sys.stdout.write(orjson.dumps(answer).decode() + "\n")
            sys.stdout.flush()
        elif draw is None:
            Paper(soft_wrap=True).print_json(orjson.dumps(answer).decode())
        else:
            Paper().print(draw(answer))

    def write(self, text: str) -> None:
        """A piece of an answer that comes bit by bit."""
        sys.stdout.write(defuse(text))
        sys.stdout.flush()

    def write_raw(self, content: bytes) -> None:
        """An answer that is no text, or needs no drawing."""
        sys.stdout.buffer.write(content)
        sys.stdout.flush()

    def tell(self, line: str) -> None:
        """Say something on the way; it never mixes with an answer."""
        sys.stderr.write(defuse(line) + "\n")
        sys.stderr.flush()


def get_screen(ctx: typer.Context) -> Screen:
    """The screen that the command line asks for."""
    root: Any = ctx.find_root().obj
    return root if isinstance(root, Screen) else Screen()
