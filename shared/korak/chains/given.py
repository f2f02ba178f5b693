"""What a caller of a chain's methods gave: taken as the chain's own, shown in a few words, or refused."""

from __future__ import annotations

from reprlib import Repr
from typing import Final

from korak.errors import Invalid
from korak.graphs import hygiene
from korak.model import Json

_SHOWN: Final = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 80


def misuse(detail: str) -> Invalid:
    """What a method raises where it is called wrongly."""
    return Invalid("invalid_document", detail, count=1)


def show(given: object) -> str:
    """What was given, as Python writes it, shortened where it is long, deep or endless."""
    try:
        return _SHOWN.repr(given)
    except (ValueError, RecursionError):
        return f"a value of type {type(given).__name__}"


def plain(text: str) -> str:
    """The text itself where it comes as a member of an enumeration, or of another class made of str."""
    return str.__str__(text)


def take(given: object, what: str) -> Json:
    """JSON as a copy of the chain's own: what its author does with it later changes no chain. Raises Invalid."""
    if issue := hygiene.check_json(given):
        raise misuse(f"{what} isn't JSON{f' at {issue.pointer}' if issue.pointer else ''}: {issue.params['why']}.")
    return hygiene.loads(hygiene.dumps(given))  # type: ignore[arg-type]  # it has just been found to be JSON
