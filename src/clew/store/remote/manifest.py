"""The manifest of a copy in object storage: its files, and the pieces that each consists of.

``files`` are those of the base itself. ``reading`` are further ones that only direct reading needs
(:mod:`clew.store.remote.layout`); they can be made from the others, and are not copied back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import Damaged, StoreError
from clew.store.object_store import ObjectStore, Version

MANIFEST, WRITER, PIECES = "manifest.json", "writer.json", "pieces"
#: A change of the layout that readers of before cannot read raises it. Copies of format 1 can be copied back.
FORMAT, READABLE_FORMATS = 2, (1, 2)
PIECE_SIZE = 8 << 20
#: Files of which a question needs a small part are cut into smaller pieces, since a piece is read whole.
POSTINGS_PIECE, TEXTS_PIECE = 1 << 18, 1 << 16
_POSTINGS = re.compile(r"derived/segments/[^/]+/[^/]+\.(terms|counts|holders|holder_counts)\.npy")
_TEXTS = re.compile(r"reading/[^/]+\.bin")
PIECE_NAME = re.compile(rf"{PIECES}/[0-9a-f]{{32}}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a copy: its path, its bytes, and the digests of its pieces, which have ``piece_size`` bytes each but
    the last."""

    path: str
    size: int
    piece_size: int
    pieces: tuple[str, ...]

    def piece_length(self, number: int) -> int:
        """Return the bytes of a piece."""
        return min(self.piece_size, self.size - number * self.piece_size)

    def to_dict(self) -> dict[str, Any]:
        """Return the file as it stands in the manifest."""
        return {
            "path": self.path,
            "size": self.size,
            "piece_size": self.piece_size,
            "pieces": list(self.pieces),
        }


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as it was read, with the version of its object. ``layout`` says in which form ``reading`` is; "" in
    a copy that cannot be read directly."""

    digest: str
    copy: str
    files: tuple[StoredFile, ...]
    reading: tuple[StoredFile, ...]
    layout: str
    version: Version

    def all_files(self) -> dict[str, StoredFile]:
        """Return every file by its path."""
        return {file.path: file for file in (*self.files, *self.reading)}

    def pieces(self) -> set[str]:
        """Return the digests of all pieces."""
        return {piece for file in (*self.files, *self.reading) for piece in file.pieces}


def read_manifest(objects: ObjectStore) -> Manifest | None:
    """Return the manifest; None where there is none. Raises StoreError, and Damaged where it cannot be read."""
    stored = objects.read(MANIFEST)
    if stored is None:
        return None
    content = parse_object(stored[0], objects, MANIFEST)
    if content.get("format") not in READABLE_FORMATS:
        raise StoreError(
            f"the copy at {objects.url} has the format {content.get('format')}; this clew knows {FORMAT}",
            "Update clew: pip install --upgrade clew",
        )
    try:
        reading = content.get("reading", {"layout": "", "files": []})
        return Manifest(
            content["digest"],
            content["copy"],
            tuple(_parse_file(file) for file in content["files"]),
            tuple(_parse_file(file) for file in reading["files"]),
            reading["layout"],
            stored[1],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damage_error(objects, MANIFEST) from error


def _parse_file(file: dict[str, Any]) -> StoredFile:
    return StoredFile(
        str(file["path"]), int(file["size"]), int(file.get("piece_size", PIECE_SIZE)), tuple(file["pieces"])
    )


def parse_object(content: bytes, objects: ObjectStore, name: str) -> dict[str, Any]:
    """Return the JSON of an object. Raises Damaged."""
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError) as error:
        raise _damage_error(objects, name) from error


def _damage_error(objects: ObjectStore, name: str) -> Damaged:
    return Damaged(f"{objects.url}/{name} is damaged or no file of clew", "Copy to another address")


def describe_file(folder: Path, path: Path) -> StoredFile:
    """Return a file below ``folder`` with the digests of its pieces."""
    name = path.relative_to(folder).as_posix()
    piece_size = PIECE_SIZE
    if _POSTINGS.fullmatch(name):
        piece_size = POSTINGS_PIECE
    elif _TEXTS.fullmatch(name):
        piece_size = TEXTS_PIECE
    pieces = tuple(piece_digest(content) for content in read_pieces(path, piece_size))
    return StoredFile(name, path.stat().st_size, piece_size, pieces)


def read_pieces(path: Path, piece_size: int) -> Iterator[bytes]:
    """Yield the bytes of a file, a piece at a time."""
    with path.open("rb") as stream:
        while content := stream.read(piece_size):
            yield content


def piece_digest(content: bytes) -> str:
    """Return the digest by which a piece is named."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def piece_name(digest: str) -> str:
    """Return the name of the object of a piece."""
    return f"{PIECES}/{digest}"


def is_below(path: str) -> bool:
    """Return whether a path of a manifest stays within the folder that it is relative to."""
    parts = path.split("/")
    return bool(path) and "\\" not in path and ":" not in path and not {"", ".", ".."} & set(parts)
