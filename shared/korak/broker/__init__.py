"""The broker port, its messages and its two implementations."""
