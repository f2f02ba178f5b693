"""Messages read as sentences whatever they are about."""

from __future__ import annotations

import re

from korak.codes import MESSAGES, render
from tests.unit.test_house import ROOT, SOURCES, list_files

HANDLERS = {"owner_mismatch", "subject_missing"}
"""Codes that only handlers raise."""


def test_the_whole_has_no_pointer() -> None:
    told = {"pointer": "", "detail": "a step returns an object, not list"}
    assert render("invalid_output", told) == "The output can't be stored: a step returns an object, not list."
    assert render("invalid_input", {"pointer": "", "detail": "it is missing"}) == "The input is wrong: it is missing."
    assert render("invalid_output", {**told, "pointer": "/x"}).startswith("The output at /x can't")


def test_a_sentence_in_a_sentence_ends_once() -> None:
    inner = render("invalid_input", {"pointer": "/order", "detail": "string is expected"})
    told = render("child_not_started", {"key": "kid", "detail": inner})
    assert told.endswith("can't be started from here: The input at /order is wrong: string is expected.")
    assert render("invalid_config", {"detail": "A list is expected."}) == "A list is expected."


def test_what_lacks_its_params_is_told_as_it_stands() -> None:
    assert render("missing_value") == "Nothing stands at {path}."
    assert render("acme.own", {"a": 1}) == "acme.own"


def test_a_refused_jump_says_what_is_allowed_where_that_was_kept() -> None:
    told = {"target": "x", "allowed": "$end, b"}
    assert render("unknown_jump", told) == "'x' is no target of this node's jumps: allowed is $end, b."
    assert render("unknown_jump", {"target": "x"}) == "'x' is no target of this node's jumps."


def test_every_code_is_said_somewhere() -> None:
    paths = (path for suffix in (".py", ".sql") for path in list_files(*SOURCES, suffix=suffix))
    text = "\n".join(path.read_text() for path in paths if path != ROOT / "shared/korak/codes.py")
    assert MESSAGES.keys() - set(re.findall(r"""["'](\w+)["']""", text)) == HANDLERS


def test_a_quorum_that_can_t_be_had_says_how_many_there_are() -> None:
    told = render("quorum_unreachable", {"needed": 3, "total": 5, "failed": 3})
    assert told == "3 must succeed; of 5 bodies 3 have failed."
