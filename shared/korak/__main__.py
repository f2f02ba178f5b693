"""`python -m korak`: the command line without its script."""

from __future__ import annotations

from korak.cli import main

if __name__ == "__main__":
    main()
