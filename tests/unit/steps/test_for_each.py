"""for_each: what is told of its config at publish."""

from __future__ import annotations

from typing import Any

import pytest

from korak.graphs.validation import validate
from korak.steps.registry import Registry
from tests.support.bodies import body, document, for_each, node

REGISTRY = Registry()


@pytest.mark.parametrize(
    ("items", "members", "pointers"),
    [
        ([1, 2], {"mode": "quorum", "quorum": 2}, []),
        ([1, 2], {"mode": "quorum", "quorum": 3}, ["/quorum"]),
        ([], {"mode": "quorum", "quorum": 1}, ["/quorum"]),
        ({"literal": [1, 2]}, {"mode": "quorum", "quorum": 3}, ["/quorum"]),
        ({"literal": 3}, {}, ["/items"]),
        ({"literal": {"ref": "input.items"}}, {}, ["/items"]),
        ([], {"mode": "first_success"}, ["/items"]),
        ({"ref": "input.items"}, {"mode": "quorum", "quorum": 3}, []),
        ([1, 2], {"quorum": 1}, ["/quorum"]),
        ([1, 2], {"mode": "most"}, ["/mode"]),
        (3, {}, ["/items"]),
    ],
)
def test_configs_at_publish(items: Any, members: dict[str, Any], pointers: list[str]) -> None:
    """Items that are written out are enough for the quorum: nothing is published that can't come true."""
    found = validate(
        document(for_each(items, body(node("x", "set_field", field="state.a", value=1)), **members)), REGISTRY
    )
    assert {issue.pointer.removeprefix("/nodes/1/config") for issue in found.issues} == set(pointers)
