"""Step types: the contract, the registry and the built-in ones."""
