"""The command line. Each command is one file; what it does lies below, in :mod:`clew.api`."""

from __future__ import annotations


def main() -> None:
    """Run ``clew``."""
    from clew.cli.app import app

    app()
