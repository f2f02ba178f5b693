"""What a run brings to other runs: commands to its children, and its end to whoever waits for it as its parent."""

from __future__ import annotations

from korak.codes import render
from korak.core.changes import Cascade, Command
from korak.core.draft import Draft
from korak.core.rows import StepRun
from korak.model import DeliveryKind, InstanceStatus, JsonObject, WaitKind

UNKNOWN = "exception"
"""The code of an exception that says nothing of itself (RT-10)."""

CHILDREN = "children"
"""The part of a run's bookkeeping that counts the runs it has started."""


def say(code: str, message: str | None, params: JsonObject | None) -> str:
    """What values and other runs read of a failure. The text of an unknown exception is for operators only."""
    return render(code, params) if code == UNKNOWN or message is None else message


CLEANING = "cleaning"
"""The part of a run's bookkeeping that names the children whose cleaning up its own waits for, and who waits for it."""


def count_children(draft: Draft) -> int:
    """How many runs this one has started until now."""
    count = draft.get_walk(CHILDREN).get("count")
    return count if isinstance(count, int) else 0


def bid(draft: Draft, ulid: str, kind: DeliveryKind, *, asks: bool = False) -> None:
    """Send a command to one child, or an answer to a parent. With `asks` it is to say when it has cleaned up."""
    sender: JsonObject = {"instance": draft.instance.ulid}
    if asks:
        sender["asks"] = True
    source = f"{draft.instance.ulid}:{draft.instance.next_seq}"
    draft.reach().commands.append(Command(ulid, kind, source, draft.now, sender))


def cascade(draft: Draft, kind: DeliveryKind) -> None:
    """Send a command to every open child, if there are any: a row that stays until the last of them has it."""
    if count_children(draft):
        instance = draft.instance
        sender: JsonObject = {"instance": instance.ulid}
        draft.reach().cascades.append(Cascade(instance.id, instance.next_seq, kind, sender, draft.now))


def cancel_awaited(draft: Draft, step: StepRun) -> None:
    """The step ends before the child that it waits for: that one is cancelled with it (CN-2). Others go on (CN-9).

    Where this run has something to undo it waits with that until the child has cleaned up.
    """
    for wait in draft.list_waits(step):
        if wait.kind is WaitKind.CHILD and wait.event_key is not None:
            bid(draft, wait.event_key, DeliveryKind.CANCEL, asks=draft.plan.cleans_up)
            if draft.plan.cleans_up:
                _set_cleaning(draft, [*_list_cleaning(draft), wait.event_key], _get_asker(draft))


def has_cleaning_children(draft: Draft) -> bool:
    """Whether a child that was cancelled with this run hasn't cleaned up yet."""
    return bool(_list_cleaning(draft))


def hear_cleaned(draft: Draft, sender: JsonObject | None) -> None:
    """A child has cleaned up."""
    ulid = (sender or {}).get("instance")
    _set_cleaning(draft, [each for each in _list_cleaning(draft) if each != ulid], _get_asker(draft))


def promise(draft: Draft, sender: JsonObject | None) -> None:
    """Keep in mind that the parent which cancels this run is to be told when it has cleaned up, if it asks."""
    if sender is not None and sender.get("asks"):
        _set_cleaning(draft, _list_cleaning(draft), str(sender.get("instance")))


def answer(draft: Draft, *, is_busy: bool) -> None:
    """Tell the parent that asked, once nothing is left to clean up: whatever ended this run, and however it went."""
    asker = _get_asker(draft) if draft.instance.is_ended and not is_busy else None
    if asker is not None:
        bid(draft, asker, DeliveryKind.CHILD)
        _set_cleaning(draft, _list_cleaning(draft), None)


def _list_cleaning(draft: Draft) -> list[str]:
    children = draft.get_walk(CLEANING).get("children")
    return [str(each) for each in children] if isinstance(children, list) else []


def _get_asker(draft: Draft) -> str | None:
    asker = draft.get_walk(CLEANING).get("asker")
    return asker if isinstance(asker, str) else None


def _set_cleaning(draft: Draft, children: list[str], asker: str | None) -> None:
    draft.set_walk(CLEANING, {"children": list(children), "asker": asker})


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
