"""The README's commands, run as they stand there, over the sample documents."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from scripted import Request, ScriptedServer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("clew ")]
REPORTS = ("lighter-hire-contract.pdf", "oskell-passage-annual-report-1931.pdf", "merrowgate-charter.md")
GRAPH = "samples/graphs/oskell-people-and-ships.tsv"
#: What people are told to run that sets up an environment; the continuous checks run it in a fresh clone.
SET_UP = ("make ", "pip install")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose Documents/reports is what the README's reader would have there: those of the samples that its
    questions are about."""
    home = tmp_path_factory.mktemp("home")
    reports = home / "Documents" / "reports"
    reports.mkdir(parents=True)
    for name in REPORTS:
        shutil.copy(ROOT / "samples" / "documents" / name, reports)
    shutil.copy(reports / "lighter-hire-contract.pdf", reports / "report.pdf")
    for name in ("lease-2022.pdf", "lease-2023.pdf"):
        shutil.copy(reports / "lighter-hire-contract.pdf", reports / name)
    asked = {"question": "When was the Bittern built?", "answers": ["1919"]}
    asked["evidence"] = [{"document": "oskell-passage-annual-report-1931.pdf", "page": 3}]
    (home / "work").mkdir()
    (home / "work" / "questions.jsonl").write_text(json.dumps(asked))
    (home / "work" / "samples").symlink_to(ROOT / "samples")
    return home


def test_every_console_line_is_one_that_is_run_here_or_sets_up() -> None:
    lines = [line for block in BLOCKS for line in block.splitlines() if line.strip()]
    assert lines and all(line.startswith(("clew ", *SET_UP)) for line in lines)
    assert COMMANDS[0].startswith("clew add")


def quote_first_source(request: Request) -> dict[str, object]:
    """Answer with a quote of the first source that the prompt shows; the prompt about structure has no sources."""
    source = re.search(r"^\[1\] .*\n(.+)$", request.user, re.MULTILINE)
    if source is None:
        return {"entities": [], "triples": []}
    quote = " ".join(source[1].split()[:4])
    return {
        "answer": "An answer that a model wrote",
        "quotes": [{"source": 1, "text": quote}],
        "abstain": False,
    }


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(
    "command",
    [  # twelve documents take a while
        pytest.param(command, marks=pytest.mark.slow if " samples/documents" in command else ())
        for command in COMMANDS
    ],
)
def test_the_commands_do_what_they_say(
    command: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLEW_HOME", str(home / "base"))
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(home / "work")
    words = [str(Path(word).expanduser()) for word in shlex.split(command)[1:]]
    if words[0] != "add" and not (home / "base").exists():
        assert CliRunner().invoke(app, ["add", str(home / "Documents" / "reports")]).exit_code == 0
    # The line above it that adds the graph may have run elsewhere.
    if words[:2] in (["graph", "schema"], ["graph", "show"]) or "--triples" in words or "--chain" in words:
        assert CliRunner().invoke(app, ["graph", "add", GRAPH]).exit_code == 0
    if words[:2] == ["eval", "report"] and not (home / "work" / "runs").exists():
        before = next(item for item in COMMANDS if item.startswith("clew eval run"))
        assert CliRunner().invoke(app, shlex.split(before)[1:]).exit_code == 0
    if "--llm" not in words:
        result = CliRunner().invoke(app, words)
    else:
        with ScriptedServer(quote_first_source) as server:
            words[words.index("--llm") + 1] = server.llm  # the README's model, answered by a local script
            result = CliRunner().invoke(app, words)
            assert server.answered
        assert "An answer that a model wrote" in result.stdout, result.output
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


@pytest.mark.slow
@pytest.mark.usefixtures("embedded")
def test_the_python_example_runs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").symlink_to(home / "Documents" / "reports")
    texts: list[object] = []
    exec(compile(example, "README.md", "exec"), {"print": lambda *words: texts.extend(words)})
    assert texts and texts[0]
    assert isinstance(texts[1], list) and texts[1]
