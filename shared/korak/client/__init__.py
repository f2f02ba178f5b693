"""Korak from elsewhere: the API as objects of Python, `AsyncKorak` and, made from it, the blocking `Korak`."""

from __future__ import annotations

from korak.client.asynchronous.calling import AsyncKorak
from korak.client.blocking.calling import Korak
from korak.client.problems import Unreachable
from korak.client.shapes import (
    Artifact,
    Chunk,
    Delivery,
    Emission,
    Event,
    Failure,
    FailureRecord,
    Hold,
    Instance,
    ListOptions,
    Queue,
    Started,
    StartOptions,
    Step,
    Version,
    Wait,
    WaitingFor,
)

__all__ = [
    "Artifact",
    "AsyncKorak",
    "Chunk",
    "Delivery",
    "Emission",
    "Event",
    "Failure",
    "FailureRecord",
    "Hold",
    "Instance",
    "Korak",
    "ListOptions",
    "Queue",
    "StartOptions",
    "Started",
    "Step",
    "Unreachable",
    "Version",
    "Wait",
    "WaitingFor",
]
