"""The commands of `korak`, a module a group. Each has a `register(app)` that adds its own."""
