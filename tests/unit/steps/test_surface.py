"""What an author imports."""

from __future__ import annotations

import korak
from korak import chain, graph, step


def test_the_public_names_are_sorted_and_there() -> None:
    assert sorted(korak.__all__) == korak.__all__
    assert all(hasattr(korak, name) for name in korak.__all__)
    assert {"Outcome", "Retry", "StepContext", "StepFailed", "StepResult", "StepRetry", "StepType", "WaitSpec"} <= {
        *korak.__all__
    }


def test_chain_graph_and_step_stay_functions() -> None:
    """Packages are plural where a function has the name."""
    assert callable(chain)
    assert callable(graph)
    assert callable(step)
