"""What a run brings to other runs: commands to its children, and its end to whoever waits for it as its parent."""

from __future__ import annotations

from korak.core.changes import Cascade, Command
from korak.core.draft import Draft
from korak.core.rows import StepRun
from korak.errors import render
from korak.model import DeliveryKind, InstanceStatus, JsonObject, WaitKind

UNKNOWN = "exception"
"""The code of an exception that says nothing of itself (RT-10)."""

CHILDREN = "children"
"""The part of a run's bookkeeping that counts the runs it has started."""


def say(code: str, message: str | None, params: JsonObject | None) -> str:
    """What values and other runs read of a failure. The text of an unknown exception is for operators only."""
    return render(code, params) if code == UNKNOWN or message is None else message


def count_children(draft: Draft) -> int:
    """How many runs this one has started until now."""
    count = draft.get_walk(CHILDREN).get("count")
    return count if isinstance(count, int) else 0


def bid(draft: Draft, ulid: str, kind: DeliveryKind) -> None:
    """Send a command to one child."""
    sender: JsonObject = {"instance": draft.instance.ulid}
    source = f"{draft.instance.ulid}:{draft.instance.next_seq}"
    draft.reach().commands.append(Command(ulid, kind, source, draft.now, sender))


def cascade(draft: Draft, kind: DeliveryKind) -> None:
    """Send a command to every open child, if there are any: a row that stays until the last of them has it."""
    if count_children(draft):
        instance = draft.instance
        sender: JsonObject = {"instance": instance.ulid}
        draft.reach().cascades.append(Cascade(instance.id, instance.next_seq, kind, sender, draft.now))


def cancel_awaited(draft: Draft, step: StepRun) -> None:
    """The step ends before the child that it waits for: that one is cancelled with it (CN-2). Others go on (CN-9)."""
    for wait in draft.list_waits(step):
        if wait.kind is WaitKind.CHILD and wait.event_key is not None:
            bid(draft, wait.event_key, DeliveryKind.CANCEL)


def tell_end(draft: Draft) -> None:
    """Tell the end of a run below another one to whoever waits for it: one wait is told it once."""
    instance = draft.instance
    end: JsonObject = {"child": instance.ulid, "status": instance.status, "seq": instance.next_seq - 1}
    match instance.status:
        case InstanceStatus.COMPLETED:
            end["result"] = instance.result
        case InstanceStatus.FAILED:
            code = instance.failure_code or UNKNOWN
            end |= {"code": code, "message": say(code, instance.failure_message, instance.failure_params)}
        case _:
            end["reason"] = instance.cancel_reason
    draft.reach().end = end
