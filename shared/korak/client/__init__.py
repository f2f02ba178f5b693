"""Korak from elsewhere: the API as objects of Python, `AsyncKorak` and, made from it, the blocking `Korak`."""

from __future__ import annotations

from korak.client.asynchronous.calling import AsyncKorak
from korak.client.blocking.calling import Korak
from korak.client.problems import Unreachable
from korak.client.shapes import (
    Delivery,
    Emission,
    Event,
    Failure,
    Instance,
    ListOptions,
    Started,
    StartOptions,
    Step,
    Version,
    WaitingFor,
)

__all__ = [
    "AsyncKorak",
    "Delivery",
    "Emission",
    "Event",
    "Failure",
    "Instance",
    "Korak",
    "ListOptions",
    "StartOptions",
    "Started",
    "Step",
    "Unreachable",
    "Version",
    "WaitingFor",
]
