"""The files of a copy that only direct reading needs, in its folder ``reading``: how they are written.

``base.sqlite``          the database of the base without nodes, texts and graphs
``graphs.sqlite``        the graphs, where there are any
``records.bin``          the nodes, packed in chunks (:mod:`clew.store.remote.records`)
``texts.bin``            the canonical texts, packed in pieces of :data:`~clew.store.database.PIECE_LENGTH` characters
``openings.bin``         the first characters of the documents' texts
``documents.npz``        where chunks, pieces and openings are
``segments/NAME.npz``    of a segment what every question reads: its documents, kinds, lengths, vocabulary; and of the
                         postings those that are small. The others are read from the segment's own files, in ranges.

All of them are functions of the files of the base, and the same content gives the same bytes.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from clew.core.arrays import run_offsets
from clew.store.database import DATABASE_FILE, MIGRATIONS, Database, connect, translate_errors
from clew.store.documents import StoredRecords, read_entries
from clew.store.remote.records import RECORDS_VERSION, RecordPacker
from clew.store.segments import SEGMENTS_MAKER, FieldPostings, Segment, SegmentIndex

if TYPE_CHECKING:
    from clew.store.store import Store

#: What the files depend on: another clew than the one that wrote them may not be able to read them.
LAYOUT = f"1 database/{len(MIGRATIONS)} records/{RECORDS_VERSION} {SEGMENTS_MAKER}"
READING = "reading"
CATALOGUE, GRAPHS, DOCUMENTS = "reading/base.sqlite", "reading/graphs.sqlite", "reading/documents.npz"
RECORDS, TEXTS, OPENINGS = "reading/records.bin", "reading/texts.bin", "reading/openings.bin"
#: The arrays of postings that a question reads in ranges, and the size up to which they are read whole.
RANGED, MAX_WHOLE = ("terms", "counts", "holders", "holder_counts"), 1 << 16
_CATALOGUE_TABLES = ("state", "setting", "document", "location", "tally", "edge", "kept", "graph", "mount")
_GRAPH_TABLES = ("state", "graph", "graph_node", "graph_edge", "graph_statement", "mount")


def segment_file(name: str) -> str:
    """Return the path of a segment's file."""
    return f"{READING}/segments/{name}.npz"


def write_reading_files(store: Store, copy: Path) -> None:
    """Write the files below ``copy / "reading"``; ``store`` is the base that was copied there."""
    folder = copy / READING
    folder.mkdir()
    _write_tables(copy / DATABASE_FILE, folder / Path(CATALOGUE).name, _CATALOGUE_TABLES)
    with store.database.read_transaction() as connection:
        entries = read_entries(connection)
        has_graphs = connection.execute("SELECT 1 FROM graph").fetchone() is not None
        with RecordPacker(copy / RECORDS, copy / TEXTS, copy / OPENINGS) as packer:
            for entry in entries:
                packer.add(entry.first, entry.end, StoredRecords(connection))
            _write_arrays(copy / DOCUMENTS, packer.directory())
    if has_graphs:
        _write_tables(copy / DATABASE_FILE, folder / Path(GRAPHS).name, _GRAPH_TABLES)
    (folder / "segments").mkdir()
    for segment in SegmentIndex(copy / "derived" / "segments").load():
        _write_arrays(copy / segment_file(segment.name), _segment_arrays(segment))


def _write_tables(database: Path, target: Path, tables: tuple[str, ...]) -> None:
    """Write a database that has only the content of some tables."""
    folder = target.with_name(f"{target.name}.making")
    folder.mkdir()
    Database.create(folder, {})
    database_file = folder / DATABASE_FILE
    with translate_errors(database_file), closing(connect(database_file, write=True)) as connection:
        connection.execute("ATTACH DATABASE ? AS source", (f"file:{quote(str(database))}?mode=ro",))
        connection.execute("BEGIN")
        for table in tables:
            connection.execute(f"DELETE FROM main.{table}")
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table}")
        connection.execute("COMMIT")
        connection.execute("DETACH DATABASE source")
        connection.execute("VACUUM INTO ?", (str(target),))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def _segment_arrays(segment: Segment) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "documents": segment.documents,
        "kind": segment.kind,
        "parent": segment.parent,
        "page": segment.page,
    }
    for name, postings in segment.fields.items():
        totals = run_offsets(postings.counts)[postings.starts]
        arrays[f"{name}.lengths"] = np.diff(totals).astype(np.uint32)
        for part in FieldPostings.__slots__:
            array = getattr(postings, part)
            if part not in RANGED or array.nbytes <= MAX_WHOLE:
                arrays[f"{name}.{part}"] = array
            else:
                arrays[f"{name}.{part}.size"] = np.array([len(array)], dtype=np.int64)
    return arrays


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
