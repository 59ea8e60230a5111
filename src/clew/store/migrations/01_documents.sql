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
