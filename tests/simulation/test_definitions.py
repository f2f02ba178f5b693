"""The versions of a world: what nobody runs is gone, and a run that comes late brings its own."""

from __future__ import annotations

from korak.core.decide import decide
from korak.core.facts import Started
from korak.core.opening import Opening, open_instance
from korak.core.snapshot import Policy
from tests.simulation.definitions import OWNER
from tests.simulation.world import World
from tests.support.handlers import at


def test_a_run_may_be_recorded_after_its_version_was_replaced_and_forgotten() -> None:
    world = World(1)
    version = world.definitions.newest["d1"]
    memory = world.store.memory
    opening = Opening(world.nesting.make_ulid(), version, OWNER, {})
    changes = decide(open_instance(opening, Policy(), at(0)), Started(), at(0))
    while world.definitions.newest["d1"] is version:
        world.definitions.publish()
    world.definitions.forget([])
    assert version.version_id not in memory.plans
    world.store.prepare([changes], world.client.ids)
    assert memory.apply_all([changes], lambda: None) == {changes.instance.id}
    assert memory.load(changes.instance.id).plan is version.plan
