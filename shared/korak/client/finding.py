"""Where the API is, and with which token: said, set, or left in `.korak/` by a `korak dev` in a directory above."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from korak.config import load_settings
from korak.errors import SettingsError

LEFT = ".korak"
"""The directory in which `korak dev` leaves where it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """An API, and a token for it."""

    url: str
    token: str


def find_place(url: str | None = None, token: str | None = None) -> Place:
    """What is given, else what `KORAK_CLIENT__URL` and `KORAK_CLIENT__TOKEN` say, else what `korak dev` left.

    Raises SettingsError where none of them tells.
    """
    if url is None or token is None:
        settings = load_settings(os.environ).client
        url, token = url or settings.url, token or settings.token
    if url is None or token is None:
        left = find_left("client.json")
        url, token = url or left.get("url"), token or left.get("token")
    if url is None or token is None:
        why = "Where is Korak? Run korak dev in this directory, or set KORAK_CLIENT__URL and KORAK_CLIENT__TOKEN."
        raise SettingsError(message=why)
    return Place(url, token)


def find_left(name: str) -> dict[str, str]:
    """A file that `korak dev` has left here or in the nearest directory above; empty where there is none."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        try:
            found = orjson.loads((directory / LEFT / name).read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return {str(key): str(value) for key, value in found.items() if value is not None}
    return {}
