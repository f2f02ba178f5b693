"""How the command line says a window of debounced starts."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from korak.commands.starting import read_window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (None, None),
        ("key=K,wait=30", {"key": "K", "wait": 30.0}),
        ("wait=0.5,key=a=b,max-wait=PT5M", {"key": "a=b", "wait": 0.5, "max_wait": "PT5M"}),
    ],
)
def test_a_window_is_read(text: str | None, window: Any) -> None:
    assert read_window(text) == window


@pytest.mark.parametrize("text", ["", "K", "key", "key=K,key=L", "key=K,max_wait=1", "key=K,,wait=1"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="key=KEY"):
        read_window(text)
