"""What is written to the truth: documents, locations, edges, settings. Imports no numpy."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping

from clew.errors import NotFound
from clew.kb import canonical
from clew.kb.reading import read_entries, find_first_row, pack_boxes, read_counter
from clew.kb.schema import PIECE_LENGTH
from clew.types import Document, Edge, Location, ParsedDocument


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
