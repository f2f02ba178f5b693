"""korak start: an instance, one run of an id, or a start that waits for calls to end, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from korak.commands.calling import open_caller
from korak.commands.instances import Owner, Wait, finish, present
from korak.commands.reading import JSON, read_json
from korak.commands.screen import get_screen
from korak.model import OnClosed, OnOpen

MEMBERS: Final = {"key": "key", "wait": "wait", "max-wait": "max_wait"}
WINDOW: Final = "key=KEY,wait=SECONDS[,max-wait=SECONDS]"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(start)


def start(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="The definition's key.", metavar="KEY")],
    input_: Annotated[str, typer.Option("--input", help=f"What it is given: {JSON}.", metavar="JSON")] = "{}",
    run_id: Annotated[
        str | None, typer.Option("--id", help="An id of yours: one run of it is open at a time.", metavar="ID")
    ] = None,
    on_open: Annotated[
        OnOpen | None, typer.Option(help="What becomes of this start while the id has an open run.")
    ] = None,
    on_closed: Annotated[OnClosed | None, typer.Option(help="And where its runs have ended.")] = None,
    debounce: Annotated[
        str | None,
        typer.Option(help="Start once no more calls come, durations in seconds or ISO 8601.", metavar=WINDOW),
    ] = None,
    id_key: Annotated[
        str | None, typer.Option(help="The Idempotency-Key: repeated, the first instance is shown.", metavar="KEY")
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="A version's number or checksum, if not the current one.", metavar="VERSION")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="A label of the run; may be repeated.", metavar="LABEL")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(help="Which runs go first: low, normal, high or urgent.", metavar="LEVEL")
    ] = None,
    wait: Wait = False,
    owner: Owner = None,
) -> None:
    """Start an instance."""
    caller, screen = open_caller(owner), get_screen(ctx)
    number = int(version) if version is not None and version.isdecimal() and len(version) < 10 else version
    body: dict[str, Any] = {"id": run_id, "on_open": on_open, "on_closed": on_closed, "version": number}
    body |= {"labels": label, "priority": priority, "debounce": read_window(debounce)}
    given = {member: value for member, value in body.items() if value is not None}
    given["input"] = read_json(input_, option="--input")
    answer = caller.post(f"/v1/definitions/{key}/start", given, key=id_key)
    if "due_at" in answer:
        screen.show(answer, lambda told: f"It starts at {told['due_at']}, unless another call comes.")
    elif wait:
        finish(caller, answer["instance"]["id"], screen, start=answer)
    elif screen.is_json:
        screen.show(answer)
    else:
        if not answer.get("created", True):
            what = "key" if on_open is None else "id"
            screen.tell(f"This {what} has started it before: here is that instance.")
        present(caller, answer["instance"], screen)


def read_window(text: str | None) -> dict[str, Any] | None:
    """The window that `--debounce` says. Raises BadParameter, which names the option."""
    if text is None:
        return None
    window: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if not sign or name not in MEMBERS or MEMBERS[name] in window:
            raise typer.BadParameter(f"It is {WINDOW}", param_hint="--debounce")
        window[MEMBERS[name]] = value if name == "key" else read_span(value)
    return window


def read_span(text: str) -> str | float:
    """Seconds, or an ISO 8601 duration as it stands."""
    try:
        return float(text)
    except ValueError:
        return text
