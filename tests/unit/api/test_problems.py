"""Every exception that answers a caller has an answer, and no other tells anything."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import orjson
import pytest

from korak import codes, errors
from korak.errors import KorakError, Problem, TransientError
from korak_api.openapi import TITLES
from korak_api.problems import StartRefused, answer


def list_classes(root: type[KorakError]) -> Iterator[type[KorakError]]:
    """The tree below a class."""
    for each in root.__subclasses__():
        if each.__module__ == errors.__name__:
            yield each
            yield from list_classes(each)


@pytest.mark.parametrize("kind", list(list_classes(Problem)))
def test_a_problem_has_a_status_of_its_own_and_a_message(kind: type[Problem]) -> None:
    response = answer(kind())

    body = orjson.loads(response.body)
    assert response.status_code == body["status"] == kind.status
    assert body["title"] == HTTPStatus(kind.status).phrase
    assert body["code"] in codes.MESSAGES
    assert body["type"] == f"urn:korak:problem:{body['code']}"
    assert kind.status in TITLES or kind.status == 405


@pytest.mark.parametrize("kind", [each for each in list_classes(KorakError) if not issubclass(each, Problem)])
def test_what_is_internal_tells_nothing(kind: type[KorakError]) -> None:
    response = answer(kind("exception", "password=hunter2"))

    assert response.status_code == (503 if issubclass(kind, TransientError) else 500)
    assert b"hunter2" not in response.body


def test_every_class_is_drawn_at_the_top() -> None:
    drawn = errors.__doc__ or ""
    assert [each.__name__ for each in list_classes(KorakError) if each.__name__ not in drawn] == []


def test_a_refused_start_names_its_instance_and_when_to_come_again() -> None:
    response = answer(StartRefused("01J", 60, 7))

    body = orjson.loads(response.body)
    assert (response.status_code, body["code"], body["refused_instance"]) == (429, "start_rate_exceeded", "01J")
    assert response.headers["retry-after"] == "7"
