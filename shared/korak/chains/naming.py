"""The names of steps and state keys: what they may be, and which node ids they become."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable
from typing import Final

from korak.chains.given import misuse, plain, show
from korak.graphs import hygiene, paths
from korak.graphs.document import END

START, BEGIN, LAST = "start", "begin", "end"
RESERVED: Final = frozenset({START, BEGIN, LAST})
"""The nodes that every chain has besides its steps: the trigger, the payload's entry into the state, the end."""

MAX_ID: Final = 64
MAX_NAME: Final = 200
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def get_id(name: str) -> str:
    """The node id of a step's name: small letters, digits and `_`; `s` goes before what doesn't begin with a letter."""
    made = re.sub(r"[^a-z0-9_]+", "_", name.lower())
    return _fit(made if made[:1].isalpha() else f"s{made}")


def get_part(name: str, part: str) -> str:
    """The id of what belongs to a step's node: its name behind the node's."""
    return _fit(f"{get_id(name)}_{part}")


def _fit(made: str) -> str:
    """An id of as many characters as one may have: the end of a longer one is told by its digest."""
    return made if len(made) <= MAX_ID else f"{made[: MAX_ID - 9]}_{hashlib.sha256(made.encode()).hexdigest()[:8]}"


def read_name(given: object, what: str) -> str:
    """A text that isn't blank and can be stored, trimmed."""
    if not isinstance(given, str) or not given.strip():
        raise misuse(f"{what} is a text that isn't empty; {show(given)} was given.")
    if issue := hygiene.check_json(plain(given)):
        raise misuse(f"{what} can't be {show(given)}: {issue.params['why']}.")
    return plain(given).strip()


def read_title(given: object, what: str) -> str:
    """The name of something as people see it."""
    name = read_name(given, what)
    if len(name) > MAX_NAME:
        raise misuse(f"{what} has {MAX_NAME} characters at most; {show(name)} has {len(name)}.")
    return name


def read_step_name(given: object, taken: Iterable[str]) -> str:
    """The name of a new step, unlike those before it and unlike the nodes that every chain has."""
    name = read_title(given, "The name of a step")
    made = get_id(name)
    if name == END:
        raise misuse(f"A step can't be named {END}: it is what a jump to the end is called.")
    if made in RESERVED:
        raise misuse(f"A step can't be named {name!r}: every chain has a node {made} of its own.")
    for other in taken:
        if other == name:
            raise misuse(f"Two steps are named {name!r}: give one of them another name.")
        if get_id(other) == made:
            raise misuse(f"The steps {other!r} and {name!r} would both be the node {made}: name one otherwise.")
    return name


def read_key(given: object, what: str) -> str:
    """A key of the state that a step may write."""
    key = read_name(given, what)
    if key.startswith("_"):
        raise misuse(f"{what} can't begin with _, which is Korak's own: {show(key)}.")
    if not _KEY.fullmatch(key):
        raise misuse(f"{what} is a name of letters, digits, _ and -, 64 at most: {show(key)} isn't.")
    return key


def read_source(given: object, what: str) -> str:
    """A key of the state that is read."""
    key = read_name(given, what)
    if key.startswith("_"):
        raise misuse(f"{what} can't begin with _: such keys never enter the state.")
    try:
        paths.parse(get_path(key))
    except paths.Malformed as error:
        raise misuse(f"{what} can't be read: {error.message}") from error
    return key


def get_path(key: str) -> str:
    """The path of a key of the state."""
    return paths.render(("state", key))


def find_target(name: object, steps: Container[str], what: str, where: str = "there") -> str:
    """The node that a name of a step, or `$end`, means. `where` the steps that may be named are."""
    if name == END:
        return LAST
    wanted = read_name(name, what)
    if wanted not in steps:
        raise misuse(f"{what} names the step {show(wanted)}, which isn't {where}.")
    return get_id(wanted)
