"""The manifest of a copy in object storage: its files, and the pieces that each consists of.

A file is cut where its content says so: at a place whose last 32 bytes have a hash that begins with some zeros. What
is inserted or removed somewhere therefore changes the pieces around it, and those behind it are what they were
(Muthitacharoen, Chen and Mazieres, "A low-bandwidth network file system", SOSP 2001, section 3.1). Postings are
numbers that refer to places of others, all of which a removal moves; they are cut evenly, and divided by shards
(:mod:`clew.store.segments`).

``files`` are those of the base itself. ``reading`` are further ones that only direct reading needs
(:mod:`clew.store.remote.layout`); they can be made from the others, and are not copied back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import Damaged, StoreError
from clew.core.installation import format_install_command
from clew.store.object_store import ObjectStore, Version

MANIFEST, WRITER, PIECES = "manifest.json", "writer.json", "pieces"
#: A change of the layout that readers of before cannot read raises it. Copies of format 1 can be copied back.
FORMAT, READABLE_FORMATS = 3, (1, 2, 3)
#: Bytes of a piece: of postings, of most other files (about), of archives, all of which are read, but of which small
#: parts change, and of files of which a question needs a small part. A piece is read whole.
POSTINGS_PIECE, PIECE, ARCHIVE_PIECE, TEXTS_PIECE = 1 << 18, 1 << 19, 1 << 18, 1 << 16
#: A file of more pieces than this is cut into larger ones, up to the largest.
MOST_PIECES, LARGEST_PIECE = 1 << 13, 8 << 20
#: Where content decides, a piece has between a quarter of the usual size and four times of it.
_SPREAD = 4
#: The bytes of which the hash decides, and how many are looked at together.
_WINDOW, _BLOCK = 32, 1 << 20
#: A random number for each byte, the same for ever.
_GEAR = np.frombuffer(hashlib.shake_128(b"clew pieces").digest(1024), "<u4")
#: The size of pieces of format 1, which did not say it.
_FIRST_PIECE_SIZE = 8 << 20
_POSTINGS = re.compile(r"derived/segments/[^/]+/[^/]+\.(terms|counts|holders|holder_counts)\.npy")
_TEXTS, _ARCHIVE = re.compile(r"reading/[^/]+\.bin"), re.compile(r"reading/[^/]+\.zip")
PIECE_NAME = re.compile(rf"{PIECES}/[0-9a-f]{{32}}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a copy: its path, where each of its pieces ends, and their digests."""

    path: str
    ends: tuple[int, ...]
    pieces: tuple[str, ...]

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.ends[-1] if self.ends else 0

    def piece_start(self, number: int) -> int:
        """Return where a piece begins."""
        return self.ends[number - 1] if number else 0

    def piece_length(self, number: int) -> int:
        """Return the bytes of a piece."""
        return self.ends[number] - self.piece_start(number)

    def to_dict(self) -> dict[str, Any]:
        """Return the file as it stands in the manifest."""
        return {
            "path": self.path,
            "size": self.size,
            "lengths": [self.piece_length(number) for number in range(len(self.ends))],
            "pieces": list(self.pieces),
        }


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as it was read, with the version of its object. ``layout`` says in which form ``reading`` is; "" in
    a copy that cannot be read directly. ``shard_rows`` are the rows of a shard; 0 where there are no shards."""

    digest: str
    copy: str
    files: tuple[StoredFile, ...]
    reading: tuple[StoredFile, ...]
    layout: str
    version: Version
    shard_rows: int = 0

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
            f"Update clew: {format_install_command(upgrade=True)}",
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
            int(content.get("shard_rows", 0)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damage_error(objects, MANIFEST) from error


def _parse_file(file: dict[str, Any]) -> StoredFile:
    if "lengths" in file:
        ends = tuple(accumulate(file["lengths"]))
    else:
        ends = _even_ends(int(file["size"]), int(file.get("piece_size", _FIRST_PIECE_SIZE)))
    if len(ends) != len(file["pieces"]) or (ends[-1] if ends else 0) != file["size"]:
        raise ValueError(f"the pieces of {file['path']} are not its bytes")
    return StoredFile(str(file["path"]), ends, tuple(file["pieces"]))


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
    ends = cut_file(path, name)
    return StoredFile(name, ends, tuple(piece_digest(content) for _, content in read_pieces(path, ends)))


def is_postings(name: str) -> bool:
    """Return whether the file of a copy has postings that are read in ranges."""
    return _POSTINGS.fullmatch(name) is not None


def usual_piece_size(size: int, name: str) -> int:
    """Return about how many bytes the pieces of a file of ``size`` bytes have; those of postings exactly so many."""
    if is_postings(name):
        return POSTINGS_PIECE
    usual = TEXTS_PIECE if _TEXTS.fullmatch(name) else ARCHIVE_PIECE if _ARCHIVE.fullmatch(name) else PIECE
    return min(max(usual, 1 << (size // MOST_PIECES).bit_length()), LARGEST_PIECE // _SPREAD)


def cut_file(path: Path, name: str) -> tuple[int, ...]:
    """Return where the pieces of the file ``path`` end, which has the path ``name`` in a copy."""
    size = path.stat().st_size
    usual = usual_piece_size(size, name)
    if is_postings(name):
        return _even_ends(size, usual)
    ends, places = [0], _content_cuts(path, size, usual) if size > usual // _SPREAD else np.empty(0, np.int64)
    while ends[-1] < size:
        smallest, largest = ends[-1] + usual // _SPREAD, ends[-1] + usual * _SPREAD
        number = int(np.searchsorted(places, smallest))
        end = int(places[number]) if number < len(places) else size
        ends.append(min(end, largest, size))
    return tuple(ends[1:])


def _content_cuts(path: Path, size: int, usual: int) -> np.typing.NDArray[np.int64]:
    """Return the places of a file before which the hash of the last bytes has so many zeros that they are ``usual``
    bytes apart."""
    content, shift = np.memmap(path, np.uint8, "r"), np.uint32(32 - (usual.bit_length() - 1))
    places = []
    for start in range(0, size, _BLOCK):
        first = max(0, start - _WINDOW + 1)
        hashes = _GEAR[content[first : start + _BLOCK]]
        # The sum of the last 2, 4, ... 32 numbers, each shifted by how many bytes ago its byte was.
        for step in (1, 2, 4, 8, 16):
            hashes[step:] += hashes[:-step] << np.uint32(step)
        places.append(np.flatnonzero(hashes[start - first :] >> shift == 0) + start + 1)
    return np.concatenate(places)


def _even_ends(size: int, piece_size: int) -> tuple[int, ...]:
    return tuple(min(start + piece_size, size) for start in range(0, size, piece_size))


def read_pieces(path: Path, ends: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield where each piece of a file begins, and its bytes; fewer where the file is shorter."""
    with path.open("rb") as stream:
        start = 0
        for end in ends:
            yield start, stream.read(end - start)
            start = end


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
