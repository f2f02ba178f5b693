"""Settings: what is given is read, what isn't known or is wrong stops the start and says what is meant."""

from __future__ import annotations

import contextlib
import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from korak import parsing
from korak.config import Settings, list_variables, load_settings
from korak.errors import SettingsError

VARIABLES = dict(list_variables())


def refuse(environ: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ)
    assert caught.value.code == "invalid_setting"
    return caught.value.message


def test_nothing_need_be_set() -> None:
    settings = load_settings({"PATH": "/bin", "KORAK_BROKER__URL": "", "KORAK_TEST_DATABASE_URL": "postgresql://x"})
    assert settings == Settings()
    assert settings.engine.lease == 60.0
    assert settings.retry.backoff == (30.0, 120.0, 600.0)
    assert settings.idempotency.ttl == timedelta(days=30)
    assert settings.database.schema == "korak"
    assert settings.broker.url is None


def test_what_is_given_is_read() -> None:
    settings = load_settings(
        {
            "KORAK_DATABASE__URL": "postgresql://korak@db/korak",
            "KORAK_DATABASE__SCHEMA": "flows",
            "KORAK_BROKER__URL": "amqp://guest:guest@mq/",
            "KORAK_ENGINE__LEASE": "PT1M30S",
            "KORAK_ENGINE__QUEUES": "default, slow",
            "KORAK_RETRY__BACKOFF": "1,PT2S,5.5",
            "KORAK_EVENTS__TTL": "P2DT1H",
            "KORAK_WEBHOOK__ALLOW": "127.0.0.1:8099,10.0.0.0/8,[::1]:80",
            "KORAK_SECRETS__DIRECTORY": "/run/secrets",
            "KORAK_STEPS": "shop.steps,shop.extra",
            "KORAK_LOGS__FORMAT": "console",
        }
    )
    assert settings.database.require_url() == "postgresql://korak@db/korak"
    assert settings.database.schema == "flows"
    assert settings.broker.url == "amqp://guest:guest@mq/"
    assert settings.engine.lease == 90.0
    assert settings.engine.queues == ("default", "slow")
    assert settings.retry.backoff == (1.0, 2.0, 5.5)
    assert settings.events.ttl == timedelta(days=2, hours=1)
    assert settings.webhook.allow == ("127.0.0.1:8099", "10.0.0.0/8", "[::1]:80")
    assert settings.secrets.directory == Path("/run/secrets")
    assert settings.steps == ("shop.steps", "shop.extra")
    assert settings.logs.format == "console"


def test_the_process_environment_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KORAK_ENGINE__LEASE", "7")
    assert load_settings({}).engine.lease == 60.0
    assert Settings().engine.lease == 60.0


def test_settings_are_never_changed() -> None:
    settings = load_settings({})
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.engine.lease = 1.0  # type: ignore[misc]  # that it is refused is the test
    with pytest.raises(ValidationError):
        settings.steps = ("a",)


def test_a_misspelt_name_is_refused_with_the_one_that_is_near() -> None:
    message = refuse({"KORAK_ENGINE__LEESE": "60"})
    assert "KORAK_ENGINE__LEESE" in message
    assert "KORAK_ENGINE__LEASE" in message


def test_a_strange_name_is_refused_with_those_that_are_known() -> None:
    assert "KORAK_WAKE__POLL" in refuse({"KORAK_ZZZZZZZZZZZZZZ": "1"})


@pytest.mark.parametrize("name", ["KORAK_ENGINE", "KORAK_ENGINE__", "KORAK_engine__lease", "KORAK_DATABASE_URL"])
def test_a_group_alone_or_another_case_is_no_setting(name: str) -> None:
    assert name in refuse({name: "{}"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KORAK_ENGINE__LEASE", "-1"),
        ("KORAK_ENGINE__LEASE", "0"),
        ("KORAK_ENGINE__LEASE", "soon"),
        ("KORAK_ENGINE__LEASE", "P1M"),
        ("KORAK_ENGINE__LEASE", "nan"),
        ("KORAK_ENGINE__CONCURRENCY", "0"),
        ("KORAK_ENGINE__CONCURRENCY", "many"),
        ("KORAK_ENGINE__QUEUES", ","),
        ("KORAK_RETRY__BACKOFF", "1,x"),
        ("KORAK_RETRY__JITTER", "1.5"),
        ("KORAK_API__PORT", "65536"),
        ("KORAK_LOGS__LEVEL", "loud"),
        ("KORAK_STEPS", "shop steps"),
        ("KORAK_STEPS", "../steps.py"),
        ("KORAK_WEBHOOK__ALLOW", "everything"),
        ("KORAK_WEBHOOK__ALLOW", "host:99999"),
        ("KORAK_CLIENT__URL", "ftp://x"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_what_was_given_and_what_is_meant(name: str, value: str) -> None:
    message = refuse({name: value})
    assert name in message
    assert repr(value) in message
    assert VARIABLES[name] in message


def test_every_wrong_value_is_told_at_once() -> None:
    message = refuse({"KORAK_ENGINE__LEASE": "x", "KORAK_WAKE__BATCH": "y"})
    assert [line.split()[0] for line in message.splitlines()] == ["KORAK_ENGINE__LEASE", "KORAK_WAKE__BATCH"]


@pytest.mark.parametrize("name", ["KORAK_DATABASE__URL", "KORAK_DATABASE__EFFECT_URL", "KORAK_BROKER__URL"])
def test_an_address_that_may_hold_a_password_is_not_shown(name: str) -> None:
    assert "hunter2" not in refuse({name: "http://me:hunter2@host"})


def test_variables_that_hold_secrets_are_not_settings() -> None:
    environ = {"KORAK_SECRETS__ENVIRONMENT": "KORAK_SECRET_", "KORAK_SECRET_ERP": "s3cret"}
    assert load_settings(environ).secrets.environment == "KORAK_SECRET_"


def test_a_missing_database_is_named() -> None:
    with pytest.raises(SettingsError, match="KORAK_DATABASE__URL"):
        load_settings({}).database.require_url()


def test_every_variable_says_what_it_means() -> None:
    assert [name for name, meaning in VARIABLES.items() if not meaning] == []
    assert {"KORAK_STEPS", "KORAK_CHAINS", "KORAK_ENGINE__LEASE"} <= VARIABLES.keys()


@given(st.integers(0, 10**9))
def test_seconds_are_seconds(seconds: int) -> None:
    assert parsing.parse_seconds(str(seconds)) == seconds


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999), st.integers(0, 999))
def test_iso_durations_add_up(days: int, hours: int, minutes: int, seconds: int) -> None:
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    assert parsing.parse_interval(f"P{days}DT{hours}H{minutes}M{seconds}S") == expected


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parsing.parse_interval(text) >= timedelta()


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.text(min_size=1), max_size=4))
def test_any_values_load_or_are_refused_by_name(environ: dict[str, str]) -> None:
    message = ""
    try:
        load_settings(environ)
    except SettingsError as error:
        message = error.message
    assert not message or any(name in message for name in environ)


@given(st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ_", min_size=1, max_size=30))
def test_any_unknown_name_is_refused(name: str) -> None:
    variable = f"KORAK_{name}"
    if variable not in VARIABLES and not name.startswith("TEST_"):
        assert variable in refuse({variable: "1"})
