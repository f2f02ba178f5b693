"""Regular expressions that authors write: RE2 only, so that none can be made slow."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import re2

from korak.errors import Issue
from korak.graphs.paths import Malformed

MAX_LENGTH: Final = 1000
MAX_MEMORY: Final = 1 << 20
"""Bytes that the compiled form of one pattern may take; RE2 refuses what needs more (`(a{1000}){1000}`)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Matching takes time linear in the text."""

    text: str
    compiled: Any = field(repr=False, compare=False)

    def matches(self, text: str) -> bool:
        """Whether the pattern is found anywhere in `text`; anchors are the author's own."""
        return self.compiled.search(text) is not None


def compile_pattern(text: object) -> Pattern:
    """Raises Malformed("invalid_pattern") where `text` isn't RE2 syntax, is too long, or would take too much memory."""
    if not isinstance(text, str):
        raise _malformed("a pattern is a string")
    if len(text) > MAX_LENGTH:
        raise _malformed(f"it has {len(text)} characters, {MAX_LENGTH} at most")
    return _compile(text)


@lru_cache(maxsize=1024)
def _compile(text: str) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return Pattern(text, re2.compile(text, options))
    except re2.error as error:
        raise _malformed(_reason(error)) from None
    except UnicodeEncodeError:
        raise _malformed("it holds a lone surrogate") from None


def _reason(error: Exception) -> str:
    why = error.args[0] if error.args else "it can't be compiled"
    return why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)


def _malformed(why: str) -> Malformed:
    return Malformed(Issue("invalid_pattern", params={"why": why}))
