"""Tables from titles to ids: the paper's WikiMapper, from the title of a Wikipedia article to Wikidata's id.

A table is a file of two columns, title and id, separated by tabs (commas where its name says ``.csv``), perhaps
compressed with gzip; or the index file of the package WikiMapper, a SQLite database with a table ``mapping``. An id
is an IRI, or Wikidata's number (``Q42``). Tables have millions of rows: WikiMapper's is asked where it is; of a text
file, an index is made once beside the base, and again when the file has changed.
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
from clew.core.text import fold_name
from clew.store.sparql.endpoint import is_iri

_ITEM = re.compile(r"[QPL]\d+")
_WIKIDATA = "http://www.wikidata.org/entity/"
#: What the second column may be called in a first row that names the columns.
_HEADS = frozenset({"id", "qid", "item", "entity", "iri", "uri", "wikidata", "wikidata_id", "wikidata id"})
_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
#: The ending of the name of an index that is being made.
UNFINISHED_SUFFIX = ".unfinished"
#: Rows that are stored at a time.
_BATCH = 50_000


@dataclass(frozen=True, slots=True)
class TitleTable:
    """A table. ``index`` is the file of its index, None for one that is a database itself."""

    path: Path
    index: Path | None

    def find_ids(self, name: str) -> list[str]:
        """Return the IRIs of the titles that are equal to ``name``, ascending. Raises UnreadableFile.

        Equal is as :func:`clew.core.text.fold_name` says; in WikiMapper's file, which has no such index, as it is
        spelled or in other capitals.
        """
        try:
            if self.index is None:
                return sorted(set(self._mapped(name)))
            if not self.index.exists():
                _build(self.path, self.index)
            with closing(_opened(self.index)) as table:
                found = table.execute("SELECT id FROM title WHERE name = ?", (fold_name(name),)).fetchall()
            return sorted({to_iri(row[0]) for row in found})
        except sqlite3.DatabaseError as error:
            raise UnreadableFile(f"{self.path}: the table of titles cannot be read ({error})") from error

    def _mapped(self, name: str) -> list[str]:
        title = "_".join(name.split())
        spelled = {title, title[:1].upper() + title[1:], title.title(), title.capitalize(), title.upper()}
        marks = ", ".join("?" * len(spelled))
        with closing(_opened(self.path)) as table:
            rows = table.execute(
                f"SELECT wikidata_id FROM mapping WHERE wikipedia_title IN ({marks})", tuple(spelled)
            ).fetchall()
        return [to_iri(row[0]) for row in rows if row[0]]


def open_title_table(path: str, folder: Path) -> TitleTable:
    """Return a table, whose index is kept in ``folder``. Raises UnreadableFile where there is none, or it is none.

    The index is not made yet: its name is made of the file's path, size and time.
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
        _check(place)
        return TitleTable(place, None)
    said = f"{place}\n{state.st_size}\n{state.st_mtime_ns}".encode("utf-8", "surrogatepass")
    return TitleTable(place, folder / f"{hashlib.blake2b(said, digest_size=16).hexdigest()}.titles")


def to_iri(id: str) -> str:
    """Return the IRI of an id of a table.

    >>> iri_of("Q42"), iri_of("http://example.org/x")
    ('http://www.wikidata.org/entity/Q42', 'http://example.org/x')
    """
    return f"{_WIKIDATA}{id}" if _ITEM.fullmatch(id) else id


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _check(path: Path) -> None:
    try:
        with closing(_opened(path)) as table:
            table.execute("SELECT wikipedia_title, wikidata_id FROM mapping LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        raise UnreadableFile(
            f"{path}: is no index of WikiMapper ({error})",
            "It has a table mapping(wikipedia_id, wikipedia_title, wikidata_id)",
        ) from error


def _build(path: Path, index: Path) -> None:
    """Make the index of a text file: under another name first, so that one that is there is whole."""
    index.parent.mkdir(parents=True, exist_ok=True)
    unfinished = index.with_suffix(f".{os.getpid()}{UNFINISHED_SUFFIX}")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(unfinished)) as table:
            table.execute("PRAGMA journal_mode = OFF")
            table.execute("CREATE TABLE title (name TEXT NOT NULL, id TEXT NOT NULL)")
            rows = _rows(path)
            while batch := list(islice(rows, _BATCH)):
                table.executemany("INSERT INTO title VALUES (?, ?)", batch)
            table.execute("CREATE INDEX title_name ON title (name)")
            table.commit()
        unfinished.replace(index)
    finally:
        unfinished.unlink(missing_ok=True)


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    """Yield folded titles and ids. The first row may name the columns. Raises UnreadableFile, naming the line."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    name = path.name.lower().removesuffix(".gz")
    form: dict[str, str | int] = (
        {"delimiter": ","} if name.endswith(".csv") else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    )
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, **form)  # type: ignore[arg-type]
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
