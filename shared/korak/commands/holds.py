"""korak hold, release, queues: what doesn't begin for now, and what waits where."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from korak.commands.calling import open_caller
from korak.commands.instances import Owner
from korak.commands.screen import get_screen


class Held(StrEnum):
    """What can be held."""

    QUEUE = "queue"
    STEP = "step"
    DEFINITION = "definition"


PLACES = {Held.QUEUE: "queues", Held.STEP: "step-types", Held.DEFINITION: "definitions"}

What = Annotated[Held, typer.Argument(help="queue, step (a step type) or definition.", metavar="WHAT")]
Name = Annotated[str, typer.Argument(help="Its name or key.", metavar="NAME")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (hold, release, queues):
        app.command()(command)


def hold(
    ctx: typer.Context,
    what: What,
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Why.", metavar="TEXT")] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Until when, such as 2026-03-01T12:00:00Z; else until it is released.", metavar="TIME"),
    ] = None,
    owner: Owner = None,
) -> None:
    """Begin no step of a queue, a step type or a definition for now; what runs goes on."""
    body = {member: value for member, value in (("reason", reason), ("until", until)) if value is not None}
    answer = open_caller(owner).post(f"/v1/{PLACES[what]}/{name}/hold", body)
    get_screen(ctx).show(answer, lambda told: f"{what} {told['name']} is held{_tell_end(told)}")


def release(ctx: typer.Context, what: What, name: Name, owner: Owner = None) -> None:
    """Let what is held go on."""
    answer = open_caller(owner).post(f"/v1/{PLACES[what]}/{name}/release")
    get_screen(ctx).show(answer, lambda told: f"{what} {told['name']} is released")


def queues(ctx: typer.Context, owner: Owner = None) -> None:
    """List the queues, with what waits in each."""
    answer = open_caller(owner).get("/v1/queues")
    get_screen(ctx).show(answer, lambda told: "\n".join(map(_draw, told["items"])) or "There is no queue yet.")


def _draw(queue: dict[str, Any]) -> str:
    counts = ", ".join(f"{queue[member]} {member}" for member in ("backlog", "sent", "held", "consumers"))
    held = queue["hold"]
    return f"{queue['name']}: {counts}" + ("" if held is None else f" (on hold{_tell_end(held)})")


def _tell_end(hold: dict[str, Any]) -> str:
    end = f" until {hold['until']}" if hold["until"] else ""
    return end + (f": {hold['reason']}" if hold["reason"] else "")
