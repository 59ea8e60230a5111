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

FILE = "serve.db"
#: Seconds to wait for another process that writes.
_TIMEOUT = 30.0
_TABLE = """
CREATE TABLE IF NOT EXISTS question (
    id TEXT PRIMARY KEY, asked REAL NOT NULL, state TEXT NOT NULL, asking TEXT NOT NULL, answer TEXT, problem TEXT
)
"""
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
        """Add a question that waits for its turn. ``asking`` is the request: question, recipe, model, scope."""
        with self._open() as database:
            database.execute(
                "INSERT INTO question VALUES (?, ?, ?, ?, NULL, NULL)",
                (id, time.time(), WAITING, json.dumps(asking, ensure_ascii=False)),
            )

    def set_state(self, id: str, state: str) -> None:
        """Set the state of a question."""
        with self._open() as database:
            database.execute("UPDATE question SET state = ? WHERE id = ?", (state, id))

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
            row = database.execute("SELECT * FROM question WHERE id = ?", (id,)).fetchone()
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
                "json_extract(answer, '$.abstained'), json_extract(answer, '$.usage'), problem "
                "FROM question WHERE asked < ? ORDER BY asked DESC, id LIMIT ?",
                (before if before is not None else float("inf"), limit),
            ).fetchall()
        return [
            _entry(row)
            | {
                "text": row[4],
                "abstained": bool(row[5]),
                "usage": json.loads(row[6]) if row[6] else None,
                "problem": json.loads(row[7]) if row[7] else None,
            }
            for row in rows
        ]

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
        if not self.path.exists():
            self.path.touch(mode=0o600)
        database = sqlite3.connect(self.path, timeout=_TIMEOUT, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last question
            database.execute("PRAGMA secure_delete = ON")
            database.execute(_TABLE)
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
    return {"id": row[0], "asked": row[1], "state": row[2], **json.loads(row[3])}
