"""Text to cel-python's syntax tree, with string literals read here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from korak.errors import Issue
from korak.graphs.paths import Malformed

if TYPE_CHECKING:
    from celpy.celparser import CELParser
    from lark import Token, Tree

MAX_LENGTH: Final = 4096

_LITERAL = re.compile(
    r"//[^\n]*"
    r"|(?P<raw>\b[rR])?(?P<text>"
    r'"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"(?!"")(?:[^"\\\n]|\\.)*"'
    r"|'(?!'')(?:[^'\\\n]|\\.)*')"
    r"|[\"']",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {c: c for c in "\\?\"'`"}


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed expression. `literals` are its strings by the position at which they begin."""

    tree: Tree[Token]
    literals: Mapping[int, str]


def parse(text: str) -> Source:
    """Raises Malformed("invalid_expression") for what isn't CEL.

    The library's pattern for strings can be made to run for ever, so it is given strings of the same length that
    hold nothing but underscores.
    """
    if len(text) > MAX_LENGTH:
        raise malformed(f"An expression has {MAX_LENGTH} characters at most.")
    literals: dict[int, str] = {}

    def blank(match: re.Match[str]) -> str:
        quoted = match["text"]
        if quoted is None:
            if not match[0].startswith("/"):
                raise malformed(f"The string at character {match.start() + 1} doesn't end.")
            return " " * len(match[0])
        literals[match.start("text")] = _read(quoted, is_raw=match["raw"] is not None)
        return (" " if match["raw"] else "") + '"' + "_" * (len(quoted) - 2) + '"'

    return Source(_parse(_LITERAL.sub(blank, text)), literals)


def _parse(text: str) -> Tree[Token]:
    from celpy.celparser import CELParseError

    try:
        return _parser().parse(text)
    except CELParseError as error:
        raise malformed(_describe(error.line, error.column)) from None


def _describe(line: int | None, column: int | None) -> str:
    if line is None or column is None or line < 1:
        return "The expression ends too early."
    return f"The expression can't be read from line {line}, character {column}, on."


@cache
def _parser() -> CELParser:
    """Imported when first needed: it costs a fifth of a second, which most commands never use."""
    from celpy.celparser import CELParser

    return CELParser()


def _read(quoted: str, *, is_raw: bool) -> str:
    width = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    inner = quoted[width:-width]
    text = inner if is_raw else _ESCAPE.sub(_unescape, inner)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise malformed("A string may hold neither NUL nor a lone surrogate.")
    return text


def _unescape(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    try:
        if hexadecimal:
            return chr(int(hexadecimal, 16))
        return chr(int(match[4], 8)) if match[4] else _SIMPLE[match[5]]
    except (KeyError, ValueError, OverflowError):
        raise malformed(f"{match[0]} is no escape in a string.") from None


def malformed(detail: str) -> Malformed:
    """An expression that can't be used, and why."""
    return Malformed(Issue("invalid_expression", params={"detail": detail}))
