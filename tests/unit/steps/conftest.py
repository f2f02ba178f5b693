"""What the tests of step types share."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from korak.model import Json


class Alone:
    """The scope of a node with nothing around it."""

    node = "n"
    inputs: Mapping[str, Json] = {}

    def is_ancestor(self, node: str) -> bool:
        return False


@pytest.fixture
def scope() -> Alone:
    return Alone()
