"""The migrations of the schema `korak`."""
