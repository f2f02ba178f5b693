"""Korak from elsewhere: the API as objects of Python, `AsyncKorak` and, made from it, the blocking `Korak`."""

from __future__ import annotations

from korak.client.asynchronous.calling import AsyncKorak
from korak.client.blocking.calling import Korak
from korak.client.definitions import Definition, DefinitionHead, FrozenVersion, Validation, Version
from korak.client.operations import Hold, Queue
from korak.client.problems import Unreachable
from korak.client.shapes import (
    Artifact,
    Chunk,
    Delivery,
    Emission,
    Event,
    Failure,
    FailureRecord,
    Instance,
    ListOptions,
    Started,
    StartOptions,
    Step,
    Wait,
    WaitingFor,
)

__all__ = [
    "Artifact",
    "AsyncKorak",
    "Chunk",
    "Definition",
    "DefinitionHead",
    "Delivery",
    "Emission",
    "Event",
    "Failure",
    "FailureRecord",
    "FrozenVersion",
    "Hold",
    "Instance",
    "Korak",
    "ListOptions",
    "Queue",
    "StartOptions",
    "Started",
    "Step",
    "Unreachable",
    "Validation",
    "Version",
    "Wait",
    "WaitingFor",
]
