"""Kills an operation on a base at every point at which it touches a file or runs an SQL statement.

Run as a program, which has no threads and can fork: ``python kill_points.py OPERATION FOLDER``. The operation runs in
a child that kills itself at its first point; then again from the same base, at the second; and so on until it comes
to its end. After every kill the base must open without help, have the documents and graphs of before or of after and
nothing of what it removed, and the same operation must lead to the same base as one that was never killed. Prints the
number of kills. With a third argument, N, every N-th point alone.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from clew.core.types import GraphSource
from clew.store.graphs.graph_store import GraphStore
from clew.store.store import Store
from clew.store.vectors import VectorFiles
from kb_documents import HashEncoder, document, location

WATCHED = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "sqlite3.connect"}
DOCUMENTS = 6
_connect = sqlite3.connect


def fill(folder: Path) -> None:
    with Store.open(folder, create=True) as base:
        for number in range(DOCUMENTS):
            base.put_document(document(number), location(f"/docs/{number}.txt"))
        base.encode(HashEncoder())
        store_graph(base.graphs, ["Ann", "Bob", "Cid"])


def store_graph(graphs: GraphStore, names: list[str]) -> None:
    builder = graphs.create_builder("people")
    for name in names:
        builder.add_node(name, name=name, types=("person",))
    for left, right in itertools.pairwise(names):
        builder.add_edge(left, "knows", right)
    graphs.store_graph(builder, [GraphSource("/graphs/people.tsv", len(names), 0, "0" * 64)])


def create(folder: Path) -> None:
    with Store.open(folder, create=True) as base:
        base.put_document(document(0), location("/docs/0.txt"))
        base.catch_up()


def add(folder: Path) -> None:
    with Store.open(folder) as base:
        base.put_document(document(90), location("/docs/90.txt"))
        base.encode(HashEncoder())


def change(folder: Path) -> None:
    with Store.open(folder) as base:
        base.put_document(document(2, version=1), location("/docs/2.txt", 1))
        base.encode(HashEncoder())


def remove(folder: Path) -> None:
    with Store.open(folder) as base:
        paths = [path for path in ("/docs/1.txt", "/docs/3.txt") if path in base.locations()]
        if paths:
            base.remove(paths)
        base.catch_up()


def replace_graph(folder: Path) -> None:
    with Store.open(folder) as base:
        store_graph(base.graphs, ["Dot", "Eve", "Fay", "Gus"])


def set_encoder(folder: Path) -> None:
    other = HashEncoder()
    other.name = "other"
    with Store.open(folder) as base:
        base.encode(other)


#: Whether the operation starts from a full base, and what it does.
OPERATIONS: dict[str, tuple[bool, Callable[[Path], None]]] = {
    "create": (False, create),
    "add": (True, add),
    "change": (True, change),
    "remove": (True, remove),
    "replace_graph": (True, replace_graph),
    "set_encoder": (True, set_encoder),
}


def run_killed(act: Callable[[Path], None], folder: Path, point: int) -> bool:
    """Run ``act`` in a child that kills itself at its ``point``-th point; return whether it was killed."""
    child = os.fork()
    if child == 0:
        passed = 0

        def pass_point(*_: object) -> None:
            nonlocal passed
            passed += 1
            if passed == point:
                os.kill(os.getpid(), signal.SIGKILL)

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event in WATCHED and str(folder) in " ".join(map(str, arguments)):
                pass_point()

        def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = _connect(*arguments, **options)
            connection.set_trace_callback(pass_point)
            return connection

        sys.addaudithook(hook)
        sqlite3.connect = connect  # type: ignore[assignment]
        status = 1
        try:
            act(folder)
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the operation failed at point {point}")
    return os.WIFSIGNALED(status)


def removed_words(folder: Path, base: Store) -> list[str]:
    """Return words of documents that are not in the base, and are in a file of its folder."""
    keys = {stored.key for stored in base.documents()}
    gone = [item for item in map(document, range(DOCUMENTS)) if item.key not in keys]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [
        f"{item.title} in {path}"
        for item in gone
        for path in files
        if item.text.encode()[:60] in path.read_bytes()
    ]


def check(folder: Path, allowed: set[str], is_new: bool) -> None:
    """Check the base after a kill: it opens, it is that of before or after, and nothing removed is in its folder."""
    if is_new and not Store.exists(folder):
        return
    with Store.open(folder) as base:
        assert base.digest() in allowed, "neither the base of before nor that of after"
        live = sum(base.info().nodes.get(kind, 0) for kind in ("passage", "row"))
        for path in (base.derived / "vectors").glob("*"):
            files = VectorFiles(path)
            if files.read_manifest():
                _, _, texts = files.open()
                assert int((texts != 0).sum()) <= live, "vectors of removed documents"
        graphs = {path.name for path in (base.derived / "graphs").glob("*") if "." not in path.name}
        stored = {graph.digest for graph in base.graphs.graph_infos()}
        assert graphs <= stored, "arrays of a graph that is gone"
        removed = removed_words(folder, base)
        assert not removed, f"text of a removed document: {removed}"


def main() -> None:
    name, work = sys.argv[1], Path(sys.argv[2])
    full, act = OPERATIONS[name]
    start, undisturbed, folder = work / "start", work / "undisturbed", work / "killed"
    allowed = set()
    if full:
        fill(start)
        shutil.copytree(start, undisturbed)
        with Store.open(start) as base:
            allowed.add(base.digest())
    else:
        with Store.open(work / "empty", create=True) as base:
            allowed.add(base.digest())
    act(undisturbed)
    with Store.open(undisturbed) as base:
        after = base.digest()
        vectors = dict(base.info().encoders)
    kills = 0
    step = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for point in itertools.count(1, step):
        shutil.rmtree(folder, ignore_errors=True)
        if full:
            shutil.copytree(start, folder)
        killed = run_killed(act, folder, point)
        try:
            check(folder, allowed | {after}, not full)
        except AssertionError as error:
            raise SystemExit(f"killed at point {point}: {error}") from error
        act(folder)  # begun again, it comes to its end
        check(folder, {after}, False)
        with Store.open(folder) as base:
            problems = base.doctor()
            assert not problems, problems
            assert dict(base.info().encoders).keys() == vectors.keys()
            assert not list(folder.glob("*.unfinished*"))
        if not killed:
            break
        kills += 1
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main()
