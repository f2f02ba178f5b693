"""The routes that command instances: cancel, pause, resume, retry, rewind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import CancelAsked, Fact, PauseAsked, ResumeAsked, RetryAsked, RewindAsked
from korak.errors import Conflict
from korak.model import DeliveryKind, JsonObject
from korak.owners.roles import Verb
from korak.store import addresses, signals
from korak.store.instances import View, get_culprit
from korak.store.signals import Sending
from korak_api.asking import get_view
from korak_api.copies import PLACE
from korak_api.instances import find
from korak_api.operations import Answer, Body, Call, Handler, Operation
from korak_api.standing import show_instance, view_changes
from korak_api.undoing import is_stuck_below, may_cancel

REASON: Final = Body({"reason": {"type": "string", "minLength": 1, "maxLength": 2000}})
RETRY: Final = Body({}, unserved=frozenset({"input"}))
REWIND: Final = Body({"to": PLACE}, required=("to",))
NOTHING: Final = Body({})


async def cancel(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/cancel (CN-1 to CN-8)."""
    given = call.body.get("reason")
    reason = given if isinstance(given, str) else None
    return await _command(call, CancelAsked(reason, call.actor), DeliveryKind.CANCEL, {"reason": reason})


async def pause(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/pause."""
    return await _command(call, PauseAsked(call.actor), DeliveryKind.PAUSE)


async def resume(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/resume."""
    return await _command(call, ResumeAsked(call.actor), DeliveryKind.RESUME)


async def retry(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/retry (MR-1 to MR-6)."""
    return await _insist(call, RetryAsked(call.actor), vet=_vet_retry)


async def rewind(call: Call) -> Answer:
    """POST /v1/instances/{ulid}/rewind."""
    return await _insist(call, RewindAsked(str(call.body["to"]), call.actor))


async def _command(call: Call, fact: Fact, kind: DeliveryKind, payload: JsonObject | None = None) -> Answer:
    """Answer a command under the lock; where somebody holds the instance, leave a row that the holder obeys."""
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
    changes = await call.resources.commander.answer(view.instance.id, fact)
    view = await (_leave(call, view, kind, payload) if changes is None else _view(call, changes, view))
    return _show(call, view)


def _vet_retry(call: Call, view: View) -> None:
    """Raise Conflict where the retry would go to a run below that can't go on; of the run itself the core knows."""
    if is_stuck_below(view, call.ceilings):
        why = f"it failed by {get_culprit(view)}, which can't be retried; start it again"
        raise Conflict("instance_not_retryable", why=why)


async def _insist(call: Call, fact: Fact, *, vet: Callable[[Call, View], None] | None = None) -> Answer:
    """Answer a command of which nothing can be left for later: it waits for whoever holds the instance."""
    async with call.resources.database.acquire() as connection:
        view = await find(call, connection)
    if vet is not None:
        vet(call, view)
    try:
        changes = await call.resources.commander.insist(view.instance.id, fact)
    except Conflict as refused:
        raise await _name(call, view, refused) from None
    return _show(call, await _view(call, changes, view))


def _show(call: Call, view: View) -> Answer:
    return Answer(show_instance(view, sees_failures=call.sees_failures, ceilings=call.ceilings))


def _update(view: View, after: View) -> View:
    """What a decision has changed, over what it doesn't load."""
    before = view.instance
    instance = replace(after.instance, business_id=before.business_id, run_number=before.run_number)
    after = replace(after, instance=instance, parent=view.parent, root=view.root, version_label=view.version_label)
    return replace(after, artifacts=view.artifacts, artifacts_count=view.artifacts_count)


async def _name(call: Call, view: View, refused: Conflict) -> Conflict:
    """Name the run that has the id of one that is to be open again: the index that refused it doesn't."""
    if refused.code != "id_in_use" or view.instance.business_id is None:
        return refused
    business_id = view.instance.business_id
    async with call.resources.database.acquire() as connection:
        ulid = await addresses.find_open(connection, call.owner_scope, view.definition, business_id)
    return Conflict("id_in_use", id=business_id, instance=ulid)


async def _view(call: Call, changes: Changes, view: View) -> View:
    """The instance after a command; it is read anew only where the changes don't have all that is shown of it."""
    if changes.is_empty:
        return view
    if changes.after.plan.cleans_up:
        async with call.resources.database.acquire() as connection:
            return await find(call, connection)
    return _update(view, view_changes(changes, view.version))


async def _leave(call: Call, view: View, kind: DeliveryKind, payload: JsonObject | None) -> View:
    if view.instance.is_ended and not (kind is DeliveryKind.CANCEL and may_cancel(view)):
        raise Conflict(_REFUSALS[kind], status=str(view.instance.status))
    source_id = call.seed or str(ULID.from_datetime(call.now))
    sending = Sending(view.instance.id, view.instance.owner_scope, kind, source_id, None, payload, call.actor)
    async with call.resources.database.transaction() as connection:
        await signals.send(connection, sending, now=call.now)
    call.resources.informer.remind(view.instance.id)
    async with call.resources.database.acquire() as connection:
        return await get_view(call, connection, view.instance.ulid) or view


_REFUSALS: Final = {
    DeliveryKind.CANCEL: "instance_not_cancellable",
    DeliveryKind.PAUSE: "instance_not_pausable",
    DeliveryKind.RESUME: "instance_not_paused",
}

ONE: Final = "/v1/instances/{ulid}"


def _operate(verb: str, handler: Handler, summary: str, body: Body) -> Operation:
    return Operation(
        "POST",
        f"{ONE}/{verb}",
        handler,
        summary,
        Verb.INSTANCES_COMMAND,
        "Instance",
        problems=(404, 409),
        body=body,
        is_kept=True,
    )


OPERATIONS: Final = (
    _operate("cancel", cancel, "End an instance; steps that had begun clean up, what has completed is undone.", REASON),
    _operate("pause", pause, "Begin no further step, and stop its clocks.", NOTHING),
    _operate("resume", resume, "Let a paused instance go on.", NOTHING),
    _operate("rewind", rewind, "Go back to where the instance stood behind a completed step.", REWIND),
    _operate(
        "retry",
        retry,
        "Try the step again that failed the instance; or, of one that was undone, what could not be.",
        RETRY,
    ),
)
