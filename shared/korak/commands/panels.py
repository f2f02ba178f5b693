"""How the help is laid out: which commands stand together and in which order, and how an option is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

PANELS: Final[Mapping[str, Sequence[str]]] = {
    "Workflows": ("publish", "sync", "start", "emit"),
    "Instances": (
        *("list", "show", "tail", "approve", "reject", "input", "signal", "pause", "resume", "cancel", "retry"),
        *("rewind", "fork", "artifacts", "chunks", "export", "import"),
    ),
    "Operation": ("queues", "hold", "release", "weight"),
    "Services": ("dev", "api", "engine", "waker", "escalator", "settings"),
    "Database": ("migrate", "doctor", "wake", "token"),
}
"""Every command, in the order in which the help has them."""

PLACES: Final = {name: (panel, place) for panel, names in PANELS.items() for place, name in enumerate(names)}


class Command(TyperCommand):
    """A command whose flags are shown as what they are: they take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options, the help's own too."""
        return _clear(super().get_params(ctx))


class Group(TyperGroup):
    """The same for what has commands of its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options, the help's own too."""
        return _clear(super().get_params(ctx))


def arrange(app: typer.Typer) -> None:
    """Put the commands into their panels, in order. Raises KeyError for one that is in none."""
    order = list(PANELS)
    infos: list[Any] = [*app.registered_commands, *app.registered_groups]
    for info in infos:
        info.rich_help_panel = PLACES[get_name(info)][0]
    app.registered_commands.sort(key=lambda info: (order.index(PLACES[get_name(info)][0]), PLACES[get_name(info)][1]))
    dress(app)


def dress(app: typer.Typer) -> None:
    """Show the flags of all commands of an app, and of those below it."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        group.cls = Group
        if group.typer_instance is not None:
            dress(group.typer_instance)


def get_name(info: Any) -> str:
    """What a command is called."""
    return str(info.name or info.callback.__name__)


def _clear(params: Sequence[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return list(params)
