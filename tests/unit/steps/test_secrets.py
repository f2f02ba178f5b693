"""Where secrets come from, and where they may not go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import StepFailed
from korak.steps.secrets import MASK, Secrets, scrub, scrub_json


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "secrets"
    (place / "team:42").mkdir(parents=True)
    (place / "token").write_text("for all\n")
    (place / "team:42" / "token").write_text("for 42\r\n")
    (tmp_path / "outside").write_text("no")
    return place


def test_an_owner_s_own_comes_before_everybody_s(directory: Path) -> None:
    secrets = Secrets(directory)
    assert [secrets.get("token", scope) for scope in ("team:42", "team:43", "*")] == ["for 42", "for all", "for all"]


@pytest.mark.parametrize("name", ["../outside", "..", ".", "", "a/b", "team:42/token", "/etc/passwd", "a\0", "a" * 200])
def test_a_name_leads_nowhere_else(directory: Path, name: str) -> None:
    with pytest.raises(StepFailed) as caught:
        Secrets(directory, {"": "x"}, "").get(name)
    assert caught.value.code == "secret_missing"


@pytest.mark.parametrize("scope", ["..", ".", "../secrets", "team:42/..", "/", "team:42/../team:42"])
def test_an_owner_s_scope_leads_nowhere_else(directory: Path, scope: str) -> None:
    assert Secrets(directory).get("token", scope) == "for all"
    with pytest.raises(StepFailed):
        Secrets(directory).get("outside", scope)


def test_the_environment_has_a_prefix() -> None:
    secrets = Secrets(environment={"SHOP_API_KEY": "k", "API_KEY": "no"}, prefix="SHOP_")
    assert secrets.get("api.key") == "k"
    with pytest.raises(StepFailed):
        Secrets(environment={"API_KEY": "no"}).get("api_key")


def test_a_provider_is_asked_first_and_may_not_know(directory: Path) -> None:
    secrets = Secrets(directory, provider=lambda name, scope: f"{scope}'s" if name == "token" else None)
    assert secrets.get("token", "team:1") == "team:1's"
    with pytest.raises(StepFailed, match="There is no secret other"):
        secrets.get("other", "team:1")


@given(st.lists(st.text(min_size=4), min_size=1, max_size=3), st.text())
def test_nothing_of_a_secret_is_left(values: list[str], text: str) -> None:
    scrubbed = scrub(text.join(values), values)
    if not any(value in MASK or MASK[:1] in value or MASK[-1:] in value for value in values):
        assert not any(value in scrubbed for value in values if value not in text)


def test_a_secret_is_found_as_it_stands_in_a_url_and_in_json() -> None:
    secret = 'p/ä"x'
    text = f'{secret} https://a/?p=p%2F%C3%A4%22x {{"p": "p/\\u00e4\\"x"}}'
    assert scrub(text, [secret]) == f'{MASK} https://a/?p={MASK} {{"p": "{MASK}"}}'


def test_a_longer_secret_goes_before_its_part() -> None:
    assert scrub("abcdef", ["abc", "abcdef"]) == MASK


def test_json_is_scrubbed_in_depth() -> None:
    value = scrub_json({"a": ["x s3cret", 1, None], "s3cret": {"b": "s3cret"}}, ["s3cret"])
    assert value == {"a": [f"x {MASK}", 1, None], MASK: {"b": MASK}}
    assert scrub_json({"a": 1}, []) == {"a": 1}
