"""What the services share: what a service is, where the four are found, and how each tells how it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import entry_points
from typing import Protocol, TypeAlias, cast

from korak.config import Settings
from korak.errors import SettingsError

GROUP = "korak.services"
"""The entry points that name the services: the library runs them without importing them."""

PASSES = "korak.passes"
"""The entry points that name what a periodic service does in one pass, for those who ask for it by hand."""

Pass: TypeAlias = Callable[[Settings], Awaitable[object]]
"""One pass; what it gives is a dataclass of counts."""


class Service(Protocol):
    """One of api, engine, waker, escalator: a loop around the library.

    Builds all it needs from the settings, works until `stop` is set, drains, and gives back what it holds. A `stop`
    that is set before the start ends it at once. Whatever it raises is a crash. It touches no signals, logs or exits.
    """

    async def __call__(self, stop: asyncio.Event, settings: Settings) -> None:
        """Work until `stop` is set."""


class Health:
    """How one process is: alive as long as it answers, ready as long as nothing is marked as failing."""

    def __init__(self) -> None:
        self._failing: dict[str, str] = {"service": "starting"}

    @property
    def failing(self) -> dict[str, str]:
        """What isn't well, and why."""
        return dict(self._failing)

    @property
    def is_ready(self) -> bool:
        """Whether the process does its work."""
        return not self._failing

    def mark(self, what: str, why: str | None = None) -> None:
        """Say why `what` fails; without a reason, that it is well. A service marks `service` well once it runs."""
        if why is None:
            self._failing.pop(what, None)
        else:
            self._failing[what] = why


def list_services() -> tuple[str, ...]:
    """The names of the services that are installed."""
    return tuple(sorted(point.name for point in entry_points(group=GROUP)))


def get_service(name: str) -> Service:
    """The service of that name. Raises SettingsError where it isn't installed."""
    for point in entry_points(group=GROUP, name=name):
        return cast("Service", point.load())
    known = ", ".join(list_services()) or "none; install Korak with pip"
    raise SettingsError("invalid_setting", f"There is no service {name}. Installed are: {known}.")


def get_pass(name: str) -> Pass:
    """One pass of the periodic service of that name. Raises SettingsError where it isn't installed."""
    for point in entry_points(group=PASSES, name=name):
        return cast("Pass", point.load())
    raise SettingsError("invalid_setting", f"There is no service {name} that passes; install Korak with pip.")
