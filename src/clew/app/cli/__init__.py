"""The command line. Its commands parse options and print results; the work is done by :mod:`clew.knowledge_base`."""

from __future__ import annotations


def main() -> None:
    """Run ``clew``."""
    from clew.app.cli.commands import app

    app()
