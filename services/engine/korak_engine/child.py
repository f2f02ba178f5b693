"""The other end of a process: runs one step after another, and knows the engine only by what it is told."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn, cast

from korak.clock import Clock
from korak.core.facts import HandlerResult, Raised
from korak.errors import StepFailed
from korak.model import Json, JsonObject
from korak.owners import context
from korak.owners.scopes import Owner
from korak.steps.contract import Complete, Fail, Signal, StepType, Wait
from korak_engine import outcomes, wire
from korak_engine.calling import call


def main(descriptor: int) -> None:
    """Serve until the other end goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    line = Connection(descriptor)
    clock = Clock()
    while True:
        try:
            _serve(line, clock)
        except (EOFError, OSError):
            return


def _die_with_parent() -> None:
    """Nothing is ever written to our input: when it ends, the engine has, and so does all that was started here."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="korak-lifeline", daemon=True).start()


def _serve(line: Connection, clock: Clock) -> None:
    raw = line.recv_bytes()
    try:
        kind: StepType = pickle.loads(raw)
    except BaseException as error:  # importing the step's module may do anything
        line.send_bytes(_write(outcomes.describe(error, clock.now())))
        return
    line.send_bytes(wire.dumps({"ready": True}))
    order = wire.loads(line.recv_bytes())
    clock.adjust(timedelta(seconds=order["offset"]) - clock.offset)
    ctx = ProcessContext(line, order["view"], _read_signal(order["signal"]), datetime.fromisoformat(order["now"]))
    with context.within(Owner(*order["owner"])):
        result = _run(partial(call, kind, order["method"], ctx, ctx.signal), clock, order["limit"])
    with ctx.lock:
        ctx.is_over = True
        line.send_bytes(_write(result))


def _run(run: Callable[[], object], clock: Clock, limit: int) -> HandlerResult:
    returned = outcomes.settle(run, clock.now, limit)
    if not isinstance(returned, (Complete, Wait, Fail, Raised)):
        awaited = cast("Awaitable[object]", returned)
        returned = outcomes.settle(lambda: asyncio.run(_wait(awaited)), clock.now, limit)
    return cast("HandlerResult", returned)


async def _wait(awaited: Awaitable[object]) -> object:
    return await awaited


def _write(result: HandlerResult) -> bytes:
    return wire.dumps({"result": wire.encode_result(outcomes.clean(result))})


def _read_signal(told: JsonObject | None) -> Signal | None:
    return None if told is None else Signal.from_json(told)


@dataclass(eq=False)
class ProcessContext:
    """The context of a handler in a process: a BlockingContext without `once`. What it doesn't know it asks for."""

    line: Connection
    told: dict[str, Any]
    signal: Signal | None
    now: datetime
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def attempt(self) -> int:
        """The number of this attempt at this visit, from 1."""
        return int(self.told["attempt"])

    @property
    def visit(self) -> int:
        """How many times the instance has entered this node, this time included."""
        return int(self.told["visit"])

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this visit, and for no other."""
        return str(self.told["idempotency_key"])

    @property
    def node(self) -> str:
        """The id of the node."""
        return str(self.told["node"])

    @property
    def instance(self) -> str:
        """The instance's ULID."""
        return str(self.told["instance"])

    @property
    def definition(self) -> str:
        """The key of the definition."""
        return str(self.told["definition"])

    @property
    def version(self) -> int:
        """The number of the definition's version."""
        return int(self.told["version"])

    @property
    def owner(self) -> str | None:
        """Whose instance it is; None for an app-wide one."""
        owner: str | None = self.told["owner"]
        return owner

    @property
    def subject(self) -> Any:
        """What the instance is about; None without one."""
        return self.told["subject"]

    @property
    def timezone(self) -> str:
        """The name of the instance's time zone."""
        return str(self.told["timezone"])

    @property
    def simulating(self) -> bool:
        """Whether this is a dry run."""
        return bool(self.told["simulating"])

    @cached_property
    def config(self) -> JsonObject:
        """The node's config, references resolved."""
        return cast("JsonObject", self._ask("config"))

    @cached_property
    def input(self) -> JsonObject:
        """What the instance was started with."""
        return cast("JsonObject", self._ask("input"))

    @cached_property
    def state(self) -> JsonObject:
        """The public state."""
        return cast("JsonObject", self._ask("state"))

    @cached_property
    def trigger(self) -> JsonObject:
        """How the instance was started."""
        return cast("JsonObject", self._ask("trigger"))

    @property
    def cancelled(self) -> bool:
        """Whether nothing that is returned will count any more."""
        return bool(self._ask("cancelled"))

    @property
    def chunks(self) -> list[str]:
        """The chunks that are stored for this visit so far."""
        return list(self._stored)

    def artifact(
        self, key: str, content: Any, kind: str | None = None, metadata: JsonObject | None = None
    ) -> JsonObject:
        """Leave something under a name with the run; a reference to it. Raises `invalid_output`."""
        return cast("JsonObject", self._ask("artifact", *wire.encode_artifact(key, content, kind, metadata)))

    def heartbeat(self, progress: Json = None) -> None:
        """Tell that the step is alive, and how far it is."""
        self._ask("heartbeat", wire.check("/progress", progress))

    def store_chunk(self, text: object) -> None:
        """Store the next chunk of the stream."""
        self._ask("store_chunk", wire.check(f"/chunks/{len(self._stored)}", text))
        self._stored.append(str(text))

    @cached_property
    def _stored(self) -> list[str]:
        return cast("list[str]", self._ask("chunks"))

    def output(self, node: str | None = None) -> JsonObject | None:
        """The output of a node's newest ended visit; without a node what this visit parked with."""
        return cast("JsonObject | None", self._ask("output", node))

    def resolve(self, value: Json) -> Json:
        """A value of the document's forms, resolved now."""
        return self._ask("resolve", value)

    def reveal(self, member: str) -> Json:
        """The config member with its secrets."""
        return self._ask("reveal", member)

    def authorize(self, ability: str, *args: Json) -> None:
        """Ask the authorizer (AU-12). Raises `authorization_denied`."""
        self._ask("authorize", ability, *args)

    def once(self, name: str, effect: Callable[[Any], Json]) -> NoReturn:
        """There is none in a process. Raises `effect_unavailable`."""
        raise StepFailed("effect_unavailable", why='the step runs with isolation="process"')

    def recall(self, name: str) -> NoReturn:
        """There is none in a process. Raises `effect_unavailable`."""
        raise StepFailed("effect_unavailable", why='the step runs with isolation="process"')

    def _ask(self, name: str, *arguments: Json) -> Json:
        with self.lock:
            if self.is_over:
                raise RuntimeError("the step has ended")
            self.line.send_bytes(wire.dumps({"ask": name, "arguments": arguments}))
            answer = wire.loads(self.line.recv_bytes())
        if "error" in answer:
            raise wire.decode_error(answer["error"])
        return cast("Json", answer["value"])
