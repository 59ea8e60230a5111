"""Python's standard library as a graph: modules, classes, exceptions and functions, read from its source.

Nothing is imported. Modules of tests and demonstrations and names that begin with an underscore are left out; so are
functions without a ``raise`` of their own, which would have no edge but their module's. The types that are built in
are those of the module ``builtins``.
"""

from __future__ import annotations

import ast
import builtins
import json
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Folders of the standard library that hold no library.
_LEFT_OUT = frozenset(
    "test tests site-packages dist-packages idlelib turtledemo lib2to3 ensurepip __pycache__ encodings".split()
)


@dataclass(frozen=True, slots=True)
class Module:
    """The source of a module: its parsed text, its lines, and whether it is a package."""

    name: str
    tree: ast.Module
    lines: int
    is_package: bool

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(slots=True)
class LibraryGraph:
    """Nodes with their properties by id, and edges."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], None] = field(default_factory=dict)

    def add(self, module: str, name: str, kind: str, **properties: Any) -> str:
        """Add what a module defines; return its id."""
        id = f"{module}.{name}"
        self.nodes[id] = {"name": name, "types": [kind], "aliases": [id], **properties}
        self.edges[id, "defined_in", module] = None
        return id

    def add_builtins(self) -> None:
        """Add the types that are built in."""
        self.nodes["builtins"] = {"name": "builtins", "types": ["module"]}
        for name, value in sorted(vars(builtins).items()):
            if isinstance(value, type) and not name.startswith("_"):
                id = self.add("builtins", name, "class")
                for base in value.__bases__ if value is not object else ():
                    self.edges[id, "inherits_from", f"builtins.{base.__name__}"] = None

    def add_module(self, module: Module, modules: Mapping[str, Module]) -> None:
        """Add a module with what it imports and what it defines."""
        types = ["module", "package"] if module.is_package else ["module"]
        self.nodes[module.name] = {"name": module.name, "types": types, "lines": module.lines}
        parent = module.name.rpartition(".")[0]
        if parent in modules:
            self.edges[module.name, "part_of", parent] = None
        for other in imported_modules(module, modules):
            self.edges[module.name, "imports", other] = None
        scope = read_scope(module)
        for statement in module.tree.body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                methods = sum(isinstance(each, ast.FunctionDef) for each in statement.body)
                id = self.add(module.name, statement.name, "class", methods=methods)
                for base in statement.bases:
                    self.edges[id, "inherits_from", resolve_name(ast.unparse(base), scope)] = None
            if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
                raised = raised_names(statement)
                if raised:
                    id = self.add(module.name, statement.name, "function")
                    self.edges |= {(id, "raises", resolve_name(name, scope)): None for name in raised}

    def finish(self) -> None:
        """Leave out edges to what is no node, and tell exceptions from other classes."""
        self.edges = {edge: None for edge in self.edges if edge[0] in self.nodes and edge[2] in self.nodes}
        children: dict[str, list[str]] = {}
        for head, relation, tail in self.edges:
            if relation == "inherits_from":
                children.setdefault(tail, []).append(head)
        waiting = ["builtins.BaseException"]
        while waiting:
            id = waiting.pop()
            if self.nodes[id]["types"] != ["exception"]:
                self.nodes[id]["types"] = ["exception"]
                waiting += children.get(id, ())


def write_library(path: Path) -> Path:
    """Write the standard library of the Python that runs as JSON lines."""
    root = Path(sysconfig.get_paths()["stdlib"])
    modules: dict[str, Module] = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        parts = parts[:-1] if is_package else parts
        if not parts or any(
            part in _LEFT_OUT or part.startswith(("_", "test_")) or "-" in part for part in parts
        ):
            continue
        source = file.read_text(encoding="utf-8", errors="replace")
        name = ".".join(parts)
        modules[name] = Module(name, ast.parse(source), source.count("\n"), is_package)
    graph = LibraryGraph()
    graph.add_builtins()
    for module in modules.values():
        graph.add_module(module, modules)
    graph.finish()
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps({"id": id, **node}) + "\n" for id, node in graph.nodes.items())
        out.writelines(json.dumps(edge) + "\n" for edge in graph.edges)
    return path


def read_scope(module: Module) -> dict[str, str]:
    """Return what the names at the top of a module stand for, with their modules."""
    scope: dict[str, str] = {}
    for statement in module.tree.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            scope[statement.name] = f"{module.name}.{statement.name}"
        elif isinstance(statement, ast.Import):
            scope |= {each.asname or each.name: each.name for each in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            source = source_of(statement, module)
            scope |= {each.asname or each.name: f"{source}.{each.name}" for each in statement.names}
    return scope


def source_of(statement: ast.ImportFrom, module: Module) -> str:
    """Return the module that names are imported from."""
    if not statement.level:
        return statement.module or ""
    parts = module.package.split(".")
    parts = parts[: len(parts) - statement.level + 1]
    return ".".join([*parts, *([statement.module] if statement.module else [])])


def resolve_name(name: str, scope: Mapping[str, str]) -> str:
    """Return the id of what a name means in a module; one that nothing defines may be built in."""
    head, dot, rest = name.partition(".")
    if name in scope:
        return scope[name]
    if dot and head in scope:
        return f"{scope[head]}.{rest}"
    return f"builtins.{name}" if hasattr(builtins, name) else name


def raised_names(function: ast.FunctionDef) -> list[str]:
    """Return what a function raises by itself."""
    raised: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised.add(ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc))
    return sorted(raised)


def imported_modules(module: Module, modules: Mapping[str, Module]) -> list[str]:
    """Return the modules that a module imports anywhere in its text."""
    names: dict[str, None] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= dict.fromkeys(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = source_of(node, module)
            names |= dict.fromkeys([source, *(f"{source}.{each.name}" for each in node.names)])
    return [name for name in names if name in modules and name != module.name]
