"""The nodes and texts of documents in few large files, of which a question reads some small parts.

A *chunk* has the nodes of some consecutive rows, each with its text, and what lies above them (sections, tables), so
that one request suffices to show a node with its headings. It is compressed JSON of about :data:`CHUNK` characters.

What is packed together depends on the numbers of rows alone, which documents keep: when others are removed, most
chunks and openings are the same bytes as before.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import run_offsets
from clew.core.files import open_private
from clew.core.types import SECTION
from clew.store.database import PIECE_LENGTH
from clew.store.documents import NodeRecord, StoredRecords

if TYPE_CHECKING:
    from clew.store.remote.pieces import StoredBytes

#: A change of what is packed raises it.
RECORDS_VERSION = 2
#: Characters of text after which a chunk is complete. Its rows are of one range of so many, which begins at a
#: multiple.
CHUNK, CHUNK_ROWS = 12_000, 128
#: Characters of the beginning of a document that are also packed apart, and the logarithm (base 2) of about how many
#: documents' openings are one block.
OPENING, OPENINGS_BITS = 4000, 4


class RecordPacker:
    """Writes the files of packed records: a context manager. Documents are added in order of rows."""

    def __init__(self, records: Path, texts: Path, openings: Path) -> None:
        self._paths = records, texts, openings
        self._resources = ExitStack()
        self._chunk: list[NodeRecord] = []
        self._above: dict[int, NodeRecord] = {}
        self._chunk_characters = 0
        self._chunk_rows: list[int] = []
        self._chunk_sizes: list[int] = []
        self._documents: list[int] = []
        self._piece_counts: list[int] = []
        self._piece_sizes: list[int] = []
        self._openings: list[str] = []
        self._opening_sizes: list[int] = []
        self._opening_starts: list[int] = []

    def __enter__(self) -> Self:
        self._records, self._texts, self._opening_file = (
            self._resources.enter_context(open_private(path)) for path in self._paths
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def add(self, first: int, end: int, source: StoredRecords) -> None:
        """Add the document of the rows ``first`` to ``end``."""
        text = source.text(first)
        records = [_resolve_text(record, text) for record in source.record_range(first, end)]
        for record in records:
            self._add_record(record, records, first)
        pieces = [text[start : start + PIECE_LENGTH] for start in range(0, len(text), PIECE_LENGTH)]
        self._documents.append(first)
        self._piece_counts.append(len(pieces))
        self._piece_sizes += [_write_packed(self._texts, piece) for piece in pieces]
        self._openings.append(text[:OPENING])
        if _ends_block(first):
            self._finish_openings()

    def _add_record(self, record: NodeRecord, records: Sequence[NodeRecord], first: int) -> None:
        if self._chunk and self._chunk[0].row // CHUNK_ROWS != record.row // CHUNK_ROWS:
            self._finish_chunk()
        self._chunk.append(record)
        self._chunk_characters += len(record.text or "")
        parent = record.parent
        while parent is not None and first + parent not in self._above:
            above = records[parent]
            # Of what lies above a node only a section's name is read, which may be its text.
            shown = above.text if above.kind == SECTION and above.name is None else ""
            self._above[first + parent] = replace(above, text=shown, boxes=None, cells=None)
            parent = above.parent
        if self._chunk_characters >= CHUNK:
            self._finish_chunk()

    def _finish_chunk(self) -> None:
        if not self._chunk:
            return
        inside = {record.row for record in self._chunk}
        above = [record for row, record in sorted(self._above.items()) if row not in inside]
        self._chunk_rows.append(self._chunk[0].row)
        content = [[astuple(record) for record in records] for records in (self._chunk, above)]
        self._chunk_sizes.append(_write_packed(self._records, content))
        self._chunk, self._above, self._chunk_characters = [], {}, 0

    def _finish_openings(self) -> None:
        if self._openings:
            self._opening_sizes.append(_write_packed(self._opening_file, self._openings))
            self._opening_starts.append(len(self._documents) - len(self._openings))
            self._openings = []

    def directory(self) -> dict[str, NDArray[np.int64]]:
        """Complete the files; return where everything is in them (:class:`PackedRecords`)."""
        self._finish_chunk()
        self._finish_openings()
        for file in (self._records, self._texts, self._opening_file):
            file.flush()
        return {
            "chunk_rows": np.array(self._chunk_rows, dtype=np.int64),
            "chunk_offsets": run_offsets(np.array(self._chunk_sizes, dtype=np.int64)),
            "documents": np.array(self._documents, dtype=np.int64),
            "piece_starts": run_offsets(np.array(self._piece_counts, dtype=np.int64)),
            "piece_offsets": run_offsets(np.array(self._piece_sizes, dtype=np.int64)),
            "opening_starts": np.array(self._opening_starts, dtype=np.int64),
            "opening_offsets": run_offsets(np.array(self._opening_sizes, dtype=np.int64)),
        }


def _ends_block(first: int) -> bool:
    """Return whether a block of openings ends with the document at a row: one row in 2 ** OPENINGS_BITS, by its
    hash (Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4)."""
    return (first * 2654435769 & 0xFFFFFFFF) >> (32 - OPENINGS_BITS) == 0


def _resolve_text(record: NodeRecord, document_text: str) -> NodeRecord:
    """Return a record with its text, where it is a part of the document's text."""
    if record.text is not None:
        return record
    return replace(record, text=document_text[record.first : record.last])


def _write_packed(file: IO[bytes], content: Any) -> int:
    packed = zlib.compress(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())
    file.write(packed)
    return len(packed)


def _unpack(packed: bytes) -> Any:
    return json.loads(zlib.decompress(packed))


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """The packed records of a copy. ``directory`` says where they are: chunk n has the rows from ``chunk_rows[n]`` on
    and lies between ``chunk_offsets[n]`` and the next; the pieces of document n (its first row: ``documents[n]``) are
    those from ``piece_starts[n]`` on, which lie between their ``piece_offsets``; block n of openings has the
    documents from ``opening_starts[n]`` on, and lies between its ``opening_offsets``."""

    records: StoredBytes
    texts: StoredBytes
    openings: StoredBytes
    directory: Mapping[str, NDArray[np.int64]]

    def reader(self) -> PackedReader:
        """Return a reader, for one request."""
        return PackedReader(self)

    def chunks(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers of the chunks with ``rows``, ascending."""
        starts = self.directory["chunk_rows"]
        places = np.searchsorted(starts, np.array(rows, dtype=np.int64), side="right") - 1
        return [chunk for chunk in np.unique(places).tolist() if chunk >= 0]

    def chunk_digests(self, rows: Sequence[int]) -> set[str]:
        """Return the digests of the pieces that the records of ``rows`` need."""
        ranges = _ranges(self.directory["chunk_offsets"], self.chunks(rows))
        return {digest for start, end in ranges for digest in self.records.digests(start, end)}


@dataclass(slots=True)
class PackedReader:
    """A :class:`~clew.store.documents.RecordSource` over packed records. It remembers the chunks that it has read."""

    packed: PackedRecords
    _chunks: set[int] = field(default_factory=set)
    _known: dict[int, NodeRecord] = field(default_factory=dict)
    _above: dict[int, NodeRecord] = field(default_factory=dict)

    def records(self, rows: Iterable[int]) -> dict[int, NodeRecord]:
        """Return the records of ``rows``, by row; a row that is gone is missing."""
        wanted = list(dict.fromkeys(rows))
        self._read_chunks([row for row in wanted if row not in self._known])
        return {row: self._known[row] for row in wanted if row in self._known}

    def records_above(self, rows: Iterable[int]) -> dict[int, NodeRecord]:
        """Return the records of ``rows``, which lie above others that were read."""
        wanted = list(rows)
        records = {row: record for row in wanted if (record := self._known.get(row) or self._above.get(row))}
        return records | self.records(row for row in wanted if row not in records)

    def record_range(self, first: int, end: int) -> list[NodeRecord]:
        """Return the records of a range of rows, ascending."""
        return [record for _, record in sorted(self.records(range(first, end)).items())]

    def text(self, first: int) -> str:
        """Return the canonical text of a document."""
        starts, place = self.packed.directory["piece_starts"], self._document_place(first)
        if place is None:
            return ""
        return "".join(self._read_pieces(range(int(starts[place]), int(starts[place + 1]))))

    def pieces(self, numbers: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Return pieces of canonical texts by document and number; one that is gone is missing."""
        starts = self.packed.directory["piece_starts"]
        places = {}
        for first, number in numbers:
            document = self._document_place(first)
            if document is not None and int(starts[document]) + number < int(starts[document + 1]):
                places[first, number] = int(starts[document]) + number
        return dict(zip(places, self._read_pieces(list(places.values())), strict=True))

    def openings(self, first_rows: Sequence[int], length: int) -> dict[int, str]:
        """Return the first ``length`` characters, at most a piece, of documents; one that is gone is missing."""
        if length > OPENING:
            pieces = self.pieces((first, 0) for first in first_rows)
            return {first: piece[:length] for (first, _), piece in pieces.items()}
        places = {first: place for first in first_rows if (place := self._document_place(first)) is not None}
        starts = self.packed.directory["opening_starts"]
        block_of = {first: bisect_right(starts, place) - 1 for first, place in places.items()}
        blocks = sorted(set(block_of.values()))
        ranges = _ranges(self.packed.directory["opening_offsets"], blocks)
        content = dict(zip(blocks, map(_unpack, self.packed.openings.read_ranges(ranges)), strict=True))
        texts = {
            first: content[block_of[first]][place - int(starts[block_of[first]])][:length]
            for first, place in places.items()
        }
        return {first: text for first, text in texts.items() if text}

    def _document_place(self, first: int) -> int | None:
        documents = self.packed.directory["documents"]
        place = int(np.searchsorted(documents, first))
        return place if place < len(documents) and documents[place] == first else None

    def _read_pieces(self, places: Sequence[int]) -> Iterator[str]:
        ranges = _ranges(self.packed.directory["piece_offsets"], places)
        return map(_unpack, self.packed.texts.read_ranges(ranges))

    def _read_chunks(self, rows: Sequence[int]) -> None:
        chunks = [chunk for chunk in self.packed.chunks(rows) if chunk not in self._chunks]
        ranges = _ranges(self.packed.directory["chunk_offsets"], chunks)
        for content in map(_unpack, self.packed.records.read_ranges(ranges)):
            for target, records in zip((self._known, self._above), content, strict=True):
                target.update({values[0]: NodeRecord(*values) for values in records})
        self._chunks.update(chunks)


def _ranges(offsets: NDArray[np.int64], places: Sequence[int]) -> list[tuple[int, int]]:
    return [(int(offsets[place]), int(offsets[place + 1])) for place in places]
