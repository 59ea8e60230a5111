"""How large is the code, how is it cut, and how much of it does a command load and enter?

Measures one checkout, or two side by side with the ratio of the second to the first. The numbers are read from the
syntax trees of src/clew. Each command is run in a process of its own over a base made of the sample documents (the
typed-triples question: over a graph of two edges). It loads the modules that are in ``sys.modules`` at its end, and
enters those of which at least one function or method was called, other than while modules were imported.

    python benchmarks/house.py                  this checkout
    python benchmarks/house.py OLD NEW          two checkouts and their ratio
    python benchmarks/house.py OLD --json       for programs
    python benchmarks/house.py --list           also the names behind the counts

The checkouts are run by this interpreter, so their dependencies must be installed here.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FILLERS = frozenset({"one", "found", "made", "said", "told", "kept"})
#: Words that end like a participle and are none, or that are nouns or verbs of the field in their own right.
NOT_PARTICIPLES = frozenset(
    "bed bleed embed exceed feed need proceed red seed shed speed succeed weed".split()
)
#: Participles that do not end in "ed". Forms that are the verb's base too (read, set, split, cut) are not listed.
IRREGULAR_PARTICIPLES = frozenset(
    "been begun born bound bought broken brought built caught chosen come done drawn driven eaten fallen fed felt "
    "fought found forgotten frozen given gone got grown heard held hidden kept known laid led left lent lost made "
    "meant met paid proven ridden risen said seen sent shaken shown shrunk slept sold sought spent spoken sprung "
    "stolen stood struck sung sunk sworn taken taught thought thrown told torn understood undone withheld woken won "
    "worn woven written".split()
)
#: What is run, by name; {kb} is the base of the samples, {graph} that of two edges.
COMMANDS = {
    "list": ["list", "--kb", "{kb}"],
    "BM25 question": ["ask", "{question}", "--recipe", "read(retriever=bm25)", "--kb", "{kb}"],
    "default question": ["ask", "{question}", "--kb", "{kb}"],
    "chain": [
        "ask",
        "--chain",
        "The Lighter Bittern >> built by >> #1; #1 >> founder >> #2; final answer: #2",
        "--kb",
        "{kb}",
    ],
    "typed triples": [
        "ask",
        "--triples",
        "#1 >> directed by >> Ada Pell; final answer: #1",
        "--kb",
        "{graph}",
    ],
}
QUESTION = "In what year was the lighter Bittern built?"
EDGES = "The Lighter Bittern\tdirected by\tAda Pell\nThe Gauge Keeper\tdirected by\tAda Pell\n"
#: Runs a command; writes the modules of the package that it loaded and entered to the file that is named first.
PROBE = """
import inspect, json, os, runpy, sys, threading
target, folder, sys.argv = sys.argv[1], sys.argv[2], ["clew", *sys.argv[3:]]
codes, status = set(), 0

def profile(frame, event, argument):
    if event == "call" and frame.f_code not in codes and not is_importing(frame):
        codes.add(frame.f_code)

def is_importing(frame):
    # Importing a module runs its body, which may call functions: comprehensions (functions of their own before
    # Python 3.12), decorators, tables made of calls. The module that is run as the program is not imported.
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False

threading.setprofile(profile)
sys.setprofile(profile)
try:
    runpy.run_module("clew", run_name="__main__")
except SystemExit as end:
    status = end.code or 0
finally:
    sys.setprofile(None)
    threading.setprofile(None)
entered = set()
for code in codes:
    # Bodies of modules and classes, which importing runs, are not optimised code.
    if code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(folder + os.sep):
        path = os.path.relpath(code.co_filename, folder)[: -len(".py")]
        entered.add(".".join(path.split(os.sep)).removesuffix(".__init__"))
loaded = {name for name in sys.modules if name.split(".")[0] == "clew"}
with open(target, "w") as stream:
    json.dump({"status": status, "loaded": sorted(loaded), "entered": sorted(entered)}, stream)
"""


@dataclass
class Module:
    """One source file: its name, its tree, and the modules that it imports, at the top and within functions.

    ``names_in_strings`` are modules that a string names, such as those of a lazy table or ``python -m``.
    """

    name: str
    is_package: bool
    text: str
    tree: ast.Module
    imports: set[str] = field(default_factory=set)
    local_imports: set[str] = field(default_factory=set)
    typing_imports: set[str] = field(default_factory=set)
    names_in_strings: set[str] = field(default_factory=set)
    import_statements_in_functions: int = 0


def load_modules(checkout: Path) -> dict[str, Module]:
    """Parse every file of the package and resolve its imports."""
    source = checkout / "src"
    modules: dict[str, Module] = {}
    for path in sorted((source / "clew").rglob("*.py")):
        parts = list(path.relative_to(source).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, is_package, text, ast.parse(text))
    for module in modules.values():
        _collect_imports(module, module.tree, modules, "top")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                module.names_in_strings.update(_named_modules(node.value, modules))
    return modules


def _named_modules(text: str, modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield the module that a text names and nothing else: ``clew.app.cli``, ``clew.app.cli:main``."""
    name = text.partition(":")[0]
    if re.fullmatch(r"clew(\.\w+)+", name):
        while name not in modules and "." in name:
            name = name.rpartition(".")[0]
        if name in modules:
            yield name


def _collect_imports(module: Module, node: ast.AST, modules: Mapping[str, Module], where: str) -> None:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for statement in node.body:
            _collect_imports(module, statement, modules, "typing")
        for statement in node.orelse:
            _collect_imports(module, statement, modules, where)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and where == "top":
        where = "function"
    if isinstance(node, ast.Import | ast.ImportFrom):
        if where == "function":
            module.import_statements_in_functions += 1
        places = {"top": module.imports, "function": module.local_imports, "typing": module.typing_imports}
        places[where].update(name for name in _imported_modules(module, node, modules) if name != module.name)
    for child in ast.iter_child_nodes(node):
        _collect_imports(module, child, modules, where)


def _imported_modules(
    module: Module, node: ast.Import | ast.ImportFrom, modules: Mapping[str, Module]
) -> Iterator[str]:
    """Yield the modules of the package that a statement imports; ``from a import b`` is ``a.b`` where that is one."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    base = node.module or ""
    if node.level:
        package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
        base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        if inner in modules:
            yield inner
        elif base in modules:
            yield base


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines that hold code: no blank lines, no comments, no docstrings."""
    lines: set[int] = set()
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for child in body:
                # A docstring, or a string that stands alone.
                if isinstance(child, ast.Expr) and isinstance(getattr(child.value, "value", None), str):
                    lines.difference_update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    return len(lines)


def functions_of(modules: Mapping[str, Module]) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return every function and method with the name of its module."""
    return [
        (module.name, node)
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def is_bare_participle(name: str) -> bool:
    """Return whether a function's name is one participle and nothing else: ``told``, ``_settled``.

    A single word is one where it ends in "ed" and is not in :data:`NOT_PARTICIPLES`, or is in
    :data:`IRREGULAR_PARTICIPLES`.
    """
    word = name.strip("_")
    if not re.fullmatch(r"[a-z]+", word) or name.startswith("__"):
        return False
    return word in IRREGULAR_PARTICIPLES or (word.endswith("ed") and word not in NOT_PARTICIPLES)


def filler_names(modules: Mapping[str, Module]) -> Counter[str]:
    """Count the variables that a function, class, module or comprehension binds under a filler's name."""
    counts: Counter[str] = Counter()
    for module in modules.values():
        bound: set[tuple[int, str]] = set()
        for scope in ast.walk(module.tree):
            if isinstance(
                scope,
                ast.Module
                | ast.FunctionDef
                | ast.AsyncFunctionDef
                | ast.ClassDef
                | ast.Lambda
                | ast.ListComp
                | ast.SetComp
                | ast.DictComp
                | ast.GeneratorExp,
            ):
                bound.update((id(scope), name) for name in _bound_names(scope) if name in FILLERS)
        counts.update(name for _, name in bound)
    return counts


def _bound_names(scope: ast.AST) -> Iterator[str]:
    """Yield the names that one scope binds itself, inner scopes left out."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = scope.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            yield argument.arg
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                yield extra.arg
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if not isinstance(
            node,
            ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.ClassDef
            | ast.Lambda
            | ast.ListComp
            | ast.SetComp
            | ast.DictComp
            | ast.GeneratorExp,
        ):
            stack.extend(ast.iter_child_nodes(node))


def import_circles(modules: Mapping[str, Module]) -> list[list[str]]:
    """Return the sets of modules that import each other at the top (strongly connected components, Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in modules[name].imports:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            position = stack.index(name)
            component = stack[position:]
            del stack[position:]
            if len(component) > 1:
                circles.append(sorted(component))

    for name in modules:
        if name not in index:
            visit(name)
    return sorted(circles)


def modules_of_commands(checkout: Path) -> dict[str, dict[str, list[str]]]:
    """Run each of :data:`COMMANDS` in a process of its own; return the modules that it loaded and entered."""
    measured: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory(prefix="clew-house-") as scratch:
        folder = Path(scratch)
        kb, graph, edges = folder / "kb", folder / "graph", folder / "films.tsv"
        edges.write_text(EDGES, encoding="utf-8")
        _run_clew(
            checkout, folder, ["-m", "clew", "add", str(checkout / "samples" / "documents"), "--kb", str(kb)]
        )
        _run_clew(checkout, folder, ["-m", "clew", "graph", "add", str(edges), "--kb", str(graph)])
        for name, words in COMMANDS.items():
            arguments = [word.format(kb=kb, graph=graph, question=QUESTION) for word in words]
            # Once before: what is counted is a question like any other, not the first one of a new base.
            _run_clew(checkout, folder, ["-m", "clew", *arguments])
            target = folder / "modules.json"
            _run_clew(checkout, folder, ["-c", PROBE, str(target), str(checkout / "src"), *arguments])
            record = json.loads(target.read_text(encoding="utf-8"))
            if record.pop("status"):
                raise SystemExit(f"clew {' '.join(arguments)} failed in {checkout}")
            measured[name] = record
    return measured


def _run_clew(checkout: Path, folder: Path, words: Sequence[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CLEW_")}
    process = subprocess.run(
        [sys.executable, *words],
        env=environment | {"PYTHONPATH": str(checkout / "src")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"failed in {checkout}: {' '.join(words)}\n{process.stderr}")


def measure(checkout: Path, run: bool = True) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Return the figures of a checkout, and the names behind some of them."""
    modules = load_modules(checkout)
    functions = functions_of(modules)
    sizes = [(node.end_lineno or node.lineno) - node.lineno + 1 for _, node in functions]
    longest_module, longest = functions[sizes.index(max(sizes))]
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        imports = module.imports | module.local_imports | module.typing_imports
        for name in imports | (module.names_in_strings - {module.name}):
            importers[name].add(module.name)
    # Entry points are imported by whoever asks for them.
    for entry in re.findall(r'"(clew[\w.]*:\w+)"', (checkout / "pyproject.toml").read_text(encoding="utf-8")):
        for name in _named_modules(entry, modules):
            importers[name].add("pyproject.toml")
    leaves = [name for name, module in modules.items() if not module.is_package and name != "clew.__main__"]
    alone = sorted(name for name in leaves if not importers[name])
    single = sorted(name for name in leaves if len(importers[name]) == 1)
    participles = sorted(
        f"{module}.{node.name}" for module, node in functions if is_bare_participle(node.name)
    )
    fillers = filler_names(modules)
    circles = import_circles(modules)
    figures: dict[str, float] = {
        "files": len(modules),
        "lines": sum(module.text.count("\n") for module in modules.values()),
        "lines of code": sum(code_lines(module.text, module.tree) for module in modules.values()),
        "top-level packages and modules": len({name.split(".")[1] for name in modules if "." in name}),
        "functions": len(functions),
        "median function, lines": statistics.median(sizes),
        "longest function, lines": max(sizes),
        "functions over 50 lines": sum(size > 50 for size in sizes),
        "imports inside functions": sum(module.import_statements_in_functions for module in modules.values()),
        "modules with exactly one importer": len(single),
        "modules without an importer": len(alone),
        "filler names": sum(fillers.values()),
        "functions named by a bare participle": len(participles),
        "import circles": len(circles),
        "modules in import circles": sum(map(len, circles)),
    }
    entered: dict[str, list[str]] = {}
    if run:
        for name, sets in modules_of_commands(checkout).items():
            entered[f"{name}: modules entered"] = sets["entered"]
            for verb in ("entered", "loaded"):
                figures[f"{name}: modules {verb}"] = len(sets[verb])
                figures[f"{name}: packages {verb}"] = len(
                    {".".join(module.split(".")[:2]) for module in sets[verb]}
                )
    names = {
        "longest function": [f"{longest_module}.{longest.name}"],
        "modules without an importer": alone,
        "modules with exactly one importer": single,
        "functions named by a bare participle": participles,
        "filler names": [f"{name}: {count}" for name, count in fillers.most_common()],
        "import circles": [" - ".join(circle) for circle in circles],
        **entered,
    }
    return figures, names


def main() -> None:
    """Print the figures of one or two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, help="one or two folders (default: this checkout)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", action="store_true", help="also print the names behind the counts")
    parser.add_argument("--no-run", action="store_true", help="read the source only; run no command")
    options = parser.parse_args()
    checkouts = [path.resolve() for path in options.checkouts or [ROOT]]
    if len(checkouts) > 2:
        parser.error("one or two checkouts")
    measured = [measure(checkout, not options.no_run) for checkout in checkouts]
    figures = [values for values, _ in measured]
    ratios = {
        key: round(figures[-1][key] / value, 3)
        for key, value in figures[0].items()
        if value and key in figures[-1]
    }
    if options.json:
        shape: dict[str, object] = dict(zip(("before", "after"), figures, strict=False))
        print(json.dumps(figures[0] if len(figures) == 1 else shape | {"ratio": ratios}, indent=2))
        return
    if len(figures) == 1:
        print("| measure | value |\n|---|---|")
        print("\n".join(f"| {key} | {value:,g} |" for key, value in figures[0].items()))
    else:
        print("| measure | before | after | ratio |\n|---|---|---|---|")
        for key, value in figures[0].items():
            print(f"| {key} | {value:,g} | {figures[1].get(key, float('nan')):,g} | {ratios.get(key, '')} |")
    if options.list:
        for key, names in measured[-1][1].items():
            print(f"\n{key}:")
            print("\n".join(f"  {name}" for name in names))


if __name__ == "__main__":
    main()
