"""The commands of `korak`, a module a group: each of `MODULES` has a `register(app)` that adds its own.

The other modules are read when a command needs them, and not at every call.
"""

from __future__ import annotations

from typing import Final

MODULES: Final = (
    *("admitting", "answering", "copying", "dev", "doctor", "holds", "instances", "leavings", "migrating"),
    *("publishing", "services", "settings", "starting", "syncing", "waking", "weighing"),
)
