"""The naive model: one run of a small graph, interpreted step by step as the pages tell it, with nothing stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from korak.core.facts import HandlerResult, Raised
from korak.model import JsonObject
from korak.steps.results import Complete, Fail, Wait
from korak.steps.waits import WaitItem

ATTEMPTS = {"test.flaky": 4}
DEFAULT_ATTEMPTS = 3
HAS_HOOK = {"test.ask"}
MAX_STEPS = 30


@dataclass
class Awaited:
    """One thing that the parked step waits for."""

    kind: str
    name: str | None = None
    match: dict[str, Any] = field(default_factory=dict)
    due: datetime | None = None
    left: timedelta | None = None
    outcome: str | None = None
    is_stamped: bool = False
    is_grouped: bool = False
    payload: Any = None
    opened_at: datetime | None = None


@dataclass
class Sent:
    """A signal, or an event with the visit that it was addressed to; "nobody" as long as it is only kept."""

    at: datetime
    kind: str
    name: str
    payload: Any
    visit: str = "nobody"
    is_gone: bool = False


class Naive:
    """Where the run stands: `phase` is queued, running or waiting; `owed` is what a parked step has still to see."""

    def __init__(self, document: JsonObject, order: int, now: datetime) -> None:
        nodes: Any = document["nodes"]
        edges: Any = document["edges"]
        self.nodes: dict[str, Any] = {node["id"]: node for node in nodes}
        self.edges = {(edge["from"], edge.get("outcome", "next")): edge["to"] for edge in edges}
        self.order, self.now = order, now
        self.status, self.code = "running", ""
        self.node, self.phase, self.attempt, self.visits = "", "queued", 1, dict[str, int]()
        self.steps, self.hooks = 0, 0
        self.state: dict[str, Any] = {}
        self.rounds: dict[str, int] = {}
        self.waits: list[Awaited] = []
        self.retry: Awaited | None = None
        self.is_ready, self.is_paused, self.is_resumed, self.is_inline = False, False, False, False
        self.owed: str | None = None
        self.sent: list[Sent] = []
        self.enter(self.edges["start", "next"])

    @property
    def is_ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.nodes[self.node].get("config", {})
        return config

    @property
    def here(self) -> str:
        """The visit that the run is at."""
        return f"{self.node}:{self.visits.get(self.node, 0)}"

    # walking

    def enter(self, node: str) -> None:
        if self.steps == MAX_STEPS:
            self.end("failed", "step_limit_exceeded")
            return
        self.steps += 1
        self.node, self.attempt, self.is_resumed = node, 1, False
        self.visits[node] = self.visits.get(node, 0) + 1
        kind = self.nodes[node]["type"]
        if self.is_inline and kind.startswith("test.") and not self.is_paused:
            self.run()
        elif kind.startswith("test.") or (self.is_paused and kind != "end"):
            self.queue()
        else:
            getattr(self, f"enter_{kind}")()

    def queue(self) -> None:
        self.phase, self.is_ready, self.retry = "queued", not self.is_paused, None

    def enter_condition(self) -> None:
        self.leave("true" if self.order > 1 else "false", {"result": self.order > 1})

    def enter_set_field(self) -> None:
        self.state = {**self.state, "mark": self.order}
        self.leave("next", {})

    def enter_loop(self) -> None:
        items, made = self.config["over"]["literal"], self.rounds.get(self.node, 0)
        if made < len(items):
            self.rounds[self.node] = made + 1
            self.leave("body", {})
        else:
            self.rounds.pop(self.node, None)
            self.leave("done", {})

    def enter_end(self) -> None:
        self.end("completed")

    def enter_delay(self) -> None:
        if self.config["for"] == 0:
            self.leave("next", {"due_at": ...})
        else:
            self.park([Awaited("timer", due=self.now + timedelta(seconds=self.config["for"]))])

    def enter_wait(self) -> None:
        self.park(list(self.read_waits(self.config)))

    def read_waits(self, config: dict[str, Any]) -> Iterator[Awaited]:
        if "for" in config:
            yield Awaited("timer", due=self.now + timedelta(seconds=config["for"]))
        if "signal" in config:
            yield Awaited("signal", config["signal"])
        if "event" in config:
            yield Awaited("event", config["event"], {"order": self.order})
        for name in config.get("signals", ()):
            yield Awaited("signal", name, is_grouped=True)
        if "timeout" in config:
            due = self.now + timedelta(seconds=config["timeout"])
            yield Awaited("timeout", due=due, outcome="timed_out")

    def park(self, waits: list[Awaited], owed: str | None = None) -> None:
        self.phase, self.waits, self.is_ready = "waiting", waits, False
        for wait in waits:
            wait.opened_at = self.now
        if any(wait.name for wait in waits):
            owed = owed or "look"
        self.owed = owed
        if self.is_paused:
            self.stop_clocks()
        self.is_ready = owed is not None and not self.is_paused

    def leave(self, outcome: str, output: Any) -> None:
        save = self.nodes[self.node].get("save")
        if save:
            self.state = {**self.state, **(output if save.get("merge") else {save["key"]: output})}
        self.move_on()
        target = self.edges.get((self.node, outcome))
        if target is None:
            self.end("completed")
        else:
            self.enter(target)

    def move_on(self) -> None:
        self.waits, self.owed, self.retry, self.is_ready = [], None, None, False
        for sent in self.sent:
            sent.is_gone = sent.is_gone or sent.visit == self.here

    def end(self, status: str, code: str = "") -> None:
        self.status, self.code = status, code
        self.waits, self.owed, self.retry, self.is_ready = [], None, None, False

    # what happens to the step

    def run(self) -> None:
        self.phase, self.retry, self.is_ready = "running", None, False

    def finish(self, result: HandlerResult, *, is_inline: bool) -> None:
        """Record a result; with `is_inline` the next step may run where this one is recorded."""
        self.is_inline = is_inline
        self.take_in(result)
        self.is_inline = False

    def take_in(self, result: HandlerResult) -> None:
        match result:
            case Complete(outcome, output):
                self.leave(outcome, output)
            case Wait(spec):
                self.park([self.read_item(item) for item in spec.items], "resume" if spec.wants_probe else None)
            case Raised(code, is_retryable=is_retryable):
                self.fail(code, is_retryable)
            case Fail(code):
                self.fail(code, False)

    def read_item(self, item: WaitItem) -> Awaited:
        due = None if item.due is None else self.now + timedelta(seconds=float(str(item.due)))
        return Awaited(item.kind.value, item.key, dict(item.match or {}), due, outcome=item.outcome)

    def fail(self, code: str, is_retryable: bool, *, is_crash: bool = False) -> None:
        node = self.nodes[self.node]
        attempts = node.get("retry", {}).get("max_attempts") or ATTEMPTS.get(node["type"], DEFAULT_ATTEMPTS)
        if is_retryable and (self.attempt < attempts or (is_crash and self.attempt == attempts)):
            self.attempt += 1
            self.phase, self.waits, self.owed, self.is_ready = "queued", [], None, False
            self.retry = Awaited("retry")
        elif (self.node, "error") in self.edges:
            self.move_on()
            self.enter(self.edges[self.node, "error"])
        else:
            self.end("failed", code)

    def hand_back(self) -> None:
        self.phase = "queued"
        self.is_ready = not self.is_paused

    # waiting

    def list_arrivals(self) -> list[tuple[datetime, Awaited, Sent | None]]:
        found: list[tuple[datetime, Awaited, Sent | None]] = []
        for wait in self.waits:
            if wait.due is not None and wait.is_stamped:
                found.append((wait.due, wait, None))
            found += [(sent.at, wait, sent) for sent in self.sent if self.fits(sent, wait)]
        return sorted(found, key=lambda arrival: arrival[0])

    def fits(self, sent: Sent, wait: Awaited) -> bool:
        if sent.is_gone or sent.name != wait.name or wait.payload is not None or wait.opened_at == self.now:
            return False
        if any(sent.payload.get(path) != value for path, value in wait.match.items()):
            return False
        if sent.kind == "signal":
            return True
        is_kept = sent.visit == "nobody" and self.owed is not None
        return wait.kind == "event" and (sent.visit == self.here or is_kept)

    def choose(self) -> tuple[Awaited, Sent | None] | None:
        for _, wait, sent in self.list_arrivals():
            if sent is not None:
                if sent.is_gone or wait.payload is not None:
                    continue
                sent.is_gone, wait.payload = True, sent.payload
                if wait.is_grouped and any(other.payload is None for other in self.waits if other.is_grouped):
                    continue
            return wait, sent
        return None

    def wake(self) -> bool:
        """What a look at the parked step comes to; False where it stays parked."""
        chosen = self.choose()
        owed, self.owed, self.is_ready = self.owed, None, False
        is_own = self.nodes[self.node]["type"].startswith("test.")
        if chosen is None and owed == "resume":
            self.run()
            self.is_resumed = True
            return True
        if chosen is None:
            return False
        wait, sent = chosen
        self.is_resumed = True
        if is_own:
            self.waits = []
            self.run()
        else:
            self.resume_pure(wait, sent)
        return True

    def resume_pure(self, wait: Awaited, sent: Sent | None) -> None:
        if wait.kind == "timeout":
            self.leave("timed_out", {})
        elif wait.is_grouped:
            self.leave("next", {"signals": {str(each.name): each.payload for each in self.waits if each.is_grouped}})
        elif sent is not None:
            self.leave("next", {"key": wait.name, "payload": sent.payload})
        else:
            self.leave("next", {"due_at": ...})

    def claim(self) -> None:
        """An engine asks; what follows on a node that is decided at once may run with it."""
        if not self.is_ready or self.is_ended or self.is_paused:
            return
        self.is_inline = True
        kind = self.nodes[self.node]["type"]
        if self.phase == "waiting":
            self.wake()
        elif kind.startswith("test."):
            self.run()
        else:
            self.is_ready = False
            getattr(self, f"enter_{kind}")()
        self.is_inline = False

    def stamp(self) -> None:
        for wait in self.waits:
            if wait.due is not None and wait.due <= self.now and self.phase == "waiting":
                wait.is_stamped = self.is_ready = True

    # from outside

    def signal(self, name: str, payload: Any) -> None:
        self.sent.append(Sent(self.now, "signal", name, payload))
        self.deliver()

    def emit(self, name: str, payload: Any) -> None:
        sent = Sent(self.now, "event", name, payload)
        self.sent.append(sent)
        if self.is_ended:
            return
        for wait in self.waits:
            is_its = wait.kind == "event" and wait.name == name
            if is_its and all(payload.get(path) == value for path, value in wait.match.items()):
                sent.visit = self.here

    def deliver(self) -> None:
        """All that lies there is looked at, in the order in which it came."""
        for sent in self.sent:
            if sent.visit == "nobody" and sent.kind == "event":
                continue
            if self.is_ended or self.is_paused or self.phase != "waiting":
                return
            if any(self.fits(sent, wait) for wait in self.waits):
                self.hand_out()

    def hand_out(self) -> None:
        if self.nodes[self.node]["type"].startswith("test."):
            self.is_ready = True
            return
        before = self.owed, self.is_ready
        if not self.wake():
            self.owed, self.is_ready = before

    def cancel(self) -> None:
        self.hooks += self.has_begun() and self.nodes[self.node]["type"] in HAS_HOOK
        self.end("cancelled")

    def has_begun(self) -> bool:
        return self.phase != "queued" or self.attempt > 1 or self.is_resumed

    def pause(self) -> None:
        self.is_paused, self.is_ready = True, False
        self.stop_clocks()

    def stop_clocks(self) -> None:
        for wait in self.waits:
            if wait.due is not None:
                wait.left, wait.due = max(timedelta(), wait.due - self.now), None
            wait.is_stamped = False

    def resume(self) -> None:
        self.is_paused = False
        for wait in self.waits:
            if wait.left is not None:
                wait.due, wait.left = self.now + wait.left, None
        self.is_ready = self.phase != "running" and self.retry is None

    def retry_by_hand(self) -> None:
        self.status, self.code, self.is_paused = "running", "", False
        self.attempt += 1
        self.queue()
