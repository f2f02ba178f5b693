"""Authors' regular expressions are RE2's (DESIGN 4, Patterns use RE2; spec 13.4)."""

from __future__ import annotations

import pytest

from korak.graphs import patterns
from korak.graphs.paths import Malformed


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [("^a+$", "aaa", True), ("^a+$", "aab", False), ("b", "abc", True), ("", "", True), (r"^\p{L}+$", "žšč", True)],
)
def test_matches(pattern: str, text: str, found: bool) -> None:
    assert patterns.compile_pattern(pattern).matches(text) is found


@pytest.mark.parametrize(
    "pattern",
    ["(", "[", "a{2000}", r"(a)\1", "(?=a)", "(?<!a)b", "((a{100}){100}){100}", "x" * 1001, "\ud800", 3, None],
    ids=lambda pattern: ascii(pattern)[:20],
)
def test_refuses(pattern: object) -> None:
    with pytest.raises(Malformed) as caught:
        patterns.compile_pattern(pattern)
    assert caught.value.issue.code == "invalid_pattern"
    assert caught.value.issue.params["why"]


@pytest.mark.timeout(5)
def test_a_pattern_made_to_be_slow_is_quick() -> None:
    assert not patterns.compile_pattern("^(a+)+$").matches("a" * 100_000 + "!")
    assert not patterns.compile_pattern("(a|aa)*(a|aa)*(a|aa)*c").matches("a" * 100_000)


def test_equal_patterns_are_equal() -> None:
    assert patterns.compile_pattern("a") == patterns.compile_pattern("a")
