"""The methods of a chain that start other workflows, and that wait for runs of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from korak.chains import naming
from korak.chains.given import misuse, show
from korak.chains.numbers import read_count
from korak.chains.signals import Listening
from korak.chains.steps import Start, Step
from korak.graphs.builder import Duration
from korak.graphs.schema import KEY
from korak.model import JsonObject

if TYPE_CHECKING:
    from korak.chains.builder import Chain

Mode = Literal["all", "any", "quorum"]
MODES: Final = ("all", "any", "quorum")
MAX_GROUP: Final = 191
PLACE: Final = "start_item_index"
"""The key of a child's input that tells its place among the items."""

_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE)


class Nesting(Listening):
    """Other workflows: run as a step, started one for each item, or waited for."""

    _steps: list[Step]

    def run_workflow(self, name: str, child: Chain | str) -> Self:
        """Run another chain with the whole state, and merge its state into this one's when it has completed.

        `name` is shown with the step. The child is taken as it is now; instead of a chain the key of a workflow that is
        published may be given. Where the child fails the step does, with `child_failed`: a retry of the run lets the
        child go on where it failed.
        """
        label = naming.read_title(name, "The name of a child")
        config: JsonObject = {"inputs": {"ref": "state"}, "wait": True}
        return self._start("start_workflow", self._name(None), child, config, label)

    def start_workflows(
        self,
        items_key: str,
        child: Chain | str,
        result_key: str = "started_workflow_ids",
        payload_key: str = "item",
        inherit_state: bool = True,
        name: str | None = None,
        group_key: str | None = None,
    ) -> Self:
        """Start a run of another chain for every item of the list under a key of the state, and go on.

        Each is given the state without the list, and an object's own keys on top, or any other item under
        `payload_key`; besides `start_item_index`. Their ids are kept under `result_key`, and under a group's name.
        """
        given = self._name(name)
        source = naming.read_source(items_key, "items_key")
        result = naming.read_key(result_key, "result_key")
        config: JsonObject = {
            "items": {"ref": naming.get_path(source), "default": []},
            "payload_key": naming.read_key(payload_key, "payload_key"),
            "index_key": PLACE,
            "result_key": result,
        }
        if not isinstance(inherit_state, bool):
            raise misuse(f"inherit_state is True or False: {show(inherit_state)} is neither.")
        if inherit_state:
            config |= {"inputs": {"ref": "state"}, "without": [source, result]}
        if group_key is not None:
            config["group"] = _read_group(group_key)
        return self._start("start_workflows", given, child, config)

    def start_agents(
        self,
        items_key: str,
        child: Chain | str,
        result_key: str = "agent_workflow_ids",
        payload_key: str = "agent_task",
        inherit_state: bool = True,
        name: str = "start_agents",
        group_key: str | None = None,
    ) -> Self:
        """The same, with the names of agents and their tasks."""
        return self.start_workflows(items_key, child, result_key, payload_key, inherit_state, name, group_key)

    def wait_for_workflow(
        self,
        workflow: str,
        result_key: str | None = None,
        name: str = "wait_for_workflow",
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait until another run has completed, by its id or by the key of the state that has it.

        Its state is kept under `result_key`, else merged into this one's.
        """
        given = naming.read_name(workflow, "A workflow")
        who = _read_ids([given] if _ULID.fullmatch(given) else given)
        return self._depend(name, who, "all", None, result_key, timeout, timed_out)

    def wait_for_workflows(
        self,
        workflows: str | Sequence[str],
        mode: Mode = "all",
        result_key: str | None = None,
        name: str = "wait_for_workflows",
        quorum: int | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for other runs, by a list of ids or by the key of the state that has them.

        Under the key are the states of those that have completed, by id; where it is one run, its own.
        """
        return self._depend(name, _read_ids(workflows), mode, quorum, result_key, timeout, timed_out)

    def wait_for_agents(
        self,
        workflows: str | Sequence[str] = "agent_workflow_ids",
        mode: Mode = "all",
        result_key: str | None = "agent_results",
        name: str = "wait_for_agents",
        quorum: int | None = None,
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """The same, with the names of agents."""
        return self._depend(name, _read_ids(workflows), mode, quorum, result_key, timeout, timed_out)

    def wait_for_workflow_group(
        self,
        group_key: str,
        mode: Mode = "all",
        quorum: int | None = None,
        result_key: str | None = None,
        name: str = "wait_for_workflow_group",
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """Wait for the runs that were started under a group; where no step does, by the key of that name."""
        return self._depend(name, self._find_group(group_key), mode, quorum, result_key, timeout, timed_out)

    def wait_for_agent_group(
        self,
        group_key: str = "agents",
        mode: Mode = "all",
        quorum: int | None = None,
        result_key: str | None = "agent_results",
        name: str = "wait_for_agent_group",
        *,
        timeout: Duration | None = None,
        timed_out: str | None = None,
    ) -> Self:
        """The same, with the names of agents."""
        return self._depend(name, self._find_group(group_key), mode, quorum, result_key, timeout, timed_out)

    @property
    def children(self) -> tuple[Chain, ...]:
        """The chains that this one starts, as they were when it took them, those below them first."""
        found: dict[tuple[str, str], Chain] = {}
        for step in self._steps:
            if isinstance(step, Start) and step.child is not None:
                for each in (*step.child.children, step.child):
                    found[each.key, each.checksum] = each
        return tuple(found.values())

    def _start(self, kind: str, name: str, child: Chain | str, config: JsonObject, label: str | None = None) -> Self:
        if isinstance(child, str):
            key = child.strip()
            if not re.match(KEY, key):
                raise misuse(f"A child is a chain, or the key of a workflow: {show(child)} is none.")
            return self._add(Start(name, kind, {"definition": key, **config}, None, label))
        taken = self._take(child)
        which: JsonObject = {"definition": taken.key, "checksum": taken.checksum}
        return self._add(Start(name, kind, which | config, taken, label))

    def _take(self, child: object) -> Chain:
        """The child as it is now: what is added to it later isn't run here."""
        if not isinstance(child, Nesting):
            raise misuse(f"A child is a chain, or the key of a workflow: {show(child)} is none.")
        taken: Any = copy(child)
        for name, value in vars(child).items():
            if isinstance(value, (list, dict)):
                setattr(taken, name, copy(value))
        if any(each.key == self.key for each in (*taken.children, taken)):
            raise misuse(f"The chain {self.key} would run itself.")
        made: Chain = taken
        return made

    def _find_group(self, group_key: str) -> JsonObject:
        group = _read_group(group_key)
        if any(isinstance(step, Start) and step.config.get("group") == group for step in self._steps):
            return {"group": group}
        return _read_ids(group)

    def _depend(
        self,
        name: str,
        who: JsonObject,
        mode: str,
        quorum: int | None,
        result_key: str | None,
        timeout: Duration | None,
        timed_out: str | None,
    ) -> Self:
        if mode not in MODES:
            raise misuse(f"Runs are waited for in the mode all, any or quorum: {show(mode)} is none.")
        if (mode == "quorum") is (quorum is None):
            raise misuse("A quorum goes with the mode quorum, and that mode needs one.")
        config: JsonObject = {**who, "mode": mode}
        if quorum is not None:
            config["quorum"] = read_count(quorum, "quorum")
            ids = who.get("ids")
            if isinstance(ids, list) and quorum > len(ids):
                raise misuse(f"A quorum of {quorum} can't be met by {len(ids)}.")
        if result_key is None:
            config["merge"] = True
        return self._listen(name, config, result_key, timeout, timed_out, kind="wait_workflows")

    @property
    def key(self) -> str:
        """What the workflow is called."""
        raise NotImplementedError


def _read_group(group_key: object) -> str:
    group = naming.read_name(group_key, "group_key")
    if len(group) > MAX_GROUP:
        raise misuse(f"group_key has {MAX_GROUP} characters at most.")
    return group


def _read_ids(given: object) -> JsonObject:
    """A text always names a key of the state, even one that looks like an id; a list is of ids."""
    if isinstance(given, str):
        return {"ids": {"ref": naming.get_path(naming.read_source(given, "The key of the ids"))}}
    if not isinstance(given, Sequence) or not given:
        raise misuse(f"Runs are told by the key of the state that has their ids, or by a list of ids: {show(given)}.")
    ids: list[str] = []
    for each in given:
        if not isinstance(each, str) or not _ULID.fullmatch(each.strip()):
            raise misuse(f"The id of a run has 26 letters and digits: {show(each)} is none.")
        ids.append(each.strip().upper())
    return {"ids": [*dict.fromkeys(ids)]}
