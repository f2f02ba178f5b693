"""korak emit, signal, list, show, retry, cancel, pause, resume, rewind, fork: instances over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from korak.clock import Clock
from korak.commands.arranging import MOST
from korak.commands.calling import Caller, open_caller
from korak.commands.drawing import draw_instance, draw_list
from korak.commands.gathering import PAGE, list_children, list_steps
from korak.commands.reading import JSON, read_json
from korak.commands.screen import Screen, get_screen
from korak.model import ENDED, InstanceStatus

LOOK = 20.0
"""Seconds of one request that waits for an end."""
STATUSES = ", ".join((*InstanceStatus, "paused"))

Instance = Annotated[
    str, typer.Argument(help="The instance's id, or DEFINITION~ID with an id of yours.", metavar="INSTANCE")
]
Owner = Annotated[str | None, typer.Option(help="Whose it is, as type:id.", metavar="OWNER")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it ends; exit with 1 unless it completes.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (emit, signal, show, retry, cancel, pause, resume, rewind, fork):
        app.command()(command)
    app.command("list")(list_instances)


def emit(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="The event's name.", metavar="NAME")],
    payload: Annotated[str, typer.Option(help=f"What it carries: {JSON}.", metavar="JSON")] = "{}",
    event_id: Annotated[
        str | None, typer.Option("--id", help="The event's own id: repeated, it is the same event.", metavar="ID")
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(help="How long it is kept for a wait that comes later: seconds, or PT1H.", metavar="DURATION"),
    ] = None,
    owner: Owner = None,
) -> None:
    """Emit an event to whoever waits for it."""
    kept: str | float | None = float(ttl) if ttl is not None and ttl.isdecimal() else ttl
    body = {"name": name, "payload": read_json(payload, option="--payload"), "id": event_id, "ttl": kept}
    given = {member: value for member, value in body.items() if value is not None}
    answer = open_caller(owner).post("/v1/emit", given)
    get_screen(ctx).show(
        answer, lambda told: f"{told['matched']} waits matched{', and it is kept' if told.get('kept') else ''}"
    )


def signal(
    ctx: typer.Context,
    instance: Instance,
    name: Annotated[str, typer.Argument(help="The signal's name.", metavar="NAME")],
    payload: Annotated[str, typer.Option(help=f"What it carries: {JSON}.", metavar="JSON")] = "{}",
    signal_id: Annotated[
        str | None, typer.Option("--id", help="The signal's own id: repeated, it is the same signal.", metavar="ID")
    ] = None,
    execution: Annotated[
        str | None,
        typer.Option(
            help="For this visit alone, as `execution` of what it waits for in --json; else for whoever waits.",
            metavar="VISIT",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help=f"Start DEFINITION~ID first where none is open, with this: {JSON}.", metavar="JSON"),
    ] = None,
    owner: Owner = None,
) -> None:
    """Send a signal to one instance."""
    body = {"name": name, "payload": read_json(payload, option="--payload"), "id": signal_id, "execution": execution}
    body["start"] = None if start is None else {"input": read_json(start, option="--start")}
    given = {member: value for member, value in body.items() if value is not None}
    answer = open_caller(owner).post(f"/v1/instances/{instance}/signal", given)
    get_screen(ctx).show(answer, lambda told: "delivered" if told.get("delivered") else "kept until it is waited for")


def list_instances(
    ctx: typer.Context,
    status: Annotated[
        list[str] | None, typer.Option(help=f"Only these: {STATUSES}; may be repeated.", metavar="STATUS")
    ] = None,
    definition: Annotated[
        list[str] | None, typer.Option(help="Only of these definitions; may be repeated.", metavar="KEY")
    ] = None,
    run_id: Annotated[
        list[str] | None, typer.Option("--id", help="Only under these ids of yours; may be repeated.", metavar="ID")
    ] = None,
    parent: Annotated[
        list[str] | None,
        typer.Option(help="Only those that this run has started; may be repeated.", metavar="INSTANCE"),
    ] = None,
    root: Annotated[
        list[str] | None,
        typer.Option(help="Only this run and all below it; may be repeated.", metavar="INSTANCE"),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Only with all of these labels; may be repeated.", metavar="LABEL")
    ] = None,
    created_after: Annotated[
        str | None, typer.Option(help="Only younger ones, such as 2026-03-01T12:00:00Z.", metavar="TIME")
    ] = None,
    created_before: Annotated[str | None, typer.Option(help="Only older ones.", metavar="TIME")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=PAGE)] = 20,
    owner: Owner = None,
) -> None:
    """List instances, the newest first."""
    page = open_caller(owner).get(
        "/v1/instances",
        status=status or None,
        definition=definition or None,
        id=run_id or None,
        parent=parent or None,
        root=root or None,
        label=label or None,
        created_after=created_after,
        created_before=created_before,
        limit=limit,
    )
    get_screen(ctx).show(page, lambda told: draw_list(told["items"], now=Clock().now()))


def show(ctx: typer.Context, instance: Instance, wait: Wait = False, owner: Owner = None) -> None:
    """Show an instance with its steps."""
    caller, screen = open_caller(owner), get_screen(ctx)
    if wait:
        finish(caller, instance, screen)
    else:
        present(caller, caller.get(f"/v1/instances/{instance}"), screen)


def retry(ctx: typer.Context, instance: Instance, owner: Owner = None) -> None:
    """Try the failed step of a failed instance again, or what of a cancelled one could not be undone."""
    command(ctx, instance, "retry", {}, owner)


def cancel(
    ctx: typer.Context,
    instance: Instance,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    owner: Owner = None,
) -> None:
    """Cancel an instance."""
    command(ctx, instance, "cancel", {} if reason is None else {"reason": reason}, owner)


def pause(ctx: typer.Context, instance: Instance, owner: Owner = None) -> None:
    """Let an instance begin no further step until it is resumed."""
    command(ctx, instance, "pause", {}, owner)


def resume(ctx: typer.Context, instance: Instance, owner: Owner = None) -> None:
    """Let a paused instance go on."""
    command(ctx, instance, "resume", {}, owner)


def rewind(
    ctx: typer.Context,
    instance: Instance,
    to: Annotated[
        str,
        typer.Argument(
            help="A completed step's id, or a node for its newest visit; the trigger's node for the beginning.",
            metavar="STEP",
        ),
    ],
    owner: Owner = None,
) -> None:
    """Send an instance back to where it stood behind a completed step."""
    command(ctx, instance, "rewind", {"to": to}, owner)


def fork(
    ctx: typer.Context,
    instance: Instance,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", help="Behind this completed step, its id or node; else behind the newest.", metavar="STEP"
        ),
    ] = None,
    owner: Owner = None,
) -> None:
    """Begin an instance of its own where another one stands; the other one goes on."""
    command(ctx, instance, "fork", {} if to is None else {"to": to}, owner)


def command(ctx: typer.Context, instance: str, verb: str, body: dict[str, Any], owner: str | None) -> None:
    """Send a command and show what it made of the instance."""
    caller = open_caller(owner)
    present(caller, caller.post(f"/v1/instances/{instance}/{verb}", body), get_screen(ctx))


def present(
    caller: Caller, instance: dict[str, Any], screen: Screen, *, start: Mapping[str, Any] | None = None
) -> None:
    """Show an instance that the API has answered, with its steps: in JSON all, drawn of many bodies some.

    Under --json it stands inside of its `start`, if that is given.
    """
    steps = list_steps(caller, instance["id"], None if screen.is_json else MOST)
    found = {**instance, "steps": steps, **list_children(caller, instance["id"], steps)}
    answer = found if start is None else {**start, "instance": found}
    screen.show(answer, lambda _: draw_instance(found, steps, now=Clock().now()))


def finish(caller: Caller, instance: str, screen: Screen, *, start: Mapping[str, Any] | None = None) -> None:
    """Wait until the instance ends, show it, and exit with 1 unless it completed."""
    found: dict[str, Any] = {}
    while found.get("status") not in ENDED:
        found = caller.get(f"/v1/instances/{instance}", wait=LOOK)
    present(caller, found, screen, start=start)
    if found["status"] != InstanceStatus.COMPLETED:
        raise typer.Exit(1)
