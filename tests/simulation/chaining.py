"""Random chains: steps that run, jump, repeat, wait, fan out, start other chains and are undone; all pass publish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from korak.chains import Chain, chain
from korak.errors import StepRetry
from tests.simulation.graphs import SIGNALS
from tests.support.plans import registry


def fetch(ctx: Any, order: int = 0) -> dict[str, Any]:
    """What later steps go by."""
    return {"items": [order, order + 1], "order": order, "_own": 1}


def count(ctx: Any, rounds: int = 0) -> dict[str, Any]:
    """One round more."""
    return {"rounds": rounds + 1}


def hop(ctx: Any, to: str, most: int = 1) -> dict[str, Any]:
    """Jump so often."""
    return {"hopped": ctx.visit, "_next_step": to if ctx.visit <= most else None}


def flaky(ctx: Any, times: int = 1) -> dict[str, Any]:
    """Fail so often, then succeed."""
    if ctx.attempt <= times:
        raise StepRetry("sim.flaky", "not yet")
    return {"attempt": ctx.attempt}


def score(ctx: Any, item: Any, index: int) -> dict[str, Any]:
    """Score one item; every third fails once."""
    if index % 3 == 2 and ctx.attempt == 1:
        raise StepRetry("sim.flaky", "not yet")
    return {"score": index}


def gather(ctx: Any, results: list[Any]) -> dict[str, Any]:
    """Gather what the items came to."""
    return {"gathered": len(results)}


def undo(ctx: Any, order: int = 0) -> dict[str, Any]:
    """Take back what a step did."""
    return {"undone": order}


class Author:
    """Writes one chain, step by step. What each is, and its name, is known beforehand: any may be jumped to."""

    def __init__(self, random: Random, key: str, startable: Sequence[str], *, depth: int = 0) -> None:
        self._random = random
        self._built: Chain = chain(key)
        self._startable = startable
        self._depth = depth
        self._undoes = random.random() < 0.4
        kinds = [self._choose_kind(number) for number in range(random.randint(2, 7))]
        self._steps = {f"p{number}": kind for number, kind in enumerate(kinds)}
        self._targets = [name for name, kind in self._steps.items() if kind not in (self._pause, self._nest)]
        self._name = "p0"

    def write(self) -> Chain:
        """The chain."""
        for name, write in self._steps.items():
            self._name = name
            write()
            if self._undoes and self._random.random() < 0.5:
                self._built.compensate_with(undo if self._random.random() < 0.7 else flaky)
        self._set()
        return self._built

    def _choose_kind(self, number: int) -> Callable[[], None]:
        if number == 0:
            return self._fetch
        kinds = [self._then, self._then, self._jump, self._listen, self._fan, self._each, self._pause, self._repeat]
        if self._depth == 0 and self._random.random() < 0.5:
            kinds.append(self._nest)
        if self._startable and self._random.random() < 0.5:
            kinds.append(self._start)
        return self._random.choice(kinds)

    def _list_later(self) -> list[str]:
        return [name for name in self._targets if name > self._name]

    def _fetch(self) -> None:
        self._built.then(fetch if self._random.random() < 0.8 else count, self._name)

    def _set(self) -> None:
        if self._undoes and self._random.random() < 0.4:
            self._built.compensate_on_failure()
        if self._random.random() < 0.3:
            self._built.on_cancel(undo)
        if self._random.random() < 0.2:
            self._built.must_complete_within(seconds=self._random.choice([300, 9_000])).on_deadline(undo)
        if self._random.random() < 0.3:
            self._built.prune_state_after(self._random.randint(1, 3))
        if self._random.random() < 0.3:
            self._built.max_attempts(self._random.randint(1, 3))

    def _then(self) -> None:
        if self._random.random() < 0.4:
            self._built.then(flaky, self._name, times=self._random.choice([0, 1, 4]))
        else:
            self._built.then(self._random.choice([fetch, count]), self._name)

    def _jump(self) -> None:
        target = self._random.choice([*self._targets, "$end"])
        self._built.then(hop, self._name, to=target, most=self._random.randint(0, 2)).jumps(
            *([] if self._random.random() < 0.4 else [target])
        )

    def _repeat(self) -> None:
        target = self._random.choice([name for name in self._targets if name < self._name])
        most = self._random.randint(1, 3)
        if self._random.random() < 0.5:
            self._built.repeat_until(target, "rounds", self._random.randint(1, 3), self._name, max_iterations=most)
        else:
            holds = {"ref": "state.rounds", "default": 0, "op": "lt", "value": 3}
            self._built.repeat_while(target, condition=holds, name=self._name, max_iterations=most)

    def _listen(self) -> None:
        key = self._random.choice([None, "heard"])
        later = [*self._list_later(), "$end"]
        limit: dict[str, Any] = {}
        if self._random.random() < 0.6:
            limit = {"timeout": self._random.choice([30, 600]), "timed_out": self._random.choice(later)}
        match self._random.randrange(4):
            case 0:
                self._built.wait_for_signal(self._random.choice(SIGNALS), "heard", self._name, **limit)
            case 1:
                mode: Any = self._random.choice(["all", "any"])
                self._built.wait_for_signals(SIGNALS, mode, "heard", self._name, **limit)
            case 2:
                self._built.wait_for_approval(SIGNALS[0], "heard", self._name, **limit)
            case _:
                self._built.wait_for_decision(*SIGNALS, key, self._name, **limit)

    def _pause(self) -> None:
        self._built.delay(seconds=self._random.choice([1, 40]), until=None)

    def _fan(self) -> None:
        self._built.parallel(self._random.sample([fetch, count, flaky, undo], self._random.randint(1, 3)), self._name)

    def _each(self) -> None:
        mode: Any = self._random.choice(["all", "first_success", "quorum"])
        reducer = gather if self._random.random() < 0.5 else None
        quorum = 2 if mode == "quorum" else None
        self._built.for_each("items", score, "scored", mode, quorum, reducer, self._name)

    def _nest(self) -> None:
        if self._startable and self._random.random() < 0.5:
            self._built.run_workflow("child", self._random.choice(self._startable))
        else:
            inner = Author(self._random, f"{self._built.key}.{self._name}", (), depth=1).write()
            self._built.run_workflow("child", inner)

    def _start(self) -> None:
        group = self._random.choice([None, "kids"])
        child = self._random.choice(self._startable)
        self._built.start_workflows("items", child, "ids", name=self._name, group_key=group)
        if self._random.random() < 0.7:
            mode: Any = self._random.choice(["all", "any", "quorum"])
            who = f"wait_{self._name}"
            quorum = 1 if mode == "quorum" else None
            if group is None:
                self._built.wait_for_workflows("ids", mode, "awaited", who, quorum)
            else:
                self._built.wait_for_workflow_group(group, mode, quorum, "awaited", who)


def write_chain(random: Random, key: str, startable: Sequence[str]) -> Chain:
    """A random chain; its handlers are registered."""
    made = Author(random, key, startable).write()
    for each in made.step_types:
        if registry().get(each.key) is None:
            registry().add(each)
    return made
