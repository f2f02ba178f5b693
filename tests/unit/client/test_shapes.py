"""The client's types say what OpenAPI says."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from korak.client import definitions, operations, shapes
from korak.client.addresses import HOLDS
from korak.model import ArtifactKind, HoldKind
from korak_api.instances import FILTERS
from korak_api.parameters import PAGE
from korak_api.parts import FAILURE_OF_INSTANCE
from korak_api.shapes import SHAPES
from korak_api.starts import START

ANSWERS: list[tuple[Any, str]] = [
    (shapes.Instance, "Instance"),
    (shapes.WaitingFor, "WaitingFor"),
    (shapes.Step, "Step"),
    (shapes.Event, "Event"),
    (shapes.Started, "Start"),
    (shapes.Delivery, "Delivery"),
    (shapes.Emission, "Emission"),
    (definitions.Version, "VersionHead"),
    (definitions.FrozenVersion, "Version"),
    (definitions.DefinitionHead, "DefinitionHead"),
    (definitions.Definition, "Definition"),
    (definitions.Validation, "Validation"),
    (shapes.Wait, "Wait"),
    (shapes.FailureRecord, "Failure"),
    (shapes.Chunk, "Chunk"),
    (shapes.Artifact, "Artifact"),
    (operations.Hold, "Hold"),
    (operations.Queue, "Queue"),
]


@pytest.mark.parametrize(("shape", "name"), ANSWERS, ids=[name for _, name in ANSWERS])
def test_an_answer_has_the_members_of_its_schema(shape: Any, name: str) -> None:
    assert set(get_type_hints(shape)) == set(SHAPES[name]["properties"])


def test_a_run_s_failure_has_the_members_of_its_schema() -> None:
    assert set(get_type_hints(shapes.Failure)) == set(FAILURE_OF_INSTANCE["properties"])


def test_kinds_are_those_of_the_model() -> None:
    assert set(get_args(operations.HoldKind)) == set(HoldKind) == set(HOLDS)
    assert set(get_args(shapes.ArtifactKind)) == set(ArtifactKind)


def test_a_start_takes_what_the_api_takes() -> None:
    own = {"idempotency_key", "wait"}
    taken = {*START.members, *START.unserved}
    assert set(get_type_hints(shapes.StartOptions)) - own <= taken
    assert taken - set(get_type_hints(shapes.StartOptions)) <= {"input", "subject", "on_behalf_of", "run_timeout"}


def test_a_list_is_filtered_as_the_api_does_it() -> None:
    assert set(get_type_hints(shapes.ListOptions)) == {each.name for each in FILTERS} - {each.name for each in PAGE}
