"""200,000 steps of the simulated system, the invariants checked after each (DESIGN sections 4 and 12)."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.simulation.world import World, run

SEEDS = range(1, 21)
STEPS = 10_000

EVERYTHING = (
    "recorded at once",
    "recorded under the lock",
    "recorded together",
    "claimed together",
    "adopted",
    "died",
    "frozen",
    "engine closed",
    "engine found itself closed",
    "answer lost",
    "statement failed",
    "Lost",
    "Finished: stale_token",
    "Claimed: not_ready",
    "Claimed: nothing_due",
    "Claimed: no_engine_for_type",
    "Claimed: limit",
    "Claimed: held",
    "held otherwise",
    "unheld",
    "roused",
    "HandedBack",
    "DeadlinePassed",
    "RetryAsked",
    "RewindAsked",
    "ForkAsked",
    "InstanceForked",
    "HooksRetried",
    "CancelAsked",
    "PauseAsked",
    "ResumeAsked",
    "ended",
    "ended below another",
    "cascaded",
    "brought",
    "held still",
    "undone",
    "BodyCompleted",
    "BodyFailed",
    "for_each completed",
    "for_each failed",
    "parallel completed",
    "scope completed",
    "start_workflow completed",
    "start_workflow failed",
    "start_workflows completed",
    "wait_workflows completed",
    "wait_workflows failed",
    "tests.simulation.chaining.hop completed",
    "signal discarded",
)
"""What must have happened somewhere in it: a simulation in which nothing goes wrong shows nothing."""


def get_hint(seed: int, steps: int) -> str:
    """How to see that seed alone again."""
    return f"replay it: KORAK_TEST_SIM_SEED={seed} KORAK_TEST_SIM_STEPS={steps} pytest tests/simulation -k replay"


def simulate(seed: int, steps: int) -> World:
    """One seed's world; a failure says how to replay it."""
    try:
        return run(seed, steps)
    except Exception as error:
        error.add_note(get_hint(seed, steps))
        raise


@pytest.mark.timeout(300)
def test_whatever_goes_wrong_every_instance_ends_and_nothing_is_lost() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        world = simulate(seed, STEPS)
        counts.update(world.counts)
        counts.update(world.store.counts)
    assert [what for what in EVERYTHING if not counts[what]] == []


def test_one_seed_makes_one_world() -> None:
    first, second = run(7, 1_000), run(7, 1_000)
    assert (first.counts, first.store.counts, first.now) == (second.counts, second.store.counts, second.now)


@pytest.mark.skipif("KORAK_TEST_SIM_SEED" not in os.environ, reason="replays the seed that KORAK_TEST_SIM_SEED names")
@pytest.mark.timeout(0)
def test_replay() -> None:
    run(int(os.environ["KORAK_TEST_SIM_SEED"]), int(os.environ.get("KORAK_TEST_SIM_STEPS", STEPS)))
