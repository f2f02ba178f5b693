"""How a command answers: one JSON line under --json, else drawn for a person. Logs go to stderr, answers to stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
import typer
from rich.console import Console, RenderableType

T = TypeVar("T")


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
            Console(soft_wrap=True).print_json(orjson.dumps(answer).decode())
        else:
            Console().print(draw(answer))

    def write(self, text: str) -> None:
        """A piece of an answer that comes bit by bit, as it stands."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def write_raw(self, content: bytes) -> None:
        """An answer that is no text, or needs no drawing."""
        sys.stdout.buffer.write(content)
        sys.stdout.flush()

    def tell(self, line: str) -> None:
        """Say something on the way; it never mixes with an answer."""
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def get_screen(ctx: typer.Context) -> Screen:
    """The screen that the command line asks for."""
    root: Any = ctx.find_root().obj
    return root if isinstance(root, Screen) else Screen()
