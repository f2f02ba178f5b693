"""What the parts of an expression do when it runs."""

from __future__ import annotations

from typing import Any

from korak.graphs import instants, paths
from korak.graphs.cel.frame import Failure, Frame, Node
from korak.graphs.cel.macros import as_bool
from korak.graphs.cel.operators import name_of
from korak.graphs.paths import MISSING, MissingValue, Path


def connect(operands: tuple[Node, ...], *, decisive: bool) -> Node:
    """`||` (decisive: true) or `&&` (false): an error counts only where no other operand decides."""

    def connect(frame: Frame) -> bool:
        failure: Failure | MissingValue | None = None
        for operand in operands:
            try:
                if as_bool(operand(frame)) is decisive:
                    return decisive
            except (Failure, MissingValue) as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not decisive

    return connect


def read(path: Path) -> Node:
    """What stands at the path; `now` is an instant. Raises MissingValue."""
    text = paths.render(path)

    def read_any(frame: Frame) -> Any:
        found = paths.lookup(path, frame.roots)
        if found is MISSING:
            raise MissingValue(text)
        return found

    def read_now(frame: Frame) -> Any:
        now = read_any(frame)
        return (isinstance(now, str) and instants.parse(now)) or now

    return read_now if path == ("now",) else read_any


def get(value: Any, key: Any) -> Any:
    """The member of a map or list. Raises MissingValue, or Failure where the value can have no such member."""
    if type(key) is float and key.is_integer():
        key = int(key)
    if type(value) is dict and type(key) is str:
        if key in value:
            return value[key]
    elif type(value) is list and type(key) is int:
        if 0 <= key < len(value):
            return value[key]
    elif value is not None:
        raise Failure(f"{name_of(value)} has no member by {name_of(key)}")
    raise MissingValue(str(key)[:100])


def is_there(frame: Frame, member: Node) -> bool:
    """What has() says: whether the member, and all that leads to it, is there."""
    try:
        member(frame)
    except MissingValue:
        return False
    return True


def as_key(value: Any) -> str:
    """`value`, where it may be a key."""
    if type(value) is not str:
        raise Failure("the key of a map is a string")
    return value
