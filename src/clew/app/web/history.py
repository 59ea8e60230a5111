"""The history of a base: its questions with their answers, in ``serve.db`` in the base's folder."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from clew.core.errors import Damaged, NotFound, StoreError
from clew.core.files import open_private

FILE = "serve.db"
#: Seconds to wait for another process that writes.
_TIMEOUT = 30.0
_TABLE = """
CREATE TABLE IF NOT EXISTS question (
    id TEXT PRIMARY KEY, asked REAL NOT NULL, state TEXT NOT NULL, asking TEXT NOT NULL, answer TEXT, problem TEXT,
    thread TEXT, title TEXT, pinned INTEGER
)
"""
#: Columns that files of an earlier version lack. ``thread`` is the id of the question that a conversation began with,
#: NULL for that question itself; ``title`` and ``pinned`` belong to the whole conversation.
_ADDED_COLUMNS = {"thread": "TEXT", "title": "TEXT", "pinned": "INTEGER"}
#: A conversation has one key: its thread. Questions without follow-ups that ask the same share one, so that asking
#: again adds no second line.
_CONVERSATIONS = (Path(__file__).parent / "conversations.sql").read_text(encoding="utf-8")
#: States of a question. It is interrupted if the server ended before the answer was complete.
WAITING, RUNNING, DONE, STOPPED, FAILED, INTERRUPTED = (
    "waiting",
    "running",
    "done",
    "stopped",
    "failed",
    "interrupted",
)
FINAL_STATES = (DONE, STOPPED, FAILED, INTERRUPTED)


class QuestionHistory:
    """Questions by id. Processes may share the file. Threads take turns on one connection, which the first call opens
    and :meth:`close` closes.

    The connection stays open because SQLite writes its log back when the last connection is closed, and waits for the
    disk each time. Answers quote documents, so only the owner can read the file, and forgotten questions are
    overwritten. Raises StoreError if the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._database: sqlite3.Connection | None = None
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a further call opens it again."""
        with self._turn:
            self._drop()

    def begin(self, id: str, asking: dict[str, Any]) -> None:
        """Add a question that waits for its turn. ``asking`` is the request: question, recipe, model, scope; its
        ``follows`` is the id of the question that it continues."""
        with self._open() as database:
            thread = None
            if asking.get("follows"):
                query = "SELECT coalesce(thread, id) FROM question WHERE id = ?"
                row = database.execute(query, (asking["follows"],)).fetchone()
                thread = row[0] if row else None
            database.execute(
                "INSERT INTO question (id, asked, state, asking, thread) VALUES (?, ?, ?, ?, ?)",
                (id, time.time(), WAITING, json.dumps(asking, ensure_ascii=False), thread),
            )

    def set_state(self, id: str, state: str, *, early: bool = False) -> None:
        """Set the state of a question; ``early``: note that it was asked before all documents were ready."""
        change = ", asking = json_set(asking, '$.early', json('true'))" if early else ""
        with self._open() as database:
            database.execute(f"UPDATE question SET state = ?{change} WHERE id = ?", (state, id))

    def finish(
        self,
        id: str,
        state: str,
        answer: dict[str, Any] | None = None,
        problem: dict[str, str] | None = None,
    ) -> None:
        """Store how a question ended: its answer or the problem. A question that was forgotten meanwhile stays
        forgotten."""
        texts = [
            None if value is None else json.dumps(value, ensure_ascii=False) for value in (answer, problem)
        ]
        with self._open() as database:
            database.execute(
                "UPDATE question SET state = ?, answer = ?, problem = ? WHERE id = ?", (state, *texts, id)
            )

    def get(self, id: str) -> dict[str, Any]:
        """Return a question with its whole answer. Raises NotFound."""
        with self._open() as database:
            query = "SELECT id, asked, state, asking, answer, problem FROM question WHERE id = ?"
            row = database.execute(query, (id,)).fetchone()
        if row is None:
            raise NotFound(f"no question '{id}'", "It may have been forgotten")
        return _entry(row) | {
            "answer": json.loads(row[4]) if row[4] else None,
            "problem": json.loads(row[5]) if row[5] else None,
        }

    def latest(self, limit: int = 100, before: float | None = None) -> list[dict[str, Any]]:
        """Return questions, the latest first, with the text and usage of the answer, without evidence and trail."""
        with self._open() as database:
            rows = database.execute(
                "SELECT id, asked, state, asking, json_extract(answer, '$.answer'), "
                "json_extract(answer, '$.abstained'), json_extract(answer, '$.usage'), problem, "
                "json_extract(answer, '$.way') FROM question WHERE asked < ? ORDER BY asked DESC, id LIMIT ?",
                (before if before is not None else float("inf"), limit),
            ).fetchall()
        return [
            _entry(row)
            | {
                "text": row[4],
                "way": row[8],
                "abstained": bool(row[5]),
                "usage": json.loads(row[6]) if row[6] else None,
                "problem": json.loads(row[7]) if row[7] else None,
            }
            for row in rows
        ]

    def conversations(
        self, limit: int = 100, before: float | None = None, words: str = ""
    ) -> list[dict[str, Any]]:
        """Return the conversations, the one with the latest question first: id of that question, ``title`` (the name
        that it was given, else "") and the first ``question`` and ``chain``, ``size`` (questions), ``pinned``, and
        ``text``, the latest answer. ``words``: only those with these words in a title, a question or an answer.

        Questions without follow-ups that ask the same of the same documents are one conversation.
        """
        query = (
            f"{_CONVERSATIONS} SELECT id, asked, state, problem, text, coalesce(title, ''), pinned, "
            "CASE WHEN key = thread THEN size ELSE 1 END, question, "
            "chain FROM line WHERE place = 1 AND wanted > 0 AND asked < :before ORDER BY asked DESC, id LIMIT :limit"
        )
        latest = before if before is not None else float("inf")
        with self._open() as database:
            rows = database.execute(query, {"words": words, "before": latest, "limit": limit}).fetchall()
        names = "id asked state problem text title pinned size question chain".split()
        return [
            dict(zip(names, row, strict=True))
            | {"problem": json.loads(row[3]) if row[3] else None, "pinned": bool(row[6])}
            for row in rows
        ]

    def rename(self, id: str, title: str | None = None, pinned: bool | None = None) -> None:
        """Give the conversation of a question a title ("" for none), or pin it. Raises NotFound."""
        with self._open() as database:
            members = self._members(database, id)
            marks = ", ".join("?" * len(members))
            for column, value in (("title", None if title == "" else title), ("pinned", pinned)):
                if (title if column == "title" else pinned) is not None:
                    database.execute(
                        f"UPDATE question SET {column} = ? WHERE id IN ({marks})", (value, *members)
                    )

    def forget_conversation(self, id: str) -> list[str]:
        """Forget the conversation of a question; return the ids of its questions. Raises NotFound."""
        with self._open() as database:
            members = self._members(database, id)
            marks = ", ".join("?" * len(members))
            database.execute(f"DELETE FROM question WHERE id IN ({marks})", members)
            self._scrub(database)
        return members

    @staticmethod
    def _members(database: sqlite3.Connection, id: str) -> list[str]:
        query = f"{_CONVERSATIONS} SELECT id FROM line WHERE key = (SELECT key FROM line WHERE id = :id)"
        members = [row[0] for row in database.execute(query, {"words": "", "id": id})]
        if not members:
            raise NotFound(f"no question '{id}'", "It may have been forgotten")
        return members

    def forget(self, id: str) -> None:
        """Forget a question. Raises NotFound."""
        with self._open() as database:
            if not database.execute("DELETE FROM question WHERE id = ?", (id,)).rowcount:
                raise NotFound(f"no question '{id}'", "It may have been forgotten")
            self._scrub(database)

    def clear(self) -> int:
        """Forget every question that has ended; return their number."""
        marks = ", ".join("?" * len(FINAL_STATES))
        with self._open() as database:
            count = database.execute(f"DELETE FROM question WHERE state IN ({marks})", FINAL_STATES).rowcount
            self._scrub(database)
        return count

    def questions_citing(self, key: str) -> list[str]:
        """Return the ids of the questions whose answers cite a document, by its key, or a graph, by its name."""
        with self._open() as database:
            rows = database.execute("SELECT id FROM question WHERE instr(answer, ?) > 0", (key,))
            return [row[0] for row in rows]

    def mark_interrupted(self) -> None:
        """Mark the questions that were not answered to the end as interrupted; called when a server starts."""
        if not self.path.exists():
            return
        with self._open() as database:
            database.execute(
                "UPDATE question SET state = ? WHERE state IN (?, ?)", (INTERRUPTED, WAITING, RUNNING)
            )

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in one transaction. After an error the file is opened again, as it may have been
        replaced."""
        with self._turn:
            try:
                if self._database is None:
                    self._database = self._connect()
                with self._database:
                    yield self._database
            except (sqlite3.OperationalError, OSError) as error:
                self._drop()
                raise StoreError(
                    f"{self.path} cannot be used: {error}", "Is the disk full, or the folder read-only?"
                ) from error
            except sqlite3.DatabaseError as error:
                self._drop()
                raise Damaged(
                    f"{self.path} is damaged ({error})", "Delete it; only the history is lost"
                ) from error

    def _connect(self) -> sqlite3.Connection:
        open_private(self.path, "ab").close()
        database = sqlite3.connect(self.path, timeout=_TIMEOUT, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last question
            database.execute("PRAGMA secure_delete = ON")
            database.execute(_TABLE)
            columns = {row[1] for row in database.execute("PRAGMA table_info(question)")}
            for name, kind in _ADDED_COLUMNS.items():
                if name not in columns:
                    with contextlib.suppress(sqlite3.OperationalError):  # another process has just added it
                        database.execute(f"ALTER TABLE question ADD COLUMN {name} {kind}")
        except BaseException:
            database.close()
            raise
        return database

    def _drop(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    @staticmethod
    def _scrub(database: sqlite3.Connection) -> None:
        """Empty SQLite's log, so that it has no forgotten questions either; a reading process can delay that."""
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _entry(row: tuple[Any, ...]) -> dict[str, Any]:
    return {"id": row[0], "asked": row[1], "state": row[2], **_UNKNOWN, **json.loads(row[3])}


#: What a question that an earlier version stored does not say of itself.
_UNKNOWN: dict[str, Any] = {
    "documents": None,
    "graphs": None,
    "beside": None,
    "follows": None,
    "typed": "",
    "asks_source": False,
    "early": False,
}
