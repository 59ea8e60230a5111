"""The tables of the truth, as numbered migrations.

A migration is never edited once released; a change is a new one. ``PRAGMA user_version`` is the number of
migrations that a base has had.

* ``document.first_row`` starts a contiguous range of rows, one for each node, that is never given out again, so
  that an array made earlier can be behind but never wrong. Rows stay inside: no id, digest or order shows them.
* ``node.text`` and ``node.name`` are NULL where they can be read elsewhere: the text where it is the document's
  canonical text between ``first`` and ``last``, the name where it is the text.
* ``piece`` holds the canonical text in pieces of :data:`PIECE_LENGTH` characters, so that reading one passage of a
  long document does not read the document.
* A graph's rows are its own, 0 to ``nodes`` - 1, in order of the external ids, so that they are a function of what it
  holds. ``graph_node.lines`` are JSON lines of 64 nodes each, compressed; ``graph_edge.pairs`` are at most 65,536
  pairs of a relation, ascending, as little-endian uint32; ``graph_statement.lines`` the properties of the edges
  whose places among the pairs of the relation are ``number`` * 1,024 and the next 1,023.
* ``document.digest`` is a hash of the document's part of the canonical dump; ``stamp`` a number of 63 bits made
  of the key, by which arrays recognise the document they were made from.
* ``kept`` is no truth: what a maker made of a part of a document (a summary of a section). It stands here, and
  not beside the segments, so that it goes in the transaction that takes its document away.
"""

from __future__ import annotations

PIECE_LENGTH = 1 << 14

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO state VALUES ('generation', 0), ('next_row', 0), ('edges', 0), ('scrub', 0);
    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE document (
        first_row INTEGER PRIMARY KEY,
        nodes INTEGER NOT NULL,
        key TEXT NOT NULL UNIQUE,
        stamp INTEGER NOT NULL,
        title TEXT NOT NULL,
        media_type TEXT NOT NULL,
        parser TEXT NOT NULL,
        pages INTEGER NOT NULL,
        characters INTEGER NOT NULL,
        digest BLOB NOT NULL
    );
    CREATE TABLE location (
        path TEXT PRIMARY KEY,
        document INTEGER NOT NULL REFERENCES document (first_row),
        root TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        inode TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX location_document ON location (document);
    CREATE TABLE piece (
        document INTEGER NOT NULL REFERENCES document (first_row),
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (document, number)
    );
    CREATE TABLE node (
        row INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        parent INTEGER,
        level INTEGER NOT NULL,
        name TEXT,
        text TEXT,
        page INTEGER,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        boxes TEXT
    );
    CREATE TABLE tally (
        document INTEGER NOT NULL REFERENCES document (first_row),
        kind TEXT NOT NULL,
        nodes INTEGER NOT NULL,
        PRIMARY KEY (document, kind)
    ) WITHOUT ROWID;
    CREATE TABLE edge (
        relation TEXT NOT NULL,
        source INTEGER NOT NULL,
        target INTEGER NOT NULL,
        owner TEXT NOT NULL,
        PRIMARY KEY (relation, source, target, owner)
    ) WITHOUT ROWID;
    CREATE INDEX edge_source ON edge (source);
    CREATE INDEX edge_target ON edge (target);
    CREATE INDEX edge_owner ON edge (owner);
    """,
    """
    CREATE TABLE kept (
        document INTEGER NOT NULL REFERENCES document (first_row),
        maker TEXT NOT NULL,
        part TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (document, maker, part)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE graph (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        nodes INTEGER NOT NULL,
        edges INTEGER NOT NULL,
        relations TEXT NOT NULL,
        sources TEXT NOT NULL,
        options TEXT NOT NULL
    );
    CREATE TABLE graph_node (
        graph INTEGER NOT NULL REFERENCES graph (number),
        number INTEGER NOT NULL,
        lines BLOB NOT NULL,
        PRIMARY KEY (graph, number)
    );
    CREATE TABLE graph_edge (
        graph INTEGER NOT NULL REFERENCES graph (number),
        relation TEXT NOT NULL,
        number INTEGER NOT NULL,
        pairs BLOB NOT NULL,
        PRIMARY KEY (graph, relation, number)
    );
    CREATE TABLE graph_statement (
        graph INTEGER NOT NULL REFERENCES graph (number),
        relation TEXT NOT NULL,
        number INTEGER NOT NULL,
        lines BLOB NOT NULL,
        PRIMARY KEY (graph, relation, number)
    );
    CREATE TABLE mount (name TEXT PRIMARY KEY, url TEXT NOT NULL, options TEXT NOT NULL) WITHOUT ROWID;
    """,
)
