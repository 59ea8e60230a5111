"""Adds files to a knowledge base: what is known is skipped, the rest is read and committed one by one.

Each document is committed as soon as it is read, and nothing is remembered elsewhere. So an ``add`` that was
killed loses at most the documents that were being read, and running it again continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from clew.core.errors import UnreadableFile
from clew.core.types import RETRIEVED_KINDS, ROW, TABLE, Document, Location, ParsedDocument
from clew.knowledge_base.ingest.plan import Plan, plan_files
from clew.knowledge_base.ingest.report import Event, Failure, Progress, Report, ignore_event
from clew.knowledge_base.ingest.scan import Scan, scan_paths

if TYPE_CHECKING:
    from clew.core.protocols import Encoder

#: After how many new passages and rows the base's indexes catch up: often enough that a person can already
#: ask, seldom enough that it costs little.
CATCH_UP_EVERY = 2_000


class IngestTarget(Protocol):
    """What adding needs of a knowledge base."""

    @property
    def path(self) -> Path:
        """The base's own folder, which is never added to itself."""
        ...

    @property
    def passage_unit(self) -> str:
        """The unit of passages, ``paragraph`` or ``sentence``."""
        ...

    def documents(self) -> list[Document]:
        """Return every document."""
        ...

    def locations(self) -> dict[str, tuple[Location, str]]:
        """Return every location and its document's key, by path."""
        ...

    def put_document(self, parsed: ParsedDocument, location: Location) -> str:
        """Store a document found at ``location``: "added", "replaced", "located" or "unchanged"."""
        ...

    def put_location(self, location: Location, key: str) -> str:
        """Note a known document at another path, or its own path touched; the same answers."""
        ...

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Forget ``paths``; return the documents that have none left and are gone."""
        ...

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make everything committed searchable; return the number of documents that were not."""
        ...

    def encode(self, encoder: Encoder, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the vectors that are missing; return how many."""
        ...


def add(
    base: IngestTarget,
    paths: Sequence[str | Path],
    *,
    sync: bool = False,
    checksum: bool = False,
    workers: int | None = None,
    progress: Progress = ignore_event,
    encoder: Callable[[], Encoder | None] = lambda: None,
) -> Report:
    """Add the files at and under ``paths`` and return what happened to each.

    ``sync`` also forgets files under ``paths`` that no longer exist. ``checksum`` compares the bytes of files
    that look unchanged. ``workers`` is the number of reading processes (default: one per core). ``encoder``
    is asked, at the end, for the encoder whose missing vectors to make, or None. A file that cannot be read
    is a line of ``Report.failed``; Ctrl-C sets ``Report.interrupted`` and keeps what is done.
    """
    started = time.monotonic()
    adding = _Adding(base, Report.empty(), progress)
    try:
        adding.run(paths, sync=sync, checksum=checksum, workers=workers)
        adding.encode(encoder())
    except KeyboardInterrupt:
        adding.report.interrupted = True
    adding.report.seconds = time.monotonic() - started
    return adding.report


@dataclass(slots=True)
class _Adding:
    base: IngestTarget
    report: Report
    progress: Progress
    uncaught: int = 0  # new passages and rows since the indexes last caught up
    done: int = 0
    total: int = 0

    def run(self, paths: Sequence[str | Path], *, sync: bool, checksum: bool, workers: int | None) -> None:
        """Scan, decide, locate, read and commit, mirror, catch up."""
        from clew.parse.documents.reader import is_supported

        found = scan_paths(paths, is_supported, exclude=self.base.path)
        located = self.base.locations()
        todo = plan_files(found.files, located, self.base.documents(), checksum=checksum)
        self.report.skipped = dict(found.skipped)
        self.report.unchanged = todo.unchanged
        self.total = len(found.failed) + len(found.files) - todo.unchanged
        for failure in found.failed:
            self.fail(failure.path, failure.reason, located)
        for location, key in todo.known:
            self.finish(location.path, self.base.put_location(location, key))
        self.read(todo, located, workers)
        if sync:
            self.mirror(found, located)
        self.catch_up()

    def read(self, todo: Plan, located: dict[str, tuple[Location, str]], workers: int | None) -> None:
        """Read what is new with worker processes, and commit each document as it comes."""
        if not todo.to_parse:
            return
        from clew.parse.documents.pool import ParsePool

        locations = {location.path: location for location in todo.to_parse}
        with ParsePool(workers) as pool:
            for read_path, outcome in pool.read_files(
                [Path(path) for path in locations], self.base.passage_unit
            ):
                path = str(read_path)
                same = (locations[path], *todo.duplicates.get(path, ()))
                if isinstance(outcome, UnreadableFile):
                    for location in same:
                        self.fail(location.path, outcome.problem, located)
                else:
                    self.commit(outcome, same)

    def commit(self, parsed: ParsedDocument, locations: Sequence[Location]) -> None:
        """Store a document with all the paths at which it lies."""
        first, *others = locations
        self.report.notes.extend((first.path, note) for note in parsed.notes)
        said = self.base.put_document(parsed, first)
        if said in {"added", "replaced"}:
            self.count(parsed)
        self.finish(first.path, said)
        for location in others:
            self.finish(location.path, self.base.put_location(location, parsed.key))
        if self.uncaught >= CATCH_UP_EVERY:
            self.catch_up()

    def count(self, parsed: ParsedDocument) -> None:
        """Add a new document to the report's sums."""
        kinds = [node.kind for node in parsed.nodes]
        retrieved = sum(kind in RETRIEVED_KINDS for kind in kinds)
        self.report.pages += parsed.pages
        self.report.tables += kinds.count(TABLE)
        self.report.rows += kinds.count(ROW)
        self.report.passages += retrieved - kinds.count(ROW)
        self.uncaught += retrieved

    def mirror(self, found: Scan, located: dict[str, tuple[Location, str]]) -> None:
        """Forget the paths under the scanned roots whose file is gone. A path that merely cannot be looked
        at (a folder without permission, a drive that is away) is not gone."""
        below = tuple(Path(root) for root in found.roots)
        vanished = sorted(
            path
            for path in located
            if any(root == Path(path) or root in Path(path).parents for root in below) and _vanished(path)
        )
        if vanished:
            self.base.remove(vanished)
            self.report.removed.extend(vanished)

    def catch_up(self) -> None:
        """Make what is committed searchable."""
        self.base.catch_up(lambda done, total: self.progress(Event("index", done, total)))
        self.uncaught = 0

    def encode(self, encoder: Encoder | None) -> None:
        """Make the vectors that are missing, if the base has an encoder."""
        if encoder is not None:
            self.report.encoded = self.base.encode(
                encoder, lambda done, total: self.progress(Event("encode", done, total))
            )

    def fail(self, path: str, reason: str, located: dict[str, tuple[Location, str]]) -> None:
        """Note that a file cannot be added."""
        self.report.failed.append(Failure(path, reason, kept=path in located))
        self.done += 1
        self.progress(Event("files", self.done, self.total, path, "failed"))

    def finish(self, path: str, said: str) -> None:
        """Note what the base said about a file."""
        self.report.record(path, said)
        self.done += 1
        self.progress(Event("files", self.done, self.total, path, said))


def _vanished(path: str) -> bool:
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
