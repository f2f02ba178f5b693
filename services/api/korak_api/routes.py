"""Every operation of the API, in one table."""

from __future__ import annotations

from typing import Final

from korak_api import definitions, general, instances, starts
from korak_api.operations import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *definitions.OPERATIONS,
    *starts.OPERATIONS,
    *instances.OPERATIONS,
    *general.OPERATIONS,
)
