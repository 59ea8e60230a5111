"""Tables from titles to ids, such as WikiMapper: from the title of a Wikipedia article to its id in Wikidata.

A table is a file of two columns, title and id, separated by tabs (commas where its name says ``.csv``), optionally
compressed with gzip; or the index file of the package WikiMapper, a SQLite database with a table ``mapping``. An id
is an IRI, or Wikidata's number (``Q42``). Tables have millions of rows: WikiMapper's database is
queried where it is; for a text file, an index is built beside the base, once and again when the file has changed.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from clew.core.errors import UnreadableFile
from clew.core.files import create_folder, open_private
from clew.core.text import fold_name
from clew.store.sparql.endpoint import is_iri

_ITEM = re.compile(r"[QPL]\d+")
_WIKIDATA = "http://www.wikidata.org/entity/"
#: Names of the second column in a header row.
_HEADS = frozenset({"id", "qid", "item", "entity", "iri", "uri", "wikidata", "wikidata_id", "wikidata id"})
_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
#: The suffix of an index that is being built.
UNFINISHED_SUFFIX = ".unfinished"
#: Rows that are stored at a time.
_ROW_BATCH = 50_000


@dataclass(frozen=True, slots=True)
class TitleTable:
    """A table. ``index`` is the file of its index, None for a table that is a database itself."""

    path: Path
    index: Path | None

    def find_ids(self, name: str) -> list[str]:
        """Return the IRIs of the titles that are equal to ``name``, ascending. Raises UnreadableFile.

        Titles are compared by :func:`clew.core.text.fold_name`; in WikiMapper's database, which has no such index, by
        their spelling in a few forms of capitals.
        """
        try:
            if self.index is None:
                return sorted(set(self._find_in_database(name)))
            if not self.index.exists():
                _build_index(self.path, self.index)
            with closing(_connect(self.index)) as table:
                rows = table.execute("SELECT id FROM title WHERE name = ?", (fold_name(name),)).fetchall()
            return sorted({to_iri(row[0]) for row in rows})
        except sqlite3.DatabaseError as error:
            raise UnreadableFile(f"{self.path}: the table of titles cannot be read ({error})") from error

    def _find_in_database(self, name: str) -> list[str]:
        title = "_".join(name.split())
        spellings = {title, title[:1].upper() + title[1:], title.title(), title.capitalize(), title.upper()}
        marks = ", ".join("?" * len(spellings))
        with closing(_connect(self.path)) as table:
            rows = table.execute(
                f"SELECT wikidata_id FROM mapping WHERE wikipedia_title IN ({marks})", tuple(spellings)
            ).fetchall()
        return [to_iri(row[0]) for row in rows if row[0]]


def open_title_table(path: str, folder: Path) -> TitleTable:
    """Return a table, whose index is stored in ``folder``. Raises UnreadableFile for a missing or invalid file.

    The index is not built yet. Its name is made from the path, size and time of the file.
    """
    place = Path(path)
    try:
        state = place.stat()
        with place.open("rb") as file:
            start = file.read(len(_SQLITE))
    except OSError as error:
        raise UnreadableFile(
            f"{place}: {error.strerror or error}", "It is the table of titles of a mounted graph"
        ) from error
    if start == _SQLITE:
        _check_database(place)
        return TitleTable(place, None)
    version = f"{place}\n{state.st_size}\n{state.st_mtime_ns}".encode("utf-8", "surrogatepass")
    return TitleTable(place, folder / f"{hashlib.blake2b(version, digest_size=16).hexdigest()}.titles")


def to_iri(id: str) -> str:
    """Return the IRI of an id of a table.

    >>> to_iri("Q42"), to_iri("http://example.org/x")
    ('http://www.wikidata.org/entity/Q42', 'http://example.org/x')
    """
    return f"{_WIKIDATA}{id}" if _ITEM.fullmatch(id) else id


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _check_database(path: Path) -> None:
    try:
        with closing(_connect(path)) as table:
            table.execute("SELECT wikipedia_title, wikidata_id FROM mapping LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        raise UnreadableFile(
            f"{path}: is not an index of WikiMapper ({error})",
            "It has a table mapping(wikipedia_id, wikipedia_title, wikidata_id)",
        ) from error


def _build_index(path: Path, index: Path) -> None:
    """Build the index of a text file, under another name first, so that an existing one is complete."""
    create_folder(index.parent)
    unfinished = index.with_suffix(f".{os.getpid()}{UNFINISHED_SUFFIX}")
    unfinished.unlink(missing_ok=True)
    open_private(unfinished).close()
    try:
        with closing(sqlite3.connect(unfinished)) as table:
            table.execute("PRAGMA journal_mode = OFF")
            table.execute("CREATE TABLE title (name TEXT NOT NULL, id TEXT NOT NULL)")
            rows = _read_rows(path)
            while batch := list(islice(rows, _ROW_BATCH)):
                table.executemany("INSERT INTO title VALUES (?, ?)", batch)
            table.execute("CREATE INDEX title_name ON title (name)")
            table.commit()
        unfinished.replace(index)
    finally:
        unfinished.unlink(missing_ok=True)


def _read_rows(path: Path) -> Iterator[tuple[str, str]]:
    """Yield folded titles and ids. The first row may be a header. Raises UnreadableFile with the line."""
    with path.open("rb") as file:
        is_compressed = file.read(2) == _GZIP
    name = path.name.lower().removesuffix(".gz")
    csv_format: dict[str, str | int] = (
        {"delimiter": ","} if name.endswith(".csv") else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    )
    try:
        with (gzip.open if is_compressed else open)(path, "rt", encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, **csv_format)  # type: ignore[arg-type]
            for number, row in enumerate(reader):
                if not row:
                    continue
                id = row[1].strip() if len(row) > 1 else ""
                if _ITEM.fullmatch(id) or is_iri(id):
                    yield fold_name(row[0].replace("_", " ")), id
                elif number or id.lower() not in _HEADS:
                    raise UnreadableFile(
                        f"{path}: line {reader.line_num:,}: no id in the second column: {id[:40]!r}",
                        "A table of titles has a title and an id: Q42, or an IRI",
                    )
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{path}: cannot be read as a table of titles ({error})") from error
