"""Which addresses may be called from here: public ones, and those that a setting allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from korak.errors import SettingsError, StepFailed

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_CLOSED_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, and the clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_OPEN_V6: Final = IPv6Network("2000::/3")
"""All that is handed out of IPv6; loopback, mapped, link-local, site-local, unique-local and multicast lie outside."""
_CLOSED_V6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo in them
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ENTRY = re.compile(r"\[(?P<inner>[^\]]+)\](?::(?P<port6>\d{1,5}))?|(?P<host>[^:\s]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Allowed:
    """One entry of the allow list: a host by name or a network, at one port or at all."""

    host: str | None
    network: Network | None
    port: int | None

    def covers(self, host: str, address: Address, port: int) -> bool:
        """Whether a call to `host`, which is at `address`, is allowed by this entry."""
        if self.port is not None and self.port != port:
            return False
        return host == self.host if self.network is None else address in self.network


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides about the address that is connected to, after the name was resolved: never about the name alone."""

    allowed: tuple[Allowed, ...] = ()

    @classmethod
    def allowing(cls, entries: Iterable[str]) -> Guard:
        """A guard with an allow list of `host`, `host:port`, addresses and networks. Raises SettingsError."""
        return cls(tuple(read_entry(entry) for entry in entries))

    def check(self, host: str, addresses: Sequence[str], port: int) -> None:
        """Raises `address_refused` unless every one of `addresses`, which `host` resolved to, may be called."""
        name = host.rstrip(".").lower()
        for text in addresses:
            address = ip_address(text.partition("%")[0])
            if not (is_public(address) or any(entry.covers(name, address, port) for entry in self.allowed)):
                raise StepFailed("address_refused", host=host)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the internet at large, looked at through what embeds another one."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_V4)
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)


def read_entry(text: str) -> Allowed:
    """One entry of the allow list as it is written. Raises SettingsError."""
    if (network := _read_network(text)) is not None:
        return Allowed(None, network, None)
    host, port = _split(text)
    if (network := _read_network(host)) is not None:
        return Allowed(None, network, port)
    if "/" in host or ":" in host:
        raise _unreadable(text)
    return Allowed(host.rstrip(".").lower(), None, port)


def _read_network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def _split(text: str) -> tuple[str, int | None]:
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise _unreadable(text)
    port = match["port6"] or match["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise _unreadable(text)
    return match["inner"] or match["host"], int(port) if port else None


def _unreadable(text: str) -> SettingsError:
    return SettingsError(message=f"{text!r} is no host, address or network, with or without a port")
