"""Compiled values: what each form gives, and what it reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from korak.graphs import instants, paths
from korak.graphs.durations import Duration
from korak.graphs.expressions import Expression
from korak.graphs.paths import MISSING, MissingValue, Path, Reference, Roots, Unresolved
from korak.graphs.room import Room
from korak.graphs.templates import Reveal, Template
from korak.model import Json


@dataclass(frozen=True, slots=True)
class Scope:
    """What a value is resolved with. `secrets` is None where their references stay."""

    roots: Roots
    secrets: Reveal | None = None
    is_strict: bool = False
    room: Room = field(default_factory=Room)


class Value(ABC):
    """A compiled value. What it gives is shared, not copied: callers don't change it."""

    __slots__ = ()

    is_literal: bool = False
    """Whether it gives the same whatever the roots."""

    def resolve(self, roots: Roots, *, strict: bool = False) -> Json:
        """The value now; a secret gives its reference, a missing path null, or with `strict` a MissingValue.

        Raises MissingValue and ExpressionFailed from an expression, Unresolved for a base that is no date and time,
        Oversized where what is read comes to too much.
        """
        return self.evaluate(Scope(roots, None, strict))

    def reveal(self, roots: Roots, secrets: Reveal) -> Json:
        """Like `resolve`, with the secrets' texts in their places: `secrets` gives one by its name."""
        return self.evaluate(Scope(roots, secrets))

    def references(self) -> tuple[Reference, ...]:
        """The paths that are read, with pointers from the raw value on."""
        return tuple(self.walk(""))

    @abstractmethod
    def evaluate(self, scope: Scope) -> Json:
        """The value in a scope: what `resolve` and `reveal` come down to."""

    def walk(self, pointer: str) -> Iterator[Reference]:
        """The paths that are read by what stands at `pointer`."""
        yield from ()


@dataclass(frozen=True, slots=True)
class LiteralValue(Value):
    """JSON as it stands."""

    value: Json

    @property
    def is_literal(self) -> bool:  # type: ignore[override]  # a constant of the class
        """Always."""
        return True

    def resolve(self, roots: Roots, *, strict: bool = False) -> Json:
        """The JSON itself, not a copy."""
        return self.value

    def evaluate(self, scope: Scope) -> Json:
        """The JSON itself, not a copy."""
        return self.value


@dataclass(frozen=True, slots=True)
class RefValue(Value):
    """What stands at a path, else the default, else null."""

    path: Path
    default: Value | None

    def evaluate(self, scope: Scope) -> Json:
        """Looks the path up."""
        found = paths.lookup(self.path, scope.roots)
        if found is not MISSING:
            scope.room.take(found)
            return found
        if self.default is not None:
            return self.default.evaluate(scope)
        if scope.is_strict:
            raise MissingValue(paths.render(self.path))
        return None

    def walk(self, pointer: str) -> Iterator[Reference]:
        """The path, and what the default reads."""
        yield Reference(self.path, self.default is not None, f"{pointer}/ref")
        if self.default is not None:
            yield from self.default.walk(f"{pointer}/default")


@dataclass(frozen=True, slots=True)
class CelValue(Value):
    """The result of an expression."""

    expression: Expression

    def evaluate(self, scope: Scope) -> Json:
        """Evaluates it."""
        result = self.expression.evaluate(scope.roots)
        scope.room.take(result)
        return result

    def walk(self, pointer: str) -> Iterator[Reference]:
        """The paths that it reads."""
        for reference in self.expression.references():
            yield Reference(reference.path, reference.has_default, f"{pointer}/cel")


@dataclass(frozen=True, slots=True)
class TemplateValue(Value):
    """Text with paths in it."""

    template: Template

    def evaluate(self, scope: Scope) -> Json:
        """Fills it."""
        return self.template.fill(scope.roots, secrets=scope.secrets, strict=scope.is_strict, room=scope.room)

    def walk(self, pointer: str) -> Iterator[Reference]:
        """Each of its paths; a missing one is empty text."""
        for path in self.template.list_paths():
            yield Reference(path, False, f"{pointer}/template")


@dataclass(frozen=True, slots=True)
class RelativeValue(Value):
    """An instant some way from another, as ISO 8601 in UTC.

    Months and `{"days"}` go by the wall clock of `instance.timezone`, or of UTC where that isn't there.
    """

    base: Value
    offset: Duration

    def evaluate(self, scope: Scope) -> Json:
        """Adds; null where the base is null."""
        base = self.base.evaluate(scope)
        if base is None:
            return None
        start = instants.parse(base) if isinstance(base, str) else None
        if start is None:
            raise Unresolved(detail="The base of a relative value is a date and time with an offset.")
        return instants.render(self._move(start, scope.roots))

    def _move(self, start: datetime, roots: Roots) -> datetime:
        timezone = paths.lookup(("instance", "timezone"), roots)
        try:
            return self.offset.after(start, timezone if isinstance(timezone, str) else "UTC")
        except OverflowError:
            raise Unresolved(detail="The relative time is beyond the year 9999.") from None

    def walk(self, pointer: str) -> Iterator[Reference]:
        """What the base reads."""
        for reference in self.base.walk(""):
            yield Reference(reference.path, reference.has_default, f"{pointer}/relative/base")


@dataclass(frozen=True, slots=True)
class SecretValue(Value):
    """A secret's reference, or its text where it is revealed."""

    name: str

    def evaluate(self, scope: Scope) -> Json:
        """The reference or the text."""
        return {"secret": self.name} if scope.secrets is None else scope.secrets(self.name)


@dataclass(frozen=True, slots=True)
class ListValue(Value):
    """A list of which some member isn't literal."""

    members: tuple[Value, ...]

    def evaluate(self, scope: Scope) -> Json:
        """A new list."""
        return [member.evaluate(scope) for member in self.members]

    def walk(self, pointer: str) -> Iterator[Reference]:
        """What the members read."""
        for index, member in enumerate(self.members):
            yield from member.walk(f"{pointer}/{index}")


@dataclass(frozen=True, slots=True)
class ObjectValue(Value):
    """An object of which some member isn't literal."""

    members: tuple[tuple[str, Value], ...]

    def evaluate(self, scope: Scope) -> Json:
        """A new object."""
        return {key: member.evaluate(scope) for key, member in self.members}

    def walk(self, pointer: str) -> Iterator[Reference]:
        """What the members read."""
        for key, member in self.members:
            yield from member.walk(pointer + paths.pointer([key]))
