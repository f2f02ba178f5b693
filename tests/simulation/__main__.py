"""Run the simulation by hand: `python -m tests.simulation --seed 1 --seeds 100 --steps 5000`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.simulation.world import run


def main() -> None:
    """Run so many seeds from one on, and say what happened in them."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5_000)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.seeds):
        world = run(seed, given.steps)
        counts.update(world.counts)
        counts.update(world.store.counts)
    lines = [f"{given.seeds} seeds of {given.steps} steps each"]
    lines += [f"{count:9,}  {what}" for what, count in counts.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
