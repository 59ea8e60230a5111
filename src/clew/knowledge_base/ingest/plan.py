"""Finds the files at and under some paths, and decides what to do with each, with as few bytes read as possible.

Files are sorted, and each comes once, even where links form a loop.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.sources import Sources, expand_path, list_sources, refuse_system_folders, system_folders
from clew.core.types import Document, Location, container_path
from clew.knowledge_base.ingest.report import Failure
from clew.parse.documents.builder import document_key

HIDDEN, UNSUPPORTED, SPECIAL, DANGLING = "hidden", "unsupported type", "not a regular file", "broken link"
SYSTEM = "link to a system folder"


@dataclass(slots=True)
class Scan:
    """The files at and under some paths.

    - ``files`` can be added, and are sorted by path.
    - ``roots`` are the given paths that exist, absolute.
    - ``failed`` are given files, and folders, that cannot be read.
    - ``skipped`` counts the other files, by reason.
    - ``unsupported`` are the paths of those of a type that is not read.
    """

    files: list[Location] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    unsupported: list[str] = field(default_factory=list)


def scan_paths(
    paths: Sources,
    supported: Callable[[Path], bool],
    exclude: Path | None = None,
    *,
    anyway: bool = False,
) -> Scan:
    """Return the files at and under ``paths``, without the folder ``exclude`` (the base's own).

    In folders, hidden files and those that are not ``supported`` are skipped. A file that is given itself is always
    taken; parsing it says what it is. Each folder is entered once, so links that form a loop end. Real folders are
    entered before linked ones, so that a file is found at its own path if it has one. System folders are entered only
    with ``anyway``: one that is given raises UsageError, and a link to one is skipped.
    """
    if not anyway:
        refuse_system_folders(paths)
    return _Scanner(supported, exclude, {} if anyway else system_folders()).run(paths)


@dataclass(slots=True)
class _Scanner:
    supported: Callable[[Path], bool]
    exclude: Path | None
    guarded: Mapping[tuple[int, int], str]
    scan: Scan = field(default_factory=Scan)
    seen: set[str] = field(default_factory=set)
    entered: set[tuple[int, int]] = field(default_factory=set)

    def run(self, paths: Sources) -> Scan:
        if self.exclude and self.exclude.is_dir():
            status = self.exclude.stat()
            self.entered.add((status.st_dev, status.st_ino))
        for path in map(expand_path, list_sources(paths)):
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
        if entry.is_symlink() and (status.st_dev, status.st_ino) in self.guarded:
            self.scan.skipped[SYSTEM] += 1
        elif stat.S_ISDIR(status.st_mode):
            (linked if entry.is_symlink() else pending).append(path)
        elif not stat.S_ISREG(status.st_mode):
            self.scan.skipped[SPECIAL] += 1
        elif not self.supported(path):
            self.scan.skipped[UNSUPPORTED] += 1
            self.scan.unsupported.append(entry.path)
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


_CHUNK = 1 << 20


@dataclass(slots=True)
class Plan:
    """A plan of what has to be done for some files.

    - ``unchanged`` counts the files for which nothing has to be done.
    - ``known`` are new locations of known documents, with the documents' keys.
    - ``to_parse`` are the files that have to be parsed.
    - ``duplicates`` are files with the same bytes as a file of ``to_parse``, by its path.
    - ``earlier`` are, by the path of a file of ``to_parse``, other locations of the outdated document with its bytes.
    """

    unchanged: int = 0
    known: list[tuple[Location, str]] = field(default_factory=list)
    to_parse: list[Location] = field(default_factory=list)
    duplicates: dict[str, list[Location]] = field(default_factory=dict)
    earlier: dict[str, list[Location]] = field(default_factory=dict)


def plan_files(
    files: Sequence[Location],
    locations: Mapping[str, tuple[Location, str]],
    documents: Iterable[Document],
    *,
    checksum: bool = False,
    outdated: Set[str] = frozenset(),
) -> Plan:
    """Return what has to be done for ``files``, given the locations and documents of a base.

    A file with the size, modification time and inode of its last visit is unchanged; with ``checksum`` its bytes
    are compared as well. Bytes are read only where the base, or another file, has a file of the same size and
    suffix: the document's key is then computed from them, with the media type and parser of the known document.
    Files of the documents ``outdated`` (keys), and those with such a document in them, are parsed again.
    """
    by_key = {document.key: document for document in documents}
    known = _KnownDocuments({key: by_key[key] for key in by_key.keys() - outdated}, locations)
    old = _KnownDocuments({key: by_key[key] for key in by_key.keys() & outdated}, locations)
    stale = {container_path(path) for path, (_, key) in locations.items() if key in outdated}
    plan = Plan()
    unknown = []
    for file in files:
        before = locations.get(file.path)
        if file.path in stale:
            unknown.append(file)
            continue
        is_same_visit = before is not None and _visit(file) == _visit(before[0])
        if is_same_visit and not checksum:
            plan.unchanged += 1
            continue
        key = known.key_of(file)
        if key is None:
            unknown.append(file)
        elif is_same_visit and before is not None and before[1] == key:
            plan.unchanged += 1
        else:
            plan.known.append((file, key))
    for first, *others in _group_by_bytes(unknown):
        plan.to_parse.append(first)
        if others:
            plan.duplicates[first.path] = others
        # Else the same file would be there as both parsers read it.
        if outdated and (key := old.key_of(first)):
            scanned = {file.path for file in (first, *others)}
            plan.earlier[first.path] = [
                place
                for path, (place, other) in locations.items()
                if other == key and path not in scanned and container_path(path) == path
            ]
    plan.to_parse.sort(key=lambda file: file.path)
    return plan


class _KnownDocuments:
    """Finds the known document that a file's bytes are.

    The suffix must be the same, too: the same bytes may be parsed differently under another one, or not at all.
    """

    def __init__(
        self, documents: Mapping[str, Document], locations: Mapping[str, tuple[Location, str]]
    ) -> None:
        self._documents = documents
        self._keys: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        for location, key in locations.values():
            self._keys[location.size, _suffix(location)].add(key)

    def key_of(self, file: Location) -> str | None:
        """Return the key of the document with the bytes of ``file``, None where there is none."""
        candidates = self._keys.get((file.size, _suffix(file)))
        if not candidates:
            return None
        try:
            data = Path(file.path).read_bytes()
        except OSError:
            return None  # the parser will say why
        for key in sorted(candidates):
            document = self._documents.get(key)
            if document and document_key(data, document.media_type, document.parser) == key:
                return key
        return None


def _group_by_bytes(files: Sequence[Location]) -> list[list[Location]]:
    """Return the files in groups with the same bytes and suffix. Only files of the same size are read."""
    sizes: defaultdict[tuple[int, str], list[Location]] = defaultdict(list)
    for file in files:
        sizes[file.size, _suffix(file)].append(file)
    groups = []
    for same_size in sizes.values():
        if len(same_size) == 1:
            groups.append(same_size)
            continue
        digests: defaultdict[str, list[Location]] = defaultdict(list)
        for file in same_size:
            digests[_digest(file)].append(file)
        groups.extend(digests.values())
    return groups


def _digest(file: Location) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with Path(file.path).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return file.path  # alone in its group; the parser will say why it cannot be read
    return digest.hexdigest()


def _visit(file: Location) -> tuple[int, int, int]:
    return file.size, file.mtime_ns, file.inode


def _suffix(file: Location) -> str:
    return Path(file.path).suffix.casefold()
