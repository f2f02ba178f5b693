"""How the text of a setting becomes a value: durations, names, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

_SECONDS = re.compile(r"\d{1,10}(\.\d{1,6})?")
_ISO = re.compile(
    r"P(?!$)(?:(?P<weeks>\d{1,5})W)?(?:(?P<days>\d{1,5})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,7})H)?(?:(?P<minutes>\d{1,8})M)?(?:(?P<seconds>\d{1,10}(?:\.\d{1,6})?)S)?)?"
)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def parse_interval(value: object) -> timedelta:
    """A length of time: seconds, or ISO 8601 in weeks, days, hours, minutes and seconds. Raises ValueError."""
    if isinstance(value, timedelta):
        return value
    text = str(value).strip()
    if _SECONDS.fullmatch(text):
        return timedelta(seconds=float(text))
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError("write seconds, or an ISO 8601 duration such as PT1H30M")
    return timedelta(**{unit: float(count) for unit, count in found.groupdict().items() if count})


def parse_seconds(value: object) -> float:
    """The same as a number of seconds."""
    return parse_interval(value).total_seconds()


def split(value: object) -> object:
    """The parts between the commas of a text; anything else as it is."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def check_module(name: str) -> str:
    """A name that can be imported. Raises ValueError."""
    if not _MODULE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a module on the Python path")
    return name


def check_target(target: str) -> str:
    """An address that may be called: host:port or a network. Raises ValueError."""
    host, separator, port = target.rpartition(":")
    if separator and host.strip("[]") and port.isdecimal() and int(port) <= 65535:
        return target
    try:
        ip_network(target)
    except ValueError:
        raise ValueError(f"{target!r} is neither host:port nor a network such as 10.0.0.0/8") from None
    return target


def begins(*schemes: str) -> Callable[[str], str]:
    """A check that an address has one of the schemes. The message never repeats the address: it may hold a password."""

    def check(url: str) -> str:
        if url and not url.startswith(schemes):
            raise ValueError(f"it begins with {' or '.join(schemes)}")
        return url

    return check


Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=2**53)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
Seconds: TypeAlias = Annotated[float, BeforeValidator(parse_seconds), Field(gt=0)]
Interval: TypeAlias = Annotated[timedelta, BeforeValidator(parse_interval)]
Names: TypeAlias = Annotated[tuple[Text, ...], BeforeValidator(split), Field(min_length=1)]
Modules: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_module)], ...], BeforeValidator(split)]
Targets: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_target)], ...], BeforeValidator(split)]
Delays: TypeAlias = Annotated[tuple[Seconds, ...], BeforeValidator(split)]
DatabaseUrl: TypeAlias = Annotated[
    str, AfterValidator(begins("postgresql://", "postgres://", "postgresql+asyncpg://", "postgresql+psycopg://"))
]
AmqpUrl: TypeAlias = Annotated[str, AfterValidator(begins("amqp://", "amqps://"))]
HttpUrl: TypeAlias = Annotated[str, AfterValidator(begins("http://", "https://"))]
