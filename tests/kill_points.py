"""Kills an operation on a base of twelve documents at every system call that changes a file.

    python tests/kill_points.py OPERATION FOLDER [--step 7] [--all]

The operation runs in a process that is killed at its first such call; then again from the same base, at the second;
and so on until it comes to its end. After every kill no file of the base may be readable for others; it
must open without help, hold what it held before or afterwards, settings included, and nothing of what is gone from
it; the same operation must then lead to the same base as one that was
never killed, with the same search results. Prints the number of kills. ``--all``: at every system call, whatever it
does, since pages of files may be mapped. Linux on x86-64.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import clew
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.summaries import SummaryJob
from clew.store.store import Store
from clew.store.vectors import VectorFiles
from soak import BASE_FILES, State, is_between, leftover_words, read_state, without_processes, word_of
from system_calls import CHANGING, Interference, run_traced

#: With the two files in an archive, and the archive itself, twelve.
SINGLE_FILES = 9


def text_of(number: int, version: int = 0) -> str:
    """Return a document with words of its own: three sections, a table."""
    word = [word_of(1_000 * number + 100 * version + place) for place in range(4)]
    return (
        f"# Mill {word[0]}\n\nThe mill {word[1]} stands at the river.\n\n## Tolls\n\nThe toll is {number}.\n\n"
        f"| name | value |\n| - | - |\n| {word[2]} | {number} |\n\n## Owners\n\nIts owner was {word[3]}.\n"
    )


def write_archive(path: Path, *numbers: int) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in numbers:
            archive.writestr(zipfile.ZipInfo(f"{number}.md"), text_of(number))
    path.write_bytes(stream.getvalue())


def write_files(files: Path) -> None:
    """Write the files of twelve documents, and a graph."""
    (files / "documents").mkdir(parents=True)
    for number in range(SINGLE_FILES):
        (files / "documents" / f"{number}.md").write_text(text_of(number))
    write_archive(files / "documents" / "mails.zip", 20, 21)
    write_graph(files / "people.tsv", 30)


def write_graph(path: Path, number: int) -> None:
    names = [word_of(1_000 * number + place) for place in range(5)]
    lines = (f"{left}\tknows\t{right}\n" for left, right in itertools.pairwise(names))
    path.write_text("".join(lines))


def fill(base: KnowledgeBase, files: Path) -> None:
    base.encoding.set("st:first")
    add(base, files)
    store_graph(base, files)
    summarise(base, files)


def add(base: KnowledgeBase, files: Path) -> None:
    report = base.add([files / "documents"])
    assert not report.failed, report.failed


def upload(base: KnowledgeBase, files: Path) -> None:
    with base.files.open_uploads(20.0, 1 << 30) as uploads:
        uploads.add(files / "documents" / "new.zip", "new.zip")
    base.store.catch_up()
    base.encoding.encode_missing()


def remove(base: KnowledgeBase, files: Path) -> None:
    there = base.store.locations()
    names = [str(files / "documents" / name) for name in ("1.md", "3.md", "mails.zip")]
    if present := [name for name in names if name in there]:
        base.remove(*present)
    base.store.catch_up()


def store_graph(base: KnowledgeBase, files: Path) -> None:
    base.graphs.add(files / "people.tsv")


def remove_graph(base: KnowledgeBase, files: Path) -> None:
    if base.graphs.infos():
        base.graphs.remove("people")


def set_encoder(base: KnowledgeBase, files: Path) -> None:
    base.encoding.set("st:second")
    base.encoding.encode_missing()


def summarise(base: KnowledgeBase, files: Path) -> None:
    SummaryJob(base, words=12).make()


@dataclass(frozen=True)
class Operation:
    """What is done to a base, and before that to the files; ``is_new``: the base is made by it."""

    act: Callable[[KnowledgeBase, Path], None]
    prepare: Callable[[Path], None] = lambda files: None
    is_new: bool = False


def change_files(files: Path) -> None:
    for number in (2, 5):
        (files / "documents" / f"{number}.md").write_text(text_of(number, 1))


def change_and_summarise(base: KnowledgeBase, files: Path) -> None:
    add(base, files)
    summarise(base, files)


def change_archive(files: Path) -> None:
    write_archive(files / "documents" / "mails.zip", 21, 94)


def copy_archive(files: Path) -> None:
    shutil.copyfile(files / "documents" / "mails.zip", files / "documents" / "copy.zip")


def write_new_file(files: Path) -> None:
    (files / "documents" / "new.md").write_text(text_of(90))


OPERATIONS = {
    "create": Operation(fill, is_new=True),
    "add": Operation(add, write_new_file),
    "add_archive": Operation(add, lambda files: write_archive(files / "documents" / "new.zip", 91, 92, 93)),
    "upload_archive": Operation(
        upload, lambda files: write_archive(files / "documents" / "new.zip", 91, 92, 93)
    ),
    "change_archive": Operation(add, change_archive),
    "copy_archive": Operation(add, copy_archive),
    "change": Operation(add, change_files),
    "remove": Operation(remove),
    "replace_graph": Operation(store_graph, lambda files: write_graph(files / "people.tsv", 40)),
    "remove_graph": Operation(remove_graph),
    "set_encoder": Operation(set_encoder),
    "summarise": Operation(change_and_summarise, change_files),
}


def check(folder: Path, state: State, seen: set[str]) -> None:
    """Check the folder of a base that was opened after a kill: nothing is left of what is gone from it."""
    left = leftover_words(folder, seen - state.words())
    assert not left, f"words of what was removed: {left}"
    strange = {path.name for path in folder.iterdir()} - BASE_FILES
    assert not strange, f"left in the folder: {strange}"
    with Store.open(folder) as store:
        live = sum(store.info().nodes.get(kind, 0) for kind in ("passage", "row"))
        for path in (store.derived / "vectors").glob("*"):
            files = VectorFiles(path)
            if files.read_manifest():
                _, _, texts = files.open()
                assert int((texts != 0).sum()) <= live, "vectors of removed documents"
        graphs = {path.name for path in (store.derived / "graphs").glob("*") if "." not in path.name}
        stored = {graph.digest for graph in store.graphs.graph_infos()}
        assert graphs <= stored, "arrays of a graph that is gone"


def check_rights(folder: Path) -> None:
    """Check that nobody but its owner can read a file of a base."""
    paths = [folder, *folder.rglob("*")] if folder.exists() else []
    rights = {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in paths}
    others = {name: oct(mode) for name, mode in rights.items() if mode & 0o077}
    assert not others, f"others can read: {others}"


def read_results(base: KnowledgeBase) -> list[Any]:
    """Return what searches find: hits and scores, and names in graphs."""
    words = [word_of(1_000 * number + 1) for number in (0, 2, 20, 90, 91)]
    results: list[Any] = []
    for retriever in ("bm25", "default"):
        for question in [*words, "Who owned the mill at the river?"]:
            hits = base.search(question, k=5, retriever=retriever)
            results.append([(hit.node.id, hit.score) for hit in hits])
    for name, nodes in read_state(base).graphs.items():
        results.append([item.name for item in base.graphs.entities(name, min(nodes))])
    summaries = SummaryJob(base, words=12).estimate()
    return [*results, summaries.sections]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operation", choices=OPERATIONS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--step", type=int, default=1, help="every N-th call alone")
    parser.add_argument("--all", action="store_true", help="calls that change no file, too")
    parser.add_argument(
        "--progress", type=Path, metavar="FILE", help="has the next call; another run goes on there"
    )
    given = parser.parse_args()
    with without_processes():
        kills = kill_everywhere(
            given.operation, given.folder, given.step, given.progress, None if given.all else CHANGING
        )
    sys.stdout.write(f"{kills}\n")


def kill_everywhere(
    name: str, work: Path, step: int, progress: Path | None, calls: frozenset[int] | None
) -> int:
    """Return how many times an operation was killed. Raises SystemExit for the first kill that is not mended."""
    operation = OPERATIONS[name]
    files, start, undisturbed, folder = (work / part for part in ("files", "start", "undisturbed", "killed"))
    temporary = work / "temporary"
    temporary.mkdir(parents=True)
    os.umask(0)
    tempfile.tempdir = str(temporary)
    write_files(files)
    with clew.open(start, create=True) as base:
        if not operation.is_new:
            fill(base, files)
            assert len(base.documents()) == 12
        before = read_state(base)
    if operation.is_new:
        shutil.rmtree(start)
    else:
        shutil.copytree(start, undisturbed)
    operation.prepare(files)
    for path in (files / "documents").iterdir():
        os.utime(path)
    run(operation, undisturbed, files)
    with clew.open(undisturbed) as base:
        after, digest, results = read_state(base), base.store.digest(), read_results(base)
    first = int(progress.read_text()) if progress is not None and progress.exists() else 1
    for point in itertools.count(first, step):
        shutil.rmtree(folder, ignore_errors=True)
        if not operation.is_new:
            shutil.copytree(start, folder)
        outcome = run_traced(lambda: run(operation, folder, files), Interference(point, calls=calls))
        if outcome.error is not None:
            raise outcome.error
        try:
            check_killed(operation, folder, before, after)
            run(operation, folder, files)  # begun again, it comes to its end
            with clew.open(folder) as base:
                assert base.store.digest() == digest, "another base than one that was never killed"
                assert read_results(base) == results, "other results than without the kill"
                assert not base.doctor(), base.doctor()
            check(folder, after, before.words() | after.words())
            assert not list(temporary.iterdir()), "files in the system's temporary folder"
        except AssertionError as error:
            raise SystemExit(f"{name}, killed at point {point}: {error}") from error
        if not outcome.killed:
            return point // step
        if progress is not None:
            progress.write_text(str(point + step))
    raise AssertionError("unreachable")


def check_killed(operation: Operation, folder: Path, before: State, after: State) -> None:
    """Open a base after a kill and check it."""
    check_rights(folder)
    if operation.is_new and not Store.exists(folder):
        return
    with clew.open(folder) as base:
        state = read_state(base)
        assert is_between(state, before, after), "neither what was before nor afterwards"
    check(folder, state, before.words())  # what was being added when it was killed was never there


def run(operation: Operation, folder: Path, files: Path) -> None:
    with clew.open(folder, create=operation.is_new) as base:
        operation.act(base, files)


if __name__ == "__main__":
    main()
