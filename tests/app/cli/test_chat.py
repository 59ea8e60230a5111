"""``clew chat``: questions that refer to the one before, from a pipe."""

from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from serve_app import SAMPLES


def test_a_follow_up_is_asked_as_it_is_understood(tmp_path, monkeypatch, without_encoder) -> None:
    monkeypatch.chdir(tmp_path)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([SAMPLES / "lighter-hire-contract.pdf"])
    lines = "What does the hirer pay a day if the lighter is returned late?\nand a week?\nWhich document says so?\n"
    result = CliRunner().invoke(app, ["chat", "--kb", "kb"], input=lines)
    assert result.exit_code == 0, result.output
    assert "asked as: What does the hirer pay a week if the lighter is returned late?" in result.output
    assert result.stdout.count("Perhaps\n") == 3 and "$9" in result.stdout
    assert "1. lighter-hire-contract.pdf" in result.stdout.rpartition("Perhaps\n")[2]
