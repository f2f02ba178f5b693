"""The routes that read instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from korak.errors import NotFound
from korak.model import InstanceStatus
from korak.owners.roles import Verb
from korak.store import bodies, counting, details, instances
from korak.store.branches import list_branches
from korak.store.counting import COUNTED
from korak.store.database import Connection, Session
from korak.store.filters import PAUSED, Filter
from korak.store.heartbeats import get_beats
from korak.store.instances import View
from korak_api.asking import complete, get_view
from korak_api.operations import Answer, Call, Operation
from korak_api.parameters import PAGE, WAIT, Parameter, make_page, read_page, refuse
from korak_api.rendering import show_event, show_failure, show_step, show_wait
from korak_api.standing import show_instance
from korak_api.starts import read_wait

TIMES = ("created", "updated", "ended")
FILTERS = (
    Parameter("status", "Only these.", is_list=True, choices=(*InstanceStatus, PAUSED)),
    Parameter("definition", "Only of these definitions, by key.", is_list=True),
    Parameter("id", "Only runs under these ids of the caller's own.", is_list=True),
    Parameter("label", "Only with all of these labels.", is_list=True),
    Parameter("parent", "Only those that one of these runs has started.", is_list=True),
    Parameter("root", "Only these runs and all below them.", is_list=True),
    *(
        Parameter(f"{name}_{side}", f"Only {name} {'at that time or later' if side == 'after' else 'earlier'}.", "time")
        for name in TIMES
        for side in ("after", "before")
    ),
)
OLDEST = "created"
SORT = Parameter("sort", "The oldest first, or the newest, as without it.", choices=(OLDEST, f"-{OLDEST}"))
BY = Parameter(
    "by", "What each count is for; of several, for each of their combinations.", is_list=True, choices=(*COUNTED,)
)
MAX_BODIES = 10_000
BODIES = Parameter(
    "bodies", "Of a container with more bodies than this: the failed, the living, some of the others.", "count"
)
AFTER = Parameter("after", "Only events with a greater `seq`.", "count")


async def list_instances(call: Call) -> Answer:
    """GET /v1/instances."""
    page = read_page(call.query, (str,), most=call.resources.settings.api.max_page)
    wanted = replace(
        _read_filter(call),
        beyond=page.after[0] if page.after else None,
        is_oldest_first=call.query.get("sort") == OLDEST,
    )
    async with call.resources.database.acquire() as connection:
        rows = await complete(call, connection, await instances.list_instances(connection, wanted, limit=page.asked))
    items = [show_instance(row, sees_failures=call.sees_failures, ceilings=call.ceilings) for row in rows]
    return Answer(make_page(page, rows, items, lambda row: (row.instance.ulid,)))


async def count_instances(call: Call) -> Answer:
    """GET /v1/instances/counts."""
    by = list(dict.fromkeys(call.query.get("by") or ("status",)))
    if "parent" in by and not (call.query.get("parent") or call.query.get("root")):
        raise refuse("by", "by parent is counted below the parents or roots that are named")
    async with call.resources.database.acquire() as connection:
        rows = await counting.count_instances(connection, _read_filter(call), by)
    is_capped = sum(row["count"] for row in rows) > counting.MOST
    return Answer({"items": [dict(row) for row in rows], "is_capped": is_capped})


def _read_filter(call: Call) -> Filter:
    query = call.query
    return Filter(
        owner_scope=call.scope_or_all,
        statuses=query.get("status", ()),
        definitions=query.get("definition", ()),
        business_ids=query.get("id", ()),
        labels=query.get("label", ()),
        parents=query.get("parent", ()),
        roots=query.get("root", ()),
        times=[
            (f"{name}_at", side == "after", query[f"{name}_{side}"])
            for name in TIMES
            for side in ("after", "before")
            if f"{name}_{side}" in query
        ],
    )


async def get(call: Call) -> Answer:
    """GET /v1/instances/{ulid}."""
    ulid, seconds = call.path["ulid"], read_wait(call)
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
    if seconds and not view.instance.is_ended:
        with call.resources.waiter.watch(ulid) as watch:
            await watch.wait(seconds)
        async with call.resources.database.acquire() as connection:
            view = await find(call, connection)
    return Answer(show_instance(view, sees_failures=call.sees_failures, ceilings=call.ceilings))


async def list_steps(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/steps."""
    page = read_page(call.query, (str,), most=call.resources.settings.api.max_page)
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
        after = page.after[0] if page.after else None
        most = call.query.get("bodies")
        shown = None if most is None else await bodies.list_shown(connection, view.instance.id, min(most, MAX_BODIES))
        rows = await details.list_steps(connection, view.instance.id, after=after, limit=page.asked, scopes=shown)
        counts = await bodies.count_bodies(connection, rows)
        branches = await list_branches(connection, rows)
        beats = await get_beats(connection, rows)
    sees = call.sees_failures
    items = [
        {
            **show_step(row, branch=branches.get(row.scope_id or 0), beat=beats.get(row.id), sees_failures=sees),
            "bodies": counts.get(row.id),
        }
        for row in rows
    ]
    return Answer(make_page(page, rows, items, lambda row: (row.ulid,)))


async def list_events(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/events."""
    page = read_page(call.query, (int,), most=call.resources.settings.api.max_page)
    after = page.after[0] if page.after else call.query.get("after", 0)
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
        rows = await details.list_events(connection, view.instance.id, after=after, limit=page.asked)
        plans = await call.resources.plans.get(Session(connection), [view.instance.version_id])
    [plan] = plans.values()
    return Answer(make_page(page, rows, [show_event(row, plan) for row in rows], lambda row: (row["seq"],)))


async def list_waits(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/waits."""
    return await _list_below(call, details.list_waits, show_wait)


async def list_failures(call: Call) -> Answer:
    """GET /v1/instances/{ulid}/failures."""
    return await _list_below(
        call, details.list_failures, lambda row: show_failure(row, sees_failures=call.sees_failures)
    )


async def _list_below(call: Call, read: Any, show: Any) -> Answer:
    """A page of rows that only ever grow in number, so that a count of them is a place."""
    page = read_page(call.query, (int,), most=call.resources.settings.api.max_page)
    skip = max(0, page.after[0]) if page.after else 0
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
        rows: Sequence[Any] = await read(connection, view.instance.id, skip=skip, limit=page.asked)
    return Answer(make_page(page, rows, [show(row) for row in rows], lambda _: (skip + page.limit,)))


async def find(call: Call, connection: Connection) -> View:
    """The instance of a request. Raises NotFound, for another owner's too."""
    view = await get_view(call, connection, call.path["ulid"])
    if view is None:
        raise NotFound("instance_not_found", key=call.path["ulid"])
    return view


READ = Verb.INSTANCES_READ
ONE = "/v1/instances/{ulid}"

OPERATIONS = (
    Operation(
        "GET",
        "/v1/instances",
        list_instances,
        "List instances, the newest first; refused starts are left out.",
        READ,
        "InstancePage",
        query=(*FILTERS, SORT, *PAGE),
    ),
    Operation(
        "GET",
        "/v1/instances/counts",
        count_instances,
        "Count instances by status, or by what `by` names; refused starts are left out.",
        READ,
        "InstanceCounts",
        query=(*FILTERS, BY),
    ),
    Operation("GET", ONE, get, "Read an instance.", READ, "Instance", problems=(404,), query=(WAIT,)),
    Operation(
        "GET",
        f"{ONE}/steps",
        list_steps,
        "List attempts, in the order in which they came to be.",
        READ,
        "StepPage",
        problems=(404,),
        query=(BODIES, *PAGE),
    ),
    Operation(
        "GET", f"{ONE}/events", list_events, "List history.", READ, "EventPage", problems=(404,), query=(AFTER, *PAGE)
    ),
    Operation(
        "GET",
        f"{ONE}/waits",
        list_waits,
        "List waits, the oldest first.",
        READ,
        "WaitPage",
        problems=(404,),
        query=PAGE,
    ),
    Operation(
        "GET",
        f"{ONE}/failures",
        list_failures,
        "List failures, the oldest first.",
        READ,
        "FailurePage",
        problems=(404,),
        query=PAGE,
    ),
)
