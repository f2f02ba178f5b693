"""`match` in a config: paths into what comes, each with the value that must stand there."""

from __future__ import annotations

from collections.abc import Iterator

from korak.errors import Issue, StepFailed
from korak.graphs import paths
from korak.graphs.values import get_form
from korak.model import Json, JsonObject
from korak.steps.builtin import shapes

OBJECT = "an object is expected"


def check_match(written: Json, pointer: str) -> Iterator[Issue]:
    """What is wrong with one as it is written: what stands before each value must be a path."""
    form = get_form(written)
    if form == "literal" and isinstance(written, dict):
        yield from _check_paths(written["literal"], f"{pointer}/literal")
    elif form is None:
        yield from _check_paths(written, pointer)


def read_match(resolved: Json, pointer: str) -> JsonObject:
    """One that was resolved. Raises `invalid_input`."""
    for issue in _check_paths(resolved, pointer):
        raise StepFailed("invalid_input", pointer=issue.pointer, detail=str(issue.params["detail"]))
    assert isinstance(resolved, dict), "it was looked at"
    return resolved


def _check_paths(match: Json, pointer: str) -> Iterator[Issue]:
    if not isinstance(match, dict):
        yield shapes.wrong(pointer, OBJECT)
        return
    for path in match:
        try:
            paths.parse(path)
        except paths.Malformed as error:
            yield shapes.wrong(pointer + paths.pointer([path]), error.message)
