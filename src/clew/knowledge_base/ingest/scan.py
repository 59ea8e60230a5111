"""Finds the files under the paths that a person gave: sorted, each once, whatever the links do."""

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
    """What lies under some paths.

    ``files`` are what can be added, by path; ``roots`` the absolute paths that were given and exist;
    ``failed`` what was named by the person, or is a folder, and cannot be read; ``skipped`` counts the rest.
    """

    files: list[Location] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def scan_paths(
    paths: Sequence[str | Path], supported: Callable[[Path], bool], exclude: Path | None = None
) -> Scan:
    """Return the files under ``paths``. A file that was named itself is taken whatever its name, hidden or of
    a type that is not ``supported``: reading it says what it is.

    Folders are entered once each, so links that form a loop end; real folders go before linked ones, so a
    file is found at its own path where it has one. ``exclude`` (the base's own folder) is left out.
    """
    return _Scanner(supported, exclude).run(paths)


@dataclass(slots=True)
class _Scanner:
    supported: Callable[[Path], bool]
    exclude: Path | None
    found: Scan = field(default_factory=Scan)
    seen: set[str] = field(default_factory=set)
    entered: set[tuple[int, int]] = field(default_factory=set)

    def run(self, paths: Sequence[str | Path]) -> Scan:
        if self.exclude and self.exclude.is_dir():
            status = self.exclude.stat()
            self.entered.add((status.st_dev, status.st_ino))
        for given in paths:
            # Absolute, but links stay: the path is what the person knows the file by.
            path = Path(os.path.abspath(Path(given).expanduser()))  # noqa: PTH100
            try:
                status = path.stat()
            except OSError as error:
                self.found.failed.append(Failure(str(path), _reason(error)))
                continue
            self.found.roots.append(str(path))
            if stat.S_ISDIR(status.st_mode):
                self._folder(path)
            else:
                self._file(path, str(path), status)
        self.found.files.sort(key=lambda location: location.path)
        return self.found

    def _folder(self, root: Path) -> None:
        # Linked folders wait until every real one has been entered.
        linked: list[Path] = []
        pending = [root]
        while pending or linked:
            folder = pending.pop() if pending else linked.pop(0)
            for entry in self._entries(folder):
                self._entry(entry, str(root), pending, linked)

    def _entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in self.entered:
                return
            self.entered.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.found.failed.append(Failure(str(folder), _reason(error)))
            return
        yield from found

    def _entry(self, entry: os.DirEntry[str], root: str, pending: list[Path], linked: list[Path]) -> None:
        # "~$" marks what word processors leave beside a document that is open.
        if entry.name.startswith((".", "~$")):
            self.found.skipped[HIDDEN] += 1
            return
        path = Path(entry.path)
        try:
            status = entry.stat()
        except OSError as error:
            if entry.is_symlink():
                self.found.skipped[DANGLING] += 1
            else:
                self.found.failed.append(Failure(entry.path, _reason(error)))
            return
        if stat.S_ISDIR(status.st_mode):
            (linked if entry.is_symlink() else pending).append(path)
        elif not stat.S_ISREG(status.st_mode):
            self.found.skipped[SPECIAL] += 1
        elif not self.supported(path):
            self.found.skipped[UNSUPPORTED] += 1
        else:
            # On Windows a directory entry has no inode; the path's own status does.
            self._file(path, root, status if status.st_ino else path.stat())

    def _file(self, path: Path, root: str, status: os.stat_result) -> None:
        name = str(path)
        if name in self.seen:
            return
        self.seen.add(name)
        if not stat.S_ISREG(status.st_mode):
            self.found.failed.append(Failure(name, SPECIAL))
        elif not _encodable(name):
            shown = name.encode(errors="replace").decode()
            self.found.failed.append(Failure(shown, "the file name is not valid Unicode; rename it"))
        else:
            self.found.files.append(Location(name, root, status.st_size, status.st_mtime_ns, status.st_ino))


def _encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return (error.strerror or str(error)).lower()
