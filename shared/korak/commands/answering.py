"""korak approve, reject, input: what a person answers an instance that asks; the signal is found by itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from korak.commands.calling import open_caller, refusing
from korak.commands.instances import Instance, Owner
from korak.commands.reading import JSON, read_json
from korak.commands.screen import get_screen

Data = Annotated[str, typer.Option(help=f"What goes with it: {JSON}.", metavar="JSON")]
Signal = Annotated[str | None, typer.Option(help="Which signal, where it asks for several.", metavar="NAME")]
Node = Annotated[str | None, typer.Option(help="At which node, where it asks at several.", metavar="NODE")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(approve)
    app.command()(reject)
    app.command("input")(submit)


def approve(
    ctx: typer.Context,
    instance: Instance,
    data: Data = "{}",
    signal: Signal = None,
    node: Node = None,
    owner: Owner = None,
) -> None:
    """Approve what an instance waits to have approved or decided."""
    given, caller = read_data(data), open_caller(owner)
    with refusing():
        show(ctx, caller.korak.approve(instance, given, signal=signal, node=node))


def reject(
    ctx: typer.Context,
    instance: Instance,
    reason: Annotated[str | None, typer.Option(help="Why: `reason` of what goes with it.")] = None,
    data: Data = "{}",
    signal: Signal = None,
    node: Node = None,
    owner: Owner = None,
) -> None:
    """Reject what an instance waits to have decided."""
    given, caller = read_data(data), open_caller(owner)
    given = given if reason is None else {**given, "reason": reason}
    with refusing():
        show(ctx, caller.korak.reject(instance, given, signal=signal, node=node))


def submit(
    ctx: typer.Context,
    instance: Instance,
    data: Data,
    signal: Signal = None,
    node: Node = None,
    owner: Owner = None,
) -> None:
    """Bring the input that an instance waits for."""
    given, caller = read_data(data), open_caller(owner)
    with refusing():
        show(ctx, caller.korak.submit_input(instance, given, signal=signal, node=node))


def read_data(text: str) -> dict[str, Any]:
    """The object that goes with an answer. Raises BadParameter."""
    given = read_json(text, option="--data")
    if not isinstance(given, dict):
        raise typer.BadParameter("It is an object, such as {}.", param_hint="--data")
    return given


def show(ctx: typer.Context, delivery: Any) -> None:
    """Tell what became of the signal."""
    get_screen(ctx).show(delivery, lambda told: "delivered" if told["delivered"] else "kept until it is waited for")
