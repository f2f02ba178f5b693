"""Whose things are whose: owners, the tokens that speak for them, what a role may, and the context of all work."""
