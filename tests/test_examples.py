"""The examples and notebooks run as they stand, and show what they say."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import docx
import pytest

from serve_app import FILES, SAMPLES, ServedApp

EXAMPLES = Path(__file__).parents[1] / "examples"
#: What each prints, in this order.
SCRIPTS = {
    "ask.py": [
        "$9",
        "lighter-hire-contract.pdf, page 2",
        "1919",
        "Gideon Wick",
        "No answer that clew is sure of",
        "0 model calls",
    ],
    "contract_editions.py": ["changed", "twenty-six became thirty", "$38 became $42"],
    "memo.py": ["page 2", "$4,400", "1919", "quotes written to memo.docx"],
}
#: What the cells of each notebook show.
NOTEBOOKS = {
    "first-questions.ipynb": [
        "lighter-hire-contract.pdf",
        "$9",
        "True",
        "Gideon Wick",
        "Ruth Okell",
        "Answer",
    ],
    "names-and-changes.ipynb": ["3 May 1871", "Ilse Tamsin", "Hesper Marrable", "pay $42 for", "[^1]: "],
}

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("embedded")]


def check_order(printed: str, expected: list[str]) -> None:
    position = 0
    for words in expected:
        place = printed.find(words, position)
        assert place >= 0, f"'{words}' is not there, or not in this order:\n{printed}"
        position = place


def run_script(name: str, *words: str) -> str:
    """Run an example as ``python examples/NAME`` does; return what it prints."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
        patch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return output.getvalue()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_it_promises(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_order(run_script(name), SCRIPTS[name])
    if name == "memo.py":
        styles = [paragraph.style.name for paragraph in docx.Document(tmp_path / "memo.docx").paragraphs]
        assert styles.count("Heading 1") == 3 and styles.count("Quote") >= 3


def test_openai_s_client_asks_a_running_server(tmp_path: Path) -> None:
    import clew

    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([SAMPLES / FILES[0]])
    with ServedApp(tmp_path / "kb") as app:
        printed = run_script("openai_client.py", f"http://127.0.0.1:{app.port}")
    check_order(printed, ["$9", "[1] lighter-hire-contract.pdf, page 2", "vectors of", "[(0, "])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_top_to_bottom(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every code cell in order, in the folder of the notebook; the value of a cell's last line is what it shows."""
    monkeypatch.chdir(EXAMPLES)
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4 and len({cell["id"] for cell in notebook["cells"]}) == len(
        notebook["cells"]
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    output = io.StringIO()
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"]  # a notebook is committed without what it printed elsewhere
        *body, last = ast.parse("".join(cell["source"])).body
        with contextlib.redirect_stdout(output):
            exec(compile(ast.Module(body, []), name, "exec"), names)
            if not isinstance(last, ast.Expr):
                exec(compile(ast.Module([last], []), name, "exec"), names)
                continue
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                shown = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
                output.write(f"{shown}\n")
    check_order(output.getvalue(), NOTEBOOKS[name])


def test_every_example_is_listed_and_run() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}}
    assert files == {*SCRIPTS, *NOTEBOOKS, "openai_client.py"}
    listing = (EXAMPLES / "README.md").read_text()
    assert all(f"]({name})" in listing for name in files)
