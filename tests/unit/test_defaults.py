"""Numbers that hold unless they are set: those that the pages name (WK-7, RT-2, RT-3, LM-1, LM-3, LM-5, LM-6, ID-4)."""

from __future__ import annotations

from datetime import timedelta

from korak.config import load_settings

SETTINGS = load_settings({})


def test_wk_7_the_numbers_that_hold_unless_they_are_set() -> None:
    engine, wake = SETTINGS.engine, SETTINGS.wake
    assert (engine.lease, engine.requeue_after, wake.batch, wake.interval, wake.poll) == (60, 30, 500, 1.0, 900)


def test_rt_2_and_rt_3_retries() -> None:
    retry = SETTINGS.retry
    assert (retry.max_attempts, list(retry.backoff), retry.jitter, retry.cap) == (3, [30, 120, 600], 0.1, 10)


def test_lm_1_lm_3_lm_6_limits_of_an_instance() -> None:
    limits = SETTINGS.limits
    assert (limits.max_steps, limits.max_starts_per_minute, limits.max_output_bytes) == (200, None, 64 << 10)
    assert (limits.max_loop_iterations, limits.max_input_bytes) == (1000, 64 << 10)


def test_lm_5_limits_of_a_graph() -> None:
    graph = SETTINGS.graph
    assert (graph.max_nodes, graph.max_edges, graph.max_bytes) == (500, 1000, 256 << 10)


def test_id_4_how_long_keys_are_known() -> None:
    assert SETTINGS.idempotency.ttl == timedelta(days=30)
