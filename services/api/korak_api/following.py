"""The route that follows an instance live, as server-sent events."""

from __future__ import annotations

from typing import Final

from korak.errors import Unavailable
from korak.owners.roles import Verb
from korak_api.leavings import ONE, find_id
from korak_api.operations import Answer, Call, Operation
from korak_api.parameters import Parameter, refuse

MOST: Final = 1_000
"""Followers of one process at once."""

AFTER: Final = Parameter("after", "Only events with a greater `seq`.", "count")
LAST: Final = "Last-Event-ID"


async def follow(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/stream."""
    after = _read_last(call)
    feeds = call.resources.feeds
    async with call.resources.database.acquire() as connection:
        instance_id = await find_id(call, connection)
    if feeds.followers >= MOST:
        raise Unavailable("too_many_streams", limit=MOST)
    return Answer(stream=feeds.follow(instance_id, call.path["ulid"], after))


def _read_last(call: Call) -> int:
    """Where to go on: a browser that connects again says it in the header."""
    given = call.headers.get(LAST.lower())
    if given is None:
        return int(call.query.get("after", 0))
    if not given.isascii() or not given.isdecimal() or len(given) > 18:
        raise refuse(LAST, "it is the number of an event")
    return int(given)


OPERATIONS: Final = (
    Operation(
        "GET",
        f"{ONE}/stream",
        follow,
        "Follow an instance: server-sent events `history`, numbered by `seq`, `chunk`, and `end` once it has ended "
        "and cleaned up.",
        Verb.INSTANCES_READ,
        "Stream",
        problems=(404,),
        query=(AFTER,),
        headers={LAST: "The `seq` of the last event that was seen."},
    ),
)
