"""korak sync: the chains of this code into the API, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from korak.chains.loading import Loaded, load_chains
from korak.commands import publishing
from korak.commands.calling import Caller, Refusal, open_caller
from korak.commands.publishing import Result, Warnings
from korak.commands.reasons import Reason
from korak.commands.running import read_settings
from korak.commands.screen import get_screen
from korak.errors import Invalid, SettingsError

OLDER = "version_older"
OPEN = "unknown_reference"


@dataclass(frozen=True, slots=True)
class Synced:
    """One chain, the module it stands in, and what became of it, why it was refused, and what is odd about it."""

    module: str
    key: str
    result: Result
    version: int | None = None
    reason: Reason | None = None
    warnings: Warnings = ()

    def to_json(self) -> dict[str, Any]:
        """As the command answers it under --json."""
        told = {"module": self.module, "key": self.key, "version": self.version, "result": self.result.value}
        return {**told, **publishing.show_notes(self.reason, self.warnings)}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def sync(
        ctx: typer.Context,
        chains: Annotated[
            str | None,
            typer.Option(help="Modules with chains, with commas between; else KORAK_CHAINS.", metavar="A.B"),
        ] = None,
        force: Annotated[
            bool, typer.Option("--force", help="Also where the current version is a newer one: go back.")
        ] = False,
        owner: Annotated[str | None, typer.Option(help="Whose they are, as type:id.")] = None,
    ) -> None:
        """Publish the chains of this code; one that is published as it stands is left alone, a newer one stays."""
        settings = read_settings(chains=chains)
        loaded = load(settings.chains)
        if not loaded:
            raise SettingsError(message="There is no chain here: name their modules in KORAK_CHAINS or --chains.")
        found = sync_chains(open_caller(owner), loaded, force=force)
        get_screen(ctx).show([each.to_json() for each in found], lambda _: draw(found))
        if any(each.result is Result.REFUSED for each in found):
            raise typer.Exit(1)


def load(modules: Sequence[str]) -> list[Loaded]:
    """The chains of these modules, and of installed packages."""
    return load_chains(modules)


def sync_chains(caller: Caller, loaded: Sequence[Loaded], *, force: bool = False) -> list[Synced]:
    """Make each chain the current version of its definition; one that is older than that only under `force`.

    The chains that it starts are published before it; a run of it starts those very versions.
    """
    return [_sync(caller, each, force=force) for each in loaded]


def draw(found: Sequence[Synced]) -> RenderableType:
    """A line a chain, and below it why it was refused."""
    return Group(*(line for each in found for line in _draw(each)))


def _sync(caller: Caller, loaded: Loaded, *, force: bool) -> Synced:
    module, key = loaded.module.__name__, loaded.chain.key
    try:
        result, version, warnings = publishing.put_graph(caller, loaded.chain, only_newer=not force)
    except Refusal as refusal:
        more = _tell_older(refusal) if refusal.code == OLDER else ()
        return Synced(module, key, Result.REFUSED, reason=Reason.from_refusal(refusal, more))
    except Invalid as error:
        return Synced(module, key, Result.REFUSED, reason=Reason.from_problem(error))
    return Synced(module, key, result, version, warnings=list_odd(warnings))


def list_odd(warnings: Warnings) -> Warnings:
    """The warnings that say something of a chain. Its state begins with any payload: it may read what none writes."""
    return [each for each in warnings if each.get("code") != OPEN]


def _tell_older(refusal: Refusal) -> tuple[str, ...]:
    told = refusal.body["params"]
    return (
        f"  this code   {told['checksum']} of {told['published_at']}",
        f"  current     {told['current_checksum']} of {told['current_published_at']}",
        "  If you mean to go back, say --force.",
    )


def _draw(each: Synced) -> list[Text]:
    head = publishing.draw_result(each.key, each.version, each.result, each.module)
    return [head, *publishing.draw_notes(each.reason, each.warnings)]
