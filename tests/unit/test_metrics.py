"""Metrics: named as the design names them, few series, readable across processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from korak.metrics import OTHER, Family, Metrics, get_code_label

PROMISED = {
    "korak_step_claims_total",
    "korak_step_results_total",
    "korak_step_retries_total",
    "korak_leases_expired_total",
    "korak_results_dropped_total",
    "korak_step_seconds",
    "korak_queue_wait_seconds",
    "korak_wake_lag_seconds",
    "korak_wake_handled_total",
    "korak_instances",
    "korak_instances_stuck",
    "korak_messages_total",
    "korak_dead_letters",
    "korak_starts_total",
    "korak_http_requests_total",
    "korak_http_request_seconds",
    "korak_db_seconds",
    "korak_db_batch_rows",
}

WRITER = """
import sys
from pathlib import Path
from korak.metrics import Metrics
metrics = Metrics(Path(sys.argv[1]))
metrics.starts.labels("created").inc(2)
metrics.instances.labels("running").set(5)
"""

READER = """
import sys
from pathlib import Path
from korak.metrics import Metrics
sys.stdout.buffer.write(Metrics(Path(sys.argv[1])).expose())
"""


def list_names(metrics: Metrics) -> set[str]:
    lines = metrics.expose().decode().splitlines()
    return {line.split()[2] for line in lines if line.startswith("# TYPE")}


def test_every_promised_metric_is_there() -> None:
    assert list_names(Metrics()) >= PROMISED


def test_every_metric_is_ours_and_says_what_it_is() -> None:
    for line in Metrics().expose().decode().splitlines():
        if line.startswith("# HELP"):
            _, _, name, text = line.split(maxsplit=3)
            assert name.startswith("korak_")
            assert text[0].isupper()


def test_counts_are_shown_with_their_labels() -> None:
    metrics = Metrics()
    metrics.step_claims.labels("default", "won").inc()
    metrics.leases_expired.inc(3)
    shown = metrics.expose().decode()
    assert 'korak_step_claims_total{queue="default",result="won"} 1.0' in shown
    assert "korak_leases_expired_total 3.0" in shown


def test_two_sets_of_metrics_do_not_meet() -> None:
    first, second = Metrics(), Metrics()
    first.starts.labels("created").inc()
    assert "created" not in second.expose().decode()


def test_labels_are_bounded() -> None:
    registry = CollectorRegistry()
    family = Family(Counter("korak_probe", "Probes", ["result"], registry=registry), 1, most=3)
    for number in range(10):
        family.labels(f"result-{number}").inc()
    shown = [line for line in generate_latest(registry).decode().splitlines() if line.startswith("korak_probe_total{")]
    assert len(shown) == 4
    assert f'korak_probe_total{{result="{OTHER}"}} 7.0' in shown


def test_a_missing_label_is_refused() -> None:
    with pytest.raises(ValueError, match="2 labels"):
        Metrics().step_claims.labels("default")


def test_only_our_own_codes_are_labels() -> None:
    assert get_code_label("timeout") == "timeout"
    assert get_code_label("acme.42") == OTHER


def test_processes_that_share_a_directory_are_shown_as_one(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=True)
    shown = subprocess.run([sys.executable, "-c", READER, str(tmp_path)], check=True, capture_output=True, text=True)
    assert 'korak_starts_total{result="created"} 4.0' in shown.stdout
    assert 'korak_instances{status="running"} 5.0' in shown.stdout
