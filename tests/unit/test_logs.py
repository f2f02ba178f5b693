"""Logs: one JSON object a line, with what it is about, without what is secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from korak import logs
from korak.config import Logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    logs.configure(Logs(), stream)
    yield stream
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_level_time_and_fields(stream: io.StringIO) -> None:
    structlog.get_logger("korak.test").info("claimed", steps=3)
    (line,) = read(stream)
    assert line["event"] == "claimed"
    assert line["level"] == "info"
    assert line["steps"] == 3
    assert line["timestamp"].endswith("Z")


def test_what_it_is_about_stands_in_every_line_of_the_context(stream: io.StringIO) -> None:
    log = structlog.get_logger()
    with logs.about(instance="01J", node="price", attempt=2, owner=None):
        log.info("inside")
        logging.getLogger("step").warning("%s of the step's own", "a line")
    log.info("outside")
    inside, foreign, outside = read(stream)
    assert (inside["instance"], inside["node"], inside["attempt"]) == ("01J", "price", 2)
    assert (foreign["event"], foreign["instance"]) == ("a line of the step's own", "01J")
    assert "owner" not in inside
    assert "instance" not in outside


def test_the_level_is_kept(stream: io.StringIO) -> None:
    structlog.get_logger().debug("too much")
    logging.getLogger("lib").debug("too much")
    assert read(stream) == []


def test_the_console_form_is_for_people() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    try:
        logs.configure(Logs(format="console", level="debug"), stream)
        structlog.get_logger().debug("claimed", steps=3)
    finally:
        root.handlers = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    assert "claimed" in stream.getvalue()
    assert "steps" in stream.getvalue()


def test_a_hidden_value_shows_nowhere_in_the_context(stream: io.StringIO) -> None:
    log = structlog.get_logger()
    with logs.hiding(["hunter2-and-more", "hunter2"]):
        log.info("said hunter2", nested={"list": ["hunter2-and-more"]}, object=ValueError("hunter2"))
        try:
            raise RuntimeError("the provider said hunter2")
        except RuntimeError:
            log.exception("failed")
            logging.getLogger("step").exception("failed with %s", "hunter2")
    assert "hunter2" not in stream.getvalue()
    assert "-and-more" not in stream.getvalue()
    assert "RuntimeError" in stream.getvalue()


def test_a_value_is_hidden_from_when_it_is_known() -> None:
    known: set[str] = set()
    with logs.hiding(known):
        assert logs.scrub("hunter2") == "hunter2"
        known.add("hunter2")
        assert logs.scrub("hunter2") == "***"


def test_contexts_that_hide_may_be_nested(stream: io.StringIO) -> None:
    with logs.hiding(["outer-secret"]):
        with logs.hiding(["inner-secret"]):
            assert logs.scrub("outer-secret inner-secret") == "*** ***"
        assert logs.scrub("outer-secret inner-secret") == "*** inner-secret"
    assert logs.scrub("outer-secret") == "outer-secret"


@pytest.mark.parametrize("name", ["password", "Token", "authorization", "secret", "cookie"])
def test_what_is_secret_by_its_name_is_hidden(stream: io.StringIO, name: str) -> None:
    structlog.get_logger().info("called", headers={name: "s3cret"}, **{name: "s3cret"})
    assert "s3cret" not in stream.getvalue()


def test_passwords_inside_addresses_are_hidden() -> None:
    assert logs.scrub("amqp://korak:s3cret@mq/ and more") == "amqp://korak:***@mq/ and more"
    assert logs.scrub("http://host:8080/path") == "http://host:8080/path"


@given(st.text(min_size=logs.SHORTEST), st.text(), st.text())
def test_no_text_around_a_hidden_value_brings_it_back(secret: str, before: str, after: str) -> None:
    with logs.hiding([secret]):
        text = logs.scrub(before + secret + after)
    assert logs.MASK in text
    if logs.MASK not in secret and "*" not in secret:
        assert secret not in text
