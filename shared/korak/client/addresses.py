"""Where things are at the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from korak.client.operations import HoldKind
from korak.errors import Invalid

HOLDS: Final[Mapping[HoldKind, str]] = {"definition": "definitions", "step_type": "step-types", "queue": "queues"}


def get_path(instance: str, *below: str) -> str:
    """The address of an instance, by its id or as `{definition}~{id}`, or of something below it."""
    return "/".join([f"/v1/instances/{quote(instance, safe='~:')}", *(quote(name, safe="") for name in below)])


def get_hold_path(kind: HoldKind, name: str, verb: str) -> str:
    """The address at which something is held or released. Raises Invalid for any other kind of thing."""
    if kind not in HOLDS:
        raise Invalid("invalid_parameter", None, name="kind", detail=f"it is one of {', '.join(HOLDS)}")
    return f"/v1/{HOLDS[kind]}/{quote(name, safe='')}/{verb}"
