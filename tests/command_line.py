"""The commands as a person runs them, in this process."""

from typer.testing import CliRunner

from clew.app.cli.commands import app


def run(*words, status=0):
    """Run a command, which must end with ``status``; return what it printed and how it ended."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == status, result.output
    return result
