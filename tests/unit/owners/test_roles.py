"""The table of roles and verbs (DESIGN 8, Who)."""

from __future__ import annotations

import pytest

from korak.errors import Forbidden, Invalid
from korak.model import OwnerRole
from korak.owners.roles import VERBS, Verb, is_allowed, parse_roles, require
from korak.owners.scopes import APPLICATION
from korak.owners.tokens import Credential

ALLOWED = {
    "viewer": "definitions.read instances.read",
    "participant": "",
    "starter": "definitions.read instances.read instances.start instances.signal events.emit",
    "operator": "definitions.read instances.read instances.signal instances.command failures.read stats.read",
    "author": "definitions.read definitions.write definitions.publish definitions.archive instances.read failures.read",
    "worker": "",
    "admin": " ".join(Verb),
}


@pytest.mark.parametrize("role", OwnerRole)
@pytest.mark.parametrize("verb", Verb)
def test_a_role_may_what_the_table_says(role: OwnerRole, verb: Verb) -> None:
    assert is_allowed([role], verb) == (verb in ALLOWED[role].split())


def test_the_table_is_whole_and_closed() -> None:
    assert set(VERBS) == set(OwnerRole)
    with pytest.raises(TypeError):
        VERBS[OwnerRole.VIEWER] = frozenset(Verb)  # type: ignore[index]  # that it can't be done is what is tested


def test_several_roles_may_what_each_of_them_may() -> None:
    roles = parse_roles(["viewer", "starter"])
    assert is_allowed(roles, Verb.INSTANCES_START)
    assert not is_allowed(roles, Verb.INSTANCES_COMMAND)
    assert not is_allowed([], Verb.INSTANCES_READ)


def test_a_refusal_names_the_roles_that_would_do() -> None:
    credential = Credential.for_owner(APPLICATION, frozenset({OwnerRole.VIEWER}))

    require(credential, Verb.INSTANCES_READ)
    with pytest.raises(Forbidden, match=r"may not instances\.command: it needs the role operator or admin") as refused:
        require(credential, Verb.INSTANCES_COMMAND)

    assert refused.value.params == {"verb": "instances.command", "role": "operator or admin"}


@pytest.mark.parametrize(("names", "given"), [([], ""), (["viewer", "root"], "root"), (["Viewer"], "Viewer")])
def test_an_unknown_role_is_refused(names: list[str], given: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_roles(names)
    assert refused.value.code == "invalid_role"
    assert refused.value.params["given"] == given
