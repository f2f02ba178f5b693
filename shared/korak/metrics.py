"""Every metric of Korak, in one place, with labels that stay few."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from korak.codes import MESSAGES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
MOST = 500
"""How many different sets of labels one metric has at most; all later ones are counted together."""

QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

M = TypeVar("M", Counter, Gauge, Histogram)


class Family(Generic[M]):
    """One metric with labels. `labels` costs a look into a dict, and never makes more than `most` series."""

    def __init__(self, metric: M, width: int, most: int = MOST) -> None:
        self._metric: M = metric
        self._width = width
        self._most = most
        self._children: dict[tuple[str, ...], M] = {}

    def labels(self, *given: str) -> M:
        """The series with these values, or the one of all others where there are too many already."""
        child = self._children.get(given)
        if child is None:
            if len(given) != self._width:
                raise ValueError(f"{self._width} labels, not {len(given)}")
            kept = given if len(self._children) < self._most else (OTHER,) * self._width
            child = self._metric.labels(*kept) if given else self._metric
            if kept is given:
                self._children[given] = child
        return child


class Metrics:
    """All metrics of one process. Made where a service is composed, and passed down."""

    def __init__(self, directory: Path | None = None) -> None:
        """With a directory the processes that share it are shown as one."""
        self._is_shared = directory is not None
        if directory is not None:
            _share(directory)
        disable_created_metrics()
        self.registry: CollectorRegistry = CollectorRegistry()

        self.step_claims: Family[Counter] = self._count("step_claims", "Claims of steps", "queue", "result")
        self.step_results: Family[Counter] = self._count("step_results", "Attempts that ended", "type", "result")
        self.step_retries: Family[Counter] = self._count("step_retries", "Attempts to be tried again", "type", "code")
        self.leases_expired: Counter = self._count(
            "leases_expired", "Attempts that were lost with their engine"
        ).labels()
        self.results_dropped: Family[Counter] = self._count("results_dropped", "Results that came too late", "reason")
        self.step_seconds: Histogram = self._time("step_seconds", "Time in a handler", SLOW).labels()
        self.queue_wait_seconds: Histogram = self._time(
            "queue_wait_seconds", "Time from ready to claimed", SLOW
        ).labels()
        self.step_threads_lost: Gauge = self._gauge("step_threads_lost", "Threads that a timed-out step keeps").labels()
        self.transitions: Family[Counter] = self._count(
            "transitions", "Changes of state that were applied", "transition"
        )
        self.wake_lag_seconds: Family[Histogram] = self._time(
            "wake_lag_seconds", "Time from due to handled", SLOW, "kind"
        )
        self.wake_handled: Family[Counter] = self._count("wake_handled", "Rows that a wake pass handled", "kind")
        self.loop_errors: Family[Counter] = self._count("loop_errors", "Rounds of a periodic duty that failed", "duty")
        self.instances: Family[Gauge] = self._gauge("instances", "Open instances", "status")
        self.instances_stuck: Family[Gauge] = self._gauge(
            "instances_stuck", "Open instances that nothing will move", "reason"
        )
        self.messages: Family[Counter] = self._count("messages", "Messages", "queue", "way")
        self.dead_letters: Gauge = self._gauge("dead_letters", "Messages that couldn't be read").labels()
        self.starts: Family[Counter] = self._count("starts", "Starts of instances", "result")
        self.http_requests: Family[Counter] = self._count(
            "http_requests", "Requests answered", "method", "route", "status"
        )
        self.http_request_seconds: Family[Histogram] = self._time(
            "http_request_seconds", "Time of a request", QUICK, "method", "route"
        )
        self.db_seconds: Family[Histogram] = self._time("db_seconds", "Time of a transaction", QUICK, "name")
        self.db_batch_rows: Family[Histogram] = self._time(
            "db_batch_rows", "Rows of a batch", (1, 2, 5, 10, 20, 50, 100, 200, 500), "name"
        )

    def expose(self) -> bytes:
        """As Prometheus reads it."""
        if not self._is_shared:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return generate_latest(registry)

    def close(self) -> None:
        """Take this process's gauges out of the shared directory."""
        if self._is_shared:
            mark_process_dead(os.getpid())

    def _count(self, name: str, help_text: str, *labels: str) -> Family[Counter]:
        return Family(Counter(f"korak_{name}", help_text, labels, registry=self.registry), len(labels))

    def _gauge(self, name: str, help_text: str, *labels: str) -> Family[Gauge]:
        mode: Literal["livemostrecent"] = "livemostrecent"
        gauge = Gauge(f"korak_{name}", help_text, labels, registry=self.registry, multiprocess_mode=mode)
        return Family(gauge, len(labels))

    def _time(self, name: str, help_text: str, buckets: Sequence[float], *labels: str) -> Family[Histogram]:
        histogram = Histogram(f"korak_{name}", help_text, labels, buckets=buckets, registry=self.registry)
        return Family(histogram, len(labels))


def get_code_label(code: str) -> str:
    """The code as a label: one of ours, or `other` for what step code made up."""
    return code if code in MESSAGES else OTHER


def _share(directory: Path) -> None:
    """prometheus_client keeps values in memory or in files: chosen by a variable, for the whole process."""
    directory.mkdir(parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    values.ValueClass = values.MultiProcessValue()
