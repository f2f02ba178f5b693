"""The rules of publish about what a node reads: it must be there, on every path."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from korak.errors import Issue
from korak.graphs import paths
from korak.graphs.ancestry import FOR_EACH
from korak.graphs.document import Node
from korak.graphs.examining import Examined
from korak.graphs.hooks import SETTINGS
from korak.graphs.paths import Path, Reference
from korak.graphs.structure import LOOP
from korak.graphs.writers import Standing, Writers, get_schema, judge
from korak.model import Json

MEMBERS = frozenset({"output", "outcome", "error"})
TURN = frozenset({"item", "index"})


class Lookups:
    """Judges the references of a graph, node by node."""

    def __init__(self, examined: Examined) -> None:
        self._examined = examined
        self._writers = Writers(examined)
        self._rules: dict[str, Callable[[Node | None, Reference], Iterator[Issue]]] = {
            "input": self._check_input,
            "state": self._check_state,
            "steps": self._check_step,
            "subject": self._check_subject,
            "item": self._check_item,
            "index": self._check_item,
            "loops": self._check_loop,
        }

    def check(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        """What is wrong with a reference of a node; of the settings where the node is None."""
        rule = self._rules.get(str(reference.path[0]))
        name = None if node is None else node.id
        if rule is None:
            if reference.path[0] not in paths.ROOTS:
                yield _unknown(reference, name)
            return
        for issue in rule(node, reference):
            yield Issue(issue.code, reference.pointer, issue.params, name, is_warning=issue.is_warning)

    def get_schema(self, path: Path) -> Json:
        """The schema of what stands at a path; None where nobody says, or several write there."""
        match path:
            case ("input", *rest):
                return get_schema(self._examined.inputs, tuple(rest))
            case ("state", *rest):
                return self._writers.get_schema(tuple(rest))
            case ("steps", node, "output", *rest) if (contract := self._examined.contracts.get(str(node))) is not None:
                return get_schema(contract.output_schema, tuple(rest))
            case _:
                return None

    def _check_input(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        inputs = self._examined.inputs
        if inputs is not None and "properties" in inputs:
            yield from _report(judge(inputs, reference.path[1:]), reference)

    def _check_state(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        yield from _report(self._writers.judge(reference.path[1:]), reference)

    def _check_step(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        if len(reference.path) == 1:
            return
        examined, read = self._examined, str(reference.path[1])
        target = examined.graph.nodes.get(read)
        if target is None or target.is_trigger:
            yield _unknown(reference)
            return
        if node is not None and not reference.has_default and not self._has_run(read, node):
            yield Issue("reference_not_ancestor", params={"node": read, "id": node.id})
        yield from self._check_member(target, reference)

    def _has_run(self, read: str, node: Node) -> bool:
        """Whether a node has run when another one does; what undoes it runs after it."""
        return (node.is_hook and node.id == read) or self._examined.ancestry.is_ancestor(read, node.id)

    def _check_member(self, target: Node, reference: Reference) -> Iterator[Issue]:
        """`output`, `outcome` or `error` of a step, and what its type says of its output."""
        member, rest = reference.path[2:3], reference.path[3:]
        if not member:
            return
        if member[0] not in MEMBERS:
            yield _unknown(reference)
        contract = self._examined.contracts.get(target.id)
        if member[0] == "output" and contract is not None:
            yield from _report(judge(contract.output_schema, rest), reference)

    def _check_subject(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        yield Issue("subject_required", is_warning=True)

    def _check_item(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        if node is None or node.id in SETTINGS.values() or not self._examined.ancestry.is_in_for_each(node.id):
            yield _unknown(reference)

    def _check_loop(self, node: Node | None, reference: Reference) -> Iterator[Issue]:
        path: Path = reference.path
        target = self._examined.graph.nodes.get(str(path[1])) if len(path) > 1 else None
        if target is None or target.type not in {LOOP, FOR_EACH} or (len(path) > 2 and path[2] not in TURN):
            yield _unknown(reference)
        elif node is not None and not reference.has_default and not self._is_around(target, node):
            yield Issue("reference_not_ancestor", params={"node": target.id, "id": node.id})

    def _is_around(self, target: Node, node: Node) -> bool:
        """Whether a node is inside a for_each, or comes after a loop node or is it itself."""
        if target.type == FOR_EACH:
            return target.id in self._examined.ancestry.list_containers(node.id)
        return target.id == node.id or self._examined.ancestry.is_ancestor(target.id, node.id)


def _report(standing: Standing, reference: Reference) -> Iterator[Issue]:
    if standing is not Standing.YES:
        yield _unknown(reference, is_warning=standing is Standing.OPEN)


def _unknown(reference: Reference, node: str | None = None, *, is_warning: bool = False) -> Issue:
    path = paths.render(reference.path)
    return Issue("unknown_reference", reference.pointer, {"path": path}, node, is_warning=is_warning)
