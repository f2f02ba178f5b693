"""How much one resolved value may come to: a short document can name a large input many thousand times."""

from __future__ import annotations

from typing import Any, Final

import orjson

from korak.graphs.paths import Unresolved

MOST: Final = 8 << 20
"""Bytes that the values in one config, read from a run, may come to together."""


class Oversized(Unresolved):
    """Internal: a value comes to more than `params["limit"]` bytes. Permanent."""

    code = "value_too_large"


class Room:
    """What is left of the bytes of one resolved value. It is told what is put in before anything is written out."""

    __slots__ = ("left",)

    def __init__(self, left: int = MOST) -> None:
        self.left: int = left

    def take(self, value: Any) -> None:
        """Make room for one more value. Raises Oversized, having looked at no more than there was room for and this."""
        if isinstance(value, str):
            self.left -= len(value)
        elif isinstance(value, dict | list):
            self.left -= _measure(value)
        if self.left < 0:
            raise Oversized(limit=MOST)


def _measure(value: Any) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:
        # What isn't JSON that can be stored is refused where it would be stored, with its place.
        return 0
