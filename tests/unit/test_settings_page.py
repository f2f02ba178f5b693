"""docs/settings.md is what `korak settings --markdown` writes, and names every variable that is read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from korak.commands.settings import list_settings, write_default, write_page
from korak.config import list_variables, load_settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == write_page(), "run: korak settings --markdown > docs/settings.md"


def test_every_variable_is_listed() -> None:
    assert [name for _, name, _, _ in list_settings()] == [name for name, _ in list_variables()]


def test_the_defaults_that_are_shown_are_the_defaults() -> None:
    shown = {name: default for _, name, default, _ in list_settings() if default}
    assert load_settings(shown) == load_settings({})


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        ((), ""),
        (("a", "b"), "a,b"),
        (30.0, "30"),
        (timedelta(days=30), "P30D"),
        (timedelta(hours=1, seconds=5), "PT1H5S"),
        (timedelta(), "PT0S"),
    ],
)
def test_defaults_are_written_as_they_would_be_set(value: object, written: str) -> None:
    assert write_default(value) == written
