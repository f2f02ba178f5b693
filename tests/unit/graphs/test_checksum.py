"""The checksum: the same for the same graph, another for another one."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.graphs.checksum import checksum
from korak.model import JsonObject
from tests.unit.graphs.test_schema import DESIGN


def rearrange(value: Any, chance: Random) -> Any:
    """The same graph with its nodes and members in another order, and drawn elsewhere."""
    if isinstance(value, dict):
        items = [(name, rearrange(member, chance)) for name, member in value.items()]
        chance.shuffle(items)
        result = dict(items)
        if isinstance(result.get("nodes"), list):
            chance.shuffle(result["nodes"])
            for node in result["nodes"]:
                node["position"] = {"x": chance.random()}
        return result
    return [rearrange(member, chance) for member in value] if isinstance(value, list) else value


@given(st.randoms(use_true_random=False))
def test_order_and_positions_do_not_count(chance: Random) -> None:
    assert checksum(rearrange(DESIGN, chance)) == checksum(DESIGN)


def test_what_people_call_it_does_not_count() -> None:
    assert checksum({**DESIGN, "name": "Another", "key": "other"}) == checksum(DESIGN)


def change(path: list[Any], value: Any) -> JsonObject:
    changed: Any = deepcopy(DESIGN)
    place = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return changed  # type: ignore[no-any-return]  # a copy of the document


@pytest.mark.parametrize(
    "changed",
    [
        change(["nodes", 1, "timeout"], "PT3M"),
        change(["nodes", 1, "config"], {}),
        change(["nodes", 4, "body", "nodes", 0, "type"], "shop.other"),
        change(["nodes", 4, "body", "start"], "other"),
        change(["edges", 0, "to"], "big"),
        change(["settings", "timezone"], "UTC"),
    ],
)
def test_what_it_does_counts(changed: JsonObject) -> None:
    assert checksum(changed) != checksum(DESIGN)


@pytest.mark.parametrize(
    "draft", [{}, {"nodes": 3}, {"nodes": [1, None, {"id": 3}, {"body": 2, "branches": {"a": 1}}]}]
)
def test_drafts_of_any_form_have_one(draft: JsonObject) -> None:
    assert len(checksum(draft)) == 64
