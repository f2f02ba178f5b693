"""What `korak dev` suggests for another terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from korak.commands.welcoming import draw
from korak.dev import stack
from korak.dev.home import Home

URL, TOKEN = "http://127.0.0.1:8000", "korak_x"


@pytest.mark.parametrize(("data", "is_found"), [(".korak", True), ("elsewhere", False)])
def test_what_is_suggested_works_wherever_the_data_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, is_found: bool
) -> None:
    """The commands find the API only by a `.korak` here or above."""
    (tmp_path / data).mkdir()
    home = Home(tmp_path / data)
    home.leave_client(URL, TOKEN)
    monkeypatch.chdir(tmp_path)
    drawn = StringIO()
    Console(file=drawn, width=80).print(draw(stack.Running(URL, TOKEN, home, True, ()), ()))
    exports = [line.strip() for line in drawn.getvalue().splitlines() if "export" in line]
    wanted = [f"export KORAK_CLIENT__URL={URL}", f"export KORAK_CLIENT__TOKEN={TOKEN}"]
    assert exports == ([] if is_found else wanted)


def test_what_another_korak_dev_left_here_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, url in ((".korak", "http://127.0.0.1:9"), ("elsewhere", URL)):
        (tmp_path / name).mkdir()
        Home(tmp_path / name).leave_client(url, TOKEN)
    monkeypatch.chdir(tmp_path)
    drawn = StringIO()
    running = stack.Running(URL, TOKEN, Home(tmp_path / "elsewhere"), True, ())
    Console(file=drawn, width=80).print(draw(running, ()))
    assert f"export KORAK_CLIENT__URL={URL}" in drawn.getvalue()
