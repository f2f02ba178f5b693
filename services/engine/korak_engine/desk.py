"""What one claimer or recorder works with: a connection of its own, and the way from facts to changes on it."""

from __future__ import annotations

from dataclasses import dataclass

from korak.clock import Clock
from korak.dispatch import Dispatcher
from korak.store.database import Hot
from korak.store.transacting import Transactor


@dataclass(frozen=True, slots=True)
class Desk:
    """One worker's: nobody else uses its connection, and it makes one call at a time."""

    hot: Hot
    transactor: Transactor
    dispatcher: Dispatcher
    clock: Clock
