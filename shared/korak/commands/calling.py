"""Calling the API from the command line: where it is, with which token, and what a refusal looks like."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from korak.commands.running import read_settings
from korak.dev.home import DEFAULT
from korak.errors import KorakError, SettingsError

TIMEOUT = 10.0
"""Seconds that an answer may take beyond what a request asks to wait."""


QUIET = 60.0
"""Seconds without a word after which a stream counts as lost."""
ATTEMPTS = 5
PAUSE = 1.0
"""How often a stream that is lost is opened again before it is given up, and the seconds between."""


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
        return [f"{self.message} ({self.code}, {self.status})", *map(_describe, self.body.get("errors") or [])]


class Unreachable(KorakError):
    """Nothing answers where the API is said to be."""

    code = "unavailable"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: Any
    etag: str | None


class Caller:
    """Calls one API with one token. Raises Refusal for what it refuses, Unreachable where it can't be reached."""

    def __init__(self, url: str, token: str, *, owner: str | None = None) -> None:
        headers = {"authorization": f"Bearer {token}"}
        if owner is not None:
            headers["korak-owner"] = owner
        self._url = url
        self._client = httpx.Client(base_url=url, headers=headers, trust_env=False)

    def get(self, path: str, *, wait: float = 0, **params: Any) -> Any:
        """The body of a GET. `wait`: seconds that the server may wait for an end."""
        asked = {name: value for name, value in params.items() if value is not None}
        return self.send("GET", path, params=asked, wait=wait).body

    def post(self, path: str, body: Any = None, **headers: str | None) -> Any:
        """The body of a POST's answer; headers by their names with underscores."""
        return self.send("POST", path, body={} if body is None else body, headers=headers).body

    def follow(self, path: str, after: int) -> Iterator[tuple[str, Any]]:
        """The name and data of each event of a stream behind a number, until its `end`.

        Where the connection is lost it goes on behind the last number that came.
        """
        failures, name = 0, ""
        while name != "end":
            try:
                with self._client.stream("GET", path, params={"after": after}, timeout=QUIET) as response:
                    if not response.is_success:
                        response.read()
                        _read(response)
                    for name, number, data in read_events(response.iter_lines()):
                        after, failures = after if number is None else number, 0
                        yield name, data
            except httpx.TransportError as error:
                failures += 1
                if failures > ATTEMPTS:
                    raise self._give_up(error) from None
            if name != "end":
                threading.Event().wait(PAUSE)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        wait: float = 0,
    ) -> Answer:
        """Any request."""
        given = {name.replace("_", "-"): value for name, value in (headers or {}).items() if value is not None}
        if body is not None:
            given["content-type"] = "application/json"
        asked = {**(params or {}), **({"wait": f"{wait:g}"} if wait else {})}
        try:
            response = self._client.request(
                method,
                path,
                content=None if body is None else orjson.dumps(body),
                params=asked,
                headers=given,
                timeout=TIMEOUT + wait,
            )
        except httpx.TransportError as error:
            raise self._give_up(error) from None
        return _read(response)

    def _give_up(self, error: Exception) -> Unreachable:
        why = f"Nothing answers at {self._url} ({type(error).__name__}). Is korak dev running?"
        return Unreachable("unavailable", why)


def read_events(lines: Iterable[str]) -> Iterator[tuple[str, int | None, Any]]:
    """The name, number and data of each server-sent event that is whole."""
    read: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if line and name:
            read[name] = value.removeprefix(" ")
        elif not line and "data" in read:
            number = read.get("id")
            yield read.get("event", "message"), None if number is None else int(number), orjson.loads(read["data"])
            read = {}


def open_caller(owner: str | None = None) -> Caller:
    """The API that the settings name, else the one that `korak dev` runs here or in a directory above.

    Raises SettingsError where neither is there.
    """
    settings = read_settings().client
    left = find_left("client.json") if settings.url is None or settings.token is None else {}
    url, token = settings.url or left.get("url"), settings.token or left.get("token")
    if url is None or token is None:
        why = "Where is Korak? Run korak dev in this directory, or set KORAK_CLIENT__URL and KORAK_CLIENT__TOKEN."
        raise SettingsError(message=why)
    return Caller(url, token, owner=owner)


def find_left(name: str) -> dict[str, str]:
    """A file that `korak dev` has left here or in the nearest directory above; empty where there is none."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        file = directory / DEFAULT / name
        try:
            found = orjson.loads(file.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return {str(key): str(value) for key, value in found.items() if value is not None}
    return {}


def _read(response: httpx.Response) -> Answer:
    try:
        body = orjson.loads(response.content) if response.content else None
    except orjson.JSONDecodeError:
        body = None
        if response.is_success:
            raise Unreachable("unavailable", f"{response.url} answers, but it isn't Korak's API.") from None
    if not response.is_success:
        fallback = {"detail": f"{response.url} answered {response.status_code} {response.reason_phrase}"}
        raise Refusal(response.status_code, body if isinstance(body, dict) else fallback)
    return Answer(response.status_code, body, response.headers.get("etag"))


def _describe(error: Mapping[str, Any]) -> str:
    where = error.get("pointer") or "/"
    node = f" in node {error['node']}" if error.get("node") else ""
    return f"  {where}{node}: {error.get('message')} ({error.get('code')})"
