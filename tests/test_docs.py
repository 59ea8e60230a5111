"""The documentation runs: console blocks print what they show, Python blocks work, links lead somewhere."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from clew.core import component
from clew.parse.documents import formats

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Pages whose blocks are run, each in a folder of its own where ``samples`` are the sample documents.
PAGES = [
    "tutorial.md",
    "concepts/typed-triples.md",
    *(f"how-to/{path.name}" for path in sorted((DOCS / "how-to").glob("*.md"))),
]
BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
#: Pages of the site that are generated when it is built.
GENERATED = {"reference/cli.md", "reference/recipes.md", "decisions/index.md"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder as the pages assume it."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(work)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CLEW_HOME", raising=False)
    return work


def console_commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block with the lines of output shown below it."""
    command, output = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        else:
            output.append(line)
    if command:
        yield command, output


def run_command(command: str, shown: list[str]) -> None:
    """Run a command of clew and compare what it prints with what the page shows; ``...`` stands for anything."""
    words = shlex.split(command)
    assert words[0] == "clew", command
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{command}: {result.output}"
    position = 0
    for line in shown:
        if line.strip() == "..." or not line.strip():
            continue
        expected = " ".join(line.split())
        printed = " ".join(result.stdout.split())
        place = printed.find(expected, position)
        assert place >= 0, f"{command} does not print, in this order: {line}\n{result.stdout}"
        position = place + len(expected)


@pytest.fixture
def installed() -> Iterator[Callable[[Path], None]]:
    """Install packages for one test; clew looks for plug-ins afresh before and after it."""
    yield install_package
    forget_plugins()


def forget_plugins() -> None:
    """Have clew look for installed plug-ins again."""
    component.plugin_names.cache_clear()
    component._plugin_entries.cache_clear()
    formats.document_formats.cache_clear()


def install_package(folder: Path) -> None:
    """Make the package in ``folder`` importable, with its entry points, as installing it would."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    information = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
        for group, names in project["entry-points"].items()
    ]
    (information / "entry_points.txt").write_text("\n".join(groups))
    forget_plugins()


def run_tests(path: Path, scratch: Path) -> None:
    """Run the test functions of a file that a page shows."""
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), path.name, "exec"), namespace)
    tests = [value for name, value in namespace.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(scratch) if inspect.signature(test).parameters else test()


@pytest.mark.slow
@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_do_what_the_page_says(
    page: str, folder: Path, installed: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace: dict[str, object] = {}
    blocks = list(BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")))
    assert blocks
    for block in blocks:
        if block["title"]:
            target = folder / block["title"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block["text"], encoding="utf-8")
            if target.name.startswith("test_"):
                run_tests(target, folder / "scratch")
        elif "pip install ." in block["text"] and (folder / "pyproject.toml").exists():
            monkeypatch.syspath_prepend(folder)
            installed(folder)
            monkeypatch.setenv("PYTHONPATH", str(folder))  # for the processes that parse files
        elif block["language"] == "console":
            for command, shown in console_commands(block["text"]):
                run_command(command, shown)
        elif block["language"] == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block["text"], page, "exec"), namespace)
            assert "print(" not in block["text"] or printed.getvalue().strip()


@pytest.mark.parametrize(
    "path", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_to_files(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" in target:
            continue
        linked = (path.parent / target).resolve()
        generated = linked.is_relative_to(DOCS) and str(linked.relative_to(DOCS)) in GENERATED
        assert linked.exists() or generated, f"{path.name}: {target}"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {
        str(path.relative_to(DOCS)) for path in (DOCS / "decisions").glob("0*.md")
    }
    assert [page for page in sorted(pages) if page not in navigation] == []


def test_the_readme_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= 900
    assert readme.count("![") == 1
    assert re.findall(r"```console\n(.+)\n```", readme)[:2] == ["make demo", "make test"]


def test_the_lengths_of_the_methods_files_are_about_right() -> None:
    page = (DOCS / "concepts" / "methods.md").read_text(encoding="utf-8")
    lengths = dict(re.findall(r"^\| `\w+` \| `(clew/[^`]+)` \| (\d+) \|", page, re.MULTILINE))
    assert len(lengths) == 4
    for file, length in lengths.items():
        lines = len((ROOT / "src" / file).read_text(encoding="utf-8").splitlines())
        assert abs(lines - int(length)) <= 0.15 * lines, f"{file} has {lines} lines"
