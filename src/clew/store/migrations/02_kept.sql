CREATE TABLE kept (
    document INTEGER NOT NULL REFERENCES document (first_row),
    maker TEXT NOT NULL,
    part TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (document, maker, part)
) WITHOUT ROWID;
