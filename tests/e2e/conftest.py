"""What the end-to-end tests share: the brokers they run on."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them start processes."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(params=["rabbitmq", "postgres"])
def broker_url(request: pytest.FixtureRequest) -> str | None:
    """Both brokers: RabbitMQ's address, or None for the Postgres broker."""
    return str(request.getfixturevalue("amqp_url")) if request.param == "rabbitmq" else None
