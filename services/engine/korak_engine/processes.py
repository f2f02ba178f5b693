"""Processes for handlers that must be killable: one step at a time each, killed and made anew when they don't end."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

from korak.clock import Clock
from korak.core.facts import HandlerResult, Raised
from korak.errors import InvalidStepType, KorakError
from korak.model import JsonObject
from korak.owners.scopes import Owner
from korak.steps.contract import StepType
from korak_engine import outcomes, texts, wire
from korak_engine.calling import Method
from korak_engine.threads import Threads

BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from korak_engine.child import main; main(int(sys.argv[1]))"
)
READY: Final = 60.0
"""Seconds in which a process must have imported the step's module."""

LONGEST: Final = 64 << 20
"""Bytes of one message."""

ASKED: Final = frozenset({"config", "input", "state", "trigger", "cancelled", "chunks"})
CALLED: Final = frozenset({"output", "resolve", "reveal", "authorize", "heartbeat", "store_chunk"})
TOLD: Final = (
    *("attempt", "visit", "idempotency_key", "node", "instance", "definition"),
    *("version", "owner", "subject", "timezone", "simulating"),
)


@dataclass(frozen=True, slots=True)
class Order:
    """What a process is to run. `view` is the context that answers the handler's questions from here."""

    kind: StepType
    method: Method
    view: Any
    owner: Owner
    limit: int


class Child:
    """A process that was started, and the line to it. Its group dies with it, and it dies with this process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            path = json.dumps(sys.path)
            command = [sys.executable, "-c", BOOT, str(theirs.fileno()), path]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=(theirs.fileno(),), start_new_session=True
            )
        self.line = Connection(ours.detach())

    def kill(self) -> None:
        """End it and all that it has started. May be called at any time, from any thread, and again."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def bury(self) -> int:
        """Kill it, wait for its end, and tell its exit code."""
        self.kill()
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.line.close()
        return code


class Seat:
    """The place of one order, from which it can be called off while its thread is anywhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_called_off = False

    def take(self, child: Child) -> None:
        """A process runs the order from now on."""
        with self._lock:
            self._child = child
            if self._is_called_off:
                child.kill()

    def leave(self) -> None:
        """The order is done: what happens to the process is no longer this order's."""
        with self._lock:
            self._child = None

    def call_off(self) -> None:
        """Nobody waits for the order: kill what runs it."""
        with self._lock:
            self._is_called_off = True
            if self._child is not None:
                self._child.kill()


class Processes:
    """At most `size` orders at once, each talked through by a thread."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._threads = Threads(size, "korak-process")
        self._clock = clock
        self._free: list[Child] = []
        self._seats: set[Seat] = set()
        self._is_closed = False

    async def run(self, order: Order, begin: Callable[[], None]) -> HandlerResult:
        """What the order comes to; cancelling kills its process. `begin` is called when the handler is about to run."""
        seat, loop = Seat(), asyncio.get_running_loop()
        self._seats.add(seat)
        started = partial(loop.call_soon_threadsafe, begin)
        talk = partial(copy_context().run, self._converse, order, seat, started)
        try:
            return await self._threads.run(talk, lambda _: None)
        except BaseException:
            seat.call_off()
            raise
        finally:
            self._seats.discard(seat)

    def close(self) -> None:
        """Kill them all."""
        self._is_closed = True
        for seat in self._seats:
            seat.call_off()
        self._threads.close()
        while self._free:
            self._free.pop().bury()

    def _converse(self, order: Order, seat: Seat, started: Callable[[], object]) -> HandlerResult:
        """In a thread: what the order comes to, whatever becomes of the process."""
        child: Child | None = None
        try:
            child = self._free.pop() if self._free else Child()
            seat.take(child)
            result = self._talk(child.line, order, started)
        except (EOFError, OSError, ValueError, KeyError, TypeError) as error:
            code = None if child is None else child.bury()
            return Raised("exception", _tell_death(error, code), type=texts.name_type(error))
        except BaseException as error:
            if child is not None:
                child.bury()
            return outcomes.describe(error, self._clock.now())
        finally:
            seat.leave()
        self._keep(child)
        return result

    def _keep(self, child: Child) -> None:
        if self._is_closed:
            child.bury()
        else:
            self._free.append(child)

    def _talk(self, line: Connection, order: Order, started: Callable[[], object]) -> HandlerResult:
        line.send_bytes(_pickle(order.kind))
        if not line.poll(READY):
            raise ValueError(f"it wasn't ready within {READY:g} s")
        answer = _receive(line)
        if "result" not in answer:
            started()
            line.send_bytes(wire.dumps(self._write(order)))
            answer = _receive(line)
        while "ask" in answer:
            line.send_bytes(wire.dumps(_answer(order.view, answer)))
            answer = _receive(line)
        result = wire.decode_result(answer["result"])
        return result if isinstance(result, Raised) else outcomes.read(result, order.limit)

    def _write(self, order: Order) -> JsonObject:
        view = order.view
        return {
            "method": order.method,
            "signal": view.signal.to_json() if view.signal else None,
            "owner": [order.owner.type, order.owner.id],
            "limit": order.limit,
            "offset": self._clock.offset.total_seconds(),
            "now": view.now.isoformat(),
            "view": {name: getattr(view, name) for name in TOLD},
        }


def _answer(view: Any, question: Mapping[str, Any]) -> JsonObject:
    """What the context says here to a handler there."""
    name, arguments = question["ask"], question["arguments"]
    try:
        if name == "artifact":
            return {"value": view.artifact(*wire.decode_artifact(arguments))}
        if name not in ASKED | CALLED:
            raise ValueError("that can't be asked")
        found = getattr(view, name)
        return {"value": found(*arguments) if name in CALLED else found}
    except KorakError as error:
        return {"error": wire.encode_error(error)}


def _pickle(kind: StepType) -> bytes:
    try:
        return pickle.dumps(kind)
    except Exception as error:
        message = f"{kind.key} can't be sent to a process: {texts.say(error)}"
        raise InvalidStepType(message=message) from error


def _receive(line: Connection) -> dict[str, Any]:
    return wire.loads(line.recv_bytes(LONGEST))


def _tell_death(error: Exception, code: int | None) -> str:
    why = "without a word" if isinstance(error, EOFError) else texts.say(error)
    return f"the process that ran the step died (exit code {code}): {why}"
