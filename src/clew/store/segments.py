"""Segments: the text indexes of batches of documents, as immutable memory-mapped arrays, and the postings in them.

A segment contains, for every node of its documents in order of rows, kind, parent and page; and for each field
the postings in both directions. It depends on its documents alone, so removing a document only masks it, and
merging two segments gives the same arrays as building them together.

A base may be divided into *shards*, of so many rows each: then no segment has documents of two shards, and what is
removed from one changes no file of another. Every count that ranking needs is a sum over segments, so results do not
depend on the number of shards.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import (
    file_checksum,
    find_positions,
    link_folder,
    range_indices,
    read_arrays,
    run_offsets,
    write_arrays,
    write_manifest,
)
from clew.core.errors import Damaged
from clew.core.files import create_folder
from clew.core.languages import ENGLISH
from clew.core.mentions import count_mentions
from clew.core.text import TEXT_VERSION, count_terms
from clew.core.types import DOCUMENT, KINDS, RETRIEVED_KINDS, SECTION, TABLE, ParsedNode
from clew.store.database import Database, refuse_exhaustion
from clew.store.documents import (
    DocumentEntry,
    StoredRecords,
    detect_missing_languages,
    lacks_languages,
    read_entries,
    read_parsed_document,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Arrays, Hashes, Mask, Rows


@dataclass(frozen=True, slots=True)
class FieldPostings:
    """The postings of one field in one segment: a sparse matrix of rows by terms, compressed both ways.

    ``rows`` are all nodes that have the field, ascending, those without a term included. ``starts``, ``terms`` and
    ``counts`` are the rows of the matrix (terms as positions in ``vocabulary``); ``holder_starts``, ``holders``
    (positions in ``rows``) and ``holder_counts`` its columns. The names of the attributes are names of files on disk.
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
    def from_terms(
        cls, rows: Rows, lengths: NDArray[np.int64], hashes: Hashes, counts: NDArray[np.uint32]
    ) -> FieldPostings:
        """Build both directions from the number of terms of each row, and the terms and counts row after row."""
        vocabulary, positions = np.unique(hashes, return_inverse=True)
        terms = positions.astype(np.uint32)
        owners = np.repeat(np.arange(len(rows), dtype=np.uint32), lengths)
        by_term = np.argsort(terms, kind="stable")
        return cls(
            rows,
            run_offsets(lengths),
            terms,
            counts,
            vocabulary,
            run_offsets(np.bincount(terms, minlength=len(vocabulary))),
            owners[by_term],
            counts[by_term],
        )

    def select_rows(
        self, mask: NDArray[np.bool_]
    ) -> tuple[Rows, NDArray[np.int64], Hashes, NDArray[np.uint32]]:
        """Return rows, lengths, hashes and counts of the rows marked in ``mask``, for :meth:`from_terms`."""
        lengths = np.diff(self.starts)
        pairs = np.repeat(mask, lengths)
        return self.rows[mask], lengths[mask], self.vocabulary[self.terms[pairs]], self.counts[pairs]


@dataclass(frozen=True)
class SegmentPart:
    """The postings of one segment, and which of its rows are live (None: all)."""

    field: FieldPostings
    live: NDArray[np.bool_] | None

    @cached_property
    def document_frequency(self) -> NDArray[np.int64]:
        """For each term of the vocabulary the number of live rows that contain it."""
        if self.live is None:
            return np.diff(self.field.holder_starts)
        live_holders = self.live[self.field.holders].astype(np.int64)
        return np.diff(run_offsets(live_holders)[self.field.holder_starts])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of terms of each row, every occurrence counted."""
        return np.diff(run_offsets(self.field.counts)[self.field.starts])

    def rows_with(self, term: np.uint64) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, and how often each does."""
        postings = self.field
        place = int(np.searchsorted(postings.vocabulary, term))
        if place == len(postings.vocabulary) or postings.vocabulary[place] != term:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        start, end = int(postings.holder_starts[place]), int(postings.holder_starts[place + 1])
        holders, counts = postings.holders[start:end], postings.holder_counts[start:end].astype(np.int64)
        if self.live is not None:
            live = self.live[holders]
            holders, counts = holders[live], counts[live]
        return postings.rows[holders], counts

    def terms_of_rows(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return number of terms, terms and counts of rows; 0 terms for a row that is not here or not live."""
        postings = self.field
        places = find_positions(postings.rows, rows)
        is_here = places >= 0
        if self.live is not None and len(self.live):
            is_here &= self.live[places]
        if not is_here.any():
            empty = np.empty(0, dtype=np.int64)
            return np.zeros(len(rows), dtype=np.int64), empty.astype(np.uint64), empty
        places = places[is_here]
        starts, sizes = postings.starts[places], postings.starts[places + 1] - postings.starts[places]
        lengths = np.zeros(len(rows), dtype=np.int64)
        lengths[is_here] = sizes
        pairs = range_indices(starts, sizes)
        return lengths, postings.vocabulary[postings.terms[pairs]], postings.counts[pairs].astype(np.int64)


@dataclass(frozen=True)
class SegmentedPostings:
    """A :class:`clew.core.protocols.Postings` over segments in ascending order of rows; ``live`` marks live rows."""

    segments: Sequence[FieldPostings]
    live: Mask = field(repr=False)

    @cached_property
    def _parts(self) -> list[SegmentPart]:
        parts = []
        for postings in self.segments:
            live = self.live[postings.rows]
            parts.append(SegmentPart(postings, None if live.all() else live))
        return parts

    @cached_property
    def node_count(self) -> int:
        """Number of live nodes that have the field."""
        return sum(
            len(part.field.rows) if part.live is None else int(part.live.sum()) for part in self._parts
        )

    @cached_property
    def average_length(self) -> float:
        """Mean number of terms of a live node; 0 where there is none."""
        total = sum(
            int((part.lengths if part.live is None else part.lengths[part.live]).sum())
            for part in self._parts
        )
        return total / self.node_count if self.node_count else 0.0

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for a row without the field."""
        return self._lengths[rows]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        lengths = np.zeros(len(self.live), dtype=np.int64)
        for part in self._parts:
            lengths[part.field.rows] = part.lengths
        lengths[~self.live] = 0
        return lengths

    def document_frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""
        terms = np.asarray(terms, dtype=np.uint64)
        frequency = np.zeros(len(terms), dtype=np.int64)
        for part in self._parts:
            places = find_positions(part.field.vocabulary, terms)
            is_here = places >= 0
            frequency[is_here] += part.document_frequency[places[is_here]]
        return frequency

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        parts = [part.rows_with(np.uint64(term)) for part in self._parts]
        if len(parts) == 1:
            return parts[0]
        empty = np.empty(0, dtype=np.int64)
        return (
            np.concatenate([empty, *(rows for rows, _ in parts)]),
            np.concatenate([empty, *(counts for _, counts in parts)]),
        )

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        rows = np.asarray(rows, dtype=np.int64)
        parts = [part.terms_of_rows(rows) for part in self._parts]
        if len(parts) == 1:
            lengths, terms, counts = parts[0]
            return run_offsets(lengths), terms, counts
        lengths = np.zeros(len(rows), dtype=np.int64)
        for part_lengths, _, _ in parts:
            lengths += part_lengths
        offsets = run_offsets(lengths)
        terms = np.empty(int(offsets[-1]), dtype=np.uint64)
        counts = np.empty(int(offsets[-1]), dtype=np.int64)
        for part_lengths, part_terms, part_counts in parts:
            # A row is in one segment only, so its terms go where all of the row's terms start.
            places = range_indices(offsets[:-1], part_lengths)
            terms[places], counts[places] = part_terms, part_counts
        return offsets, terms, counts

    def prefetch(self, terms: Hashes | None = None, rows: Rows | None = None) -> None:
        """Do nothing: the postings are on this machine."""

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""
        return self._vocabulary

    @cached_property
    def _vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        if not self._parts:
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        terms = np.concatenate([part.field.vocabulary for part in self._parts])
        frequency = np.concatenate([part.document_frequency for part in self._parts])
        unique_terms, places = np.unique(terms[frequency > 0], return_inverse=True)
        summed = np.zeros(len(unique_terms), dtype=np.int64)
        np.add.at(summed, places, frequency[frequency > 0])
        return unique_terms, summed


MANIFEST = "segments.json"
#: Changing what is indexed changes this name, and every base rebuilds its segments.
SEGMENTS_MAKER = f"segments/2 text/{TEXT_VERSION}"
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
        for name, postings in self.fields.items():
            arrays |= {f"{name}.{part}": getattr(postings, part) for part in FieldPostings.__slots__}
        return arrays


# Building


def count_field_terms(
    field: str, node: ParsedNode, parent_name: str = "", language: str = ENGLISH
) -> Counter[int] | None:
    """Return the hashed terms of a node's field with their counts; None if the node has no such field.

    ``parent_name`` is the name of the parent: the text of a row starts with its table's caption. ``language`` is the
    document's language.
    """
    if field == "text":
        return count_terms(node.text, language) if node.kind in RETRIEVED_KINDS else None
    if field == "title":
        return count_terms(node.name, language) if node.kind in {DOCUMENT, SECTION, TABLE} else None
    return count_mentions(node, parent_name)


def build_segment(name: str, documents: Sequence[tuple[int, int, str, Sequence[ParsedNode]]]) -> Segment:
    """Index documents, each given as first row, stamp, language and nodes, in ascending order of rows."""
    table = [(first, len(nodes), stamp) for first, stamp, _, nodes in documents]
    all_nodes = [node for *_, nodes in documents for node in nodes]
    rows = [first + position for first, *_, nodes in documents for position in range(len(nodes))]
    surroundings = [
        ("" if node.parent is None else nodes[node.parent].name, language or ENGLISH)
        for _, _, language, nodes in documents
        for node in nodes
    ]
    return Segment(
        name,
        np.array(table, dtype=np.int64).reshape(-1, 3),
        np.array([KINDS.index(node.kind) for node in all_nodes], dtype=np.uint8),
        np.array([-1 if node.parent is None else node.parent for node in all_nodes], dtype=np.int32),
        np.array([-1 if node.page is None else node.page for node in all_nodes], dtype=np.int32),
        {field: _build_field(field, rows, all_nodes, surroundings) for field in FIELDS},
    )


def _build_field(
    field: str, rows: Sequence[int], nodes: Sequence[ParsedNode], surroundings: Sequence[tuple[str, str]]
) -> FieldPostings:
    """Return the postings of a field; ``surroundings`` has each node's parent's name and its language."""
    counted = [
        (row, counts)
        for row, node, (parent_name, language) in zip(rows, nodes, surroundings, strict=True)
        if (counts := count_field_terms(field, node, parent_name, language)) is not None
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
    for field_name in FIELDS:
        parts = [
            segment.fields[field_name].select_rows(
                np.isin(segment.fields[field_name].rows, segment.rows[nodes], assume_unique=True)
            )
            for segment, nodes in pairs
        ]
        rows, lengths, hashes, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        fields[field_name] = FieldPostings.from_terms(rows, lengths, hashes, counts)
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
            except (Damaged, OSError, KeyError) as error:
                refuse_exhaustion(error)
                previous, listed = listed, self.read_manifest()
                if listed == previous:
                    return []
                # Another process merged segments after we read the list and before we opened them.

    def read_manifest(self) -> list[dict[str, Any]]:
        """Return the name and files of every segment; none if there is no manifest that this version can use."""
        try:
            return list(self._read_content()["segments"])
        except (ValueError, KeyError, TypeError):
            return []

    @property
    def shard_rows(self) -> int:
        """The rows of a shard; 0 where the base is not divided."""
        return int(self._read_content().get("shard_rows", 0))

    def _read_content(self) -> dict[str, Any]:
        try:
            content = dict(json.loads((self.folder / MANIFEST).read_text(encoding="utf-8")))
            return content if content.get("maker") == SEGMENTS_MAKER else {}
        except (OSError, ValueError, TypeError) as error:
            refuse_exhaustion(error)
            return {}

    def unindexed_documents(
        self, entries: Sequence[DocumentEntry], segments: Sequence[Segment]
    ) -> list[DocumentEntry]:
        """Return the documents that are in none of ``segments``."""
        indexed = {pair for segment in segments for pair in segment.stamped_rows}
        return [entry for entry in entries if (entry.first, entry.stamp) not in indexed]

    def catch_up(self, database: Database, progress: Callable[[int, int], None]) -> int:
        """Index every new document and drop removed ones; return how many documents were indexed."""
        create_folder(self.folder)
        with database.read_transaction() as connection:
            without_language = lacks_languages(connection)
        if without_language:
            with database.write_transaction(truth=False) as connection:
                detect_missing_languages(connection)
        segments = self.load()
        files = {entry["name"]: entry["files"] for entry in self.read_manifest()}
        with database.read_transaction() as connection:
            entries = read_entries(connection)
        missing = self.unindexed_documents(entries, segments)
        shard_rows = self.shard_rows
        done = 0
        for batch in _split_batches(missing, shard_rows):
            built = self._build(database, batch, segments)
            done += len(batch)
            if built is not None:
                files[built.name] = save_segment(built, self.folder)
                segments = sorted([*segments, built], key=lambda segment: segment.first_row)
                self._write_manifest(segments, files, shard_rows)
            progress(done, len(missing))
        self._merge(segments, files, entries, shard_rows)
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
                    nodes = read_parsed_document(StoredRecords(connection), entry).nodes
                    documents.append((entry.first, entry.stamp, entry.document.language, nodes))
        return build_segment(_unused_name(self.folder, segments), documents) if documents else None

    def _merge(
        self,
        segments: list[Segment],
        files: dict[str, Any],
        entries: Sequence[DocumentEntry],
        shard_rows: int,
    ) -> None:
        """Merge segments that have grown small beside others or lost many nodes, and write the manifest."""
        stored = {(entry.first, entry.stamp) for entry in entries}

        def live(segment: Segment) -> Mask:
            return np.array([pair in stored for pair in segment.stamped_rows], dtype=np.bool_)

        sizes = [float(segment.documents[live(segment), 1].sum()) for segment in segments]
        for run in _runs_to_merge(segments, sizes, shard_rows):
            merged = merge_segments(
                _unused_name(self.folder, segments), run, [live(segment) for segment in run]
            )
            segments = [segment for segment in segments if segment not in run]
            if len(merged.documents):
                files[merged.name] = save_segment(merged, self.folder)
                segments = sorted([*segments, merged], key=lambda segment: segment.first_row)
        self._write_manifest(segments, files, shard_rows)

    def _write_manifest(self, segments: Sequence[Segment], files: dict[str, Any], shard_rows: int) -> None:
        """List ``segments`` in the manifest and delete all others."""
        content = {
            "maker": SEGMENTS_MAKER,
            "shard_rows": shard_rows,
            "segments": [{"name": segment.name, "files": files[segment.name]} for segment in segments],
            "documents": [list(pair) for segment in segments for pair in segment.stamped_rows],
        }
        write_manifest(self.folder / MANIFEST, content)
        names = {segment.name for segment in segments}
        for folder in self.folder.glob("s*"):
            if folder.is_dir() and folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)

    def copy_live(
        self, target: SegmentIndex, entries: Sequence[DocumentEntry], shard_rows: int | None = None
    ) -> None:
        """Write what the segments have of the documents ``entries`` to ``target``, in shards of ``shard_rows`` rows
        (None: as here); whole segments are linked."""
        create_folder(target.folder)
        stored = {(entry.first, entry.stamp) for entry in entries}
        files = {entry["name"]: entry["files"] for entry in self.read_manifest()}
        shard_rows = self.shard_rows if shard_rows is None else shard_rows
        copied, copied_files = [], {}
        for segment in self.load():
            live = np.array([pair in stored for pair in segment.stamped_rows], dtype=np.bool_)
            shard = (
                segment.documents[:, 0] // shard_rows if shard_rows else np.zeros(len(live), dtype=np.int64)
            )
            for number in np.unique(shard[live]).tolist():
                chosen = live & (shard == number)
                # Named by its first row, so that the files of the other shards keep their paths.
                name = f"s{segment.documents[chosen, 0][0]}" if shard_rows else segment.name
                if chosen.all():
                    link_folder(self.folder / segment.name, target.folder / name)
                    part, copied_files[name] = replace(segment, name=name), files[segment.name]
                else:
                    part = merge_segments(name, [segment], [chosen])
                    copied_files[name] = save_segment(part, target.folder)
                copied.append(part)
        target._write_manifest(copied, copied_files, shard_rows)

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


def _split_batches(entries: Sequence[DocumentEntry], shard_rows: int) -> Iterator[list[DocumentEntry]]:
    batch: list[DocumentEntry] = []
    nodes = 0
    for entry in entries:
        if batch and shard_rows and batch[0].first // shard_rows != entry.first // shard_rows:
            yield batch
            batch, nodes = [], 0
        batch.append(entry)
        nodes += entry.end - entry.first
        if nodes >= BATCH:
            yield batch
            batch, nodes = [], 0
    if batch:
        yield batch


def _runs_to_merge(
    segments: Sequence[Segment], sizes: Sequence[float], shard_rows: int
) -> list[list[Segment]]:
    """Return runs of neighbouring segments to merge: small ones after large ones, or with many removed nodes; those
    of a run are in one shard.

    ``sizes`` are their numbers of live nodes.
    """
    shards = [segment.first_row // shard_rows if shard_rows else 0 for segment in segments]
    runs: list[list[int]] = []
    for number in range(len(segments)):
        runs.append([number])
        while (
            len(runs) > 1
            and shards[runs[-1][0]] == shards[runs[-2][0]]
            and sum(sizes[n] for n in runs[-1]) > MERGE_RATIO * sum(sizes[n] for n in runs[-2])
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
