"""What the tests share: servers, databases, brokers and the one way to wait."""

from tests.support.waiting import eventually

__all__ = ["eventually"]
