"""The default answer: a null ability passes, every other is denied (AU-6, AU-7)."""

from __future__ import annotations

import pytest

from korak.model import ActorMode
from korak.owners.authorizer import AuthorizationRequest, Authorizer, DefaultAuthorizer, Denial
from korak.owners.scopes import Owner


@pytest.mark.parametrize("user", [None, "ana"])
@pytest.mark.parametrize(
    ("ability", "answer"),
    [
        (None, None),
        ("orders.charge", Denial("nobody was granted the ability orders.charge")),
        ("", Denial("nobody was granted the ability ")),
    ],
)
async def test_au_6_only_a_null_ability_passes(user: str | None, ability: str | None, answer: Denial | None) -> None:
    authorizer: Authorizer = DefaultAuthorizer()
    request = AuthorizationRequest(
        ability=ability,
        owner=Owner("team", "42"),
        actor=ActorMode.SYSTEM,
        user=user,
        instance="01J0000000000000000000000A",
        definition="order",
        node="charge",
        step_type="shop.charge",
    )

    assert await authorizer.authorize(request) == answer
