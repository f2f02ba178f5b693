"""What is raised for an answer that is none: a problem of the API, or whatever stands before it has to say."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from korak.client.problems import read
from korak.errors import Invalid, Problem


def refuse(status: int, body: Any) -> Problem:
    """What is raised for this answer."""
    request = httpx.Request("GET", "http://korak.test/v1/instances")
    with pytest.raises(Problem) as raised:
        read(httpx.Response(status, json=body, request=request))
    return raised.value


def test_the_first_thing_that_is_wrong_is_told() -> None:
    error = {"code": "invalid_value", "message": "It is no number.", "pointer": "/input/n", "params": {"n": "x"}}
    told = {"code": "invalid_input", "detail": "The input is wrong.", "params": {"key": "order"}, "errors": [error]}
    problem = refuse(422, told)
    assert isinstance(problem, Invalid)
    assert (problem.code, problem.status, problem.params) == ("invalid_input", 422, {"key": "order"})
    assert problem.message == "The input is wrong. /input/n: It is no number."
    [issue] = problem.issues
    assert (issue.code, issue.pointer, issue.params) == ("invalid_value", "/input/n", {"n": "x"})


def test_what_the_whole_says_isn_t_said_again() -> None:
    told = {"code": "x", "detail": "It is no number.", "errors": [{"code": "x", "message": "It is no number."}]}
    assert refuse(422, told).message == "It is no number."


def test_params_may_be_called_as_they_like() -> None:
    params = {"code": "child", "message": "no", "issues": 3}
    assert refuse(409, {"code": "x", "detail": "No.", "params": params}).params == params


@pytest.mark.parametrize(
    "body",
    [
        {"errors": ["quota exceeded"]},
        {"errors": "quota exceeded"},
        {"errors": {"quota": "exceeded"}},
        {"errors": [{"code": "x"}, None]},
        {"params": ["quota"]},
        {"code": None, "errors": None},
        ["quota"],
        "quota",
    ],
)
def test_what_another_server_answers_is_a_problem_as_well(body: Any) -> None:
    problem = refuse(429, body)
    assert (problem.code, problem.status) == ("internal", 429)
    assert problem.message == "http://korak.test/v1/instances answered 429 Too Many Requests"
    assert (problem.issues, problem.params) == ((), {})


def test_what_is_wrong_with_an_error_s_params_takes_nothing_with_it() -> None:
    [issue] = refuse(422, {"code": "x", "detail": "No.", "errors": [{"code": "y", "params": ["z"]}]}).issues
    assert (issue.code, issue.params) == ("y", {})
