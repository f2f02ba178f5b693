"""Chains: workflows written as one fluent line of Python, compiled to graph documents."""

from __future__ import annotations

from korak.chains.builder import Chain, chain

__all__ = ["Chain", "chain"]
