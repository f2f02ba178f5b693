"""Secrets by name: from files, the environment or a provider, by owner; and taking them out of what is written down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from korak.errors import StepFailed
from korak.model import APP_WIDE, Json

Provider: TypeAlias = Callable[[str, str], str | None]
"""Answers (name, owner scope) with the secret, or None. It is called on the loop and may not block."""

MASK: Final = "[secret]"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,190}")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where secrets are looked up, in this order.

    The provider; the file `<directory>/<owner scope>/<name>` (the scope percent-encoded), then `<directory>/<name>` for
    every owner; last `<prefix><NAME>` of the environment, dots and dashes as underscores. A file's last line break
    isn't part of it.
    """

    directory: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: str | None = None
    provider: Provider | None = None

    def get(self, name: str, scope: str = APP_WIDE) -> str:
        """The secret `name` as `scope` sees it. Raises `secret_missing`."""
        found = self._find(name, scope) if _NAME.fullmatch(name) else None
        if found is None:
            raise StepFailed("secret_missing", name=name)
        return found

    def _find(self, name: str, scope: str) -> str | None:
        if self.provider is not None and (found := self.provider(name, scope)) is not None:
            return found
        if (found := self._read(name, scope)) is not None:
            return found
        if self.prefix is None:
            return None
        return self.environment.get(self.prefix + re.sub(r"[.-]", "_", name).upper())

    def _read(self, name: str, scope: str) -> str | None:
        if self.directory is None:
            return None
        places = [self.directory / name]
        if scope != APP_WIDE:
            places.insert(0, self.directory / _encode(scope) / name)
        for place in places:
            if place.is_file():
                return place.read_text("utf-8").removesuffix("\n").removesuffix("\r")
        return None


def scrub(text: str, values: Iterable[str]) -> str:
    """`text` without any of `values`, also as they stand in a URL or in JSON."""
    forms = {form for value in values if value for form in _list_forms(value)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def scrub_json(value: Json, values: Iterable[str]) -> Json:
    """`value` with every string and key in it scrubbed."""
    secrets = tuple(values)
    if not secrets:
        return value
    match value:
        case str():
            return scrub(value, secrets)
        case list():
            return [scrub_json(member, secrets) for member in value]
        case dict():
            return {scrub(key, secrets): scrub_json(member, secrets) for key, member in value.items()}
        case _:
            return value


def _list_forms(value: str) -> set[str]:
    in_json = (json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))
    return {value, quote(value, safe=""), quote(value), *in_json}


def _encode(scope: str) -> str:
    return quote(scope, safe="@").replace(".", "%2E") if set(scope) <= {"."} else quote(scope, safe=":@")
