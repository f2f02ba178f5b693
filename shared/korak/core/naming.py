"""The names in an exported run, and the row ids that they become."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from korak.core.portable import Place, refuse
from korak.model import JsonObject

Key = TypeVar("Key", str, int)

NAME: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
"""A ULID."""


class Ids(Generic[Key]):
    """The row ids of what is named: each is given at the first mention, be that before the line of its own or behind.

    `take` gives the next id, `what` is what a message calls them.
    """

    def __init__(self, take: Callable[[], int], what: str) -> None:
        self._take, self._what = take, what
        self._given: dict[Key, int] = {}
        self._missing: dict[Key, Place] = {}

    def define(self, name: Key, place: Place) -> int:
        """The id of what this line is. Raises Invalid where another line has been it."""
        is_new = name not in self._given
        if not is_new and self._missing.pop(name, None) is None:
            raise refuse(place, "it is used twice")
        return self._give(name)

    def mention(self, name: Key, place: Place) -> int:
        """The id of what is named here."""
        if name not in self._given:
            self._missing[name] = place
        return self._give(name)

    def check(self) -> None:
        """Raise Invalid where something that was named hasn't come."""
        for place in self._missing.values():
            raise refuse(place, f"there is no such {self._what}")

    def _give(self, name: Key) -> int:
        row_id = self._given.get(name)
        if row_id is None:
            row_id = self._given[name] = self._take()
        return row_id


def read_name(raw: JsonObject, member: str, place: Place) -> str:
    """A ULID. Raises Invalid, as all of these do."""
    name = raw.get(member)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise refuse((*place, member), "it is no id")
    return name


def find_name(raw: JsonObject, member: str, place: Place) -> str | None:
    """A ULID, if there is one."""
    return None if raw.get(member) is None else read_name(raw, member, place)


def find_number(raw: JsonObject, member: str, place: Place) -> int | None:
    """The place of another line among those of its kind, if there is one."""
    number = raw.get(member)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise refuse((*place, member), f"there is no such {member}")
    return number


def read_text(raw: JsonObject, member: str, place: Place) -> str:
    """A text."""
    text = raw.get(member)
    if not isinstance(text, str):
        raise refuse((*place, member), "it is no text")
    return text
