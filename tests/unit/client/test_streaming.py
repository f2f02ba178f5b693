"""Server-sent events, line by line."""

from __future__ import annotations

from korak.client.streaming import Reader, Sent


def read(*lines: str) -> list[Sent]:
    reader = Reader()
    return [sent for line in lines if (sent := reader.feed(line)) is not None]


def test_an_event_is_whole_at_its_empty_line() -> None:
    lines = ["event: chunk", "id: 3", 'data: {"a": 1}', "", ": still here", "", "data:[]", "", "event: end", "data: {}"]
    assert read(*lines) == [Sent("chunk", 3, {"a": 1}), Sent("message", None, [])]
