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
