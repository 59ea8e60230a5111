"""Says what adding files would bring, before anything is added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.core.errors import UnreadableFile
from clew.core.types import RETRIEVED_KINDS, ROW, TABLE, Location, ParsedDocument
from clew.knowledge_base.ingest.documents import IngestTarget
from clew.knowledge_base.ingest.plan import plan_files
from clew.knowledge_base.ingest.report import Failure
from clew.knowledge_base.ingest.scan import scan_paths


@dataclass(frozen=True, slots=True)
class Estimate:
    """What adding some paths would bring.

    ``files`` are new or changed; ``known`` are new places of known documents; ``read`` of the files were read
    to tell. Where that is fewer than all, the other numbers are extrapolated within each file type: documents
    by the number of files, the rest by their size.
    ``characters`` are those of the passages and rows: what an encoder would be given.
    """

    files: int
    unchanged: int
    known: int
    read: int
    bytes: int
    documents: int
    pages: int
    passages: int
    tables: int
    rows: int
    characters: int
    failed: tuple[Failure, ...]

    @property
    def exact(self) -> bool:
        """Whether every file was read."""
        return self.read == self.files


def estimate(
    base: IngestTarget, paths: Sequence[str | Path], *, sample: int = 3, workers: int | None = None
) -> Estimate:
    """Return what adding ``paths`` would bring. Reads ``sample`` files of each type, spread over the sizes
    (0: all of them), and adds nothing."""
    from clew.parse.documents.pool import ParsePool
    from clew.parse.documents.reader import is_supported

    found = scan_paths(paths, is_supported, exclude=base.path)
    todo = plan_files(found.files, base.locations(), base.documents())
    types: defaultdict[str, list[Location]] = defaultdict(list)
    for file in todo.to_parse:
        types[Path(file.path).suffix.casefold()].append(file)
    chosen = {file.path: file for files in types.values() for file in sample_by_size(files, sample)}
    failed = list(found.failed)
    sums: dict[str, _Sum] = {suffix: _Sum() for suffix in types}
    with ParsePool(workers) as pool:
        for path, outcome in pool.read_files([Path(path) for path in chosen], base.passage_unit):
            total = sums[Path(path).suffix.casefold()]
            total.files += 1
            total.bytes += chosen[str(path)].size
            if isinstance(outcome, UnreadableFile):
                failed.append(Failure(str(path), outcome.problem))
            else:
                total.take(outcome)
    scaled = [sums[suffix].scaled(files) for suffix, files in types.items()]
    documents, pages, passages, tables, rows, characters = (
        round(sum(column)) for column in (zip(*scaled, strict=True) if scaled else ((),) * 6)
    )
    return Estimate(
        files=len(todo.to_parse),
        unchanged=todo.unchanged,
        known=len(todo.known) + sum(map(len, todo.duplicates.values())),
        read=len(chosen),
        bytes=sum(file.size for file in todo.to_parse),
        documents=documents,
        pages=pages,
        passages=passages,
        tables=tables,
        rows=rows,
        characters=characters,
        failed=tuple(failed),
    )


def sample_by_size(files: Sequence[Location], count: int) -> list[Location]:
    """Return ``count`` of ``files`` at even distances in order of size; all of them for 0 or few files."""
    ordered = sorted(files, key=lambda file: (file.size, file.path))
    if not count or len(ordered) <= count:
        return ordered
    return [ordered[(2 * n + 1) * len(ordered) // (2 * count)] for n in range(count)]


@dataclass(slots=True)
class _Sum:
    files: int = 0
    bytes: int = 0
    documents: int = 0
    pages: int = 0
    passages: int = 0
    tables: int = 0
    rows: int = 0
    characters: int = 0

    def take(self, parsed: ParsedDocument) -> None:
        kinds = [node.kind for node in parsed.nodes]
        self.documents += 1
        self.pages += parsed.pages
        self.tables += kinds.count(TABLE)
        self.rows += kinds.count(ROW)
        self.passages += sum(kind in RETRIEVED_KINDS for kind in kinds) - kinds.count(ROW)
        self.characters += sum(len(node.text) for node in parsed.nodes if node.kind in RETRIEVED_KINDS)

    def scaled(self, files: Sequence[Location]) -> tuple[float, ...]:
        """Return the sums for all of ``files``, of which this saw some."""
        by_number = len(files) / self.files if self.files else 0.0
        by_size = sum(file.size for file in files) / self.bytes if self.bytes else 0.0
        sized = (self.pages, self.passages, self.tables, self.rows, self.characters)
        return (by_number * self.documents, *(by_size * value for value in sized))
