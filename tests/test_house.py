"""The habits that a linter does not know: names that say what a value is, functions named by a verb."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[1] / "src" / "clew").rglob("*.py"))
#: Names that say nothing of what they name.
FILLERS = {"one", "found", "made", "said", "told", "kept"}


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable, parameter and function of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_names_are_no_fillers(path: Path) -> None:
    names = bound_names(ast.parse(path.read_text(encoding="utf-8")))
    assert [f"{path.name}:{line} {name}" for line, name in names if name.strip("_") in FILLERS] == []
