"""The client that is awaited: the source of both."""
