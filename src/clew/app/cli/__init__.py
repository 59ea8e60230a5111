"""The command line. Each command is one file; what it does lies below, in :mod:`clew.knowledge_base`."""

from __future__ import annotations


def main() -> None:
    """Run ``clew``."""
    from clew.app.cli.commands import app

    app()
