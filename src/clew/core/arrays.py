"""Types of arrays, the few operations on them that several rooms share, and files of arrays.

Files are written as a whole with their checksums, opened memory-mapped, and listed in a manifest.

Modules that do without numpy mention the types under ``TYPE_CHECKING`` only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import Damaged
from clew.core.files import create_folder, link_file, open_private, replace_file

#: Rows of nodes in a snapshot or graph, and other whole numbers.
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Hashes of terms (:func:`clew.core.text.hash_term`).
Hashes = NDArray[np.uint64]
#: One flag for each row of a snapshot.
Mask = NDArray[np.bool_]
#: Unit vectors, (n, dimension).
Vectors = NDArray[np.float32]
#: Arrays by name; each is a file of its own.
Arrays = dict[str, NDArray[np.generic]]

Number = TypeVar("Number", bound="np.integer[Any]")
#: From this share of rows with an edge on, a relation has a start for every row.
DENSE = 0.25


def distinct(numbers: NDArray[Number]) -> NDArray[Number]:
    """Return whole numbers sorted ascending without duplicates, (n,).

    An array that already is so is returned as it is. ``np.unique`` hashes before it sorts, which takes forty times as
    long on a million numbers, and most come sorted.
    """
    if len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return numbers
    ordered = np.sort(numbers)
    is_first = np.empty(len(ordered), dtype=np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def sorted_unique(rows: Any) -> Rows:
    """Return rows as int64, sorted ascending without duplicates, (n,)."""
    return distinct(np.asarray(rows, dtype=np.int64))


def union(row_sets: Sequence[Rows]) -> Rows:
    """Return the rows that are in any of ``row_sets``, sorted ascending without duplicates."""
    if len(row_sets) == 1:
        return sorted_unique(row_sets[0])
    return sorted_unique(np.concatenate([np.empty(0, dtype=np.int64), *row_sets]))


def find_positions(table: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each number in an ascending ``table`` of the same type, -1 for one that is not there."""
    if not len(table):
        return np.full(len(numbers), -1, dtype=np.int64)
    positions = np.searchsorted(table, numbers)
    positions[positions == len(table)] = 0
    positions[table[positions] != numbers] = -1
    return positions


def is_member(numbers: NDArray[Any], among: NDArray[Any]) -> Mask:
    """Return for each number whether it is in the ascending array ``among`` of the same type, (numbers,)."""
    if not len(among):
        return np.zeros(len(numbers), dtype=np.bool_)
    members: Mask = among.take(among.searchsorted(numbers), mode="clip") == numbers
    return members


def cosines(vectors: Vectors | Floats, query: Vectors | Floats) -> Floats:
    """Return the inner product of each unit vector, (n, dimension), with ``query``, (dimension,), in float64.

    Each row is summed on its own: BLAS rounds a row differently when the number of rows differs.
    """
    products: Floats = np.einsum(
        "ij,j->i", vectors.astype(np.float64, copy=False), query.astype(np.float64, copy=False)
    )
    return products


def run_offsets(lengths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return where each of consecutive runs of ``lengths``, (n,), starts, and where the last ends, (n + 1,)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def range_indices(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of several ranges, one after the other: ``lengths[n]`` of them from ``starts[n]`` on."""
    offsets = run_offsets(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))


def find_in_runs(values: Any, starts: Any, ends: Any, wanted: Any) -> NDArray[np.int64]:
    """Return, for each of ``wanted``, where it is or belongs in its ascending run ``values[start:end]``, (n,)."""
    low, high = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    while (is_open := low < high).any():
        middle = (low + high) // 2
        is_less = np.zeros(len(low), dtype=np.bool_)
        is_less[is_open] = values[middle[is_open]] < wanted[is_open]
        low = np.where(is_open & is_less, middle + 1, low)
        high = np.where(is_open & ~is_less, middle, high)
    return low


@dataclass(frozen=True, slots=True)
class DirectedEdges:
    """The edges of one relation in one direction, a :class:`clew.core.protocols.Adjacency`."""

    heads: NDArray[np.uint32] | None
    starts: NDArray[np.int64]
    tails: NDArray[np.uint32]

    @classmethod
    def from_pairs(cls, sources: NDArray[np.uint32], tails: NDArray[np.uint32], size: int) -> DirectedEdges:
        """Make the arrays of edges that are sorted by source and tail; ``size`` is the number of rows."""
        if not len(sources):
            return cls(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.int64), tails)
        firsts = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
        heads = sources[firsts]
        if len(heads) >= DENSE * size:
            return cls(None, run_offsets(np.bincount(sources, minlength=size)), tails)
        return cls(heads, np.append(firsts, len(sources)).astype(np.int64), tails)

    def bounds(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tails of each row start and end."""
        # ``take`` costs half as much as brackets on few rows, and most calls are about few.
        if self.heads is None:
            return self.starts.take(rows), self.starts.take(rows + 1)
        keys = rows.astype(np.uint32, copy=False)  # the type of heads, or numpy would convert all of them
        places = self.heads.searchsorted(keys)
        starts = self.starts.take(places)
        if not len(self.heads):
            return starts, starts
        has_edges = self.heads.take(places, mode="clip") == keys
        return starts, self.starts.take(places + has_edges)

    def neighbours(self, rows: Rows) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of rows: offsets (n + 1), rows ascending for each."""
        starts, ends = self.bounds(rows)
        if len(rows) == 1:
            tails = self.tails[starts[0] : ends[0]].astype(np.int64)
            return np.array([0, len(tails)], dtype=np.int64), tails
        sizes = ends - starts
        offsets = run_offsets(sizes)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        return offsets, self.tails[places].astype(np.int64)


@dataclass(frozen=True, slots=True)
class TextSpans:
    """Texts in UTF-8 that lie in one array of bytes: text n has ``lengths[n]`` bytes from ``starts[n]`` on."""

    content: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> TextSpans:
        """Encode texts, which hold no half characters."""
        encoded = [text.encode() for text in texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), run_offsets(lengths)[:-1], lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, places: NDArray[Any]) -> TextSpans:
        """Return the texts at ``places``."""
        return TextSpans(self.content, self.starts[places], self.lengths[places])

    def concatenate(self) -> NDArray[np.uint8]:
        """Return the bytes of all texts, one after the other."""
        return self.content[range_indices(self.starts, self.lengths)]

    def texts(self) -> list[str]:
        """Return the texts, decoded."""
        content, offsets = self.concatenate().tobytes(), run_offsets(self.lengths).tolist()
        if content.isascii():
            decoded = content.decode()
            return [decoded[start:end] for start, end in pairwise(offsets)]
        return [content[start:end].decode() for start, end in pairwise(offsets)]


def write_arrays(
    arrays: Arrays, folder: Path, unchanged: Mapping[Path, list[int | str]] = MappingProxyType({})
) -> dict[str, list[int | str]]:
    """Write each array to a file of a new folder; return the size and checksum of every file.

    ``unchanged`` are files of another folder, with their sizes and checksums, that the new one shares: no file is
    ever written again. The folder appears with all its files or not at all.
    """
    unfinished = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    create_folder(unfinished)
    files: dict[str, list[int | str]] = {}
    for name, array in arrays.items():
        path = unfinished / f"{name}.npy"
        # A file that can be read, too, numpy writes by "write", whose errors say what is wrong; others by "tofile".
        with open_private(path, "w+b") as file:
            np.save(file, array)
            file.flush()
            os.fsync(file.fileno())
        files[path.name] = [path.stat().st_size, file_checksum(path)]
    for path, entry in unchanged.items():
        link_file(path, unfinished / path.name)
        files[path.name] = entry
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    return files


def link_folder(source: Path, target: Path) -> None:
    """Make the new folder ``target`` with the files of ``source``, which are never written again."""
    create_folder(target)
    for path in source.iterdir():
        link_file(path, target / path.name)


def read_arrays(folder: Path, files: dict[str, list[int | str]]) -> Arrays:
    """Open arrays, memory-mapped, by name. Raises Damaged where a file is missing or has another size than listed."""
    arrays: Arrays = {}
    for file, (size, _) in files.items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != size:
            raise Damaged(f"{path} is missing or truncated", "It is rebuilt: clew doctor")
        try:
            # A plain array: slicing np.memmap itself costs microseconds, for every term of every query.
            arrays[path.stem] = np.load(path, mmap_mode="r").view(np.ndarray)
        except ValueError as error:
            raise Damaged(f"{path} is damaged", "It is rebuilt: clew doctor") from error
    return arrays


def file_checksum(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def write_manifest(path: Path, content: object) -> None:
    """Replace a manifest atomically, also if the machine stops meanwhile."""
    replace_file(path, json.dumps(content))
