"""The directory that `korak dev` lives in: who uses it, its token, and what it leaves for the commands."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from korak.errors import SettingsError
from korak.owners.tokens import create_secret

DEFAULT = Path(".korak")


@dataclass(frozen=True, slots=True)
class Home:
    """What stands in it, all of it for its owner's eyes only."""

    directory: Path

    @property
    def postgres(self) -> Path:
        """The data of the embedded Postgres."""
        return self.directory / "postgres"

    def get_token(self) -> str:
        """The token that is kept here, made where there is none."""
        file = self.directory / "token"
        if file.exists() and (known := file.read_text().strip()):
            return known
        return self.change_token()

    def change_token(self) -> str:
        """A new token, kept here from now on."""
        token = create_secret()
        write_private(self.directory / "token", token.encode() + b"\n")
        return token

    def leave_client(self, url: str, token: str) -> None:
        """Where the commands find the API."""
        write_private(self.directory / "client.json", orjson.dumps({"url": url, "token": token}) + b"\n")

    def leave_database(self, url: str, effect_url: str | None) -> None:
        """Where the commands that work on the database find it."""
        write_private(self.directory / "database.json", orjson.dumps({"url": url, "effect_url": effect_url}) + b"\n")


@contextmanager
def enter(directory: Path) -> Iterator[Home]:
    """Make the directory where it is missing and have it alone. Raises SettingsError where another process has it."""
    directory = directory.expanduser().resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(
            message=f"{directory} can't be used ({error.strerror}): give --data another one."
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"korak dev runs on {directory} already: stop it, or give --data another directory."
            raise SettingsError(message=why) from None
        yield Home(directory)
    finally:
        os.close(lock)


def write_private(file: Path, content: bytes) -> None:
    """Put a file in place as a whole, readable by its owner alone from its first byte on."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
    draft.replace(file)
