"""Commands of other packages, found by the entry points of the group ``clew.commands``."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app

MODULE = '''
"""Commands of a toy package."""
import typer

group = typer.Typer(help="Measure the toy.")


@group.command("fast")
def fast() -> None:
    """Measure it fast."""
    print("fast")


@group.command("slow")
def slow() -> None:
    """Measure it slowly."""
    print("slow")


def translate(text: str) -> None:
    """Translate TEXT."""
    print(text.upper())
'''
ENTRY_POINTS = """[clew.commands]
translate = toy_commands:translate
eval.toy = toy_commands:group
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package with two commands, installed beside clew."""
    folder = tmp_path / "toy-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "toy_commands.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("toy_commands", None)


def run(*words):
    return CliRunner().invoke(app, words)


def test_a_function_becomes_a_command_and_a_typer_app_a_group(toy):
    assert run("translate", "reeds").stdout == "REEDS\n"
    assert run("eval", "toy", "slow").stdout == "slow\n"
    assert "Translate TEXT" in run("translate", "--help").stdout
    assert "Measure it fast" in run("eval", "toy", "--help").stdout


def test_help_lists_the_commands_of_other_packages_beside_ours(toy):
    listing = run("--help").stdout
    assert "translate" in listing and "estimate" in listing and "Measure the toy" not in listing
    assert "Measure the toy" in run("eval", "--help").stdout


def test_an_unknown_command_is_still_an_error(toy):
    result = run("eval", "toys")
    assert result.exit_code == 2 and "No such command 'toys'" in result.stderr


@pytest.mark.slow
def test_our_own_commands_import_no_other_package(toy, tmp_path):
    code = (
        "import sys; from clew.app.cli.commands import app\n"
        "try:\n    app(['recipes', '--json'])\nexcept SystemExit:\n    pass\n"
        "assert 'toy_commands' not in sys.modules and 'clew.papers' not in sys.modules"
    )
    path = ":".join([str(tmp_path), *sys.path])
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env={"PYTHONPATH": path})
