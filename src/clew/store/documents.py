"""Documents in SQLite: reading, adding and removing them, their nodes, texts and derived values.

Every function works within a transaction of its caller (:class:`clew.store.database.Database`). Imports no numpy, so
that listing and showing documents starts fast.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clew.core.errors import Damaged, NotFound, RemovedMeanwhile
from clew.core.languages import detect_language
from clew.core.text import file_name, read_count
from clew.core.types import (
    MEMBER_SEPARATOR,
    SECTION,
    TABLE,
    Box,
    Document,
    Location,
    Node,
    ParsedDocument,
    ParsedNode,
    container_path,
)
from clew.store.database import PIECE_LENGTH, Database, note_removal
from clew.store.dump import document_stamp, dump_document, hash_lines

#: Values per SQL statement; every build of SQLite accepts 999.
ROWS_PER_QUERY = 900
_NODE = "row, kind, parent, level, name, text, page, first, last, boxes, cells"


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document and the half-open range of its rows, ``first`` to ``end``."""

    document: Document
    first: int
    end: int
    stamp: int


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A row of the table ``node``; ``text`` None where it is the document's text between ``first`` and ``last``."""

    row: int
    kind: str
    parent: int | None
    level: int
    name: str | None
    text: str | None
    page: int | None
    first: int
    last: int
    boxes: str | None
    cells: str | None


def read_counter(connection: sqlite3.Connection, name: str) -> int:
    """Return one of the base's counters, such as ``generation``."""
    return int(connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()[0])


def read_entries(connection: sqlite3.Connection, first: int | None = None) -> list[DocumentEntry]:
    """Return every document in order of rows, or the one that starts at row ``first``."""
    where, values = ("", ()) if first is None else (" WHERE {} = ?", (first,))
    paths: dict[int, list[str]] = {}
    folders: dict[int, set[str]] = {}
    for document, path, root in connection.execute(
        "SELECT document, path, root FROM location" + where.format("document"), values
    ):
        paths.setdefault(document, []).append(path)
        folders.setdefault(document, set()).add(_folder_below(path, root))
    tags = read_tags(connection, None if first is None else paths.get(first, ()))
    rows = connection.execute(
        "SELECT first_row, nodes, key, stamp, title, media_type, parser, pages, language, fields FROM document"
        + where.format("first_row")
        + " ORDER BY first_row",
        values,
    )
    entries = []
    for start, nodes, key, stamp, title, media_type, parser, pages, language, stated in rows:
        sorted_paths = tuple(sorted(paths.get(start, ())))
        name = file_name(sorted_paths[0]) if sorted_paths else ""
        document = Document(
            key,
            name,
            title,
            media_type,
            parser,
            pages,
            nodes,
            sorted_paths,
            language or "",
            tuple((name, value) for name, value, *times in unpack_fields(stated) if not times),
            tuple(sorted(folders.get(start, set()) - {""})),
            tuple(sorted({tag for path in sorted_paths for tag in tags.get(path, ())})) if tags else (),
            tuple((reason, text, *times) for reason, text, *times in unpack_fields(stated) if times),
        )
        entries.append(DocumentEntry(document, start, start + nodes, stamp))
    return entries


def _folder_below(path: str, root: str) -> str:
    """Return the folder of a file below the folder that was added, "" where it is in that, or was added itself.

    >>> _folder_below("/a/docs/2021/lease.eml//plan.pdf", "/a/docs")
    '2021'
    """
    place = container_path(path)
    if not place.startswith(root.rstrip("/") + "/"):
        return ""
    return place[len(root.rstrip("/")) + 1 :].rpartition("/")[0]


#: The settings with the tags of a path: a document that is read again in another version keeps them.
_TAGS = "tags:"


def read_tags(connection: sqlite3.Connection, paths: Iterable[str] | None = None) -> dict[str, list[str]]:
    """Return the tags that each path was given, of all paths or of these."""
    if paths is None:
        rows = connection.execute(
            "SELECT name, value FROM setting WHERE name > ? AND name < 'tags;'", (_TAGS,)
        ).fetchall()
    else:
        query = "SELECT name, value FROM setting WHERE name = ?"
        rows = [row for path in paths for row in connection.execute(query, (_TAGS + path,)).fetchall()]
    return {name.removeprefix(_TAGS): json.loads(value) for name, value in rows}


def write_tags(connection: sqlite3.Connection, path: str, tags: Sequence[str]) -> None:
    """Store the tags of a path; none remove them."""
    connection.execute("DELETE FROM setting WHERE name = ?", (_TAGS + path,))
    if tags:
        packed = json.dumps(list(tags), ensure_ascii=False)
        connection.execute("INSERT INTO setting VALUES (?, ?)", (_TAGS + path, packed))


def pack_fields(parsed: ParsedDocument) -> str:
    """Return the fields of a document, and what was left out of it, in their stored form, JSON."""
    return json.dumps([*parsed.fields, *parsed.left_out], ensure_ascii=False)


def unpack_fields(packed: str | None) -> list[list[Any]]:
    """Return what :func:`pack_fields` packed: pairs of name and value, then triples of reason, text and times."""
    return json.loads(packed) if packed else []


def find_first_row(connection: sqlite3.Connection, key: str) -> int:
    """Return the first row of the document ``key``. Raises NotFound."""
    row = connection.execute("SELECT first_row FROM document WHERE key = ?", (key,)).fetchone()
    if row is None:
        raise NotFound(f"no document with the key '{key}'", "See: clew list")
    return int(row[0])


def read_entry(connection: sqlite3.Connection, key: str) -> DocumentEntry:
    """Return the document ``key``. Raises NotFound."""
    return read_entries(connection, find_first_row(connection, key))[0]


def find_row(connection: sqlite3.Connection, id: str) -> int:
    """Return the row of a node id. Raises NotFound."""
    key, _, position = id.rpartition(":")
    document = connection.execute("SELECT first_row, nodes FROM document WHERE key = ?", (key,)).fetchone()
    place = read_count(position)
    if document is None or place is None or place >= document[1]:
        raise NotFound(f"no node '{id}'", "Ids are those that search --json prints; see also: clew list")
    return int(document[0]) + place


def read_locations(connection: sqlite3.Connection) -> dict[str, tuple[Location, str]]:
    """Return every location and its document's key, by path."""
    rows = connection.execute(
        "SELECT path, root, size, mtime_ns, inode, key FROM location "
        "JOIN document ON first_row = document ORDER BY path"
    )
    return {
        path: (Location(path, root, size, mtime, int(inode)), key)
        for path, root, size, mtime, inode, key in rows
    }


def read_derived(connection: sqlite3.Connection, first: int, maker: str) -> dict[str, bytes]:
    """Return the values that ``maker`` stored for parts of the document that starts at row ``first``, by part."""
    rows = connection.execute("SELECT part, value FROM kept WHERE document = ? AND maker = ?", (first, maker))
    return dict(rows.fetchall())


def count_derived(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the makers of derived values, and for how many parts each stored one."""
    rows = connection.execute("SELECT maker, count(*) FROM kept GROUP BY maker ORDER BY maker")
    return dict(rows.fetchall())


class RecordSource(Protocol):
    """Where the nodes and texts of documents are read from. A document is named by its first row."""

    def records(self, rows: Iterable[int]) -> dict[int, NodeRecord]:
        """Return the records of ``rows``, by row; a row that is gone is missing."""
        ...

    def records_above(self, rows: Iterable[int]) -> dict[int, NodeRecord]:
        """Return the records of ``rows``, which lie above others that were read; of their texts, those of sections
        without a name are there."""
        ...

    def record_range(self, first: int, end: int) -> list[NodeRecord]:
        """Return the records of a range of rows, ascending."""
        ...

    def text(self, first: int) -> str:
        """Return the canonical text of a document."""
        ...

    def pieces(self, numbers: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Return pieces of canonical texts by document and number; one that is gone is missing."""
        ...

    def openings(self, first_rows: Sequence[int], length: int) -> dict[int, str]:
        """Return the first ``length`` characters, at most a piece, of documents; one that is gone is missing."""
        ...


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """The :class:`RecordSource` of a database, within one of its transactions."""

    connection: sqlite3.Connection

    def records(self, rows: Iterable[int]) -> dict[int, NodeRecord]:
        """Return the records of ``rows``, by row; a row that is gone is missing."""
        unique_rows = list(dict.fromkeys(rows))
        records: dict[int, NodeRecord] = {}
        for start in range(0, len(unique_rows), ROWS_PER_QUERY):
            batch = unique_rows[start : start + ROWS_PER_QUERY]
            marks = ",".join("?" * len(batch))
            for row in self.connection.execute(f"SELECT {_NODE} FROM node WHERE row IN ({marks})", batch):
                records[row[0]] = NodeRecord(*row)
        return records

    def records_above(self, rows: Iterable[int]) -> dict[int, NodeRecord]:
        """Return the records of ``rows``."""
        return self.records(rows)

    def record_range(self, first: int, end: int) -> list[NodeRecord]:
        """Return the records of a range of rows, ascending."""
        query = f"SELECT {_NODE} FROM node WHERE row >= ? AND row < ? ORDER BY row"
        return [NodeRecord(*row) for row in self.connection.execute(query, (first, end))]

    def text(self, first: int) -> str:
        """Return the canonical text of a document."""
        query = "SELECT text FROM piece WHERE document = ? ORDER BY number"
        return "".join(piece for (piece,) in self.connection.execute(query, (first,)))

    def pieces(self, numbers: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Return pieces of canonical texts by document and number; one that is gone is missing."""
        query = "SELECT text FROM piece WHERE document = ? AND number = ?"
        pieces = {place: self.connection.execute(query, place).fetchone() for place in numbers}
        return {place: piece[0] for place, piece in pieces.items() if piece is not None}

    def openings(self, first_rows: Sequence[int], length: int) -> dict[int, str]:
        """Return the first ``length`` characters, at most a piece, of documents; one that is gone is missing."""
        openings: dict[int, str] = {}
        for start in range(0, len(first_rows), ROWS_PER_QUERY):
            batch = first_rows[start : start + ROWS_PER_QUERY]
            marks = ",".join("?" * len(batch))
            query = (
                f"SELECT document, substr(text, 1, ?) FROM piece WHERE number = 0 AND document IN ({marks})"
            )
            openings.update(self.connection.execute(query, (length, *batch)).fetchall())
        return openings


def open_records(database: Database, connection: sqlite3.Connection) -> RecordSource:
    """Return where the nodes and texts of a base are, which has opened a transaction."""
    return database.packed_records() if database.packed_records else StoredRecords(connection)


def find_table_rows(connection: sqlite3.Connection) -> tuple[list[int], list[DocumentEntry]]:
    """Return the row of every table node, ascending, and its document."""
    with_tables = {
        row for (row,) in connection.execute("SELECT document FROM tally WHERE kind = ?", (TABLE,))
    }
    rows: list[int] = []
    owners: list[DocumentEntry] = []
    for entry in read_entries(connection):
        if entry.first in with_tables:
            places = connection.execute(
                "SELECT row FROM node WHERE row >= ? AND row < ? AND kind = ? ORDER BY row",
                (entry.first, entry.end, TABLE),
            ).fetchall()
            rows += [row for (row,) in places]
            owners += [entry] * len(places)
    return rows, owners


def read_parsed_document(records: RecordSource, entry: DocumentEntry) -> ParsedDocument:
    """Return a document as it was committed, without its notes."""
    document, text = entry.document, records.text(entry.first)
    nodes = tuple(_parsed_node(record, text) for record in records.record_range(entry.first, entry.end))
    return ParsedDocument(
        document.key, document.title, document.media_type, document.parser, text, nodes, document.pages
    )


def _parsed_node(record: NodeRecord, document_text: str) -> ParsedNode:
    content = document_text[record.first : record.last] if record.text is None else record.text
    return ParsedNode(
        record.kind,
        content,
        record.parent,
        content if record.name is None else record.name,
        record.level,
        record.page,
        (record.first, record.last),
        unpack_boxes(record.boxes),
        cells=unpack_cells(record.cells, record.page),
    )


def unpack_boxes(packed: str | None) -> tuple[Box, ...]:
    """Return the boxes that :func:`pack_boxes` packed."""
    return tuple(Box(*values) for values in json.loads(packed)) if packed else ()


def pack_boxes(boxes: Sequence[Box]) -> str | None:
    """Return boxes in their stored form, JSON, or None for none."""
    return json.dumps([box.to_list() for box in boxes]) if boxes else None


def unpack_cells(packed: str | None, page: int | None) -> tuple[Box | None, ...]:
    """Return the boxes of the cells of a row on ``page`` that :func:`pack_cells` packed."""
    if packed is None or page is None:
        return ()
    return tuple(None if values is None else Box(page, *values) for values in json.loads(packed))


def pack_cells(cells: Sequence[Box | None]) -> str | None:
    """Return the boxes of the cells of a row in their stored form, JSON without the page, or None for none."""
    if not cells:
        return None
    edges = [None if box is None else box.to_list()[1:] for box in cells]
    return json.dumps(edges, separators=(",", ":"))


class NodeReader:
    """Reads nodes by row from one state of a base; each heading and piece of text is read once."""

    def __init__(self, records: RecordSource) -> None:
        self._records = records
        self._above: dict[int, tuple[str, ...]] = {}  # row of a section or table -> headings of what is in it
        self._pieces: dict[tuple[int, int], str] = {}

    def nodes(self, rows: Sequence[int], owners: Sequence[DocumentEntry]) -> list[Node]:
        """Return the nodes of ``rows``; ``owners`` are their documents. Raises RemovedMeanwhile."""
        records = self._records.records(rows)
        owner_of = dict(zip(rows, owners, strict=True))
        self._read_headings({row: owner_of[row].first for row in records}, records)
        self._read_text_pieces({row: owner_of[row].first for row in records}, records.values())
        return [self._node(records, row, owner) for row, owner in zip(rows, owners, strict=True)]

    def _node(self, records: dict[int, NodeRecord], row: int, owner: DocumentEntry) -> Node:
        document = owner.document
        record = records.get(row)
        if record is None:
            raise RemovedMeanwhile(f"'{document.name}' was removed or replaced a moment ago", "Ask again")
        content = self._content(owner.first, record)
        parent = record.parent
        return Node(
            id=f"{document.key}:{row - owner.first}",
            kind=record.kind,
            text=content,
            document=document.key,
            document_name=document.name,
            position=row - owner.first,
            parent=None if parent is None else f"{document.key}:{parent}",
            name=content if record.name is None else record.name,
            level=record.level,
            page=record.page,
            headings=() if parent is None else self._above[owner.first + parent],
            span=(record.first, record.last),
            boxes=unpack_boxes(record.boxes),
            cells=unpack_cells(record.cells, record.page),
        )

    def _content(self, first: int, record: NodeRecord) -> str:
        if record.text is not None:
            return record.text
        if record.first >= record.last:
            return ""
        numbers = range(record.first // PIECE_LENGTH, (record.last - 1) // PIECE_LENGTH + 1)
        joined = "".join(self._pieces[first, number] for number in numbers)
        offset = numbers.start * PIECE_LENGTH
        return joined[record.first - offset : record.last - offset]

    def _read_headings(self, first_of: dict[int, int], records: dict[int, NodeRecord]) -> None:
        """Fill ``_above`` for the parents of ``records``, one level of the tree at a time.

        ``first_of`` maps each row to the first row of its document.
        """
        ancestors = dict(records)
        first_rows = dict(first_of)
        parents = _parent_rows(first_rows, records.values())
        while missing := {row: start for row, start in parents.items() if row not in ancestors}:
            level = self._records.records_above(missing)
            first_rows.update(missing)
            ancestors.update(level)
            parents = _parent_rows(first_rows, level.values())
        sections = [record for record in ancestors.values() if record.kind == SECTION and record.name is None]
        self._read_text_pieces(first_rows, sections)
        for row in sorted(ancestors):  # a parent precedes its children
            record = ancestors[row]
            above = () if record.parent is None else self._above[first_rows[row] + record.parent]
            if record.kind == SECTION:
                above += (self._content(first_rows[row], record) if record.name is None else record.name,)
            self._above[row] = above

    def _read_text_pieces(self, first_of: Mapping[int, int], records: Iterable[NodeRecord]) -> None:
        """Read the pieces of canonical text that contain the texts of ``records``."""
        needed = {
            (first_of[record.row], number)
            for record in records
            if record.text is None and record.first < record.last
            for number in range(record.first // PIECE_LENGTH, (record.last - 1) // PIECE_LENGTH + 1)
        }
        missing = sorted(needed - self._pieces.keys())
        pieces = self._records.pieces(missing)
        if len(pieces) < len(missing):
            raise Damaged("the text of a document is incomplete", "Run: clew doctor")
        self._pieces.update(pieces)


def _parent_rows(first_of: Mapping[int, int], records: Iterable[NodeRecord]) -> dict[int, int]:
    """Return the row of each record's parent, with the first row of their document."""
    return {
        first_of[record.row] + record.parent: first_of[record.row]
        for record in records
        if record.parent is not None
    }


# Writing


def put_document(connection: sqlite3.Connection, parsed: ParsedDocument, location: Location) -> str:
    """Store a document found at a path; return ``added``, ``replaced``, ``located`` or ``unchanged``."""
    was_stored = has_document(connection, parsed.key)
    if not was_stored:
        insert_document(connection, parsed)
    else:
        packed = pack_fields(parsed)
        connection.execute(
            "UPDATE document SET fields = ? WHERE key = ? AND fields IS NOT ?", (packed, parsed.key, packed)
        )
    status = put_location(connection, location, parsed.key)
    return status if status == "replaced" or was_stored else "added"


def put_location(connection: sqlite3.Connection, location: Location, key: str) -> str:
    """Record that a stored document is at a path. The document that was there before is removed with its last path.

    Return ``unchanged`` where the document was already there (its size and times are updated), ``located``
    for a new path, ``replaced`` where another document was there. Raises NotFound.
    """
    document = find_first_row(connection, key)
    old = connection.execute("SELECT * FROM location WHERE path = ?", (location.path,)).fetchone()
    new = (
        location.path,
        document,
        location.root,
        location.size,
        location.mtime_ns,
        str(location.inode),
    )
    if old == new:
        return "unchanged"
    connection.execute("INSERT OR REPLACE INTO location VALUES (?, ?, ?, ?, ?, ?)", new)
    if old is None:
        return "located"
    if old[1] == document:
        return "unchanged"
    delete_without_location(connection, old[1])
    return "replaced"


def remove_paths(connection: sqlite3.Connection, paths: Iterable[str]) -> list[Document]:
    """Remove paths, and those of the files within these files; return the documents that had no other path and were
    removed. Raises NotFound."""
    removed = []
    gone: set[str] = set()
    for path in _with_members(connection, paths):
        if path in gone:
            continue
        gone.add(path)
        row = connection.execute("SELECT document FROM location WHERE path = ?", (path,)).fetchone()
        if row is None:
            raise NotFound(f"no document at '{path}'", "See: clew list")
        document = read_entries(connection, row[0])[0].document
        connection.execute("DELETE FROM location WHERE path = ?", (path,))
        if delete_without_location(connection, row[0]):
            removed.append(document)
    return removed


def _with_members(connection: sqlite3.Connection, paths: Iterable[str]) -> Iterator[str]:
    """Yield each path, and then the paths of the files within that file."""
    for path in paths:
        yield path
        # All paths that continue with the separator: "0" is the character after "/".
        first = path + MEMBER_SEPARATOR
        members = connection.execute(
            "SELECT path FROM location WHERE path > ? AND path < ?", (first, first[:-1] + "0")
        ).fetchall()
        yield from (member for (member,) in members)


def detect_missing_languages(connection: sqlite3.Connection) -> None:
    """Store the language of each document that was added before languages were kept."""
    rows = connection.execute("SELECT first_row FROM document WHERE language IS NULL").fetchall()
    for (first,) in rows:
        language = detect_language(StoredRecords(connection).text(first))
        connection.execute("UPDATE document SET language = ? WHERE first_row = ?", (language, first))


def lacks_languages(connection: sqlite3.Connection) -> bool:
    """Return whether the language of any document is still to be detected."""
    return connection.execute("SELECT 1 FROM document WHERE language IS NULL").fetchone() is not None


def has_document(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether there is a document with this key."""
    return connection.execute("SELECT 1 FROM document WHERE key = ?", (key,)).fetchone() is not None


def insert_document(connection: sqlite3.Connection, parsed: ParsedDocument) -> int:
    """Store a document in a new range of rows; return the first of them."""
    first = read_counter(connection, "next_row")
    connection.execute(
        "INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            first,
            len(parsed.nodes),
            parsed.key,
            document_stamp(parsed.key),
            parsed.title,
            parsed.media_type,
            parsed.parser,
            parsed.pages,
            len(parsed.text),
            hash_lines(dump_document(parsed)),
            detect_language(parsed.text),
            pack_fields(parsed),
        ),
    )
    pieces = range(0, len(parsed.text), PIECE_LENGTH)
    connection.executemany(
        "INSERT INTO piece VALUES (?, ?, ?)",
        ((first, start // PIECE_LENGTH, parsed.text[start : start + PIECE_LENGTH]) for start in pieces),
    )
    connection.executemany(
        "INSERT INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                first + position,
                node.kind,
                node.parent,
                node.level,
                None if node.name == node.text else node.name,
                None if node.text == parsed.text[node.span[0] : node.span[1]] else node.text,
                node.page,
                *node.span,
                pack_boxes(node.boxes),
                pack_cells(node.cells),
            )
            for position, node in enumerate(parsed.nodes)
        ),
    )
    kinds = Counter(node.kind for node in parsed.nodes)
    connection.executemany("INSERT INTO tally VALUES (?, ?, ?)", ((first, *pair) for pair in kinds.items()))
    connection.execute("UPDATE state SET value = ? WHERE name = 'next_row'", (first + len(parsed.nodes),))
    return first


def delete_without_location(connection: sqlite3.Connection, first: int) -> bool:
    """Delete a document that has no path left, with its nodes and their edges; return whether it was deleted."""
    if connection.execute("SELECT 1 FROM location WHERE document = ?", (first,)).fetchone():
        return False
    (nodes,) = connection.execute("SELECT nodes FROM document WHERE first_row = ?", (first,)).fetchone()
    rows = (first, first + nodes)
    for end in ("source", "target"):
        connection.execute(f"DELETE FROM edge WHERE {end} >= ? AND {end} < ?", rows)
    connection.execute("DELETE FROM node WHERE row >= ? AND row < ?", rows)
    for table in ("piece", "tally", "kept"):
        connection.execute(f"DELETE FROM {table} WHERE document = ?", (first,))
    connection.execute("DELETE FROM document WHERE first_row = ?", (first,))
    note_removal(connection)
    return True


def write_derived(
    connection: sqlite3.Connection, first: int, stamp: int, maker: str, values: Mapping[str, bytes]
) -> bool:
    """Store the values that ``maker`` derived from parts of a document; False where the document is gone."""
    query = "SELECT 1 FROM document WHERE first_row = ? AND stamp = ?"
    if connection.execute(query, (first, stamp)).fetchone() is None:
        return False
    connection.executemany(
        "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)",
        ((first, maker, part, value) for part, value in values.items()),
    )
    return True
