"""What one instance is shown with besides its rows."""

from __future__ import annotations

from dataclasses import replace

from korak.store.database import Connection, Session
from korak.store.instances import View
from korak_api.operations import Call


async def look_up_plan(call: Call, connection: Connection, view: View) -> View:
    """The same with its version, where it waits: that tells the key of what comes and what it must agree with.

    Lists go without.
    """
    if not view.waits:
        return view
    version_id = view.instance.version_id
    plans = await call.resources.plans.get(Session(connection), {version_id})
    return replace(view, plan=plans[version_id])
