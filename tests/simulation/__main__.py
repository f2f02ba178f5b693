"""Run the simulation by hand: `python -m tests.simulation --seed 1 --seeds 100 --steps 5000`."""

from __future__ import annotations

import argparse
import gc
import sys
from collections import Counter
from time import process_time

from tests.simulation.store import EVERY
from tests.simulation.world import World, run

PROGRESS = 50_000
"""After so many steps of a seed a line says how far it is."""


def main() -> None:
    """Run so many seeds from one on, and say what happened in them."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--every", type=int, default=EVERY, help="check all of a run after so many of its changes")
    given = parser.parse_args()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    counts: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.seeds):
        world = _run(seed, given.steps, given.every)
        counts.update(world.counts)
        counts.update(world.store.counts)
    lines = [f"{given.seeds} seeds of {given.steps} steps each"]
    lines += [f"{count:9,}  {what}" for what, count in counts.most_common()]
    _say("\n".join(lines))


def _run(seed: int, steps: int, every: int) -> World:
    began, said = process_time(), 0

    def tell(done: int) -> None:
        nonlocal said
        if done - said >= PROGRESS or done == steps:
            said = done
            _say(f"seed {seed}: {done:,} steps, {done / (process_time() - began):,.0f} a second")

    try:
        return run(seed, steps, every=every, tell=tell)
    except BaseException:
        _say(f"seed {seed}: failed; --every 1 finds the very step")
        raise


def _say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
