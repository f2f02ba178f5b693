"""The newest snapshot of every instance that something here runs of: what the next result is decided from."""

from __future__ import annotations

from collections import Counter

from korak.core.snapshot import Snapshot


class Sights:
    """Kept while an attempt of the instance is held here. Bodies of one instance share what each has changed."""

    def __init__(self) -> None:
        self._newest: dict[int, Snapshot] = {}
        self._held: Counter[int] = Counter()

    def hold(self, snapshot: Snapshot) -> None:
        """One more attempt of the instance begins."""
        self._held[snapshot.instance.id] += 1
        self.see(snapshot)

    def drop(self, instance_id: int) -> None:
        """One attempt less is held."""
        self._held[instance_id] -= 1
        if self._held[instance_id] <= 0:
            del self._held[instance_id]
            self._newest.pop(instance_id, None)

    def see(self, snapshot: Snapshot) -> None:
        """What was committed. An older one than is known changes nothing."""
        instance = snapshot.instance
        if self._held.get(instance.id):
            known = self._newest.get(instance.id)
            if known is None or known.instance.lock_version <= instance.lock_version:
                self._newest[instance.id] = snapshot

    def find(self, instance_id: int) -> Snapshot | None:
        """The newest of the instance, or None where nothing of it runs here."""
        return self._newest.get(instance_id)

    def count(self, instance_id: int) -> int:
        """How many attempts of the instance are held here."""
        return self._held.get(instance_id, 0)
