"""The files of a copy that only direct reading needs, in its folder ``reading``: how they are written.

``resident.zip``         what every question reads, as it is used on the machine that reads:

    ``reading/base.sqlite``          the database of the base without nodes, texts and graphs
    ``reading/documents.npz``        where chunks, pieces and openings are in the files below
    ``reading/segments/NAME.npz``    of a segment its documents, kinds, lengths, vocabulary; and of the postings those
                                     that are small (:func:`ranged_postings`). The others are read from the segment's
                                     own files, in ranges.
    ``derived/...``                  the list of the segments, and the small files of the vectors

``graphs.zip``           the graphs, where there are any: ``reading/graphs.sqlite``, and small files of ``derived``
``records.bin``          the nodes, packed in chunks (:mod:`clew.store.remote.records`)
``texts.bin``            the canonical texts, packed in pieces of :data:`~clew.store.database.PIECE_LENGTH` characters
``openings.bin``         the first characters of the documents' texts

All of them are functions of the files of the base, and the same content gives the same bytes. What is in an archive
is one request instead of many; it is not compressed there, and in order of the paths: where some of it changes, most
pieces stay.
"""

from __future__ import annotations

import shutil
import uuid
import zipfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.errors import Damaged
from clew.core.files import create_folder, open_private
from clew.store.database import DATABASE_FILE, MIGRATIONS, Database, connect, translate_errors
from clew.store.documents import StoredRecords, read_entries
from clew.store.remote.manifest import is_below, is_postings
from clew.store.remote.records import RECORDS_VERSION, RecordPacker
from clew.store.segments import MANIFEST as SEGMENTS_MANIFEST
from clew.store.segments import SEGMENTS_MAKER, FieldPostings, Segment, SegmentIndex
from clew.store.store import Store

#: What the files depend on: another clew than the one that wrote them may not be able to read them.
LAYOUT = f"2 database/{len(MIGRATIONS)} records/{RECORDS_VERSION} {SEGMENTS_MAKER}"
READING = "reading"
RESIDENT, GRAPHS = "reading/resident.zip", "reading/graphs.zip"
CATALOGUE, GRAPH_TABLES, DOCUMENTS = "reading/base.sqlite", "reading/graphs.sqlite", "reading/documents.npz"
#: The files of a base that belong to its vectors, and those to its graphs.
VECTORS, GRAPH_FILES = "derived/vectors/", ("derived/graphs/", "derived/nodes/")
RECORDS, TEXTS, OPENINGS = "reading/records.bin", "reading/texts.bin", "reading/openings.bin"
#: The arrays of postings that a question may read in ranges; the bytes of the file up to which it is read whole, and
#: those of all of them together up to which all are: about 8,000 passages.
RANGED, MAX_WHOLE, MAX_RESIDENT = ("terms", "counts", "holders", "holder_counts"), 1 << 16, 12 << 20
_CATALOGUE_TABLES = ("state", "setting", "document", "location", "tally", "edge", "kept", "graph", "mount")
_GRAPH_TABLES = ("state", "graph", "graph_node", "graph_edge", "graph_statement", "mount")


def segment_file(name: str) -> str:
    """Return the path of a segment's file."""
    return f"{READING}/segments/{name}.npz"


def ranged_postings(sizes: Mapping[str, int], scale: float = 1.0) -> set[str]:
    """Return which files of a copy have postings that a question reads in ranges, from the bytes of all its files.

    With a ``scale``, return those that would be if all files were so many times as large.
    """
    postings = {path: size * scale for path, size in sizes.items() if is_postings(path)}
    if sum(postings.values()) <= MAX_RESIDENT:
        return set()
    return {path for path, size in postings.items() if size > MAX_WHOLE}


def write_reading_files(store: Store, copy: Path, scale: float = 1.0) -> None:
    """Write the files below ``copy / "reading"``; ``store`` is the base that was copied there.

    ``scale`` is that of :func:`ranged_postings`.
    """
    folder = copy / READING
    create_folder(folder)
    _write_tables(copy / DATABASE_FILE, folder / Path(CATALOGUE).name, _CATALOGUE_TABLES)
    with store.database.read_transaction() as connection:
        entries = read_entries(connection)
        has_graphs = connection.execute("SELECT 1 FROM graph").fetchone() is not None
        with RecordPacker(copy / RECORDS, copy / TEXTS, copy / OPENINGS) as packer:
            for entry in entries:
                packer.add(entry.first, entry.end, StoredRecords(connection))
            _write_arrays(copy / DOCUMENTS, packer.directory())
    create_folder(folder / "segments")
    files = [path for path in (copy / "derived").rglob("*") if path.is_file()]
    derived = {path.relative_to(copy).as_posix(): path.stat().st_size for path in files}
    ranged = ranged_postings(derived, scale)
    segments = SegmentIndex(copy / "derived" / "segments").load()
    for segment in segments:
        _write_arrays(copy / segment_file(segment.name), _segment_arrays(segment, ranged))
    own = [CATALOGUE, DOCUMENTS, *(segment_file(segment.name) for segment in segments)]
    small = [path for path, size in derived.items() if size <= MAX_WHOLE]
    lists = [path for path in derived if path == f"derived/segments/{SEGMENTS_MANIFEST}"]
    _write_archive(copy, RESIDENT, [*own, *lists, *(path for path in small if path.startswith(VECTORS))])
    if has_graphs:
        _write_tables(copy / DATABASE_FILE, copy / GRAPH_TABLES, _GRAPH_TABLES)
        own.append(GRAPH_TABLES)
        _write_archive(
            copy, GRAPHS, [GRAPH_TABLES, *(path for path in small if path.startswith(GRAPH_FILES))]
        )
    for path in own:
        (copy / path).unlink()
    (folder / "segments").rmdir()


def _write_archive(copy: Path, name: str, paths: list[str]) -> None:
    with open_private(copy / name) as file, zipfile.ZipFile(file, "w") as archive:
        for path in sorted(paths):
            # The same time and system for all: the bytes must depend on the content alone.
            part = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            part.create_system = 3
            part.file_size = (copy / path).stat().st_size
            with (copy / path).open("rb") as source, archive.open(part, "w") as target:
                shutil.copyfileobj(source, target)


def unpack_archive(folder: Path, name: str) -> None:
    """Write the files of an archive in ``folder`` to their places there; other processes may do the same.

    Raises Damaged.
    """
    try:
        with zipfile.ZipFile(folder / name) as archive:
            for part in archive.infolist():
                if not is_below(part.filename):
                    raise Damaged(f"{name} has a file outside of its folder: {part.filename}")
                target = folder / part.filename
                with suppress(FileNotFoundError):
                    if target.stat().st_size == part.file_size:
                        continue
                create_folder(target.parent)
                # A part gets its name when it is complete.
                unfinished = target.with_name(f".unfinished-{uuid.uuid4().hex}")
                with archive.open(part) as source, open_private(unfinished) as written:
                    shutil.copyfileobj(source, written)
                unfinished.replace(target)
    except zipfile.BadZipFile as error:
        raise Damaged(f"{folder / name} is damaged: {error}", "Copy the base there again") from error


def _write_tables(database: Path, target: Path, tables: tuple[str, ...]) -> None:
    """Write a database that has only the content of some tables."""
    folder = target.with_name(f"{target.name}.making")
    create_folder(folder)
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
        open_private(target).close()
        connection.execute("VACUUM INTO ?", (str(target),))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def _segment_arrays(segment: Segment, ranged: set[str]) -> dict[str, Any]:
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
            if f"derived/segments/{segment.name}/{name}.{part}.npy" not in ranged:
                arrays[f"{name}.{part}"] = array
            else:
                arrays[f"{name}.{part}.size"] = np.array([len(array)], dtype=np.int64)
    return arrays


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    with open_private(path) as file:
        np.savez_compressed(file, **arrays)
