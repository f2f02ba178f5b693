"""Text with paths in it: `Order ${input.order_id} is late`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from korak.errors import Issue
from korak.graphs import paths
from korak.graphs.paths import MISSING, Malformed, MissingValue, Path, Roots
from korak.graphs.room import Room
from korak.model import Json

MAX_LENGTH: Final = 65536
Reveal: TypeAlias = Callable[[str], str]
"""The text of a secret, by its name."""

_HOLE = re.compile(r'\$\$\{|\$\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)(\})?', re.DOTALL)
_SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class Hole:
    """A secret's place in a template."""

    secret: str


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template: literal text, paths and secrets in turn."""

    parts: tuple[str | Path | Hole, ...]

    def fill(
        self, roots: Roots, *, secrets: Reveal | None = None, strict: bool = False, room: Room | None = None
    ) -> str:
        """The text: strings as they are, null and missing empty, other JSON compact.

        Without `secrets` their places stay as they are written. With `strict` a missing path is a MissingValue.
        Raises Oversized where there is no `room` for it.
        """
        room = room or Room()
        texts: list[str] = []
        for part in self.parts:
            texts.append(_fill(part, roots, secrets, strict))
            room.take(texts[-1])
        return "".join(texts)

    def list_paths(self) -> tuple[Path, ...]:
        """The paths in it, in order."""
        return tuple(part for part in self.parts if isinstance(part, tuple))


def compile_template(text: object, *, secrets: bool = False) -> Template:
    """Raises Malformed: "invalid_value", or "secret_not_allowed" for `${secret.x}` without `secrets`."""
    if not isinstance(text, str):
        raise malformed("A template is a string.")
    if len(text) > MAX_LENGTH:
        raise malformed(f"A template has {MAX_LENGTH} characters at most.")
    parts: list[str | Path | Hole] = []
    position = 0
    for match in _HOLE.finditer(text):
        parts.append(text[position : match.start()])
        parts.append("${" if match[1] is None else _compile_hole(match, secrets=secrets))
        position = match.end()
    parts.append(text[position:])
    return Template(tuple(part for part in parts if part != ""))


def check_secret_name(name: object) -> str:
    """`name`, where a secret may be called so. Raises Malformed("invalid_value")."""
    if not isinstance(name, str) or _SECRET.fullmatch(name) is None:
        raise malformed("A secret's name has letters, digits, dots, dashes and underscores.")
    return name


def _compile_hole(match: re.Match[str], *, secrets: bool) -> Path | Hole:
    if match[2] is None:
        raise malformed(f"The ${{ at character {match.start() + 1} isn't closed; write $${{ for the text itself.")
    inner = match[1].strip()
    if not inner.startswith("secret."):
        return paths.parse_rooted(inner)
    if not secrets:
        raise Malformed(Issue("secret_not_allowed"))
    return Hole(check_secret_name(inner.removeprefix("secret.")))


def _fill(part: str | Path | Hole, roots: Roots, secrets: Reveal | None, strict: bool) -> str:
    match part:
        case str():
            return part
        case Hole(name):
            return f"${{secret.{name}}}" if secrets is None else secrets(name)
        case path:
            found = paths.lookup(path, roots)
            if found is not MISSING:
                return _write(found)
            if strict:
                raise MissingValue(paths.render(path))
            return ""


def _write(value: Json) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def malformed(detail: str) -> Malformed:
    """A value that can't be used, and why."""
    return Malformed(Issue("invalid_value", params={"detail": detail}))
