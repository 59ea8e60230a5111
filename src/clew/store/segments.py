"""Segments: the text indexes of batches of documents, as immutable memory-mapped arrays.

A segment contains, for every node of its documents in order of rows, kind, parent and page; and for each field
the postings in both directions. It depends on its documents alone, so removing a document only masks it, and
merging two segments gives the same arrays as building them together.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import range_indices
from clew.core.errors import Damaged
from clew.core.text import TEXT_VERSION, candidate_names, count_terms, hash_term, title_names
from clew.core.types import DOCUMENT, KINDS, RETRIEVED_KINDS, SECTION, TABLE, ParsedNode
from clew.store.array_files import file_checksum, read_arrays, write_arrays, write_manifest
from clew.store.database import Database
from clew.store.documents import DocumentEntry, read_entries, read_parsed_document
from clew.store.postings import FieldPostings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask, Rows
    from clew.store.array_files import Arrays

MANIFEST = "segments.json"
#: Changing what is indexed changes this name, and every base rebuilds its segments.
SEGMENTS_MAKER = f"segments/1 text/{TEXT_VERSION}"
FIELDS = ("text", "title", "mention")
#: Nodes that are indexed at a time: enough to make few segments, few enough to hold in memory.
BATCH = 100_000
#: A segment with a larger share of removed nodes is rewritten.
MAX_DEAD_SHARE = 0.2
#: A segment is merged into the one before it once it has this share of its size, so that a base has a
#: logarithmic number of segments and a node is rewritten a logarithmic number of times.
MERGE_RATIO = 0.5


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment. ``documents`` has a row (first row, number of nodes, stamp) for each document, ascending."""

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
        return range_indices(first, nodes)

    @property
    def first_row(self) -> int:
        """The first row of its first document."""
        return int(self.documents[0, 0])

    @property
    def stamped_rows(self) -> list[tuple[int, int]]:
        """The first row and the stamp of every document: what identifies it."""
        return [(int(first), int(stamp)) for first, _, stamp in self.documents]

    def arrays(self) -> Arrays:
        """Return every array by the name of its file."""
        arrays: Arrays = {
            "documents": self.documents,
            "kind": self.kind,
            "parent": self.parent,
            "page": self.page,
        }
        for name, field in self.fields.items():
            arrays |= {f"{name}.{part}": getattr(field, part) for part in FieldPostings.__slots__}
        return arrays


# Building


def count_field_terms(field: str, node: ParsedNode) -> Counter[int] | None:
    """Return the hashed terms of a node in a field and their counts; None where the node has no such field."""
    if field == "text":
        return count_terms(node.text) if node.kind in RETRIEVED_KINDS else None
    if field == "title":
        return count_terms(node.name) if node.kind in {DOCUMENT, SECTION, TABLE} else None
    if node.kind == DOCUMENT:
        return Counter(map(hash_term, title_names(node.name)))
    if node.kind in RETRIEVED_KINDS:
        return Counter({hash_term(name) for name, _, _ in candidate_names(node.text)})
    return None


def build_segment(name: str, documents: Sequence[tuple[int, int, Sequence[ParsedNode]]]) -> Segment:
    """Index documents, each given as first row, stamp and nodes, in ascending order of rows."""
    table = [(first, len(nodes), stamp) for first, stamp, nodes in documents]
    all_nodes = [node for _, _, nodes in documents for node in nodes]
    rows = [first + position for first, _, nodes in documents for position in range(len(nodes))]
    return Segment(
        name,
        np.array(table, dtype=np.int64).reshape(-1, 3),
        np.array([KINDS.index(node.kind) for node in all_nodes], dtype=np.uint8),
        np.array([-1 if node.parent is None else node.parent for node in all_nodes], dtype=np.int32),
        np.array([-1 if node.page is None else node.page for node in all_nodes], dtype=np.int32),
        {field: _build_field(field, rows, all_nodes) for field in FIELDS},
    )


def _build_field(field: str, rows: Sequence[int], nodes: Sequence[ParsedNode]) -> FieldPostings:
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
    node_masks = [
        np.repeat(mask, segment.documents[:, 1]) for segment, mask in zip(segments, masks, strict=True)
    ]
    pairs = list(zip(segments, node_masks, strict=True))
    fields = {}
    for field in FIELDS:
        parts = [
            segment.fields[field].select_rows(
                np.isin(segment.fields[field].rows, segment.rows[nodes], assume_unique=True)
            )
            for segment, nodes in pairs
        ]
        rows, lengths, hashes, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        fields[field] = FieldPostings.from_terms(rows, lengths, hashes, counts)
    return Segment(
        name,
        np.concatenate([segment.documents[mask] for segment, mask in zip(segments, masks, strict=True)]),
        np.concatenate([segment.kind[nodes] for segment, nodes in pairs]),
        np.concatenate([segment.parent[nodes] for segment, nodes in pairs]),
        np.concatenate([segment.page[nodes] for segment, nodes in pairs]),
        fields,
    )


# Files


def save_segment(segment: Segment, folder: Path) -> dict[str, list[int | str]]:
    """Write a segment to ``folder / name``; return the size and checksum of every file."""
    return write_arrays(segment.arrays(), folder / segment.name)


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


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """All segments of a base, in ``folder``. Writing methods are called under ``index.lock``."""

    folder: Path

    def load(self) -> list[Segment]:
        """Return the segments in order of rows; none where one is damaged, so that all are rebuilt.

        All, because documents that are indexed later must have later rows: merging and searching rely on it.
        """
        listed = self.read_manifest()
        while True:
            try:
                return [load_segment(entry["name"], self.folder, entry["files"]) for entry in listed]
            except (Damaged, OSError, KeyError):
                previous, listed = listed, self.read_manifest()
                if listed == previous:
                    return []
                # Another process merged segments after we read the list and before we opened them.

    def read_manifest(self) -> list[dict[str, Any]]:
        """Return the name and files of every segment; none if there is no manifest that this version can use."""
        try:
            content = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            return list(content["segments"]) if content["maker"] == SEGMENTS_MAKER else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def unindexed_documents(
        self, entries: Sequence[DocumentEntry], segments: Sequence[Segment]
    ) -> list[DocumentEntry]:
        """Return the documents that are in none of ``segments``."""
        indexed = {pair for segment in segments for pair in segment.stamped_rows}
        return [entry for entry in entries if (entry.first, entry.stamp) not in indexed]

    def catch_up(self, database: Database, progress: Callable[[int, int], None]) -> int:
        """Index every new document and drop removed ones; return how many documents were indexed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        segments = self.load()
        files = {entry["name"]: entry["files"] for entry in self.read_manifest()}
        with database.read_transaction() as connection:
            entries = read_entries(connection)
        missing = self.unindexed_documents(entries, segments)
        done = 0
        for batch in _split_batches(missing):
            built = self._build(database, batch, segments)
            done += len(batch)
            if built is not None:
                files[built.name] = save_segment(built, self.folder)
                segments = sorted([*segments, built], key=lambda segment: segment.first_row)
                self._write_manifest(segments, files)
            progress(done, len(missing))
        self._merge(segments, files, entries)
        return done

    def _build(
        self, database: Database, batch: Sequence[DocumentEntry], segments: Sequence[Segment]
    ) -> Segment | None:
        documents = []
        with database.read_transaction() as connection:
            # Documents that were removed since the list was made are left out.
            stamps = {entry.first: entry.stamp for entry in read_entries(connection)}
            for entry in batch:
                if stamps.get(entry.first) == entry.stamp:
                    documents.append(
                        (entry.first, entry.stamp, read_parsed_document(connection, entry).nodes)
                    )
        return build_segment(_unused_name(self.folder, segments), documents) if documents else None

    def _merge(
        self, segments: list[Segment], files: dict[str, Any], entries: Sequence[DocumentEntry]
    ) -> None:
        """Merge segments that have grown small beside others or lost many nodes, and write the manifest."""
        stored = {(entry.first, entry.stamp) for entry in entries}

        def live(segment: Segment) -> Mask:
            return np.array([pair in stored for pair in segment.stamped_rows], dtype=np.bool_)

        sizes = [float(segment.documents[live(segment), 1].sum()) for segment in segments]
        for run in _runs_to_merge(segments, sizes):
            merged = merge_segments(
                _unused_name(self.folder, segments), run, [live(segment) for segment in run]
            )
            segments = [segment for segment in segments if segment not in run]
            if len(merged.documents):
                files[merged.name] = save_segment(merged, self.folder)
                segments = sorted([*segments, merged], key=lambda segment: segment.first_row)
        self._write_manifest(segments, files)

    def _write_manifest(self, segments: Sequence[Segment], files: dict[str, Any]) -> None:
        """List ``segments`` in the manifest and delete all others."""
        content = {
            "maker": SEGMENTS_MAKER,
            "segments": [{"name": segment.name, "files": files[segment.name]} for segment in segments],
            "documents": [list(pair) for segment in segments for pair in segment.stamped_rows],
        }
        write_manifest(self.folder / MANIFEST, content)
        names = {segment.name for segment in segments}
        for folder in self.folder.glob("s*"):
            if folder.is_dir() and folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)

    def find_faults(self) -> list[str]:
        """Return the files that do not have the checksum of the manifest."""
        return [
            f"{entry['name']}/{file}"
            for entry in self.read_manifest()
            for file, (_, checksum) in entry["files"].items()
            if not (path := self.folder / entry["name"] / file).is_file() or file_checksum(path) != checksum
        ]

    def delete(self) -> None:
        """Delete every segment; the next catch-up rebuilds them."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _split_batches(entries: Sequence[DocumentEntry]) -> Iterator[list[DocumentEntry]]:
    batch: list[DocumentEntry] = []
    nodes = 0
    for entry in entries:
        batch.append(entry)
        nodes += entry.end - entry.first
        if nodes >= BATCH:
            yield batch
            batch, nodes = [], 0
    if batch:
        yield batch


def _runs_to_merge(segments: Sequence[Segment], sizes: Sequence[float]) -> list[list[Segment]]:
    """Return runs of neighbouring segments to merge: small ones after large ones, or with many removed nodes.

    ``sizes`` are their numbers of live nodes.
    """
    runs: list[list[int]] = []
    for number in range(len(segments)):
        runs.append([number])
        while len(runs) > 1 and sum(sizes[n] for n in runs[-1]) > MERGE_RATIO * sum(
            sizes[n] for n in runs[-2]
        ):
            last = runs.pop()
            runs[-1] += last
    dead = [
        size < (1 - MAX_DEAD_SHARE) * float(segment.documents[:, 1].sum())
        for segment, size in zip(segments, sizes, strict=True)
    ]
    return [[segments[n] for n in run] for run in runs if len(run) > 1 or dead[run[0]]]


def _unused_name(folder: Path, segments: Sequence[Segment]) -> str:
    taken = {segment.name for segment in segments}
    taken |= {path.name.removesuffix(".new") for path in folder.glob("s*")}
    number = 1
    while f"s{number}" in taken:
        number += 1
    return f"s{number}"
