"""docs/conformance.md and the tests say the same: every rule once, each shown by tests that are there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "conformance.md"

LAST: Final[Mapping[str, int]] = {
    "JB": 13,
    "CL": 9,
    "EX": 7,
    "RC": 8,
    "LK": 6,
    "WT": 17,
    "WK": 11,
    "RT": 14,
    "MR": 6,
    "CN": 11,
    "ID": 13,
    "LM": 11,
    "AU": 13,
    "OW": 6,
    "ST": 5,
    "ES": 9,
    "T-MODEL": 2,
    "T-STATE": 6,
    "T-TX": 4,
    "T-LIFE": 3,
    "T-PAUSE": 4,
    "T-RETRY": 2,
    "T-CANCEL": 4,
    "T-OPT": 3,
    "T-PRUNE": 4,
    "T-COMP": 7,
    "T-GUARD": 10,
    "T-PAR": 6,
    "T-FE": 8,
    "T-START": 5,
    "T-COND": 3,
    "T-REP": 5,
    "T-NEST": 5,
    "T-DELAY": 4,
    "T-SIG": 11,
    "T-DEP": 8,
    "T-STR": 4,
    "T-AG": 5,
    "T-DL": 4,
    "T-LOG": 6,
    "T-X": 4,
    "T-RL": 4,
    "T-UNQ": 3,
    "T-DEB": 2,
    "T-RES": 3,
    "T-HB": 4,
    "T-JOB": 7,
    "T-BAT": 4,
    "T-SCH": 5,
    "T-WRK": 4,
    "T-CACHE": 2,
    "T-PERM": 2,
    "T-MET": 2,
}
"""How far the rules of each family go: they are numbered from 1."""

RULES: Final = {f"{family}-{number}" for family, last in LAST.items() for number in range(1, last + 1)}
RULES.update(("EX-6b", "RT-2b"))

FAMILIES: Final = "|".join(LAST)
ROW: Final = re.compile(r"^\| (?P<what>[^|]*) \| (?P<rule>[^|]+) \| (?P<shown>[^|]+) \|$", re.M)
TEST: Final = re.compile(r"`(tests/[\w/]+\.py)::((?:\w+::)?test_\w+)`")
OPEN: Final = re.compile(r"open: \S.{4,60}")
IN_TEXT: Final = re.compile(rf"\b(?:{FAMILIES})-\d+\w?\b")
IN_NAME: Final = re.compile(rf"(?:^|_)({FAMILIES.lower().replace('-', '_')})_(\d+b?)(?=_|$)")


def list_rows() -> list[tuple[str, str, str]]:
    """The rows of all tables, heads aside."""
    rows = [(found["what"].strip(), found["rule"], found["shown"]) for found in ROW.finditer(PAGE.read_text())]
    return [row for row in rows if row[2] not in ("Shown by", "---")]


def list_rules() -> list[tuple[str, str, str]]:
    return [row for row in list_rows() if IN_TEXT.fullmatch(row[0])]


@cache
def list_tests(path: str) -> Mapping[str, str]:
    """The tests of a module, methods as Class::method, each with its docstring."""
    return dict(_walk(ast.parse((ROOT / path).read_text()).body, ""))


def _walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inner) if name.startswith("Test"):
                yield from _walk(inner, f"{name}::")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield f"{prefix}{name}", ast.get_docstring(node) or ""


MODULES: Final = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py"))


def test_every_rule_is_listed_exactly_once() -> None:
    listed = Counter(rule for rule, _, _ in list_rules())
    assert set(listed) == RULES
    assert [rule for rule, count in listed.items() if count > 1] == []


def test_every_row_is_shown_by_tests_that_are_there_or_says_what_it_comes_with() -> None:
    wrong = []
    for what, rule, shown in list_rows():
        named = TEST.findall(shown)
        left = TEST.sub("", shown).replace(",", "").strip()
        known = all((ROOT / path).is_file() and name in list_tests(path) for path, name in named)
        if not (OPEN.fullmatch(shown) if not named else known and not left):
            wrong.append((what, rule, shown))
    assert wrong == []


def test_what_is_counted_is_what_is_listed() -> None:
    is_open = [shown.startswith("open") for _, _, shown in list_rules()]
    counts = f"{is_open.count(False)} of {len(RULES)} rules hold; {is_open.count(True)} are open."
    assert counts in PAGE.read_text()


@pytest.mark.parametrize("path", MODULES)
def test_a_rule_that_a_test_names_is_one(path: str) -> None:
    """In the module's docstring, in the names of its tests, and in their docstrings."""
    module = ast.parse((ROOT / path).read_text())
    named = set(IN_TEXT.findall(ast.get_docstring(module) or ""))
    for name, text in list_tests(path).items():
        named.update(list_named(name, text))
    assert named - RULES == set()


def list_named(name: str, text: str) -> set[str]:
    """The rules that a test names, in its name and its docstring."""
    in_name = (f"{family.upper().replace('_', '-')}-{number}" for family, number in IN_NAME.findall(name))
    return {*IN_TEXT.findall(text), *in_name}


def test_what_shows_a_rule_of_chains_names_it() -> None:
    """At least one of the tests in its row."""
    silent = []
    for rule, _, shown in list_rules():
        tests = TEST.findall(shown)
        if rule.startswith("T-") and tests:
            named = {each for path, name in tests for each in list_named(name, list_tests(path)[name])}
            silent += [rule] * (rule not in named)
    assert silent == []


def test_the_page_leads_nowhere_else() -> None:
    text = PAGE.read_text()
    assert re.findall(r"https?:|\.\./|(?<![\w`])/\w+/|\w+\.md\b|spec/", text) == []
