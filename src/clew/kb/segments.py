"""Segments: what is indexed of a batch of documents, as immutable memory-mapped arrays.

A segment holds, for every node of its documents in order of rows, kind, parent and page; and for each field
the postings in both directions. It depends on its documents alone, so removing a document only masks it, and
merging two segments gives what building them together would have given.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.errors import Damaged
from clew.kb.fields import FIELDS, count_field_terms
from clew.types import KINDS, ParsedNode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Hashes, Rows

    Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class FieldPostings:
    """The postings of one field: a sparse matrix of rows by terms, compressed both ways.

    ``rows`` are all nodes of the field, ascending, those without a term included. ``starts``, ``terms`` and
    ``counts`` are its rows (terms as places in ``vocabulary``); ``holder_starts``, ``holders`` (places in
    ``rows``) and ``holder_counts`` its columns.
    """

    rows: Rows
    starts: NDArray[np.int64]
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    vocabulary: Hashes
    holder_starts: NDArray[np.int64]
    holders: NDArray[np.uint32]
    holder_counts: NDArray[np.uint32]

    @classmethod
    def from_terms(cls, rows: Rows, lengths: NDArray[np.int64], hashes: Hashes, counts: NDArray[np.uint32]) -> FieldPostings:
        """Build both directions of each row's number of terms, and of the terms and counts row after row."""
        vocabulary, places = np.unique(hashes, return_inverse=True)
        terms = places.astype(np.uint32)
        owner = np.repeat(np.arange(len(rows), dtype=np.uint32), lengths)
        by_term = np.argsort(terms, kind="stable")
        return cls(
            rows,
            run_offsets(lengths),
            terms,
            counts,
            vocabulary,
            run_offsets(np.bincount(terms, minlength=len(vocabulary))),
            owner[by_term],
            counts[by_term],
        )

    def select_rows(self, keep: NDArray[np.bool_]) -> tuple[Rows, NDArray[np.int64], Hashes, NDArray[np.uint32]]:
        """Return rows, lengths, hashes and counts of the rows marked in ``keep``."""
        lengths = np.diff(self.starts)
        pairs = np.repeat(keep, lengths)
        return self.rows[keep], lengths[keep], self.vocabulary[self.terms[pairs]], self.counts[pairs]


@dataclass(frozen=True, slots=True)
class Segment:
    """``documents`` has a row (first row, number of nodes, stamp) for each document, ascending."""

    name: str
    documents: NDArray[np.int64]
    kind: NDArray[np.uint8]
    parent: NDArray[np.int32]
    page: NDArray[np.int32]
    fields: dict[str, FieldPostings]

    @property
    def rows(self) -> Rows:
        """The row of every node."""
        first, nodes = self.documents[:, 0], self.documents[:, 1]
        return np.arange(int(nodes.sum())) + np.repeat(first - run_offsets(nodes)[:-1], nodes)

    def arrays(self) -> Arrays:
        """Return every array by the name of its file."""
        found: Arrays = {
            "documents": self.documents,
            "kind": self.kind,
            "parent": self.parent,
            "page": self.page,
        }
        for name, field in self.fields.items():
            found |= {f"{name}.{part}": getattr(field, part) for part in FieldPostings.__slots__}
        return found


def run_offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of consecutive runs of these lengths starts, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def build_segment(name: str, documents: Sequence[tuple[int, int, Sequence[ParsedNode]]]) -> Segment:
    """Index documents, each with its first row and stamp, in ascending order of rows."""
    table = [(first, len(nodes), stamp) for first, stamp, nodes in documents]
    every = [node for _, _, nodes in documents for node in nodes]
    rows = [first + position for first, _, nodes in documents for position in range(len(nodes))]
    return Segment(
        name,
        np.array(table, dtype=np.int64).reshape(-1, 3),
        np.array([KINDS.index(node.kind) for node in every], dtype=np.uint8),
        np.array([-1 if node.parent is None else node.parent for node in every], dtype=np.int32),
        np.array([-1 if node.page is None else node.page for node in every], dtype=np.int32),
        {field: _field(field, rows, every) for field in FIELDS},
    )


def _field(field: str, rows: Sequence[int], nodes: Sequence[ParsedNode]) -> FieldPostings:
    counted = [
        (row, counts)
        for row, node in zip(rows, nodes, strict=True)
        if (counts := count_field_terms(field, node)) is not None
    ]
    # Terms in order of their hash, so that the arrays do not depend on the order of words.
    pairs = [pair for _, counts in counted for pair in sorted(counts.items())]
    return FieldPostings.from_terms(
        np.array([row for row, _ in counted], dtype=np.int64),
        np.array([len(counts) for _, counts in counted], dtype=np.int64),
        np.array([term for term, _ in pairs], dtype=np.uint64),
        np.array([count for _, count in pairs], dtype=np.uint32),
    )


def merge_segments(name: str, segments: Sequence[Segment], live: Iterable[NDArray[np.bool_]]) -> Segment:
    """Return adjacent segments as one, with only the documents marked live in each."""
    masks = list(live)
    by_node = [np.repeat(mask, one.documents[:, 1]) for one, mask in zip(segments, masks, strict=True)]
    pairs = list(zip(segments, by_node, strict=True))
    fields = {}
    for field in FIELDS:
        parts = [
            one.fields[field].select_rows(np.isin(one.fields[field].rows, one.rows[nodes], assume_unique=True))
            for one, nodes in pairs
        ]
        rows, lengths, hashes, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        fields[field] = FieldPostings.from_terms(rows, lengths, hashes, counts)
    return Segment(
        name,
        np.concatenate([one.documents[mask] for one, mask in zip(segments, masks, strict=True)]),
        np.concatenate([one.kind[nodes] for one, nodes in pairs]),
        np.concatenate([one.parent[nodes] for one, nodes in pairs]),
        np.concatenate([one.page[nodes] for one, nodes in pairs]),
        fields,
    )


def save_segment(segment: Segment, folder: Path) -> dict[str, list[int | str]]:
    """Write a segment to ``folder / name``; return the size and checksum of every file."""
    return write_arrays(segment.arrays(), folder / segment.name)


def write_arrays(arrays: Arrays, folder: Path) -> dict[str, list[int | str]]:
    """Write arrays to files of a new folder, which is there whole or not at all; return size and checksum of each."""
    unfinished = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    files: dict[str, list[int | str]] = {}
    for part, array in arrays.items():
        path = unfinished / f"{part}.npy"
        with path.open("wb") as file:
            np.save(file, array)
            file.flush()
            os.fsync(file.fileno())
        files[path.name] = [path.stat().st_size, file_checksum(path)]
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    return files


def read_arrays(folder: Path, files: dict[str, list[int | str]]) -> Arrays:
    """Open arrays, memory-mapped. Raises Damaged where a file is missing or has another size."""
    arrays: Arrays = {}
    for file, (size, _) in files.items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != size:
            raise Damaged(f"{path} is missing or truncated", "It is rebuilt: clew doctor")
        try:
            # A plain view: slicing np.memmap itself costs microseconds, on every term of every query.
            arrays[path.stem] = np.load(path, mmap_mode="r").view(np.ndarray)
        except ValueError as error:
            raise Damaged(f"{path} is damaged", "It is rebuilt: clew doctor") from error
    return arrays


def load_segment(name: str, folder: Path, files: dict[str, list[int | str]]) -> Segment:
    """Open a segment, memory-mapped. Raises Damaged where a file is missing or has another size."""
    arrays = read_arrays(folder / name, files)
    fields = {
        field: FieldPostings(*(arrays[f"{field}.{part}"] for part in FieldPostings.__slots__))  # type: ignore[arg-type]
        for field in FIELDS
    }
    return Segment(
        name,
        np.asarray(arrays["documents"], dtype=np.int64),
        arrays["kind"],  # type: ignore[arg-type]
        arrays["parent"],  # type: ignore[arg-type]
        arrays["page"],  # type: ignore[arg-type]
        fields,
    )


def file_checksum(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def write_manifest(path: Path, content: object) -> None:
    """Replace a manifest: whole or not at all, also when the machine stops."""
    unfinished = path.with_suffix(".new")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
