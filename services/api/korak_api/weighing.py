"""The routes of the weights of owners: which share each has where many wait for the same engines."""

from __future__ import annotations

from typing import Final

from korak.errors import Forbidden
from korak.model import OwnerRole
from korak.owners.roles import Verb
from korak.owners.scopes import Owner, parse_owner
from korak.store import weights
from korak.store.database import Session
from korak_api.operations import Answer, Body, Call, Operation
from korak_api.rendering import show_owner

WEIGHT: Final = Body({"weight": {"type": "integer", "minimum": 1, "maximum": weights.MOST}}, ("weight",))


async def get(call: Call) -> Answer:
    """GET /v1/owners/{scope}/weight."""
    owner = _get_owner(call)
    async with call.resources.database.acquire() as connection:
        return _answer(owner, await weights.get(Session(connection), owner.scope))


async def put(call: Call) -> Answer:
    """PUT /v1/owners/{scope}/weight: shares are the application's to give, nobody raises his own."""
    owner = _get_owner(call)
    if not call.credential.is_app_wide:
        raise Forbidden(verb=Verb.OWNERS_MANAGE.value, role=f"{OwnerRole.ADMIN} of the application")
    weight = call.body["weight"]
    assert isinstance(weight, int), "it was checked"
    async with call.resources.database.transaction() as connection:
        return _answer(owner, await weights.put(Session(connection), owner.scope, weight))


def _get_owner(call: Call) -> Owner:
    """The owner of the address. Raises Invalid where it is none, Forbidden where the credential is another owner's."""
    owner = parse_owner(call.path["scope"])
    if not call.credential.is_app_wide and owner != call.credential.owner:
        raise Forbidden("owner_not_allowed", owner=owner.scope)
    return owner


def _answer(owner: Owner, weight: int) -> Answer:
    return Answer({"owner": show_owner(owner.scope), "weight": weight})


ONE: Final = "/v1/owners/{scope}/weight"

OPERATIONS: Final = (
    Operation("GET", ONE, get, "Read how many steps an owner has in each turn.", Verb.OWNERS_MANAGE, "Weight"),
    Operation(
        "PUT",
        ONE,
        put,
        "Say how many steps an owner has in each turn: for a token of the application.",
        Verb.OWNERS_MANAGE,
        "Weight",
        body=WEIGHT,
    ),
)
