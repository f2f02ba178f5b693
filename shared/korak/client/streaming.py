"""Server-sent events, read line by line."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson


class Sent(NamedTuple):
    """One event of a stream: its name, its number where it has one, its JSON."""

    name: str
    number: int | None
    data: Any


class Reader:
    """Puts lines together to events."""

    def __init__(self) -> None:
        self._read: dict[str, str] = {}

    def feed(self, line: str) -> Sent | None:
        """The event that this line completes. What isn't whole when a stream breaks off is none."""
        name, _, value = line.partition(":")
        if line and name:
            self._read[name] = value.removeprefix(" ")
        if line or "data" not in self._read:
            return None
        read, self._read = self._read, {}
        number = read.get("id")
        return Sent(read.get("event", "message"), None if number is None else int(number), orjson.loads(read["data"]))
