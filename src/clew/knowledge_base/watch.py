"""Keeps a knowledge base in step with folders.

The folders are polled: a scan reads the names, sizes and times of files alone, works on every file system (network
drives send no events) and misses nothing. What changed is added once it has been quiet for a moment, so that no file
is read while it is being written.

A document whose file disappears is moved to the trash (:mod:`clew.knowledge_base.trash`). A folder that is missing
altogether (a drive that is not mounted) empties nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path

from clew.core.errors import UsageError
from clew.core.sources import Sources, expand_path, list_sources, refuse_system_folders
from clew.core.types import Location, container_path
from clew.knowledge_base.ingest.documents import has_vanished
from clew.knowledge_base.ingest.plan import scan_paths
from clew.knowledge_base.ingest.report import Progress, Report
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.trash import TRASH_DAYS, Trash


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """What a scan of the folders shows, against the knowledge base: files to read (new or changed), and paths whose
    file is gone; paths that are gone too, with the path at which the same document is still; folders that are missing
    altogether, whose documents stay."""

    new: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.vanished or self.moved)


@dataclass(slots=True)
class FolderWatch:
    """Watches the folders that are ``given``; :meth:`run` polls, :meth:`synchronise` does the work of one change.

    A change is taken up once the folders have been the same for ``quiet`` seconds, or after ``patience`` seconds of
    changes without a pause. What disappears is kept in the trash for ``trash_days``.
    """

    base: KnowledgeBase
    given: InitVar[Sources]
    quiet: float = 2.0
    patience: float = 60.0
    trash_days: float = TRASH_DAYS
    workers: int | None = None
    anyway: bool = False
    folders: list[Path] = field(init=False)
    _seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _changed_at: float = 0.0
    _pending_since: float | None = 0.0  # the first look is a change: nothing has been seen

    def __post_init__(self, given: Sources) -> None:
        self.folders = [expand_path(folder) for folder in list_sources(given)]
        if not self.anyway:
            refuse_system_folders(given)
        for folder in self.folders:
            if folder.exists() and not folder.is_dir():
                raise UsageError(f"{folder} is a file", f"Watch its folder: clew watch {folder.parent}")

    @property
    def trash(self) -> Trash:
        """The trash of the knowledge base."""
        return Trash(self.base)

    def changes(self) -> FolderChanges:
        """Return what is to be done, and do nothing."""
        files, missing = self._scan()
        locations = self.base.store.locations()
        new = [
            path
            for path, visit in files.items()
            if path not in locations or _visit(locations[path][0]) != visit
        ]
        present = [folder for folder in self.folders if str(folder) not in missing]
        vanished = sorted(
            path
            for path in locations
            if container_path(path) == path
            and any(folder in Path(path).parents for folder in present)
            and has_vanished(path)
        )
        moved = _find_moved(vanished, locations, {files[path]: path for path in new})
        return FolderChanges(
            tuple(sorted(new)),
            tuple(path for path in vanished if path not in moved),
            tuple(moved.items()),
            tuple(missing),
        )

    def synchronise(self, progress: Progress | None = None) -> tuple[Report, FolderChanges]:
        """Add what is new, keep earlier versions of what changed, move what is gone to the trash, and delete what has
        been there too long.

        Files are added first: a file that was moved is then another path of its document, which stays, with its tags.
        """
        present = [folder for folder in self.folders if folder.is_dir()]
        self.trash.keep_versions(self.changes().new)
        report = self.base.add(present, workers=self.workers, progress=progress, anyway=self.anyway)
        changes = self.changes()
        if changes.vanished:
            self.trash.add(changes.vanished)
        if changes.moved:
            tags = self.base.store.tags()
            for old, path in changes.moved:
                self.base.store.tag([path], add=tags.get(old, ()))
            self.base.remove(*(old for old, _ in changes.moved))
        self.trash.empty(self.trash_days)
        return report, changes

    def run(
        self,
        every: float = 2.0,
        should_stop: Callable[[], bool] = lambda: False,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Report, FolderChanges]]:
        """Poll each ``every`` seconds, and yield what was done whenever something changed."""
        self._seen, self._pending_since = {}, 0.0
        while not should_stop():
            if self.is_due() and self.changes():
                yield self.synchronise(progress)
            time.sleep(every)

    def is_due(self) -> bool:
        """Look at the folders, and return whether a change of them is to be taken up now."""
        now = time.monotonic()
        files, _ = self._scan()
        if files != self._seen:
            self._seen, self._changed_at = files, now
            self._pending_since = now if self._pending_since is None else self._pending_since
        since = self._pending_since
        is_due = since is not None and (
            now - self._changed_at >= self.quiet or now - since >= self.patience or not since
        )
        if is_due:
            self._pending_since = None
        return is_due

    def _scan(self) -> tuple[dict[str, tuple[int, int, int]], list[str]]:
        """Return size, time and inode of each file that is read, and the folders that are missing."""
        from clew.parse.documents.reader import is_supported

        missing = [str(folder) for folder in self.folders if not folder.is_dir()]
        present = [folder for folder in self.folders if str(folder) not in missing]
        scan = scan_paths(present, is_supported, exclude=self.base.path, anyway=self.anyway)
        return {file.path: _visit(file) for file in scan.files}, missing


def _find_moved(
    vanished: Sequence[str],
    locations: Mapping[str, tuple[Location, str]],
    new: Mapping[tuple[int, int, int], str],
) -> dict[str, str]:
    """Return for paths that are gone where the same document is: at another path, or in a file that is new and has
    the size, time and inode that it had."""
    gone, paths_of = set(vanished), defaultdict[str, list[str]](list)
    keys = {locations[path][1] for path in vanished}
    for path, (_, key) in locations.items():
        if key in keys and path not in gone and container_path(path) == path and not has_vanished(path):
            paths_of[key].append(path)
    moved = {}
    for path in vanished:
        location, key = locations[path]
        if others := paths_of.get(key):
            moved[path] = min(others)
        elif location.inode and _visit(location) in new:
            moved[path] = new[_visit(location)]
    return moved


def _visit(location: Location) -> tuple[int, int, int]:
    return location.size, location.mtime_ns, location.inode
