"""The lines of a copy: bounded, and long ones read beside what else the process does."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from korak.errors import Invalid
from korak.graphs import hygiene
from korak_api.spooling import PIECE, SHARE, Spools


async def test_a_line_has_a_part_of_what_a_copy_may_have() -> None:
    longest = 1_000
    with Spools(longest * SHARE).open() as spool:
        spool.write(b'{"a": 1}\n' + b"[" + b" " * (longest - 3) + b"]\n" + b"[" + b"{}," * longest + b"{}]\n")
        lines = spool.list_lines()
        assert await anext(lines) == ({"a": 1}, 9)
        assert await anext(lines) == ([], longest)
        with pytest.raises(Invalid) as refused:
            await anext(lines)
    [issue] = refused.value.issues
    assert (issue.pointer, issue.params["detail"]) == ("/2", "the line is over 1000 bytes")


async def test_a_long_one_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []
    read = hygiene.loads

    def note(raw: bytes, **given: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return read(raw, **given)

    monkeypatch.setattr(hygiene, "loads", note)
    with Spools(4 * PIECE * SHARE).open() as spool:
        spool.write(b"[]\n" + b"[" + b" " * PIECE + b"]\n")
        assert [size async for _, size in spool.list_lines()] == [3, PIECE + 3]
    assert threads == [True, False]
