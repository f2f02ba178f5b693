"""An owner and its text form, `type:id`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from korak.errors import Invalid
from korak.model import APP_WIDE

MAX_SCOPE: Final = 191
"""Characters of `type:id`."""

_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", re.ASCII)
_ID: Final = re.compile(r"[A-Za-z0-9._:@+=~/-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Owner:
    """A team, tenant or user that things belong to; without type and id the application itself."""

    type: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if (self.type is None) != (self.id is None):
            raise ValueError("an owner has a type and an id, or neither")

    @property
    def scope(self) -> str:
        """The text form: `team:42`, or `*` for the application. Stored as `owner_scope`."""
        return APP_WIDE if self.type is None else f"{self.type}:{self.id}"

    @property
    def is_app_wide(self) -> bool:
        """Whether it is the application itself."""
        return self.type is None


APPLICATION: Final = Owner()


def parse_owner(text: str) -> Owner:
    """The owner of a text form. Raises Invalid (`invalid_owner`) where it is none.

    A type begins with a letter (letters, digits, `_.-`, 100 at most); an id has letters, digits and `._:@+=~/-`.
    The whole has 191 characters at most. The first colon parts the two.
    """
    if text == APP_WIDE:
        return APPLICATION
    kind, separator, identity = text.partition(":")
    if not separator or len(text) > MAX_SCOPE or not _TYPE.fullmatch(kind) or not _ID.fullmatch(identity):
        raise Invalid("invalid_owner", given=text[:MAX_SCOPE])
    return Owner(kind, identity)
