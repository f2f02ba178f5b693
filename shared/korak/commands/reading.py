"""JSON on the command line: as it stands, from a file by @name, or from the standard input by @-."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import typer

JSON = "JSON, @FILE or @- for the standard input"


def read_json(text: str, *, option: str) -> Any:
    """The value. Raises BadParameter, which names the option."""
    try:
        if text == "@-":
            raw: bytes | str = sys.stdin.buffer.read()
        elif text.startswith("@"):
            raw = Path(text[1:]).read_bytes()
        else:
            raw = text
        return orjson.loads(raw)
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]} can't be read: {error.strerror}", param_hint=option) from None
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"This isn't JSON: {error}", param_hint=option) from None
