"""What is indexed of a node: a pure function of its own document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.text import TEXT_VERSION, add_headings, candidate_names, count_terms, hash_term, title_names
from clew.core.types import DOCUMENT, KINDS, RETRIEVED_KINDS, SECTION, TABLE, ParsedNode
from clew.store.array_files import Arrays, read_arrays, write_arrays
from clew.store.postings import FieldPostings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Rows
    from clew.store.array_files import Arrays

#: Changing what is indexed changes this name, and every base rebuilds its segments.
SEGMENTS_MAKER = f"segments/1 text/{TEXT_VERSION}"
FIELDS = ("text", "title", "mention")


def count_field_terms(field: str, node: ParsedNode) -> Counter[int] | None:
    """Return the hashed terms of ``node`` in a field and their counts; None where it has no part in it."""
    if field == "text":
        return count_terms(node.text) if node.kind in RETRIEVED_KINDS else None
    if field == "title":
        return count_terms(node.name) if node.kind in {DOCUMENT, SECTION, TABLE} else None
    if node.kind == DOCUMENT:
        return Counter(map(hash_term, title_names(node.name)))
    if node.kind in RETRIEVED_KINDS:
        return Counter({hash_term(name) for name, _, _ in candidate_names(node.text)})
    return None


def texts_to_encode(nodes: Sequence[ParsedNode]) -> Iterator[tuple[int, str]]:
    """Yield the position of every retrieved node of a document, and the text that stands for it as a vector."""
    title = nodes[0].name
    for position, node in enumerate(nodes):
        if node.kind in RETRIEVED_KINDS:
            yield position, add_headings(title, _headings(nodes, position), node.text)


def _headings(nodes: Sequence[ParsedNode], position: int) -> list[str]:
    path = []
    parent = nodes[position].parent
    while parent is not None:
        if nodes[parent].kind == SECTION:
            path.append(nodes[parent].name)
        parent = nodes[parent].parent
    return path[::-1]


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
            one.fields[field].select_rows(
                np.isin(one.fields[field].rows, one.rows[nodes], assume_unique=True)
            )
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


# MERGED: Segments: what is indexed of a batch of documents, as immutable memory-mapped arrays.
