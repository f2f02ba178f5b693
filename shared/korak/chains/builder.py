"""The fluent way to write a chain: `chain("report").then(fetch).wait_for_decision().then(publish)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from korak.chains import naming
from korak.chains.binding import read_parameters
from korak.chains.compiling import compile_steps
from korak.chains.given import misuse, plain, show
from korak.chains.handlers import Given, Handler, read_handler
from korak.chains.limiting import Limiting
from korak.chains.nesting import Nesting
from korak.chains.numbers import read_count, sum_seconds
from korak.chains.repeating import MAX_ITERATIONS, read_condition
from korak.chains.steps import Each, Parallel, Pause, Repeat, Step, Work, list_handlers
from korak.chains.undoing import Undoing
from korak.errors import Invalid
from korak.graphs import hygiene
from korak.graphs.builder import MAX_BYTES
from korak.graphs.checksum import checksum
from korak.graphs.document import SCHEMA, GraphLimits
from korak.graphs.schema import KEY
from korak.graphs.shape import check_values, parse
from korak.model import Json, JsonObject
from korak.steps.contract import StepType

Mode = Literal["all", "first_success", "quorum"]
MODES = ("all", "first_success", "quorum")


def chain(key: str, name: str | None = None) -> Chain:
    """Begin a chain: a list of steps that share one state, each of which may read and add to it."""
    return Chain(key, name)


class Chain(Undoing, Limiting, Nesting):
    """Collects steps and options; `document()` gives the graph document that they are.

    Every method but the last ones gives the chain itself. What can be told while it is built is told at once, as
    Invalid("invalid_document"): options may be called before or after steps, `bind` and `jumps` mean the step added
    last.
    """

    def __init__(self, key: str, name: str | None = None) -> None:
        if not isinstance(key, str) or not re.match(KEY, key):
            raise misuse(
                f"The key of a chain begins with a letter or digit and has only those, . _ and -: {show(key)}."
            )
        self._head: JsonObject = {"schema": SCHEMA, "key": plain(key)}
        if name is not None:
            self._head["name"] = naming.read_title(name, "The name of a chain")
        self._steps: list[Step] = []
        super().__init__()

    def then(self, handler: Given, name: str | None = None, **parameters: Any) -> Chain:
        """Run a handler and merge what it returns into the state; what isn't bound here comes from the state."""
        made = read_handler(handler)
        given = self._name(name)
        return self._add(Work(given, made, read_parameters(made, parameters, f"The step {given!r}")))

    def parallel(self, handlers: Sequence[Given], name: str | None = None) -> Chain:
        """Run handlers at the same time; what they return is merged in the order in which they are listed."""
        if isinstance(handlers, (str, bytes)) or not isinstance(handlers, Sequence) or not handlers:
            raise misuse("parallel takes a list of one handler or more.")
        return self._add(Parallel(self._name(name), tuple(read_handler(each) for each in handlers)))

    def for_each(
        self,
        items_key: str,
        handler: Given,
        result_key: str | None = None,
        mode: Mode = "all",
        quorum: int | None = None,
        reducer: Given | None = None,
        name: str | None = None,
        *,
        concurrency: int | None = None,
    ) -> Chain:
        """Run a handler for every item of the list under a key of the state; it may take `item` and `index`.

        The results are kept under `result_key`, `<name>_results` if there is none. `reducer` runs once after that, may
        take the list `results`, and what it returns is merged into the state. `concurrency` is how many items run at a
        time: 100 if nothing is said, 500 at most.
        """
        if mode not in MODES:
            raise misuse(f"The mode of a for_each is one of {', '.join(MODES)}: {show(mode)} is none.")
        if (mode == "quorum") is (quorum is None):
            raise misuse("A quorum goes with the mode quorum, and that mode needs one.")
        given = self._name(name)
        key = naming.get_part(given, "results") if result_key is None else result_key
        return self._add(
            Each(
                given,
                naming.read_source(items_key, "items_key"),
                read_handler(handler),
                naming.read_key(key, "result_key"),
                mode,
                None if quorum is None else read_count(quorum, "quorum"),
                None if reducer is None else read_handler(reducer, "A reducer"),
                None if concurrency is None else read_count(concurrency, "concurrency"),
            )
        )

    def repeat_until(
        self,
        target_step: str,
        state_key: str | None = None,
        expected: Any = True,
        name: str | None = None,
        condition: Mapping[str, Any] | None = None,
        max_iterations: int | None = None,
    ) -> Chain:
        """Go back to an earlier step until a key of the state has a value, or a condition holds.

        A key that isn't there is null. With `max_iterations` ways back taken one more fails the run.
        """
        holds = read_condition(state_key, expected, condition)
        return self._repeat("until", target_step, {"not": holds}, name, max_iterations)

    def repeat_while(
        self,
        target_step: str,
        state_key: str | None = None,
        expected: Any = True,
        name: str | None = None,
        condition: Mapping[str, Any] | None = None,
        max_iterations: int | None = None,
    ) -> Chain:
        """Go back to an earlier step while a key of the state has a value, or a condition holds."""
        return self._repeat("while", target_step, read_condition(state_key, expected, condition), name, max_iterations)

    def delay(
        self,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        *,
        until: str | None = None,
    ) -> Chain:
        """Wait for the sum of these, counted from the moment the step is entered; or until the time under a key."""
        total = sum_seconds("delay", seconds=seconds, minutes=minutes, hours=hours, days=days)
        config: JsonObject = {"for": total}
        if until is not None:
            if total:
                raise misuse("delay takes a duration or until, not both.")
            config = {"until": {"ref": naming.get_path(naming.read_source(until, "until"))}}
        count = sum(isinstance(step, Pause) for step in self._steps)
        return self._add(Pause(self._name(f"delay_{count}"), config))

    def bind(self, **parameters: Any) -> Chain:
        """Bind more parameters of the handler added last, those too whose names a method has taken."""
        last = self._steps[-1] if self._steps else None
        if not isinstance(last, (Work, Each)):
            raise misuse("bind() means the handler of then() or for_each() added last, and there is none.")
        if said := sorted(parameters.keys() & last.parameters.keys()):
            raise misuse(f"bind() binds {said[0]} of the step {last.name!r} a second time.")
        read = read_parameters(last.handler, parameters, f"The step {last.name!r}")
        self._steps[-1] = replace(last, parameters={**last.parameters, **read})
        return self

    def jumps(self, *targets: str) -> Chain:
        """The steps that the step added last may name in `_next_step`, `$end` for the end; without any, all."""
        last = self._steps[-1] if self._steps else None
        if not isinstance(last, Work):
            raise misuse("jumps() means the step of then() added last, and there is none.")
        if last.jumps != ():
            raise misuse(f"jumps() is said twice of the step {last.name!r}.")
        read = tuple(naming.read_name(target, "A target of jumps") for target in targets)
        self._steps[-1] = replace(last, jumps=read or None)
        return self

    @property
    def key(self) -> str:
        """What the workflow is called."""
        return str(self._head["key"])

    @property
    def step_types(self) -> tuple[StepType, ...]:
        """The types of the handlers that were given as functions and classes: what an engine must know to run it."""
        made = (each for chain in (*self.children, self) for each in chain._list_handlers())
        found = {each.key: each.type for each in made if each.type is not None}
        return tuple(found.values())

    @property
    def checksum(self) -> str:
        """SHA-256 over what the chain does: the same for every build of the same chain."""
        return checksum(self.document())

    def document(self) -> JsonObject:
        """The graph document, a copy of its own. Raises Invalid where a step is missing or names one that is."""
        if not self._steps:
            raise misuse(f"The chain {self.key} has no steps.")
        nodes, edges = compile_steps(self._steps, self._options, self._compile_undo())
        document: JsonObject = {**self._head, "nodes": nodes, "edges": edges}
        if settings := self._get_settings():
            document["settings"] = settings
        if issue := check_values(document, MAX_BYTES) or hygiene.check_json(document):
            raise Invalid("invalid_document", issue.message, issues=[issue], count=1)
        written = hygiene.loads(hygiene.dumps(document))
        assert isinstance(written, dict), "it was one"
        parse(written, GraphLimits())
        return written

    def _name(self, given: str | None) -> str:
        taken = [step.name for step in self._steps]
        return naming.read_step_name(str(len(taken)) if given is None else given, taken)

    def _add(self, step: Step) -> Self:
        self._steps.append(step)
        return self

    def _repeat(self, word: str, target: str, condition: Json, name: str | None, max_iterations: int | None) -> Chain:
        wanted = naming.read_name(target, "target_step")
        if all(step.name != wanted for step in self._steps):
            raise misuse(f"target_step names {show(wanted)}: no step of that name was added before.")
        most = MAX_ITERATIONS if max_iterations is None else read_count(max_iterations, "max_iterations")
        if most > MAX_ITERATIONS:
            raise misuse(f"max_iterations is {MAX_ITERATIONS} at most: {most} are too many.")
        given = self._name(f"repeat_{word}_{len(self._steps)}" if name is None else name)
        return self._add(Repeat(given, wanted, condition, most))

    def _list_handlers(self) -> list[Handler]:
        return [*(made for step in self._steps for made in list_handlers(step)), *self._list_hook_handlers()]
