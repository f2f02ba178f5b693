"""Chains found in modules, and what their engines must know."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from korak import chain, step
from korak.catalogue import load_registry
from korak.chains.loading import load_chains
from korak.config import load_settings
from korak.errors import BrokenModule, RegistrationError
from tests.support import links


@pytest.fixture
def module() -> Iterator[ModuleType]:
    made = ModuleType("chains_of_a_test")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def list_keys(module: ModuleType) -> list[str]:
    settings = load_settings({"KORAK_CHAINS": module.__name__})
    return [made.key for made in load_registry(settings).list_types() if made.key.split(".")[0] in ("links", "tests")]


def test_an_engine_has_what_chains_run(module: ModuleType) -> None:
    vars(module)["first"] = chain("first").then(links.fetch).then(links.Ship)
    vars(module)["second"] = chain("second").then(links.fetch).for_each("x", links.twice, reducer=links.gather)
    assert list_keys(module) == [
        "links.ship",
        "links.twice",
        "tests.support.links.fetch",
        "tests.support.links.gather",
    ]


def test_an_engine_has_what_stands_beside_a_chain(module: ModuleType) -> None:
    @step("links.beside")
    def beside(ctx: Any) -> None: ...

    vars(module).update(beside=beside, only=chain("only").then("links.beside"))
    assert list_keys(module) == ["links.beside"]


def test_a_chain_is_found_once(module: ModuleType) -> None:
    built = chain("x").then(links.count)
    vars(module).update(one=built, two=built)
    assert [loaded.chain for loaded in load_chains([module.__name__, module.__name__])] == [built]


def test_two_chains_of_one_key(module: ModuleType) -> None:
    vars(module).update(one=chain("x"), two=chain("x"))
    with pytest.raises(RegistrationError, match="Two chains have the key x") as caught:
        load_chains([module.__name__])
    assert caught.value.code == "duplicate_chain"


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(RegistrationError, match=r"There is no module nowhere\.at_all"):
        load_chains(["nowhere.at_all"])


def test_what_a_module_lacks_is_told_as_it_is(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chains_that_break.py").write_text("import nowhere_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BrokenModule, match=r"chains_that_break.py:1: ModuleNotFoundError: .*nowhere_at_all"):
        load_chains(["chains_that_break"])


def test_a_chain_that_names_an_unknown_step_is_told_with_its_line(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chains_that_err.py").write_text(
        "from korak import chain\n\ndef build():\n    chain('x').repeat_until('nowhere', 'done')\n\nbuild()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BrokenModule, match=r"^chains_that_err, .*chains_that_err.py:4: target_step names") as caught:
        load_chains(["chains_that_err"])
    assert caught.value.code == "invalid_document"
