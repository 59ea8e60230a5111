"""Finds the files at and under some paths: sorted, and each once, even where links form a loop."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.types import Location
from clew.knowledge_base.ingest.report import Failure

HIDDEN, UNSUPPORTED, SPECIAL, DANGLING = "hidden", "unsupported type", "not a regular file", "broken link"


@dataclass(slots=True)
class Scan:
    """The files at and under some paths.

    - ``files`` can be added, and are sorted by path.
    - ``roots`` are the given paths that exist, absolute.
    - ``failed`` are given files, and folders, that cannot be read.
    - ``skipped`` counts the other files, by reason.
    """

    files: list[Location] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def scan_paths(
    paths: Sequence[str | Path], supported: Callable[[Path], bool], exclude: Path | None = None
) -> Scan:
    """Return the files at and under ``paths``, without the folder ``exclude`` (the base's own).

    In folders, hidden files and those that are not ``supported`` are skipped. A file that is given itself is always
    taken; parsing it says what it is. Each folder is entered once, so links that form a loop end. Real folders are
    entered before linked ones, so that a file is found at its own path if it has one.
    """
    return _Scanner(supported, exclude).run(paths)


@dataclass(slots=True)
class _Scanner:
    supported: Callable[[Path], bool]
    exclude: Path | None
    scan: Scan = field(default_factory=Scan)
    seen: set[str] = field(default_factory=set)
    entered: set[tuple[int, int]] = field(default_factory=set)

    def run(self, paths: Sequence[str | Path]) -> Scan:
        if self.exclude and self.exclude.is_dir():
            status = self.exclude.stat()
            self.entered.add((status.st_dev, status.st_ino))
        for name in paths:
            # Absolute, but links stay: a person knows the file by this path.
            path = Path(os.path.abspath(Path(name).expanduser()))  # noqa: PTH100
            try:
                status = path.stat()
            except OSError as error:
                self.scan.failed.append(Failure(str(path), _reason(error)))
                continue
            self.scan.roots.append(str(path))
            if stat.S_ISDIR(status.st_mode):
                self._scan_folder(path)
            else:
                self._add_file(path, str(path), status)
        self.scan.files.sort(key=lambda location: location.path)
        return self.scan

    def _scan_folder(self, root: Path) -> None:
        # Linked folders wait until every real one has been entered.
        linked: list[Path] = []
        pending = [root]
        while pending or linked:
            folder = pending.pop() if pending else linked.pop(0)
            for entry in self._list_folder(folder):
                self._scan_entry(entry, str(root), pending, linked)

    def _list_folder(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in self.entered:
                return
            self.entered.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.scan.failed.append(Failure(str(folder), _reason(error)))
            return
        yield from ordered

    def _scan_entry(
        self, entry: os.DirEntry[str], root: str, pending: list[Path], linked: list[Path]
    ) -> None:
        # "~$" marks the lock file that a word processor writes beside an open document.
        if entry.name.startswith((".", "~$")):
            self.scan.skipped[HIDDEN] += 1
            return
        path = Path(entry.path)
        try:
            status = entry.stat()
        except OSError as error:
            if entry.is_symlink():
                self.scan.skipped[DANGLING] += 1
            else:
                self.scan.failed.append(Failure(entry.path, _reason(error)))
            return
        if stat.S_ISDIR(status.st_mode):
            (linked if entry.is_symlink() else pending).append(path)
        elif not stat.S_ISREG(status.st_mode):
            self.scan.skipped[SPECIAL] += 1
        elif not self.supported(path):
            self.scan.skipped[UNSUPPORTED] += 1
        else:
            # On Windows a directory entry has no inode; the path's own status does.
            self._add_file(path, root, status if status.st_ino else path.stat())

    def _add_file(self, path: Path, root: str, status: os.stat_result) -> None:
        name = str(path)
        if name in self.seen:
            return
        self.seen.add(name)
        if not stat.S_ISREG(status.st_mode):
            self.scan.failed.append(Failure(name, SPECIAL))
        elif not _is_unicode(name):
            printable = name.encode(errors="replace").decode()
            self.scan.failed.append(Failure(printable, "the file name is not valid Unicode; rename it"))
        else:
            self.scan.files.append(Location(name, root, status.st_size, status.st_mtime_ns, status.st_ino))


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return (error.strerror or str(error)).lower()
