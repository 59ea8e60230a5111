"""Adds documents to a knowledge base: known files are skipped, new ones are read and committed one by one.

Each document is committed as soon as it is read, and there is no other record of progress. So an ``add`` that is
killed loses at most the documents that are being read, and running it again continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from clew.core.errors import UnreadableFile
from clew.core.types import RETRIEVED_KINDS, ROW, TABLE, Document, Location, ParsedDocument
from clew.knowledge_base.ingest.plan import Plan, Scan, plan_files, scan_paths
from clew.knowledge_base.ingest.report import Event, Failure, Progress, Report, ignore_event

if TYPE_CHECKING:
    from clew.core.protocols import Encoder

#: The indexes catch up after so many new passages and rows: often enough that the documents so far can be searched,
#: seldom enough to cost little.
CATCH_UP_EVERY = 2_000


class IngestTarget(Protocol):
    """A knowledge base, as far as adding documents needs it."""

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
        """Store that a known document is at this location, too; returns as :meth:`put_document`."""
        ...

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Remove locations; return the documents that had no other and are removed with them."""
        ...

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make all documents searchable; return how many were not."""
        ...

    def encode(self, encoder: Encoder, progress: Callable[[int, int], None] | None = None) -> int:
        """Encode the passages that have no vectors; return how many."""
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
    """Add the files at and under ``paths``, and return what happened to each.

    ``sync`` also removes files under ``paths`` that no longer exist. ``checksum`` compares the bytes of files that
    look unchanged. ``workers`` is the number of parsing processes (default: one per core). ``encoder`` is called at
    the end, and returns the encoder for the new passages or None. A file that cannot be read goes to
    ``Report.failed``. Ctrl-C sets ``Report.interrupted``; the documents so far stay.
    """
    started = time.monotonic()
    run = _AddRun(base, Report.empty(), progress)
    try:
        run.run(paths, sync=sync, checksum=checksum, workers=workers)
        run.encode(encoder())
    except KeyboardInterrupt:
        run.report.interrupted = True
    run.report.seconds = time.monotonic() - started
    return run.report


@dataclass(slots=True)
class _AddRun:
    base: IngestTarget
    report: Report
    progress: Progress
    pending: int = 0  # new passages and rows that are not searchable yet
    done: int = 0
    total: int = 0

    def run(self, paths: Sequence[str | Path], *, sync: bool, checksum: bool, workers: int | None) -> None:
        """Add the files, and remove vanished ones if ``sync`` is set."""
        from clew.parse.documents.reader import is_supported

        scan = scan_paths(paths, is_supported, exclude=self.base.path)
        locations = self.base.locations()
        plan = plan_files(scan.files, locations, self.base.documents(), checksum=checksum)
        self.report.skipped = dict(scan.skipped)
        self.report.unsupported = sorted(scan.unsupported)
        self.report.unchanged = plan.unchanged
        self.total = len(scan.failed) + len(scan.files) - plan.unchanged
        for failure in scan.failed:
            self.record_failure(failure.path, failure.reason, locations)
        for location, key in plan.known:
            self.record_outcome(location.path, self.base.put_location(location, key))
        self.parse_files(plan, locations, workers)
        if sync:
            self.remove_vanished(scan, locations)
        self.catch_up()

    def parse_files(
        self, plan: Plan, locations: dict[str, tuple[Location, str]], workers: int | None
    ) -> None:
        """Parse the new files in worker processes, and commit each document as it comes."""
        if not plan.to_parse:
            return
        from clew.parse.documents.pool import ParsePool

        files = {location.path: location for location in plan.to_parse}
        with ParsePool(workers) as pool:
            for path, outcome in pool.read_files([Path(name) for name in files], self.base.passage_unit):
                name = str(path)
                same_bytes = (files[name], *plan.duplicates.get(name, ()))
                if isinstance(outcome, UnreadableFile):
                    for location in same_bytes:
                        self.record_failure(location.path, outcome.problem, locations)
                else:
                    self.commit(outcome, same_bytes)

    def commit(self, parsed: ParsedDocument, locations: Sequence[Location]) -> None:
        """Store a document with all its locations."""
        first, *others = locations
        self.report.notes.extend((first.path, note) for note in parsed.notes)
        outcome = self.base.put_document(parsed, first)
        if outcome in {"added", "replaced"}:
            self.count_nodes(parsed)
        self.record_outcome(first.path, outcome)
        for location in others:
            self.record_outcome(location.path, self.base.put_location(location, parsed.key))
        if self.pending >= CATCH_UP_EVERY:
            self.catch_up()

    def count_nodes(self, parsed: ParsedDocument) -> None:
        """Add a new document to the sums of the report."""
        kinds = [node.kind for node in parsed.nodes]
        retrieved = sum(kind in RETRIEVED_KINDS for kind in kinds)
        self.report.pages += parsed.pages
        self.report.tables += kinds.count(TABLE)
        self.report.rows += kinds.count(ROW)
        self.report.passages += retrieved - kinds.count(ROW)
        self.pending += retrieved

    def remove_vanished(self, scan: Scan, locations: dict[str, tuple[Location, str]]) -> None:
        """Remove the paths under the scanned roots whose file no longer exists.

        A path that cannot be examined (a folder without permission, a drive that is not mounted) stays.
        """
        roots = {Path(root) for root in scan.roots}
        vanished = sorted(
            path
            for path in locations
            if not roots.isdisjoint((Path(path), *Path(path).parents)) and _has_vanished(path)
        )
        if vanished:
            self.base.remove(vanished)
            self.report.removed.extend(vanished)

    def catch_up(self) -> None:
        """Make the documents so far searchable."""
        self.base.catch_up(lambda done, total: self.progress(Event("index", done, total)))
        self.pending = 0

    def encode(self, encoder: Encoder | None) -> None:
        """Encode the passages that have no vectors, if the base has an encoder."""
        if encoder is not None:
            self.report.encoded = self.base.encode(
                encoder, lambda done, total: self.progress(Event("encode", done, total))
            )

    def record_failure(self, path: str, reason: str, locations: dict[str, tuple[Location, str]]) -> None:
        """Report that a file cannot be added."""
        self.report.failed.append(Failure(path, reason, keeps_version=path in locations))
        self.done += 1
        self.progress(Event("files", self.done, self.total, path, "failed"))

    def record_outcome(self, path: str, outcome: str) -> None:
        """Report what happened to a file."""
        self.report.record(path, outcome)
        self.done += 1
        self.progress(Event("files", self.done, self.total, path, outcome))


def _has_vanished(path: str) -> bool:
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
