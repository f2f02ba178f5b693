"""The waker service."""
