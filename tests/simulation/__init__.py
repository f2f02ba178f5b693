"""A simulation of the system around the core, in which one seed decides everything: `python -m tests.simulation`."""
