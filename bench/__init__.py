"""Benchmarks: `make bench` runs the workload and prints its table."""
