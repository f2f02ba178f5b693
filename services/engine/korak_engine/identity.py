"""Who this engine is: its row, its types and queues, and the claims that it makes in their name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex

from korak.core.snapshot import Claimant
from korak.store.holds import View

TOKEN_BYTES = 13


@dataclass(slots=True)
class Identity:
    """An engine's id changes when somebody closed its row: what it held until then is no longer its own."""

    queues: frozenset[str]
    runs: Callable[[str, int], bool]
    engine_id: int = 0
    is_open: bool = field(default=False)
    view: View = field(default_factory=View)
    """The holds, as this engine last saw them."""

    def get_claimant(self) -> Claimant:
        """The engine with a new token: made before the transaction, so that a lost answer can be found again by it."""
        return Claimant(self.engine_id, token_hex(TOKEN_BYTES), self.queues, self.runs, self.view.known)
