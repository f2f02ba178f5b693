"""Templates (DESIGN 6, value)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.graphs.paths import Malformed, MissingValue
from korak.graphs.templates import compile_template

ROOTS: dict[str, Any] = {
    "input": {"id": "A-1", "n": 3, "f": 2.5, "none": None, "yes": True, "l": [1, {"a": "é"}], "a}b": 7}
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("", ""),
        ("plain $ text {x}", "plain $ text {x}"),
        ("Order ${input.id} is late", "Order A-1 is late"),
        ("${input.n}/${input.f}/${input.yes}", "3/2.5/true"),
        ("[${input.none}${input.nope}]", "[]"),
        ("${input.l}", '[1,{"a":"é"}]'),
        ('${input["a}b"]}', "7"),
        ("${ input.id }", "A-1"),
        ("$${input.id} $$ $${", "${input.id} $$ ${"),
        ("$$${input.id}", "$${input.id}"),
    ],
)
def test_fills(text: str, filled: str) -> None:
    assert compile_template(text).fill(ROOTS) == filled


@pytest.mark.parametrize(
    "text",
    ["${", "a ${input.id", "${}", "${nope.x}", "${1 + 1}", "${input.}", '${input["a}', "x" * 70_000, 5, None],
    ids=lambda text: ascii(text)[:20],
)
def test_refuses(text: object) -> None:
    with pytest.raises(Malformed) as caught:
        compile_template(text)
    assert caught.value.issue.code == "invalid_value"


def test_a_secret_needs_its_place() -> None:
    with pytest.raises(Malformed) as caught:
        compile_template("Bearer ${secret.token}")
    assert caught.value.issue.code == "secret_not_allowed"


def test_a_secret_stays_a_reference_until_it_is_revealed() -> None:
    template = compile_template("Bearer ${secret.api-token} ${input.id}", secrets=True)
    assert template.fill(ROOTS) == "Bearer ${secret.api-token} A-1"
    assert template.fill(ROOTS, secrets=lambda name: name.upper()) == "Bearer API-TOKEN A-1"
    with pytest.raises(Malformed):
        compile_template("${secret.}", secrets=True)


def test_strict_misses() -> None:
    with pytest.raises(MissingValue):
        compile_template("${input.nope}").fill(ROOTS, strict=True)
    assert compile_template("${input.none}").fill(ROOTS, strict=True) == ""


@given(st.text().filter(lambda text: "${" not in text))
def test_text_without_a_hole_fills_as_itself(text: str) -> None:
    assert compile_template(text).fill({}) == text
    assert compile_template(f"{text} $${{x}}").fill({}) == f"{text} ${{x}}"


@given(st.text('${}a.input["] ', max_size=30))
def test_any_text_fills_or_is_malformed(text: str) -> None:
    try:
        template = compile_template(text)
    except Malformed:
        return
    assert isinstance(template.fill(ROOTS), str)
