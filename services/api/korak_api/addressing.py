"""Instances by the id that their caller gave them: `{definition}~{id}` stands for the newest run, on every route."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from korak.store import addresses
from korak_api.operations import Answer, Call, Operation

SIGN: Final = "~"
"""Between a definition's key and an id: neither has it, and neither has a ULID."""


async def answer(call: Call, operation: Operation) -> Answer:
    """The operation's answer, with the ULID in the place of an address.

    An address that leads nowhere stays as it is: no instance has such a ULID.
    """
    return await operation.handler(await _resolve(call))


async def _resolve(call: Call) -> Call:
    definition, sign, business_id = call.path.get("ulid", "").partition(SIGN)
    if not sign:
        return call
    async with call.resources.database.acquire() as connection:
        ulid = await addresses.find_newest(connection, call.owner_scope, definition, business_id)
    path = dict(call.path) if ulid is None else {**call.path, "ulid": ulid}
    return replace(call, path=path, address=(definition, business_id))
