"""korak sync: the chains of this code into the API, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from korak.commands import publishing
from korak.commands.calling import Caller, Refusal, open_caller
from korak.commands.publishing import Result
from korak.commands.running import read_settings
from korak.commands.screen import get_screen
from korak.errors import Invalid, SettingsError

if TYPE_CHECKING:
    from korak.chains.loading import Loaded


@dataclass(frozen=True, slots=True)
class Synced:
    """One chain, the module it stands in, and what became of it. `lines` say why it was refused."""

    module: str
    key: str
    result: Result
    version: int | None = None
    lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the command answers it under --json."""
        told = {"module": self.module, "key": self.key, "version": self.version, "result": self.result.value}
        return {**told, "problems": list(self.lines)} if self.lines else told


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(rich_help_panel="Workflows")
    def sync(
        ctx: typer.Context,
        chains: Annotated[
            str | None,
            typer.Option(help="Modules with chains, with commas between; else KORAK_CHAINS.", metavar="A.B"),
        ] = None,
        owner: Annotated[str | None, typer.Option(help="Whose they are, as type:id.")] = None,
    ) -> None:
        """Publish the chains of this code; one that is published as it stands is left alone."""
        settings = read_settings(chains=chains)
        loaded = load(settings.chains)
        if not loaded:
            raise SettingsError(message="There is no chain here: name their modules in KORAK_CHAINS or --chains.")
        found = sync_chains(open_caller(owner), loaded)
        get_screen(ctx).show([each.to_json() for each in found], lambda _: draw(found))
        if any(each.result is Result.REFUSED for each in found):
            raise typer.Exit(1)


def load(modules: Sequence[str]) -> list[Loaded]:
    """The chains of these modules, and of installed packages; what they start stands before them."""
    from korak.chains.loading import list_families, load_chains

    return list_families(load_chains(modules))


def sync_chains(caller: Caller, loaded: Sequence[Loaded]) -> list[Synced]:
    """Publish each chain, unless its definition's published version is the same."""
    return [_sync(caller, each) for each in loaded]


def draw(found: Sequence[Synced]) -> RenderableType:
    """A line a chain, and below it why it was refused."""
    return Group(*(line for each in found for line in _draw(each)))


def _sync(caller: Caller, loaded: Loaded) -> Synced:
    module, key = loaded.module.__name__, loaded.chain.key
    try:
        result, version = publishing.put_document(caller, loaded.chain.document())
    except Refusal as refusal:
        return Synced(module, key, Result.REFUSED, lines=tuple(refusal.lines))
    except Invalid as error:
        lines = (error.message, *(f"  {issue.pointer or '/'}: {issue.message}" for issue in error.issues))
        return Synced(module, key, Result.REFUSED, lines=lines)
    return Synced(module, key, result, version)


def _draw(each: Synced) -> list[Text]:
    return publishing.draw_result(each.key, each.version, each.result, each.module, each.lines)
