"""Which signal answers what an instance asks of a person, read from what it waits for (chain spec 11.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from korak.client.shapes import Instance, WaitingFor
from korak.errors import Conflict
from korak.model import ENDED, WaitKind

Verb: TypeAlias = Literal["approve", "reject", "input"]

ANSWERS: Final[Mapping[Verb, Mapping[str, int]]] = {
    "approve": {"approval": 0, "decision": 0},
    "reject": {"decision": 1},
    "input": {"input": 0},
}
"""For each verb the questions that it answers, and which of the wait's names does so."""


class Awaited(NamedTuple):
    """The signal that answers, and the visit that asks: a later one never gets it."""

    signal: str
    execution: str


def pick(instance: Instance, verb: Verb, *, signal: str | None = None, node: str | None = None) -> Awaited:
    """What to send, and for which visit. `signal` or `node` pick one of several; of the bodies of one node the oldest.

    Raises Conflict: `not_awaited` where the instance asks for no such answer, `several_awaited` where for several.
    """
    waits = [wait for wait in instance["waiting_for"] if node is None or wait["node"] == node]
    found: dict[tuple[str, str], WaitingFor] = {}
    for wait in waits:
        for name in _list_names(wait, verb, signal):
            found.setdefault((name, wait["node"]), wait)
    if len(found) > 1:
        told = ", ".join(f"{name} at {place}" for name, place in found)
        raise Conflict("several_awaited", instance=instance["id"], verb=verb, awaited=told)
    for (name, _), wait in found.items():
        return Awaited(name, wait["execution"])
    raise Conflict("not_awaited", instance=instance["id"], verb=verb, awaited=_tell(instance))


def _list_names(wait: WaitingFor, verb: Verb, signal: str | None) -> Sequence[str]:
    """What answers a wait. A signal that is named may be any that is waited for, asked of a person or not."""
    place = ANSWERS[verb].get(wait["human"] or "")
    names = wait["names"] if place is None else wait["names"][place : place + 1]
    if signal is not None:
        return [name for name in names if name == signal and wait["kind"] == WaitKind.SIGNAL]
    return [] if place is None else names


def _tell(instance: Instance) -> str:
    if instance["status"] in ENDED:
        return f"it is {instance['status']}"
    if not instance["waiting_for"]:
        return f"it is {instance['status']} and waits for nothing"
    return "it waits for " + ", ".join(
        " ".join(filter(None, (wait["human"] or wait["kind"], " or ".join(wait["names"]), f"at {wait['node']}")))
        for wait in instance["waiting_for"]
    )
