"""``python -m clew``: the command line, where its script is not on the path."""

from __future__ import annotations

from clew.app.cli.commands import app

app()
