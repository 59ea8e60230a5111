"""Decides what has to be done about each file, reading as few bytes as the answer needs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.types import Document, Location
from clew.parse.documents.builder import document_key

_CHUNK = 1 << 20


@dataclass(slots=True)
class Plan:
    """What to do: nothing for ``unchanged``, a new path for the known documents of ``known`` (location and
    key), and reading for ``parse``. ``twins`` are files with the same bytes as one of ``parse``, by its path:
    read once, then located.
    """

    unchanged: int = 0
    known: list[tuple[Location, str]] = field(default_factory=list)
    to_parse: list[Location] = field(default_factory=list)
    duplicates: dict[str, list[Location]] = field(default_factory=dict)


def plan_files(
    files: Sequence[Location],
    located: Mapping[str, tuple[Location, str]],
    documents: Iterable[Document],
    *,
    checksum: bool = False,
) -> Plan:
    """Return what to do about ``files``, given what the base has.

    A file with the size, modification time and inode of its last visit is unchanged; with ``checksum`` its
    bytes are compared as well. Bytes are read only where the base, or another file, has the same size and
    the same extension: a document's key is then recomputed with its own media type and parser.
    """
    known = _Known({document.key: document for document in documents}, located)
    result = Plan()
    unread = []
    for file in files:
        before = located.get(file.path)
        if before and _same_visit(file, before[0]) and not checksum:
            result.unchanged += 1
            continue
        key = known.key_of(file)
        if key is None:
            unread.append(file)
        elif before and before[1] == key and _same_visit(file, before[0]):
            result.unchanged += 1
        else:
            result.known.append((file, key))
    for group in _equal(unread):
        result.to_parse.append(group[0])
        if group[1:]:
            result.duplicates[group[0].path] = group[1:]
    result.to_parse.sort(key=lambda file: file.path)
    return result


class _Known:
    """Finds the document whose bytes a file has. A file's type shows in its extension, so the extension must
    match too: the same bytes under another one may read differently, or not at all."""

    def __init__(
        self, documents: Mapping[str, Document], located: Mapping[str, tuple[Location, str]]
    ) -> None:
        self._documents = documents
        self._keys: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        for location, key in located.values():
            self._keys[location.size, _suffix(location)].add(key)

    def key_of(self, file: Location) -> str | None:
        candidates = self._keys.get((file.size, _suffix(file)))
        if not candidates:
            return None
        try:
            data = Path(file.path).read_bytes()
        except OSError:
            return None  # the parser says why
        for key in sorted(candidates):
            document = self._documents.get(key)
            if document and document_key(data, document.media_type, document.parser) == key:
                return key
        return None


def _equal(files: Sequence[Location]) -> list[list[Location]]:
    """Group files by bytes and extension; only files of one size are read."""
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
        return file.path  # unreadable: alone in its group, and the parser says why
    return digest.hexdigest()


def _same_visit(now: Location, before: Location) -> bool:
    return (now.size, now.mtime_ns, now.inode) == (before.size, before.mtime_ns, before.inode)


def _suffix(file: Location) -> str:
    return Path(file.path).suffix.casefold()
