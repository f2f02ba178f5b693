"""Structured logs to stderr: with instance, node, attempt and owner, and without what is secret."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import Processor

from korak.config import Logs

MASK = "***"
SECRET_NAMES = frozenset({"authorization", "cookie", "password", "secret", "token"})
TALKERS = ("httpx", "httpcore")
"""Libraries that log every address they call, with what is secret in it."""

SHORTEST = 4
"""Values shorter than this aren't hidden: they would blank half of every line."""

_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+(@)")
_hidden: ContextVar[tuple[Collection[str], ...]] = ContextVar("korak_hidden", default=())


def configure(settings: Logs, stream: TextIO | None = None) -> None:
    """Send all logs, structlog's and the standard library's, to the stream (stderr) in the chosen form."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _get_renderer(settings)],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.level.upper())
    for talker in TALKERS:
        logging.getLogger(talker).setLevel(max(root.level, logging.WARNING))


def about(**fields: str | int | None) -> Any:
    """A context in which every line carries the fields: instance, node, attempt, owner."""
    return bound_contextvars(**{name: value for name, value in fields.items() if value is not None})


@contextmanager
def hiding(values: Collection[str]) -> Iterator[None]:
    """A context in which no line shows one of the values: the secrets that an attempt was given, or is given yet."""
    token = _hidden.set((*_hidden.get(), values))
    try:
        yield
    finally:
        _hidden.reset(token)


def scrub(text: str) -> str:
    """The text without the values that are hidden here, and without passwords in addresses."""
    known = {value for values in _hidden.get() for value in tuple(values) if len(value) >= SHORTEST}
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, MASK)
    return _PASSWORD.sub(rf"\1{MASK}\2", text) if "://" in text else text


def redact(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take what is secret out of one line: by its name, by its value, and from inside addresses."""
    for name, value in event.items():
        if not name.startswith("_"):  # structlog's own
            event[name] = MASK if name.lower() in SECRET_NAMES else _clean(value)
    return event


def _clean(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {key: MASK if str(key).lower() in SECRET_NAMES else _clean(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean(inner) for inner in value]
        case _:
            return scrub(str(value))


def _get_renderer(settings: Logs) -> Processor:
    if settings.format == "json":
        return structlog.processors.JSONRenderer(default=str)
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
