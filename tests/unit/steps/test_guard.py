"""Which addresses may be called."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import SettingsError, StepFailed
from korak.steps.guard import Guard, is_public

CLOSED = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    *("::1", "::", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8"),
    *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:0808:0808::"),
    *("2001::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"),
]
OPEN = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", CLOSED)
def test_what_is_not_the_internet_at_large_is_refused(address: str) -> None:
    with pytest.raises(StepFailed) as caught:
        Guard().check("example.com", [address], 443)
    assert (caught.value.code, caught.value.params) == ("address_refused", {"host": "example.com"})


@pytest.mark.parametrize("address", OPEN)
def test_what_is_public_may_be_called(address: str) -> None:
    Guard().check("example.com", [address], 443)


@given(st.ip_addresses(v=4))
def test_whatever_ipv4_may_not_be_called_may_not_be_called_inside_ipv6(address: IPv4Address) -> None:
    number = int(address)
    mapped, compatible = IPv6Address((0xFFFF << 32) | number), IPv6Address(number)
    six_to_four = IPv6Address((0x2002 << 112) | (number << 80))
    assert not is_public(mapped)
    assert not is_public(compatible)
    assert not is_public(six_to_four)
    assert is_public(IPv6Address((0x64FF9B << 96) | number)) is is_public(address)


@given(st.ip_addresses())
def test_nothing_is_public_that_the_registries_keep_back(address: IPv4Address | IPv6Address) -> None:
    if is_public(address) and not str(address).startswith("64:ff9b::"):
        closed = (address.is_loopback, address.is_link_local, address.is_multicast, address.is_unspecified)
        assert not any(closed)
        assert address.is_global


def test_every_address_of_a_name_must_be_one_that_may_be_called() -> None:
    with pytest.raises(StepFailed):
        Guard().check("example.com", ["8.8.8.8", "10.0.0.1"], 443)


@pytest.mark.parametrize(
    ("entry", "host", "address", "port", "is_allowed"),
    [
        ("pay.local:9000", "pay.local", "10.0.0.1", 9000, True),
        ("pay.local:9000", "PAY.local.", "10.0.0.1", 9000, True),
        ("pay.local:9000", "pay.local", "10.0.0.1", 9001, False),
        ("pay.local:9000", "other.local", "10.0.0.1", 9000, False),
        ("pay.local", "pay.local", "127.0.0.1", 1, True),
        ("127.0.0.1:9000", "whatever", "127.0.0.1", 9000, True),
        ("127.0.0.1:9000", "whatever", "127.0.0.1", 80, False),
        ("127.0.0.1", "whatever", "127.0.0.1", 80, True),
        ("10.1.0.0/16", "whatever", "10.1.2.3", 80, True),
        ("10.1.0.0/16", "whatever", "10.2.2.3", 80, False),
        ("10.1.0.0/16:80", "whatever", "10.1.2.3", 81, False),
        ("::1", "whatever", "::1", 80, True),
        ("[::1]:80", "whatever", "::1", 80, True),
        ("[::1]:80", "whatever", "::1", 81, False),
        ("[fd00::/8]:80", "whatever", "fd12::1", 80, True),
        ("127.0.0.1", "whatever", "::ffff:127.0.0.1", 80, False),
    ],
)
def test_the_allow_list(entry: str, host: str, address: str, port: int, is_allowed: bool) -> None:
    guard = Guard.allowing([entry])
    try:
        guard.check(host, [address], port)
    except StepFailed:
        assert not is_allowed
    else:
        assert is_allowed


@pytest.mark.parametrize(
    "entry", ["", "http://a", "a b", "a:0", "a:70000", "10.0.0.1/8", "[::1", "a:b:c", "10.0.0.0/40"]
)
def test_an_entry_that_says_nothing_stops_the_start(entry: str) -> None:
    with pytest.raises(SettingsError):
        Guard.allowing([entry])


def test_a_scoped_address_is_looked_at_without_its_scope() -> None:
    with pytest.raises(StepFailed):
        Guard().check("x", ["fe80::1%eth0"], 80)
    assert not is_public(ip_address("fe80::1"))
