"""Owners in their text form, and how far a credential reaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import Forbidden, Invalid
from korak.model import OwnerRole
from korak.owners.reach import Reach, get_reach
from korak.owners.scopes import APPLICATION, MAX_SCOPE, Owner, parse_owner
from korak.owners.tokens import Credential

TEAM = Owner("team", "42")
READER = frozenset({OwnerRole.VIEWER})
OF_TEAM = Credential.for_owner(TEAM, READER)
APP_WIDE = Credential.for_owner(APPLICATION, READER)


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("team:42", TEAM),
        ("*", APPLICATION),
        ("user:ana@example.org", Owner("user", "ana@example.org")),
        ("App.Team:a:b", Owner("App.Team", "a:b")),
        ("t:../x", Owner("t", "../x")),
        ("team:" + "x" * (MAX_SCOPE - 5), Owner("team", "x" * (MAX_SCOPE - 5))),
    ],
)
def test_an_owner_is_read_and_written_alike(text: str, owner: Owner) -> None:
    assert parse_owner(text) == owner
    assert owner.scope == text
    assert owner.is_app_wide == (text == "*")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "team",
        ":42",
        "team:",
        "*:*",
        "4team:2",
        "team:4 2",
        "team:42\n",
        "team:\x0042",
        "téam:42",
        "team:٤٢",
        "team:*",
        "x" * 101 + ":1",
        "team:" + "x" * (MAX_SCOPE - 4),
    ],
)
def test_what_is_no_owner_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_owner(text)
    assert refused.value.code == "invalid_owner"
    assert len(refused.value.message) < 400


@given(st.text(max_size=250))
def test_whatever_is_read_is_written_as_it_was(text: str) -> None:
    try:
        owner = parse_owner(text)
    except Invalid:
        return
    assert owner.scope == text


def test_an_owner_has_a_type_and_an_id_or_neither() -> None:
    for half in (("team", None), (None, "42")):
        with pytest.raises(ValueError, match="or neither"):
            Owner(*half)


@pytest.mark.parametrize("named", [None, "team:42"])
def test_a_token_of_one_owner_is_always_that_owner(named: str | None) -> None:
    assert get_reach(OF_TEAM, named) == Reach(TEAM)


@pytest.mark.parametrize("named", ["team:43", "*", "user:42"])
def test_a_token_of_one_owner_may_name_no_other(named: str) -> None:
    with pytest.raises(Forbidden) as refused:
        get_reach(OF_TEAM, named)
    assert (refused.value.code, refused.value.params) == ("owner_not_allowed", {"owner": named})


@pytest.mark.parametrize(
    ("named", "reach"),
    [(None, Reach(APPLICATION)), ("team:42", Reach(TEAM)), ("*", Reach(APPLICATION, is_over_all=True))],
)
def test_an_app_wide_token_names_the_owner(named: str | None, reach: Reach) -> None:
    assert get_reach(APP_WIDE, named) == reach


@pytest.mark.parametrize("credential", [OF_TEAM, APP_WIDE])
def test_a_name_that_is_no_owner_is_refused_for_everybody(credential: Credential) -> None:
    with pytest.raises(Invalid, match="nonsense"):
        get_reach(credential, "nonsense")
