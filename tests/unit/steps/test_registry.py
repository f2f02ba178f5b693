"""The registry: what can be registered, and what is found."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from korak.errors import BrokenModule, DuplicateStepType, InvalidStepType, MissingModule
from korak.graphs.schemas import check_schema
from korak.model import JsonObject
from korak.steps import builtin
from korak.steps.contract import Outcome, StepContext, StepResult, StepType
from korak.steps.function import get_step_type, step
from korak.steps.registry import Registry
from tests.unit.steps import samples


def a_type(**members: Any) -> type[StepType]:
    async def handle(self: StepType, ctx: StepContext) -> StepResult:
        return StepResult.complete()

    return type("Made", (StepType,), {"key": "acme.made", "handle": handle, **members})


def test_the_built_in_types_are_always_there() -> None:
    registry = Registry()
    assert [contract.key for contract in registry.list_contracts()] == sorted(
        [
            *("trigger", "condition", "branch", "set_field", "delay", "wait", "loop", "end", "webhook"),
            *("parallel", "for_each", "scope", "start_workflow", "start_workflows", "wait_workflows"),
        ]
    )
    assert builtin.PURE.keys() == {contract.key for contract in registry.list_contracts() if contract.is_pure}


@pytest.mark.parametrize("made", builtin.list_types(), ids=lambda made: made.key)
def test_the_built_in_schemas_are_in_the_subset(made: StepType) -> None:
    assert check_schema(made.config_schema) == []
    assert made.output_schema is None or check_schema(made.output_schema) == []
    assert made.label
    assert made.key in builtin.RESERVED


def test_st_2_a_key_of_one_s_own_has_a_dot() -> None:
    for key in ["plain", "trigger", "approval", ".x", "x.", "a b.c", "", "a..b", "x." + "y" * 200]:
        with pytest.raises(InvalidStepType, match="key"):
            Registry().add(a_type(key=key))
    assert Registry().add(a_type(key="app.Send_mail-2")).key == "app.Send_mail-2"


def test_st_3_the_same_class_again_changes_nothing() -> None:
    registry = Registry()
    first = registry.add(samples.AskSignature)
    assert registry.add(samples.AskSignature) is first
    assert registry.add(samples.price) is registry.add(samples.price)


def test_st_3_another_class_with_the_key_is_refused() -> None:
    registry = Registry()
    registry.add(samples.price)
    with pytest.raises(DuplicateStepType, match=r"shop\.price is price already"):
        registry.add(a_type(key="shop.price"))


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "object", "if": {}}, "if"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/x"}}}, "ref"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)"}}}, "pattern"),
        ({"type": "array"}, "type"),
    ],
)
def test_st_3_a_bad_schema_is_refused_by_its_keyword(schema: JsonObject, keyword: str) -> None:
    with pytest.raises(InvalidStepType, match=keyword):
        Registry().add(a_type(config_schema=schema))


def test_st_4_a_late_registration_counts() -> None:
    registry = Registry()
    assert registry.get("shop.price") is None
    assert registry.get_contract("shop.price") is None
    registry.add(samples.price)
    assert registry.get("shop.price") is get_step_type(samples.price)
    assert registry.get_contract("shop.price") is not None


def test_versions_stand_side_by_side() -> None:
    registry = Registry()
    one, two = registry.add(a_type()), registry.add(a_type(version=2))
    assert (registry.get("acme.made"), registry.get("acme.made", 1), registry.get("acme.made", 2)) == (two, one, two)
    assert registry.get("acme.made", 3) is None
    assert [made.version for made in registry.list_types() if made.key == "acme.made"] == [1, 2]


def test_a_type_needs_a_handler() -> None:
    with pytest.raises(InvalidStepType, match="handle"):
        Registry().add(type("Empty", (StepType,), {"key": "acme.empty"}))


def test_all_of_a_type_is_async_or_nothing() -> None:
    def cancel(self: StepType, ctx: Any) -> None: ...

    with pytest.raises(InvalidStepType, match="async"):
        Registry().add(a_type(cancel=cancel))


@pytest.mark.parametrize("keys", [["error"], ["a b"], ["x" * 33], ["a", "a"], [""]])
def test_an_outcome_can_be_connected(keys: list[str]) -> None:
    def outcomes(self: StepType, config: JsonObject) -> list[Outcome]:
        return [Outcome(key) for key in keys]

    with pytest.raises(InvalidStepType, match="outcome"):
        Registry().add(a_type(outcomes=outcomes))


def test_outcomes_that_need_a_config_are_left_to_publish() -> None:
    def outcomes(self: StepType, config: JsonObject) -> list[Outcome]:
        return [Outcome(str(config["way"]))]

    Registry().add(a_type(outcomes=outcomes))


@pytest.mark.parametrize("version", [0, -1, "1", None])
def test_a_version_is_a_number_from_1(version: Any) -> None:
    with pytest.raises(InvalidStepType, match="version"):
        Registry().add(a_type(version=version))


@pytest.mark.parametrize("given", [print, 3, object(), StepType])
def test_what_is_no_step_type_is_refused(given: Any) -> None:
    with pytest.raises(InvalidStepType):
        Registry().add(given)


def test_a_module_s_types_are_found() -> None:
    registry = Registry(())
    registry.load([samples.__name__])
    assert [made.key for made in registry.list_types()] == [
        "acme.ask_signature",
        *("shop.everything", "shop.marked", "shop.open", "shop.price", "shop.ship", "shop.sign"),
    ]


def test_a_type_that_is_imported_elsewhere_is_the_same_one() -> None:
    again = ModuleType("again")
    again.price, again.AskSignature, again.StepType = samples.price, samples.AskSignature, StepType  # type: ignore[attr-defined]  # a module made by hand
    registry = Registry(())
    registry.load([samples.__name__])
    registry.load_module(again)
    assert len(registry.list_types()) == 7


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingModule, match=r"no module nowhere\.steps to load step types from"):
        Registry().load(["nowhere.steps"])


def test_a_module_that_lacks_another_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_steps.py").write_text("import nowhere_else\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BrokenModule, match=r"broken_steps.py:1: .*nowhere_else"):
        Registry().load(["broken_steps"])
    sys.modules.pop("broken_steps", None)


def install(at: Path, name: str, code: str, *entries: str) -> None:
    """A package that names what it offers."""
    info = at / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text("\n".join(["[korak.steps]", *entries, ""]))
    (at / f"{name}.py").write_text(code)


SIGN = (
    "from korak.steps.contract import StepType\nclass Sign(StepType):\n    key = {!r}\n    def handle(self, ctx): ...\n"
)


def test_installed_packages_name_their_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = ("shop = installed_steps", "sign = installed_steps:Sign")
    install(tmp_path, "installed_steps", SIGN.format("installed.sign"), *entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry(())
    registry.load_installed()
    assert [made.key for made in registry.list_types()] == ["installed.sign"]
    sys.modules.pop("installed_steps", None)


def test_a_type_that_fails_as_it_is_made_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["from korak.steps.contract import StepType", "class Sign(StepType):", "    key = 'shop.sign'"]
    lines += ["    def __init__(self): self.pen = {}['pen']", "    def handle(self, ctx): ..."]
    (tmp_path / "failing_steps.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    told = r"^failing_steps, .*failing_steps\.py:2: Sign can't be made without arguments: KeyError: 'pen'$"
    with pytest.raises(BrokenModule, match=told) as raised:
        Registry().load(["failing_steps"])
    assert raised.value.code == "invalid_step_type"
    sys.modules.pop("failing_steps", None)


@pytest.mark.parametrize("entry", ["sign = wrong_steps", "sign = wrong_steps:Sign"])
def test_an_installed_type_that_can_t_be_registered_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    install(tmp_path, "wrong_steps", SIGN.format("sign"), entry)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BrokenModule, match=r"^wrong_steps, .*wrong_steps\.py:2: .*needs a dot") as raised:
        Registry(()).load_installed()
    assert raised.value.code == "invalid_step_type"
    sys.modules.pop("wrong_steps", None)


def test_two_functions_with_one_key_are_two_types() -> None:
    @step("shop.price")
    def other(ctx: Any) -> None: ...

    registry = Registry()
    registry.add(samples.price)
    with pytest.raises(DuplicateStepType):
        registry.add(other)
