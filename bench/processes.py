"""The processes of a benchmark, and what each of them costs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def run(name: str, environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One service for as long as the block lasts; it is told to stop at the end and must obey."""
    with log.open("wb") as output:
        command = [sys.executable, "-m", "korak", name]
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=output)
        try:
            yield process
        except BaseException:
            sys.stderr.write(log.read_text(errors="replace")[-4000:])
            raise
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def read_cpu(pid: int) -> float:
    """CPU seconds that a process has used, its ended children included."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS


def read_memory(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def read_cpu_by_name(name: str, *marks: str) -> float:
    """CPU seconds that all processes of a name have used; with marks only those whose command line bears one."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
            command = stat.with_name("cmdline").read_text()
        except OSError:
            continue
        is_named = text.partition("(")[2].rpartition(")")[0] == name
        if is_named and (not marks or any(mark in command for mark in marks)):
            total += sum(int(ticks) for ticks in text.rpartition(")")[2].split()[11:13]) / TICKS
    return total


def read_postgres_cpu(database: str) -> float:
    """CPU seconds of the server processes that work for one database, and of those that work for all."""
    return read_cpu_by_name("postgres", f" {database} ", "walwriter", "checkpointer", "background writer")
