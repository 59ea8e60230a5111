"""The vectors of one encoder: append-only files.

``vectors.f32`` holds the vectors, ``rows.i64`` the row that each slot is for, ``texts.u64`` a hash of the
text that it stands for, so that a text which comes again (a changed file) need not be encoded again. The
manifest says how many slots count; bytes beyond it are what a crash left, and are overwritten. Where there are
many, ``signs.u64`` holds their codes (:mod:`clew.kb.signs`); made of the vectors, it can be made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.kb.segments import write_manifest
from clew.kb.signs import BinaryIndexFile, BinaryIndex
from clew.text import hash_term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Mask, Rows, Vectors

MANIFEST = "vectors.json"
#: With this many vectors or more their signs are kept, too.
BINARY_INDEX_MINIMUM = 1 << 15
#: With a larger share of slots for removed rows the files are written anew.
MAX_DEAD_SHARE = 0.2


def vectors_folder(derived: Path, encoder: str) -> Path:
    """Return the folder of an encoder's vectors: a readable name, and a hash that tells alike ones apart."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder).strip("-.")[:40]
    return derived / "vectors" / f"{readable}-{hashlib.blake2b(encoder.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True)
class VectorFiles:
    """The files of one encoder. Writing methods are called under ``index.lock``."""

    folder: Path

    def read_manifest(self) -> dict[str, Any]:
        """Return name, dimension and count; an empty dictionary where nothing usable is stored."""
        try:
            content = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            wanted = {
                "vectors.f32": content["count"] * content["dimension"] * 4,
                "rows.i64": content["count"] * 8,
                "texts.u64": content["count"] * 8,
            }
            whole = all((self.folder / name).stat().st_size >= size for name, size in wanted.items())
            return dict(content) if whole else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def open(self) -> tuple[Vectors, Rows, NDArray[np.uint64]]:
        """Return vectors (count, dimension), rows and text hashes, memory-mapped."""
        content = self.read_manifest()
        count, dimension = content.get("count", 0), content.get("dimension", 0)
        if not count:
            none = np.empty(0, dtype=np.int64)
            return np.empty((0, dimension), dtype=np.float32), none, none.astype(np.uint64)
        vectors = self.vectors()
        rows = np.fromfile(self.folder / "rows.i64", np.dtype("<i8"), count)
        texts = np.fromfile(self.folder / "texts.u64", np.dtype("<u8"), count)
        return vectors, rows, texts

    def open_for_search(self) -> tuple[Vectors, Rows, BinaryIndex | None]:
        """Return vectors, rows, and the signs where they are whole; all of one state of the files.

        Where the signs are damaged, search is exact: slower until they are made again, never wrong.
        """
        while True:
            content = self.read_manifest()
            file = self.binary_index_file()
            signs = file.read() if file is not None and file.is_complete() else None
            vectors, rows, _ = self.open()
            if self.read_manifest() == content:
                return vectors, rows, signs

    def vectors(self) -> Vectors:
        """Return the vectors alone, (count, dimension), memory-mapped; there must be some."""
        content = self.read_manifest()
        shape = (content["count"], content["dimension"])
        return np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=shape)

    def append(self, name: str, vectors: Vectors, rows: Rows, texts: NDArray[np.uint64]) -> None:
        """Add slots; on disk before the manifest counts them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = self.read_manifest() or {"name": name, "dimension": int(vectors.shape[1]), "count": 0}
        count, dimension = content["count"], content["dimension"]
        for file, array, width in (
            ("vectors.f32", vectors.astype("<f4"), 4 * dimension),
            ("rows.i64", rows.astype("<i8"), 8),
            ("texts.u64", texts.astype("<u8"), 8),
        ):
            path = self.folder / file
            with path.open("r+b" if path.exists() else "w+b") as stream:
                stream.truncate(count * width)
                stream.seek(count * width)
                stream.write(np.ascontiguousarray(array).tobytes())
                stream.flush()
                os.fsync(stream.fileno())
        content["count"] = count + len(rows)
        self._sign(content, count, vectors)
        write_manifest(self.folder / MANIFEST, content)

    def binary_index_file(self) -> BinaryIndexFile | None:
        """Return the file of signs; None where there are too few vectors for one to be kept."""
        content = self.read_manifest()
        return self._signs(content) if content.get("count", 0) >= BINARY_INDEX_MINIMUM else None

    def repair_binary_index(self) -> bool:
        """Make the file of signs where it should be and is not whole; return whether it was made."""
        signs = self.binary_index_file()
        if signs is None or signs.is_complete():
            return False
        signs.rebuild(self.vectors())
        return True

    def _signs(self, content: dict[str, Any]) -> BinaryIndexFile:
        return BinaryIndexFile(self.folder / "signs.u64", content["dimension"], content["count"])

    def _sign(self, content: dict[str, Any], before: int, vectors: Vectors) -> None:
        """Keep the signs of ``vectors``, which were added to ``before`` others; the manifest comes after."""
        if content["count"] < BINARY_INDEX_MINIMUM:
            return
        after = self._signs(content)
        if before >= BINARY_INDEX_MINIMUM and self._signs(content | {"count": before}).is_complete():
            after.write(before, vectors)
            return
        shape = (content["count"], content["dimension"])
        after.rebuild(np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r", shape=shape))

    def clear_removed(self, live: Mask) -> None:
        """Blank the vectors of rows that do not live; write the files anew where there are many of them."""
        content = self.read_manifest()
        if not content:
            return
        vectors, rows, texts = self.open()
        gone = ~live_slots(rows, live)
        if gone.mean() > MAX_DEAD_SHARE:
            kept = ~gone
            fresh = VectorFiles(self.folder.with_suffix(".new"))
            fresh.append(content["name"], np.array(vectors[kept]), rows[kept], texts[kept])
            (self.folder / "signs.u64").unlink(missing_ok=True)
            for file in ("vectors.f32", "rows.i64", "texts.u64", "signs.u64", MANIFEST):
                # The manifest last: until then the old count is refused by the smaller files, and rebuilt.
                if (fresh.folder / file).exists():
                    (fresh.folder / file).replace(self.folder / file)
            fresh.folder.rmdir()
            return
        blank = np.flatnonzero(gone & (texts != 0))
        if len(blank):
            writable = np.memmap(self.folder / "vectors.f32", np.dtype("<f4"), "r+", shape=vectors.shape)
            writable[blank] = 0
            writable.flush()
            signs = self.binary_index_file()
            if signs is not None and signs.is_complete():
                signs.clear_slots(blank)
            texts[blank] = 0
            with (self.folder / "texts.u64").open("r+b") as stream:
                stream.write(texts.astype("<u8").tobytes())
                os.fsync(stream.fileno())


def hash_texts(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each text, never 0, which stands for a text that was removed."""
    return np.array([hash_term(text) or 1 for text in texts], dtype=np.uint64)


def live_slots(rows: Rows, live: Mask) -> NDArray[np.bool_]:
    """Return which of ``rows`` are marked in ``live``."""
    known = (rows >= 0) & (rows < len(live))
    return known & live[np.where(known, rows, 0)] if len(live) else known & False
