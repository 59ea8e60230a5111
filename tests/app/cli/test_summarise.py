"""``clew summarise``, and drilling from the command line."""

import json

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from scripted import ScriptedServer

REPORT = """# History

The first lighter was built at the yard of Osk Brothers in 1871. It carried coal to the quay every day of the year.

# Owners

The Tolland Coal Company owned the lighters. Its director was Maria Hale, who had every one of them painted red.
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "lighters.md").write_text(REPORT)
    kb = str(tmp_path / "kb")
    runner = CliRunner()

    def call(*arguments, fails=False):
        result = runner.invoke(app, [*arguments, "--kb", kb])
        assert (result.exit_code != 0) == fails, result.output
        return result

    call("add", str(tmp_path / "lighters.md"))
    return call


def test_extractive_summaries_are_made_once_and_faithful(run):
    first = json.loads(run("summarise", "--words", "12", "--json").stdout)
    assert first["made"] == first["summaries"] == 2
    assert first["faithful"] == 1.0 and first["unfaithful"] == []
    again = run("summarise", "--words", "12")
    assert "0 made" in again.stdout
    assert "2 summaries by extractive(words=12), 100.0% faithful" in again.stdout
    assert "made by extractive(words=12)  2 parts" in run("info").stdout


def test_a_model_is_asked_only_after_the_cost_was_said_and_is_checked(run):
    def reply(request):
        if "Section: Owners" in request.user:
            return "The Tolland Coal Company of Brandt owned them."
        return "Osk Brothers built the first lighter in 1871."

    with ScriptedServer(reply) as server:
        named = ("summarise", "--summariser", "model", "--llm", server.llm, "--words", "12")
        result = run(*named, "--yes")
        assert "2 sections to summarise by written(words=12" in result.stderr
        assert "2 calls" in result.stderr and "2 made (2 calls" in result.stdout
        assert "50.0% faithful" in result.stdout
        assert "not in its section: Brandt  (lighters.md, Owners)" in result.stdout
        record = json.loads(run(*named, "--check", "--json").stdout)
        assert record["made"] == 0 and record["unfaithful"][0]["invented"] == ["Brandt"]
        assert len(server.requests) == 2


@pytest.mark.slow
def test_a_model_that_is_not_named_is_asked_for(run):
    result = run("summarise", "--summariser", "model", fails=True)
    assert "needs a language model" in result.stderr


@pytest.mark.slow
def test_search_drills_without_a_model(run):
    hits = json.loads(run("search", "Who was the director?", "-r", "drill", "-k", "1", "--json").stdout)
    assert "Maria Hale" in hits["hits"][0]["text"]
