"""Korak, a durable workflow engine on Postgres."""
