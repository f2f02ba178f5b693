"""What one claimer or recorder works with: a connection of its own, and the way from facts to changes on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from korak.clock import Clock
from korak.dispatch import Dispatcher
from korak.metrics import Metrics
from korak.store.database import Hot
from korak.store.transacting import Transactor


@dataclass(frozen=True, slots=True)
class Desk:
    """One worker's: nobody else uses its connection, and it makes one call at a time."""

    hot: Hot
    transactor: Transactor
    dispatcher: Dispatcher
    clock: Clock
    metrics: Metrics = field(default_factory=Metrics)

    @contextmanager
    def measure(self, what: str, rows: int) -> Iterator[None]:
        """Measure a batch: how many rows it has, and how long it takes."""
        began = self.clock.monotonic()
        try:
            yield
        finally:
            self.metrics.db_batch_rows.labels(what).observe(rows)
            self.metrics.db_seconds.labels(what).observe(self.clock.monotonic() - began)
