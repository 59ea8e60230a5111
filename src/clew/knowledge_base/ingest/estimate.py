"""Estimates what adding files would bring, before anything is added."""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from clew.core.errors import UnreadableFile
from clew.core.sources import Sources, list_sources
from clew.core.types import RETRIEVED_KINDS, ROW, TABLE, Location, ParsedDocument
from clew.knowledge_base.ingest.documents import IngestTarget, outdated_documents
from clew.knowledge_base.ingest.plan import plan_files, scan_paths
from clew.knowledge_base.ingest.report import Failure
from clew.knowledge_base.ingest.web_page import is_page_address
from clew.parse.documents.limits import LIMITS


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of what adding some paths would bring.

    ``files`` counts new and changed files, ``known`` new locations of known documents. ``read`` of the files were
    parsed. Where these are not all, the numbers below are extrapolated within each file type: documents by the number
    of files, the others by their size. ``characters`` are those of the passages and rows, which an encoder reads.
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
    base: IngestTarget,
    paths: Sources,
    *,
    sample: int = 3,
    workers: int | None = None,
    anyway: bool = False,
) -> Estimate:
    """Return what adding ``paths`` would bring; nothing is added.

    ``sample`` files of each type, of different sizes, are parsed (0: all files). UsageError is raised for a system
    folder without ``anyway``. Pages are among ``failed``: they are fetched only to be added.
    """
    from clew.parse.documents.pool import ParsePool
    from clew.parse.documents.reader import is_supported

    sources = list_sources(paths)
    files = [source for source in sources if not is_page_address(source)]
    scan = scan_paths(files, is_supported, exclude=base.path, anyway=anyway)
    plan = plan_files(scan.files, base.locations(), base.documents(), outdated=outdated_documents(base))
    files_of_type: defaultdict[str, list[Location]] = defaultdict(list)
    for file in plan.to_parse:
        files_of_type[_suffix(file.path)].append(file)
    chosen = {file.path: file for files in files_of_type.values() for file in sample_by_size(files, sample)}
    failed = [
        Failure(page, "a page is fetched only to be added") for page in sources if is_page_address(page)
    ]
    failed += scan.failed
    sums = {suffix: _Sums() for suffix in files_of_type}
    # What is in a file counts with that file: an archive of ten mails is eleven documents.
    owners = {Path(name): name for name in chosen}
    depths = dict.fromkeys(owners, 0)
    waiting = deque(owners)
    with (
        tempfile.TemporaryDirectory(prefix="clew-") as folder,
        ParsePool(workers, folder=Path(folder)) as pool,
    ):
        options: dict[Path, dict[str, Any]] = {path: {"members": Path(folder)} for path in owners}
        for path, outcome in pool.read_files(waiting, base.passage_unit, options):
            owner = owners[path]
            type_sums = sums[_suffix(owner)]
            if str(path) == owner:
                type_sums.files += 1
                type_sums.bytes += chosen[owner].size
            if isinstance(outcome, UnreadableFile):
                failed.append(Failure(owner, outcome.reason))
                continue
            type_sums.add(outcome)
            for member in outcome.members:
                if member.path and depths[path] < LIMITS.member_depth:
                    inner = Path(member.path)
                    owners[inner], depths[inner] = owner, depths[path] + 1
                    options[inner] = {"members": Path(folder), "name": PurePath(member.name).name}
                    waiting.appendleft(inner)
    scaled = [sums[suffix].extrapolate(files) for suffix, files in files_of_type.items()]
    documents, pages, passages, tables, rows, characters = (
        round(sum(column)) for column in (zip(*scaled, strict=True) if scaled else ((),) * 6)
    )
    return Estimate(
        files=len(plan.to_parse),
        unchanged=plan.unchanged,
        known=len(plan.known) + sum(map(len, plan.duplicates.values())),
        read=len(chosen),
        bytes=sum(file.size for file in plan.to_parse),
        documents=documents,
        pages=pages,
        passages=passages,
        tables=tables,
        rows=rows,
        characters=characters,
        failed=tuple(failed),
    )


def sample_by_size(files: Sequence[Location], count: int) -> list[Location]:
    """Return ``count`` of ``files``, evenly spaced in order of size; all of them if ``count`` is 0 or large."""
    ordered = sorted(files, key=lambda file: (file.size, file.path))
    if not count or len(ordered) <= count:
        return ordered
    return [ordered[(2 * n + 1) * len(ordered) // (2 * count)] for n in range(count)]


@dataclass(slots=True)
class _Sums:
    files: int = 0
    bytes: int = 0
    documents: int = 0
    pages: int = 0
    passages: int = 0
    tables: int = 0
    rows: int = 0
    characters: int = 0

    def add(self, parsed: ParsedDocument) -> None:
        """Count a parsed document."""
        kinds = [node.kind for node in parsed.nodes]
        self.documents += 1
        self.pages += parsed.pages
        self.tables += kinds.count(TABLE)
        self.rows += kinds.count(ROW)
        self.passages += sum(kind in RETRIEVED_KINDS for kind in kinds) - kinds.count(ROW)
        self.characters += sum(len(node.text) for node in parsed.nodes if node.kind in RETRIEVED_KINDS)

    def extrapolate(self, files: Sequence[Location]) -> tuple[float, ...]:
        """Return the sums for all of ``files``, of which some were counted."""
        by_number = len(files) / self.files if self.files else 0.0
        by_size = sum(file.size for file in files) / self.bytes if self.bytes else 0.0
        sized = (self.pages, self.passages, self.tables, self.rows, self.characters)
        return (by_number * self.documents, *(by_size * value for value in sized))


def _suffix(path: str) -> str:
    return Path(path).suffix.casefold()
