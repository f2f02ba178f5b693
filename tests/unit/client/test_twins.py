"""The blocking client is the async one, word by word."""

from __future__ import annotations

import ast

import korak.client
from korak.client import AsyncKorak, Korak
from tests.support import twins


def test_the_blocking_client_is_made_from_the_async_one() -> None:
    """DESIGN 7: one source. Where this fails: `python -m tests.support.twins`"""
    for source, twin in twins.list_pairs():
        assert twins.is_same(twins.make(source.read_text()), twin.read_text())


def test_nothing_async_is_left_in_it() -> None:
    kinds = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    for _, twin in twins.list_pairs():
        assert [node for node in ast.walk(ast.parse(twin.read_text())) if isinstance(node, kinds)] == []


def test_both_have_the_same_methods() -> None:
    def list_methods(face: type) -> set[str]:
        return {name for name in dir(face) if not name.startswith("_")}

    assert list_methods(AsyncKorak) == list_methods(Korak)
    wanted = {"start", "dispatch", "publish", "get", "wait", "list", "steps", "events", "signal", "emit", "close"}
    wanted |= {"approve", "reject", "submit_input", "cancel", "pause", "resume", "retry"}
    wanted |= {"rewind", "fork", "export", "import_", "hold", "release", "queues", "waits", "failures", "chunks"}
    wanted |= {"artifacts", "artifact", "put_artifact", "drop_artifact"}
    wanted |= {"definitions", "definition", "versions", "version", "validate", "activate", "archive", "restore"}
    assert wanted <= list_methods(Korak)


def test_what_is_exported_is_sorted_and_there() -> None:
    assert sorted(korak.client.__all__) == korak.client.__all__
    assert all(hasattr(korak.client, name) for name in korak.client.__all__)
