"""The escalator service."""
