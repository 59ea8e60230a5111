"""Decides what has to be done for each file, with as few bytes read as possible."""

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
    """A plan of what has to be done for some files.

    - ``unchanged`` counts the files for which nothing has to be done.
    - ``known`` are new locations of known documents, with the documents' keys.
    - ``to_parse`` are the files that have to be parsed.
    - ``duplicates`` are files with the same bytes as a file of ``to_parse``, by its path.
    """

    unchanged: int = 0
    known: list[tuple[Location, str]] = field(default_factory=list)
    to_parse: list[Location] = field(default_factory=list)
    duplicates: dict[str, list[Location]] = field(default_factory=dict)


def plan_files(
    files: Sequence[Location],
    locations: Mapping[str, tuple[Location, str]],
    documents: Iterable[Document],
    *,
    checksum: bool = False,
) -> Plan:
    """Return what has to be done for ``files``, given the locations and documents of a base.

    A file with the size, modification time and inode of its last visit is unchanged; with ``checksum`` its bytes
    are compared as well. Bytes are read only where the base, or another file, has a file of the same size and
    suffix: the document's key is then computed from them, with the media type and parser of the known document.
    """
    known = _KnownDocuments({document.key: document for document in documents}, locations)
    plan = Plan()
    unknown = []
    for file in files:
        before = locations.get(file.path)
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
