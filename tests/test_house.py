"""The habits that a linter does not know: names that say what a value is, functions named by a verb."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

SOURCE = Path(__file__).parents[1] / "src" / "clew"
#: Names that say nothing of what they name.
FILLERS = {"one", "found", "made", "said", "told", "kept"}


def is_filler(name: str) -> bool:
    return name.strip("_") in FILLERS


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable, parameter and function of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def mentions_filler(code: CodeType) -> bool:
    """Return whether any name in compiled code is a filler. This is far quicker than to look through the tree."""
    names = (*code.co_varnames, *code.co_names, *code.co_cellvars)
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any(map(is_filler, names)) or any(map(mentions_filler, inner))


def find_fillers(text: str, name: str) -> list[str]:
    """Return the file, line and name of every filler that a source text binds."""
    if not mentions_filler(compile(text, name, "exec", dont_inherit=True)):
        return []
    return [f"{name}:{line} {bound}" for line, bound in bound_names(ast.parse(text)) if is_filler(bound)]


def test_names_are_no_fillers() -> None:
    places = []
    for path in sorted(SOURCE.rglob("*.py")):
        places += find_fillers(path.read_text(encoding="utf-8"), str(path.relative_to(SOURCE)))
    assert places == []


def test_fillers_are_seen_wherever_they_are_bound() -> None:
    text = (
        "def made(one):\n    for said in one.found:\n        yield lambda kept: [_found for _found in kept]\n"
    )
    expected = ["a.py:1 made", "a.py:1 one", "a.py:2 said", "a.py:3 kept", "a.py:3 _found"]
    assert sorted(find_fillers(text, "a.py")) == sorted(expected)
    assert find_fillers("import re\nmade = 1\n", "b.py") == ["b.py:2 made"]
    assert find_fillers("hit.found = 1\nprint('one', hit.made())\n", "c.py") == []
