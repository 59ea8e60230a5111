"""Adds documents to a knowledge base: known files are skipped, new ones are read and committed one by one.

Each document is committed as soon as it is read, and there is no other record of progress. So an ``add`` that is
killed loses at most the documents that are being read, and running it again continues.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Protocol

from clew.core.addresses import without_password
from clew.core.errors import UnreadableFile
from clew.core.sources import Sources, list_sources
from clew.core.types import (
    MEMBER_SEPARATOR,
    RETRIEVED_KINDS,
    ROW,
    TABLE,
    Document,
    Location,
    Member,
    ParsedDocument,
    container_path,
    count_left_out,
)
from clew.knowledge_base.ingest.plan import Plan, Scan, plan_files, scan_paths
from clew.knowledge_base.ingest.report import Event, Failure, Progress, Report, ignore_event
from clew.knowledge_base.ingest.web_page import PageFetcher, WebPage, is_page_address
from clew.parse.documents.limits import LIMITS

if TYPE_CHECKING:
    from clew.core.protocols import Encoder
    from clew.knowledge_base.cluster import Cluster, ClusterPool
    from clew.parse.documents.pool import ParsePool

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

    def temporary_folder(self) -> AbstractContextManager[Path]:
        """Create a folder for files within files, and delete it afterwards."""
        ...

    def documents(self) -> list[Document]:
        """Return every document."""
        ...

    def locations(self) -> dict[str, tuple[Location, str]]:
        """Return every location and its document's key, by path."""
        ...

    def keys_without_fields(self) -> frozenset[str]:
        """Return the keys of documents that were stored before fields were read from files."""
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


def add(  # noqa: PLR0913 (one keyword for each choice of a person)
    base: IngestTarget,
    paths: Sources,
    *,
    sync: bool = False,
    checksum: bool = False,
    workers: int | None = None,
    progress: Progress = ignore_event,
    encoder: Callable[[], Encoder | None] = lambda: None,
    fetcher: PageFetcher | None = None,
    anyway: bool = False,
    cluster: Cluster | None = None,
) -> Report:
    """Add the files at and under ``paths``, and return what happened to each.

    A path that is an address (https://) is a page, which ``fetcher`` fetches; it is read again each time.

    ``sync`` also removes files under ``paths`` that no longer exist. ``checksum`` compares the bytes of files that
    look unchanged. ``workers`` is the number of parsing processes (default: one per core). ``encoder`` is called at
    the end, and returns the encoder for the new passages or None. With a ``cluster``, files are parsed there. A file
    that cannot be read goes to ``Report.failed``. Ctrl-C sets ``Report.interrupted``; the documents so far stay.
    Raises UsageError for a system folder, unless ``anyway`` is set.
    """
    started = time.monotonic()
    sources = list_sources(paths)
    addresses = [source for source in sources if is_page_address(source)]
    files = [source for source in sources if not is_page_address(source)]
    run = _AddRun(base, Report.empty(), progress, addresses, fetcher or PageFetcher(), cluster)
    try:
        run.run(files, sync=sync, checksum=checksum, workers=workers, anyway=anyway)
        run.encode(encoder())
    except KeyboardInterrupt:
        run.report.interrupted = True
    run.report.seconds = time.monotonic() - started
    return run.report


def outdated_documents(base: IngestTarget) -> frozenset[str]:
    """Return the keys of documents that a later version of clew reads otherwise."""
    from clew.parse.documents.formats import is_outdated

    return base.keys_without_fields() | {
        document.key for document in base.documents() if is_outdated(document)
    }


@dataclass(slots=True)
class _Task:
    """A file to parse, with all its locations, and the file that it is in.

    ``parsed`` is the document of a file with files in it, which waits until ``open_members`` of these are finished.
    """

    locations: tuple[Location, ...]
    container: _Task | None = None
    parsed: ParsedDocument | None = None
    open_members: int = 0
    names: set[str] = field(default_factory=set)  # of the files in it


def _member_location(place: Location, member: Member) -> Location:
    """Return the location of a file within the file at ``place``, without its size."""
    return replace(place, path=f"{place.path}{MEMBER_SEPARATOR}{member.name}", size=0, inode=0)


@dataclass(slots=True)
class _AddRun:
    base: IngestTarget
    report: Report
    progress: Progress
    addresses: Sequence[str] = ()
    fetcher: PageFetcher = field(default_factory=PageFetcher)
    cluster: Cluster | None = None
    pending: int = 0  # new passages and rows that are not searchable yet
    done: int = 0
    total: int = 0
    members: Counter[str] = field(default_factory=Counter)  # files within each file, so far
    members_of: dict[str, list[str]] | None = None

    def run(
        self, paths: Sequence[str], *, sync: bool, checksum: bool, workers: int | None, anyway: bool
    ) -> None:
        """Add the files, and remove vanished ones if ``sync`` is set."""
        from clew.parse.documents.image import KINDS
        from clew.parse.documents.pdf.recognition import describe_recognition
        from clew.parse.documents.reader import is_supported

        scan = scan_paths(paths, is_supported, exclude=self.base.path, anyway=anyway)
        locations = self.base.locations()
        plan = plan_files(
            scan.files,
            locations,
            self.base.documents(),
            checksum=checksum,
            outdated=outdated_documents(self.base),
        )
        self.report.skipped = dict(scan.skipped)
        self.report.unsupported = sorted(scan.unsupported)
        suffixes = {suffix for kind in KINDS for suffix in kind.suffixes}
        pictures = [path for path in self.report.unsupported if PurePath(path).suffix.lower() in suffixes]
        if pictures:
            note = f"pictures are left out ({len(pictures)}). {describe_recognition()}"
            self.report.notes.append((pictures[0], note))
        self.report.unchanged = plan.unchanged
        self.total = len(scan.failed) + len(scan.files) - plan.unchanged + len(self.addresses)
        self.total += sum(map(len, plan.earlier.values()))
        for failure in scan.failed:
            self.record_failure(failure.path, failure.reason, locations)
        for location, key in plan.known:
            self.locate_known(location, key, locations)
        self.parse_files(plan, locations, workers)
        if sync:
            self.remove_vanished(scan, locations)
        self.catch_up()

    def parse_files(
        self, plan: Plan, locations: dict[str, tuple[Location, str]], workers: int | None
    ) -> None:
        """Parse the new files, and the files within them, in worker processes; commit each document as it comes.

        A document with files in it is committed after all of these: if ``add`` is killed before, it reads them again.
        """
        if not plan.to_parse and not self.addresses:
            return
        tasks = {
            Path(location.path): _Task(
                (
                    location,
                    *plan.duplicates.get(location.path, ()),
                    *plan.earlier.get(location.path, ()),
                )
            )
            for location in plan.to_parse
        }
        waiting = deque(tasks)
        with (
            self.base.temporary_folder() as folder,
            self.open_pool(workers, folder) as pool,
        ):
            pool.on_pages = self.report_pages
            options: dict[Path, dict[str, Any]] = {path: {"members": folder} for path in tasks}
            for number, page in enumerate(self.fetch_pages(locations)):
                file = folder / f"page{number}"
                file.write_bytes(page.data)
                place = Location(page.address, page.address, len(page.data), 0, 0)
                tasks[file] = _Task((place,))
                options[file] = {"members": folder, "name": page.name}
                waiting.append(file)
            for path, outcome in pool.read_files(waiting, self.base.passage_unit, options):
                task = tasks.pop(path)
                if isinstance(outcome, UnreadableFile):
                    self.record_failures(task, outcome.reason, locations)
                elif outcome.members:
                    task.parsed = outcome
                    for member, inner in self.member_tasks(task, locations):
                        tasks[member] = inner
                        options[member] = {
                            "members": folder,
                            "name": PurePath(inner.locations[0].path).name,
                        }
                        waiting.appendleft(member)
                else:
                    self.commit(outcome, task.locations, locations)
                if task.container is not None:
                    path.unlink(missing_ok=True)
                self.finish(task, locations)

    def open_pool(self, workers: int | None, folder: Path) -> ParsePool | ClusterPool:
        """Return what parses files: processes of this machine, or the cluster."""
        if self.cluster is not None:
            from clew.knowledge_base.cluster import ClusterPool

            return ClusterPool(self.cluster)
        from clew.parse.documents.pool import ParsePool

        return ParsePool(workers, folder=folder)

    def fetch_pages(self, locations: dict[str, tuple[Location, str]]) -> Iterator[WebPage]:
        """Yield the pages that can be fetched, and report those that cannot."""
        for address in dict.fromkeys(self.addresses):
            try:
                yield self.fetcher.fetch(address)
            except UnreadableFile as error:
                self.record_failure(without_password(address), error.reason, locations)

    def report_pages(self, path: Path, done: int, total: int) -> None:
        """Report how many pages of a file are read."""
        self.progress(Event("pages", done, total, str(path)))

    def member_tasks(
        self, task: _Task, locations: dict[str, tuple[Location, str]]
    ) -> Iterator[tuple[Path, _Task]]:
        """Yield the files within a file that can be read, and report those that cannot."""
        for member in task.parsed.members if task.parsed else ():
            inner = _Task(tuple(_member_location(place, member) for place in task.locations), task)
            self.total += len(inner.locations)
            path = inner.locations[0].path
            top = container_path(path)
            self.members[top] += 1
            depth = path[len(top) :].count(MEMBER_SEPARATOR)
            problem = member.problem
            if depth > LIMITS.member_depth:
                problem = (
                    f"nested too deeply: more than {LIMITS.member_depth} files within each other; unpack it"
                )
            elif self.members[top] > LIMITS.members:
                problem = f"too many files within one file: more than {LIMITS.members:,}; unpack it"
            task.names.add(member.name)
            if problem:
                self.record_failures(inner, problem, locations)
            else:
                size = Path(member.path).stat().st_size
                inner.locations = tuple(replace(place, size=size) for place in inner.locations)
                task.open_members += 1
                yield Path(member.path), inner

    def finish(self, task: _Task, locations: dict[str, tuple[Location, str]]) -> None:
        """Commit the files whose last member was just finished, from the inside out."""
        current: _Task | None = task
        while current is not None and not current.open_members:
            if current.parsed is not None:
                self.commit(current.parsed, current.locations, locations, current.names)
            current = current.container
            if current is not None:
                current.open_members -= 1

    def record_failures(self, task: _Task, problem: str, locations: dict[str, tuple[Location, str]]) -> None:
        """Report that a file cannot be added, for each of its locations."""
        for location in task.locations:
            self.record_failure(location.path, problem, locations)

    def commit(
        self,
        parsed: ParsedDocument,
        places: Sequence[Location],
        locations: dict[str, tuple[Location, str]],
        members: Set[str] = frozenset(),
    ) -> None:
        """Store a document with all its locations, and remove what was in an earlier version of the file alone."""
        first, *others = places
        self.report.notes.extend((first.path, note) for note in parsed.notes)
        for reason, words in count_left_out(parsed.left_out).items():
            self.report.left_out.setdefault(reason, {})[first.path] = words
        # The file itself comes last: if add is killed before, it finds the file changed, and does all of it again.
        for location in places:
            self.remove_stale_members(location.path, members, locations)
        outcome = self.base.put_document(replace(parsed, members=()), first)
        if outcome in {"added", "replaced"}:
            self.count_nodes(parsed)
        self.record_outcome(first.path, outcome)
        for location in others:
            self.record_outcome(location.path, self.base.put_location(location, parsed.key))
        if self.pending >= CATCH_UP_EVERY:
            self.catch_up()

    def locate_known(self, location: Location, key: str, locations: dict[str, tuple[Location, str]]) -> None:
        """Store a new location of a known document, and those of the files within it."""
        names = set()
        source = self.known_containers(locations).get(key, "")
        for path in self.known_members(locations).get(source, ()):
            place, member = locations[path]
            name = path[len(source) + len(MEMBER_SEPARATOR) :]
            names.add(name.partition(MEMBER_SEPARATOR)[0])
            inner = replace(_member_location(location, Member(name)), size=place.size)
            self.total += 1
            self.record_outcome(inner.path, self.base.put_location(inner, member))
        self.remove_stale_members(location.path, names, locations)
        # Last, as in commit.
        self.record_outcome(location.path, self.base.put_location(location, key))

    def known_containers(self, locations: dict[str, tuple[Location, str]]) -> dict[str, str]:
        """Return a path of each document that has files in it, by its key."""
        return {locations[path][1]: path for path in self.known_members(locations) if path in locations}

    def known_members(self, locations: dict[str, tuple[Location, str]]) -> dict[str, list[str]]:
        """Return the paths of the files within each file, as they were when the run began."""
        if self.members_of is None:
            self.members_of = {}
            for path in locations:
                top = container_path(path)
                inner = path
                while inner != top:
                    inner = inner.rpartition(MEMBER_SEPARATOR)[0]
                    self.members_of.setdefault(inner, []).append(path)
        return self.members_of

    def remove_stale_members(
        self, path: str, names: Set[str], locations: dict[str, tuple[Location, str]]
    ) -> None:
        """Remove the files that were within a file and are not any more."""
        start = len(path) + len(MEMBER_SEPARATOR)
        stale = [
            member
            for member in self.known_members(locations).get(path, ())
            if member[start:].partition(MEMBER_SEPARATOR)[0] not in names
        ]
        if stale:
            self.base.remove(stale)
            self.report.removed.extend(stale)

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
            if not roots.isdisjoint((Path(path), *Path(path).parents)) and has_vanished(container_path(path))
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


def has_vanished(path: str) -> bool:
    """Return whether a file is not there any more. One that cannot be examined may still be there."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
