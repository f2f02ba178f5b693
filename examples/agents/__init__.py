"""Chains with agents and people: a planner with its agents, a review, a publication that waits for a research."""
