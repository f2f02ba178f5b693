"""Every operation of the API, in one table."""

from __future__ import annotations

from typing import Final

from korak_api import (
    commands,
    copies,
    definitions,
    following,
    general,
    holding,
    instances,
    leavings,
    signals,
    starts,
    tokens,
    weighing,
)
from korak_api.operations import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *definitions.OPERATIONS,
    *starts.OPERATIONS,
    *instances.OPERATIONS,
    *leavings.OPERATIONS,
    *following.OPERATIONS,
    *commands.OPERATIONS,
    *copies.OPERATIONS,
    *signals.OPERATIONS,
    *holding.OPERATIONS,
    *tokens.OPERATIONS,
    *weighing.OPERATIONS,
    *general.OPERATIONS,
)
