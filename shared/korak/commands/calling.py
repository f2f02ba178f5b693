"""Calling the API from the command line: where it is, with which token, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from korak.client import Korak, Unreachable
from korak.client.finding import find_place
from korak.commands.running import read_settings
from korak.errors import KorakError, Problem

RETRIES = 2
"""How often a command tries again where nothing answers: a person waits for it."""


class Refusal(KorakError):
    """The API said no: its problem, as it was sent."""

    code = "refused"

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        self.status: int = status
        self.body: dict[str, Any] = dict(body)
        super().__init__(str(body.get("code") or "refused"), str(body.get("detail") or body.get("title") or status))

    @property
    def lines(self) -> list[str]:
        """What a person reads: the message with its code, then each error with its pointer."""
        return [f"{self.message} ({self.code}, {self.status})", *map(describe, self.body.get("errors") or [])]


class Caller:
    """Calls one API with one token. Raises Refusal for what it refuses, Unreachable where it can't be reached."""

    def __init__(self, url: str, token: str, *, owner: str | None = None) -> None:
        self.korak: Korak = Korak(url, token, owner=owner, retries=RETRIES)

    def get(self, path: str, *, wait: float = 0, **params: Any) -> Any:
        """The body of a GET. `wait`: seconds that the server may wait for an end."""
        asked = {name: value for name, value in params.items() if value is not None}
        with refusing():
            return self.korak.call("GET", path, params=asked, wait=wait)

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """The body of a POST's answer; `key` is its Idempotency-Key, one of its own if left out."""
        with refusing():
            return self.korak.post(path, body, key=key)

    def put(self, path: str, body: Any) -> Any:
        """The body of a PUT's answer."""
        with refusing():
            return self.korak.call("PUT", path, body=body)

    def download(self, path: str) -> Iterator[bytes]:
        """The pieces of a long answer."""
        with refusing():
            yield from self.korak.download(path)

    def upload(self, path: str, lines: bytes) -> Any:
        """The body of the answer to a POST of lines."""
        with refusing():
            return self.korak.upload(path, lines)

    def follow(self, path: str, after: int) -> Iterator[tuple[str, Any]]:
        """The name and data of each event of a stream behind a number, until its `end`."""
        with refusing():
            for sent in self.korak.stream(path, after):
                yield sent.name, sent.data


@contextmanager
def refusing() -> Iterator[None]:
    """Raise a Refusal for what the API refuses."""
    try:
        yield
    except Unreachable:
        raise
    except Problem as problem:
        if problem.body is None:
            raise
        raise Refusal(problem.status, problem.body) from None


def open_caller(owner: str | None = None) -> Caller:
    """The API that the settings name, else the one that `korak dev` runs here or in a directory above.

    Raises SettingsError where neither is there.
    """
    settings = read_settings().client
    place = find_place(settings.url, settings.token)
    return Caller(place.url, place.token, owner=owner)


def describe(error: Mapping[str, Any]) -> str:
    """One thing that is wrong or odd, on a line: where, what, and its code."""
    where = error.get("pointer") or "/"
    node = f" in node {error['node']}" if error.get("node") else ""
    return f"  {where}{node}: {error.get('message')} ({error.get('code')})"
