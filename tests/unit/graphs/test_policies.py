"""What publish refuses of how a node runs: its attempts, its time and who is told (spec 14)."""

from __future__ import annotations

import pytest

from korak.model import Json, JsonObject
from tests.support.publishing import check, document, found, one, warned


def test_attempts_over_the_cap_are_clamped() -> None:
    """RT-3."""
    report = check(one({"retry": {"max_attempts": 12}}))
    assert not report.issues
    assert [(w.code, w.pointer) for w in report.warnings] == [("retry_clamped", "/nodes/1/retry/max_attempts")]
    assert report.warnings[0].message == "max_attempts is 12; 10 is used."
    assert warned(one({}, settings={"retry": {"max_attempts": 99}}))[0][1] == "/settings/retry/max_attempts"


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (one({"retry": {"max_attempts": 2, "backoff": [1, "soon"]}}), "/nodes/1/retry/backoff/1"),
        (one({"retry": {"max_attempts": 2, "backoff": [-1, 2]}}), "/nodes/1/retry/backoff/0"),
        (one({"timeout": "P"}), "/nodes/1/timeout"),
        (one({"timeout": 0}), "/nodes/1/timeout"),
        (one({"timeout": "PT0S"}), "/nodes/1/timeout"),
        (one({"timeout": {"business": "PT1H"}}), "/nodes/1/timeout"),
        (one({}, settings={"execution_timeout": "P1X"}), "/settings/execution_timeout"),
        (one({}, settings={"run_timeout": {"hours": 1}}), "/settings/run_timeout"),
        (one({}, settings={"retry": {"max_attempts": 2, "backoff": ["x1"]}}), "/settings/retry/backoff/0"),
    ],
)
def test_durations(raw: JsonObject, pointer: str) -> None:
    issues = found(raw)
    assert issues
    assert issues[0][1].startswith(pointer)
    assert issues[0][0] in {"invalid_duration", "invalid_config"}


def test_a_backoff_may_be_nothing() -> None:
    assert found(one({"retry": {"max_attempts": 2, "backoff": [0]}})) == []


def test_a_timeout_on_a_type_that_waits() -> None:
    issues = check(one({"type": "wait", "config": {"signal": "go"}, "timeout": 5})).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", "/nodes/1/timeout")]
    assert "config.timeout" in issues[0].message


def test_escalations() -> None:
    """ES-1."""
    level: Json = [{"after": 60, "actions": []}]
    assert found(one({"escalations": level})) == [("invalid_config", "/nodes/1/escalations")]
    raw = document({"id": "a", "type": "test.ask", "escalations": level}, edges=["start a", "a approved done"])
    assert found(raw) == [("invalid_config", "/nodes/1/escalations")]
    assert "not available" in check(raw).issues[0].message
