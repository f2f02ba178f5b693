"""The bound on what one config's values may come to."""

from __future__ import annotations

import pytest

from korak.graphs.room import Oversized, Room


def test_what_there_is_room_for_goes_in_and_one_byte_more_does_not() -> None:
    room = Room(10)
    room.take("12345")
    room.take([1, 2])
    assert room.left == 0
    with pytest.raises(Oversized):
        room.take("6")


def test_what_is_no_json_takes_no_room_and_is_refused_where_it_is_stored() -> None:
    room = Room(10)
    room.take([1 << 70])
    assert room.left == 10
