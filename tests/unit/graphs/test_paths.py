"""Paths (DESIGN 6, value): `name (.name | [n] | ["any key"])*`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import Issue
from korak.graphs import paths
from korak.graphs.paths import MISSING, Malformed

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PATHS = st.builds(lambda first, rest: (first, *rest), NAMES, st.lists(NAMES | st.integers(0, 10**8) | KEYS, max_size=6))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("input", ("input",)),
        ("steps.price-list.output", ("steps", "price-list", "output")),
        ("state.rows[0][12].id", ("state", "rows", 0, 12, "id")),
        ('input["unit price"]["a\\"]\\u00e9"]', ("input", "unit price", 'a"]é')),
        ('x[""]', ("x", "")),
    ],
)
def test_parses(text: str, path: paths.Path) -> None:
    assert paths.parse(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".a",
        "1a",
        "a.",
        "a..b",
        "a.1",
        "a[",
        "a[-1]",
        "a[x]",
        "a['b']",
        'a["b]',
        "a b",
        " a",
        "a\n",
        "a[1234567890]",
        'a["\\q"]',
        'a["\\ud800"]',
        "a" * 513,
        "a" + ".b" * 64,
        5,
        None,
        ["a"],
        "é",
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_refuses(text: object) -> None:
    with pytest.raises(Malformed) as caught:
        paths.parse(text)
    assert caught.value.issue.code == "invalid_value"
    assert caught.value.issue.params["detail"]


@given(PATHS)
def test_rendered_and_parsed_again_is_the_same(path: paths.Path) -> None:
    assert paths.parse(paths.render(path)) == path


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_malformed(text: str) -> None:
    try:
        path = paths.parse(text)
    except Malformed:
        return
    assert paths.parse(paths.render(path)) == path


def test_a_rooted_path_starts_from_a_known_name() -> None:
    assert paths.parse_rooted("state.x") == ("state", "x")
    with pytest.raises(Malformed):
        paths.parse_rooted("sate.x")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("state.a.b[1]", 2),
        ('state["a"].b[0]', 1),
        ("state.n", None),
        ("state.n.x", MISSING),
        ("state.a.b[2]", MISSING),
        ("state.a.b.length", MISSING),
        ("state.a[0]", MISSING),
        ("state.text[0]", MISSING),
        ("state.nope", MISSING),
        ("nope", MISSING),
        ("item", 0),
        ("now", "2026-03-04T05:06:07Z"),
    ],
)
def test_looks_up(text: str, found: Any) -> None:
    roots = {
        "state": {"a": {"b": [1, 2]}, "n": None, "text": "abc"},
        "item": 0,
        "now": datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
    }
    assert paths.lookup(paths.parse(text), roots) == found


def test_a_malformed_thing_seen_from_further_out() -> None:
    seen = Malformed(Issue("invalid_value", "/b", {"detail": "x"})).at("/a")
    assert seen.issue == Issue("invalid_value", "/a/b", {"detail": "x"})


def test_a_pointer_is_printable_whatever_the_key() -> None:
    assert paths.pointer(["a/b", "~", 3, "\ud800\0", None]) == "/a~1b/~0/3/\\ud800\\u0000/None"
