"""The commands by which a person lets a run, and those below it, go on: none for what goes on with its parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.text import Text

from korak.model import ENDED, InstanceStatus

ANSWERS: Final[Mapping[str, str]] = {
    "approval": "korak approve {id} answers it",
    "decision": "korak approve {id} or korak reject {id} answers it",
    "input": "korak input {id} --data JSON answers it",
}

PAUSED: Final = "paused"
RESUME: Final = "korak resume {id} lets it go on"
RETRY: Final = "korak retry {id} tries it again"
UNDO: Final = "korak retry {id} tries again what could not be undone"
AFTERWARDS: Final = "then korak retry {id} tries it again"
EXHAUSTED: Final = "loop_exhausted"
"""The code of a failure that another try seldom mends: the loop's condition would have to hold no more by itself."""

MOST: Final = 3
"""Runs that are named for one command."""


def list_hints(instance: Mapping[str, Any]) -> Iterator[Text]:
    """What may be done, in the order in which it is to be done; of one command for many runs the first few."""
    counts: Counter[str] = Counter()
    for hint, ulid in _list_hints(instance, {}):
        counts[hint] += 1
        if counts[hint] <= MOST:
            yield Text(hint.format(id=ulid), "dim")
    for hint, count in counts.items():
        if count > MOST:
            yield Text(f"and {count - MOST:,} runs more: {hint.partition(' {id}')[0]}", "dim")


def _list_hints(run: Mapping[str, Any], parent: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The hints of a run and of those below it, each with the run that it is for."""
    below = [hint for child in run.get("children") or () for hint in _list_hints(child, run)]
    own = [(hint, str(run["id"])) for hint in _list_own(run, parent)]
    if run.get("status") != InstanceStatus.FAILED:
        yield from (*own, *below)
        return
    is_later = any(hint in (RETRY, AFTERWARDS) for hint, _ in below)
    yield from below
    yield from ((AFTERWARDS if hint == RETRY and is_later else hint, ulid) for hint, ulid in own)


def _list_own(run: Mapping[str, Any], parent: Mapping[str, Any]) -> Iterator[str]:
    status = run.get("status")
    if status == PAUSED:
        if parent.get("status") != PAUSED:
            yield RESUME
        return
    if _has_undoing_failed(run):
        yield UNDO
        return
    if status == InstanceStatus.FAILED:
        if _may_retry(run) and not (_get_culprit(parent) == run["id"] and _may_retry(parent)):
            yield RETRY
        return
    asked = {wait.get("human"): None for wait in run.get("waiting_for") or ()}
    yield from (hint for human, hint in ANSWERS.items() if human in asked)


def _has_undoing_failed(run: Mapping[str, Any]) -> bool:
    """Whether a retry tries again what could not be undone."""
    is_left = run.get("status") == InstanceStatus.CANCELLED or (run.get("compensation") or {}).get("failed")
    return bool(is_left) and (run.get("actions") or {}).get("retry") is True


def _may_retry(run: Mapping[str, Any]) -> bool:
    """Whether a retry of a failed run would help: one that failed by its child tries that child again."""
    if (run.get("actions") or {}).get("retry") is not True or (run.get("failure") or {}).get("code") == EXHAUSTED:
        return False
    culprit = _get_culprit(run)
    child = next((each for each in run.get("children") or () if each["id"] == culprit), None)
    if child is None or child.get("status") not in ENDED or child["status"] == InstanceStatus.COMPLETED:
        return True
    return child["status"] == InstanceStatus.FAILED and _may_retry(child)


def _get_culprit(run: Mapping[str, Any]) -> Any:
    """The child by whose end a run has failed, if any."""
    return ((run.get("failure") or {}).get("params") or {}).get("child")
