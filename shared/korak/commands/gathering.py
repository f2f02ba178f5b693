"""What is read to show an instance: its steps, and of the runs below it no more than are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from korak.commands.arranging import MOST, SAMPLE
from korak.commands.calling import Caller
from korak.model import ENDED, InstanceStatus

PAGE: Final = 200
CHILDREN: Final = 50
"""How many runs below an instance are shown with it, at all levels."""
STARTING: Final = ("start_workflow", "start_workflows")


def list_steps(caller: Caller, instance: str, bodies: int | None = None) -> list[dict[str, Any]]:
    """The attempts, in the order in which they began; those that haven't come last.

    All of them, or of a container with more `bodies` than this only some.
    """
    steps: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = caller.get(f"/v1/instances/{instance}/steps", limit=PAGE, cursor=cursor, bodies=bodies)
        steps += page["items"]
        cursor = page.get("next")
        if cursor is None:
            return sorted(steps, key=_get_rank)


def _get_rank(step: dict[str, Any]) -> tuple[str, bool, str]:
    return step["created_at"], step["started_at"] is None, step["started_at"] or ""


def list_children(caller: Caller, instance: str, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The runs that an instance has started, each with its own likewise, and the rest of them counted by status.

    Of many there are the first few, and those that have failed or are open unlike the others. None is looked for where
    no step starts any.
    """
    found: dict[str, Any] = {"id": instance, "children": [], "has_more_children": False, "more_children": {}}
    level, left = [found], CHILDREN
    if not any(step.get("type") in STARTING for step in steps):
        level = []
    while level and left > 0:
        level = _add_below(caller, level, left)
        left -= len(level)
    return {name: found[name] for name in ("children", "has_more_children", "more_children")}


def _add_below(caller: Caller, level: Sequence[dict[str, Any]], left: int) -> list[dict[str, Any]]:
    """Give runs those that they have started, the oldest first; all that are shown, `left` at most."""
    known, counts = _read_below(caller, [run["id"] for run in level])
    shown: list[dict[str, Any]] = []
    for run in level:
        own = [child for child in known if child["parent"] == run["id"]]
        total = counts.get(run["id"], Counter())
        run["children"] = choose(own, total, min(MOST, left - len(shown)))
        rest = total - Counter(child["status"] for child in run["children"])
        run["has_more_children"], run["more_children"] = bool(rest), dict(rest)
        shown += run["children"]
    return shown


def _read_below(caller: Caller, parents: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Counter[str]]]:
    """The children that may be shown, the oldest first, and how many each parent has by status."""
    page = caller.get("/v1/instances", parent=parents, sort="created", limit=CHILDREN)
    known = {child["id"]: child for child in page["items"]}
    counts: dict[str, Counter[str]] = {}
    if page.get("next") is None:
        for child in known.values():
            counts.setdefault(child["parent"], Counter())[child["status"]] += 1
        return list(known.values()), counts
    told = caller.get("/v1/instances/counts", parent=parents, by=["parent", "status"])
    for row in told["items"]:
        counts.setdefault(row["parent"], Counter())[row["status"]] = row["count"]
    for parent, total in counts.items():
        odd = {status for status in total if _is_odd(status, total)}
        for statuses in filter(None, [odd & {InstanceStatus.FAILED}, odd - {InstanceStatus.FAILED}]):
            more = caller.get("/v1/instances", parent=parent, status=sorted(statuses), sort="created", limit=MOST)
            known.update((child["id"], child) for child in more["items"])
    return sorted(known.values(), key=_get_id), counts


def choose(children: Sequence[dict[str, Any]], counts: Counter[str], most: int) -> list[dict[str, Any]]:
    """Which children of a run are shown, of those that are known; `counts` are those of all by status."""
    if counts.total() <= most:
        return list(children)
    failed = [child["id"] for child in children if child["status"] == InstanceStatus.FAILED]
    odd = [child["id"] for child in children if child["id"] not in failed and _is_odd(child["status"], counts)]
    asking = [*failed, *odd][:most]
    first = [child["id"] for child in children if child["id"] not in {*failed, *odd}]
    shown = {*asking, *first[: min(SAMPLE, most - len(asking))]}
    return [child for child in children if child["id"] in shown]


def _is_odd(status: str, counts: Counter[str]) -> bool:
    """Whether a run of this status asks for a look: it has failed, or is open in another way than most are."""
    if status == InstanceStatus.FAILED:
        return True
    return status not in ENDED and counts.most_common(1)[0][0] != status


def _get_id(child: Mapping[str, Any]) -> str:
    return str(child["id"])
