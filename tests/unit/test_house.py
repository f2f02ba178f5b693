"""The rules of the house that no linter knows: names, sizes, docstrings, clocks, the Makefile."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import korak

ROOT = Path(__file__).parents[2]
SOURCES = ("shared", "services", "migrations")
LONGEST = 400
CLOCK = ROOT / "shared/korak/clock.py"
WAITING = ROOT / "tests/support/waiting.py"
STORE = ROOT / "shared/korak/store"

FORBIDDEN_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
FORBIDDEN_CALLS = {
    "asyncio.sleep",
    "date.today",
    "datetime.now",
    "datetime.today",
    "datetime.utcnow",
    "print",
    "time.sleep",
    "time.time",
    "time.time_ns",
}
SQL_CLOCK = re.compile(
    r"(?<![.\w])(?:now|(?:clock|statement|transaction)_timestamp)\s*\(\s*\)|\bcurrent_timestamp\b", re.I
)
TARGETS = {"help", "setup", "run", "test", "check", "bench", "lock"}


def list_files(*folders: str, suffix: str = ".py") -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob(f"*{suffix}"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def list_calls(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_modules_are_named_for_what_they_hold() -> None:
    assert [name(path) for path in list_files(*SOURCES, "tests") if path.stem in FORBIDDEN_NAMES] == []


def test_no_source_file_outgrows_the_wall() -> None:
    sizes = {name(path): len(path.read_text().splitlines()) for path in list_files(*SOURCES)}
    assert {path: size for path, size in sizes.items() if size > LONGEST} == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        name(path) for path in list_files(*SOURCES, "tests", "examples", "bench") if not ast.get_docstring(parse(path))
    ]
    assert silent == []


def test_only_the_clock_reads_the_time_and_only_one_place_waits() -> None:
    found = [
        f"{name(path)}: {call}"
        for path in list_files(*SOURCES, "tests")
        if path not in {CLOCK, WAITING}
        for call in list_calls(path)
        if call in FORBIDDEN_CALLS or any(call.endswith(f".{banned}") for banned in FORBIDDEN_CALLS if "." in banned)
    ]
    assert found == []


def test_the_store_asks_the_database_for_its_time_in_one_place() -> None:
    found = [
        f"{name(path)}: {match}"
        for suffix in (".py", ".sql")
        for path in (sorted(STORE.rglob(f"*{suffix}")))
        for match in SQL_CLOCK.findall(path.read_text())
    ]
    assert len(found) <= 1, found


def test_every_statement_is_asked_for() -> None:
    words = {word for path in list_files(*SOURCES) for word in re.findall(r"\w+", path.read_text())}
    assert {path.stem for path in list_files(STORE.relative_to(ROOT).as_posix(), suffix=".sql")} - words == set()


def test_no_table_is_made_but_by_a_migration() -> None:
    found = [
        name(path) for path in list_files(*SOURCES, "tests") if any("create_all" in call for call in list_calls(path))
    ]
    assert found == []


def test_no_check_is_waved_away_without_a_reason() -> None:
    loose = re.compile(r"#\s*noqa(?!:)|#\s*noqa:.*(?:C901|PLR09)|#\s*type:\s*ignore(?!\[[a-z-, ]+\]\s+#\s*\S)")
    this = Path(__file__)
    found = [
        f"{name(path)}:{number}"
        for path in list_files(*SOURCES, "tests", "examples", "bench")
        if path != this
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if loose.search(line)
    ]
    assert found == []


def test_what_the_library_exports_is_sorted_and_there() -> None:
    exported = getattr(korak, "__all__", [])
    assert list(exported) == sorted(exported)
    assert [export for export in exported if not hasattr(korak, export)] == []


@pytest.mark.parametrize(
    "package", ["shared/korak", "migrations/korak_migrations", *map(str, ROOT.glob("services/*/korak_*"))]
)
def test_every_package_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_help_lists_every_target_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())  # type: ignore[index]  # it is there
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert phony == TARGETS
    assert {line.split()[1] for line in shown.stdout.splitlines()} == TARGETS


def test_the_lock_names_no_host_and_pins_by_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"https?://|--(?:extra-)?index-url|--find-links|\bfile:", lock)
    pins = re.findall(r"^[a-z0-9].*$(?=((?:\n    --hash=.*)*))", lock, re.M)
    assert len(pins) > 50
    assert all(pins)


def test_the_lock_names_what_the_project_needs() -> None:
    declared = set(
        re.findall(r'^    "([a-z0-9-]+)[^"]*",?$', (ROOT / "pyproject.toml").read_text().split("[tool.")[0], re.M)
    )
    locked = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text(), re.M))
    assert declared - locked == set()
