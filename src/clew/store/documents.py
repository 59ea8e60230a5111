"""What is read from the truth: documents, nodes, texts. Imports no numpy."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from clew.core.errors import Damaged, NotFound
from clew.core.types import SECTION, Box, Document, Edge, Location, Node, ParsedDocument, ParsedNode
from clew.store import dump as canonical
from clew.store.database import PIECE_LENGTH

#: How many values one statement is given; SQLite takes 999 everywhere.
ROWS_PER_QUERY = 900
_NODE = "row, kind, parent, level, name, text, page, first, last, boxes"


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document with its place among the rows: the half-open range ``first`` to ``end``."""

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


def read_counter(connection: sqlite3.Connection, name: str) -> int:
    """Return one of the base's counters."""
    return int(connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()[0])


def read_entries(connection: sqlite3.Connection, first: int | None = None) -> list[DocumentEntry]:
    """Return every document in order of rows, or the one that starts at row ``first``."""
    where, values = ("", ()) if first is None else (" WHERE {} = ?", (first,))
    paths: dict[int, list[str]] = {}
    for document, path in connection.execute(
        "SELECT document, path FROM location" + where.format("document"), values
    ):
        paths.setdefault(document, []).append(path)
    rows = connection.execute(
        "SELECT first_row, nodes, key, stamp, title, media_type, parser, pages FROM document"
        + where.format("first_row")
        + " ORDER BY first_row",
        values,
    )
    found = []
    for start, nodes, key, stamp, title, media_type, parser, pages in rows:
        known = tuple(sorted(paths.get(start, ())))
        name = PurePath(known[0]).name if known else ""
        document = Document(key, name, title, media_type, parser, pages, nodes, known)
        found.append(DocumentEntry(document, start, start + nodes, stamp))
    return found


def find_first_row(connection: sqlite3.Connection, key: str) -> int:
    """Return the first row of the document ``key``. Raises NotFound."""
    row = connection.execute("SELECT first_row FROM document WHERE key = ?", (key,)).fetchone()
    if row is None:
        raise NotFound(f"no document with the key '{key}'", "See: clew list")
    return int(row[0])


def read_entry(connection: sqlite3.Connection, key: str) -> DocumentEntry:
    """Return the document ``key``. Raises NotFound."""
    return read_entries(connection, find_first_row(connection, key))[0]


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
    """Return what ``maker`` made of parts of the document that starts at row ``first``, by part."""
    rows = connection.execute("SELECT part, value FROM kept WHERE document = ? AND maker = ?", (first, maker))
    return dict(rows.fetchall())


def count_derived(connection: sqlite3.Connection) -> dict[str, int]:
    """Return who made what is kept, and of how many parts."""
    rows = connection.execute("SELECT maker, count(*) FROM kept GROUP BY maker ORDER BY maker")
    return dict(rows.fetchall())


def read_text(connection: sqlite3.Connection, first: int) -> str:
    """Return the canonical text of the document that starts at row ``first``."""
    pieces = connection.execute("SELECT text FROM piece WHERE document = ? ORDER BY number", (first,))
    return "".join(piece for (piece,) in pieces)


def read_records(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, NodeRecord]:
    """Return the records of ``rows``, by row; a row that is gone is missing."""
    wanted = list(dict.fromkeys(rows))
    found: dict[int, NodeRecord] = {}
    for start in range(0, len(wanted), ROWS_PER_QUERY):
        batch = wanted[start : start + ROWS_PER_QUERY]
        marks = ",".join("?" * len(batch))
        for row in connection.execute(f"SELECT {_NODE} FROM node WHERE row IN ({marks})", batch):
            found[row[0]] = NodeRecord(*row)
    return found


def read_record_range(connection: sqlite3.Connection, first: int, end: int) -> list[NodeRecord]:
    """Return the records of a range of rows, ascending."""
    rows = connection.execute(
        f"SELECT {_NODE} FROM node WHERE row >= ? AND row < ? ORDER BY row", (first, end)
    )
    return [NodeRecord(*row) for row in rows]


def read_parsed_document(connection: sqlite3.Connection, one: DocumentEntry) -> ParsedDocument:
    """Return a document as it was committed, without its notes."""
    document, whole = one.document, read_text(connection, one.first)
    nodes = tuple(_parsed_node(record, whole) for record in read_record_range(connection, one.first, one.end))
    return ParsedDocument(
        document.key, document.title, document.media_type, document.parser, whole, nodes, document.pages
    )


def _parsed_node(record: NodeRecord, whole: str) -> ParsedNode:
    content = whole[record.first : record.last] if record.text is None else record.text
    return ParsedNode(
        record.kind,
        content,
        record.parent,
        content if record.name is None else record.name,
        record.level,
        record.page,
        (record.first, record.last),
        unpack_boxes(record.boxes),
    )


def unpack_boxes(packed: str | None) -> tuple[Box, ...]:
    """Return the boxes that :func:`packed_boxes` wrote."""
    return tuple(Box(*values) for values in json.loads(packed)) if packed else ()


def pack_boxes(boxes: Sequence[Box]) -> str | None:
    """Return boxes as they are stored."""
    return json.dumps([[b.page, b.x0, b.y0, b.x1, b.y1] for b in boxes]) if boxes else None


class NodeReader:
    """Makes nodes of rows within one read transaction, reading each heading and piece of text once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._above: dict[int, tuple[str, ...]] = {}  # row of a section or table -> headings of what is in it
        self._pieces: dict[tuple[int, int], str] = {}

    def nodes(self, rows: Sequence[int], owners: Sequence[DocumentEntry]) -> list[Node]:
        """Return the nodes of ``rows``, of which ``owners`` are the documents. Raises NotFound."""
        found = read_records(self._connection, rows)
        owner_of = dict(zip(rows, owners, strict=True))
        self._read_headings({row: owner_of[row].first for row in found}, found)
        self._read_pieces(owner_of, found)
        return [self._node(found, row, owner) for row, owner in zip(rows, owners, strict=True)]

    def _node(self, found: dict[int, NodeRecord], row: int, owner: DocumentEntry) -> Node:
        document = owner.document
        record = found.get(row)
        if record is None:
            raise NotFound(f"'{document.name}' was removed or replaced a moment ago", "Ask again")
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

    def _read_pieces(self, owner_of: dict[int, DocumentEntry], found: dict[int, NodeRecord]) -> None:
        wanted = {
            (owner_of[row].first, number)
            for row, record in found.items()
            if record.text is None and record.first < record.last
            for number in range(record.first // PIECE_LENGTH, (record.last - 1) // PIECE_LENGTH + 1)
        }
        for first, number in sorted(wanted - self._pieces.keys()):
            piece = self._connection.execute(
                "SELECT text FROM piece WHERE document = ? AND number = ?", (first, number)
            ).fetchone()
            if piece is None:
                raise Damaged("the text of a document is incomplete", "Run: clew doctor")
            self._pieces[first, number] = piece[0]

    def _read_headings(self, first_of: dict[int, int], found: dict[int, NodeRecord]) -> None:
        """Fill ``_above`` for the parents of ``found``, one level of the tree at a time."""
        chain = dict(found)
        first = dict(first_of)
        waiting = _parents(first, found.values())
        while new := {row: start for row, start in waiting.items() if row not in chain}:
            read = read_records(self._connection, new)
            first.update(new)
            chain.update(read)
            waiting = _parents(first, read.values())
        names = {
            row: chain[row]
            for row in chain
            if chain[row].kind == SECTION and chain[row].name is None and chain[row].text is None
        }
        self._read_pieces_of(first, names.values())
        for row in sorted(chain):  # a parent precedes its children
            record = chain[row]
            above = () if record.parent is None else self._above[first[row] + record.parent]
            self._above[row] = (
                (*above, self._heading(first[row], record)) if record.kind == SECTION else above
            )

    def _heading(self, first: int, record: NodeRecord) -> str:
        return self._content(first, record) if record.name is None else record.name

    def _read_pieces_of(self, first: dict[int, int], sections: Iterable[NodeRecord]) -> None:
        wanted = {
            (first[record.row], number)
            for record in sections
            for number in range(record.first // PIECE_LENGTH, (record.last - 1) // PIECE_LENGTH + 1)
        }
        for start, number in sorted(wanted - self._pieces.keys()):
            piece = self._connection.execute(
                "SELECT text FROM piece WHERE document = ? AND number = ?", (start, number)
            ).fetchone()
            if piece is not None:
                self._pieces[start, number] = piece[0]


def _parents(first: dict[int, int], of: Iterable[NodeRecord]) -> dict[int, int]:
    return {first[r.row] + r.parent: first[r.row] for r in of if r.parent is not None}


def read_edges(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str, str]]:
    """Yield every asserted edge as ids: source, relation, target, owner; in no particular order."""
    rows = connection.execute(
        "SELECT s.key, e.source - s.first_row, relation, t.key, e.target - t.first_row, owner FROM edge e "
        "JOIN document s ON s.first_row = (SELECT max(first_row) FROM document WHERE first_row <= e.source) "
        "JOIN document t ON t.first_row = (SELECT max(first_row) FROM document WHERE first_row <= e.target)"
    )
    for source, source_position, relation, target, target_position, owner in rows:
        yield f"{source}:{source_position}", relation, f"{target}:{target_position}", owner


def put_document(connection: sqlite3.Connection, parsed: ParsedDocument, location: Location) -> str:
    """Put a document at a path; return ``added``, ``replaced``, ``located`` or ``unchanged``."""
    known = has_document(connection, parsed.key)
    if not known:
        insert_document(connection, parsed)
    done = put_location(connection, location, parsed.key)
    if done == "replaced" or known:
        return done
    return "added"


def put_location(connection: sqlite3.Connection, location: Location, key: str) -> str:
    """Put a known document at a path; what was there goes, with its last path, for good.

    Return ``unchanged`` where it was there already (its size and times are brought up to date), ``located``
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
    """Forget paths; return the documents that had no other, which are gone. Raises NotFound."""
    gone = []
    for path in paths:
        row = connection.execute("SELECT document FROM location WHERE path = ?", (path,)).fetchone()
        if row is None:
            raise NotFound(f"no document at '{path}'", "See: clew list")
        document = read_entries(connection, row[0])[0].document
        connection.execute("DELETE FROM location WHERE path = ?", (path,))
        if delete_without_location(connection, row[0]):
            gone.append(document)
    return gone


def has_document(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether a document with this key is there."""
    return connection.execute("SELECT 1 FROM document WHERE key = ?", (key,)).fetchone() is not None


def insert_document(connection: sqlite3.Connection, parsed: ParsedDocument) -> int:
    """Add a document to a fresh range of rows, which is returned by its first."""
    first = read_counter(connection, "next_row")
    connection.execute(
        "INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            first,
            len(parsed.nodes),
            parsed.key,
            canonical.document_stamp(parsed.key),
            parsed.title,
            parsed.media_type,
            parsed.parser,
            parsed.pages,
            len(parsed.text),
            canonical.hash_lines(canonical.dump_document(parsed)),
        ),
    )
    pieces = range(0, len(parsed.text), PIECE_LENGTH)
    connection.executemany(
        "INSERT INTO piece VALUES (?, ?, ?)",
        ((first, start // PIECE_LENGTH, parsed.text[start : start + PIECE_LENGTH]) for start in pieces),
    )
    connection.executemany(
        "INSERT INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            )
            for position, node in enumerate(parsed.nodes)
        ),
    )
    kinds = Counter(node.kind for node in parsed.nodes)
    connection.executemany("INSERT INTO tally VALUES (?, ?, ?)", ((first, *pair) for pair in kinds.items()))
    connection.execute("UPDATE state SET value = ? WHERE name = 'next_row'", (first + len(parsed.nodes),))
    return first


def delete_without_location(connection: sqlite3.Connection, first: int) -> bool:
    """Delete a document without a path, its nodes, and the edges that touch them; return whether it was."""
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
    # The write-ahead log still holds what was deleted; it is emptied after the transaction.
    connection.execute("UPDATE state SET value = 1 WHERE name = 'scrub'")
    return True


def write_derived(
    connection: sqlite3.Connection, first: int, stamp: int, maker: str, made: Mapping[str, bytes]
) -> bool:
    """Keep what ``maker`` made of parts of a document; False, and nothing, where the document is gone."""
    there = "SELECT 1 FROM document WHERE first_row = ? AND stamp = ?"
    if connection.execute(there, (first, stamp)).fetchone() is None:
        return False
    connection.executemany(
        "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)",
        ((first, maker, part, value) for part, value in made.items()),
    )
    return True


def assert_edges(connection: sqlite3.Connection, edges: Iterable[Edge]) -> None:
    """Add edges; one that is there already stays as it is. Raises NotFound for a node that is not there."""
    rows: dict[str, int] = {}

    def row(id: str) -> int:
        if id not in rows:
            rows[id] = find_row(connection, id)
        return rows[id]

    connection.executemany(
        "INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?)",
        ((edge.relation, row(edge.source), row(edge.target), edge.owner) for edge in edges),
    )


def find_row(connection: sqlite3.Connection, id: str) -> int:
    """Return the row of a node id. Raises NotFound."""
    key, _, position = id.rpartition(":")
    found = connection.execute("SELECT first_row, nodes FROM document WHERE key = ?", (key,)).fetchone()
    if found is None or not position.isdecimal() or int(position) >= found[1]:
        raise NotFound(f"no node '{id}'", "Ids are those that search --json prints; see also: clew list")
    return int(found[0]) + int(position)


# MERGED: What is written to the truth: documents, locations, edges, settings. Imports no numpy.
