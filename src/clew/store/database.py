"""The SQLite database of a knowledge base: its tables, and its two connections.

One connection reads and never locks; the other writes under a lock of our own. SQLite up to 3.51.2 can corrupt a
WAL database when two connections write or checkpoint in the same instant (sqlite.org/wal.html#walresetbug).
Therefore every write and every checkpoint happens under ``write.lock``, readers are opened with ``mode=ro`` (they
never checkpoint, not even on close), and SQLite memory-maps no file.

The tables are made by numbered migrations. A migration is never edited once released; a change is a new one.
``PRAGMA user_version`` is the number of migrations that a base has had.

* ``document.first_row`` starts a contiguous range of rows, one for each node, that is never reused, so
  that an array made earlier can be behind but never wrong. Rows are internal: no id, digest or order shows them.
* ``node.text`` and ``node.name`` are NULL where they can be read elsewhere: the text where it is the document's
  canonical text between ``first`` and ``last``, the name where it equals the text.
* ``node.cells`` has the boxes of the cells of a row of a table, without their page, which is that of the row. It is
  NULL where the format has no pages, and in documents that were added before it was there (format 4).
* ``piece`` holds the canonical text in pieces of :data:`PIECE_LENGTH` characters, so that reading one passage of a
  long document does not read the whole document.
* A graph's rows are its own, 0 to ``nodes`` - 1, in order of the external ids, so that they are a function of its
  content. ``graph_node.lines`` are JSON lines of 64 nodes each, compressed; ``graph_edge.pairs`` are at most 65,536
  pairs of a relation, ascending, as little-endian uint32; ``graph_statement.lines`` are the properties of the edges
  whose positions among the pairs of the relation are ``number`` * 1,024 and the next 1,023.
* ``document.language`` is derived from the text; NULL in a base of an earlier clew until its documents are indexed.
* ``document.fields`` are pairs of name and value, then triples of what was left out (why, the words, how many times),
  as JSON; NULL in a base of an earlier clew until it is read again.
* ``document.digest`` is a hash of the document's part of the canonical dump; ``stamp`` is a number of 63 bits made
  from the key, by which arrays recognise the document they were made from.
* ``state`` counts in ``leftovers`` the removals whose derived data may still be there, and notes in ``scrub`` that
  the write-ahead log still has removed text. A removal that is killed is finished when the base is next opened.
* ``kept`` holds derived values: what a maker computed for a part of a document (a summary of a section). It is in the
  database, and not beside the segments, so that the transaction that removes a document removes its values too.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

from clew.core.errors import Damaged, Locked, StoreError
from clew.core.files import FILE_RIGHTS, find_lock_fault, guard_disk, open_private, sync_folder, system_error
from clew.core.installation import format_install_command

if TYPE_CHECKING:
    from clew.store.documents import RecordSource

PIECE_LENGTH = 1 << 14

#: The changes of the tables, in order. A base that has had the first n of them is of format n.
MIGRATIONS = tuple(
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "migrations").glob("*.sql"))
)

DATABASE_FILE = "base.sqlite"
#: Suffixes of the folder of vectors that are being rewritten: the smaller ones, and those before. A process that is
#: killed in between leaves them.
UNFINISHED_VECTORS = (".new", ".old")
#: A base that is being made; it gets its name when it is complete.
_UNFINISHED_FILE = "base.sqlite.unfinished"
#: Errors of SQLite that say that the disk does not take a write. What was committed before is not touched by them.
_REFUSED_WRITES = {
    "SQLITE_FULL": "it is full",
    "SQLITE_IOERR_WRITE": "a write failed",
    "SQLITE_IOERR_FSYNC": "a write could not be completed",
    "SQLITE_IOERR_DIR_FSYNC": "a write could not be completed",
    "SQLITE_IOERR_TRUNCATE": "a file could not be cut",
    "SQLITE_IOERR_SHMSIZE": "a file could not grow",
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_READONLY_DIRECTORY": "it is read-only",
    "SQLITE_READONLY_DBMOVED": "the file was moved away",
}
#: Failures of the disk that say that a file is not what it was.
_DAMAGED_READS = {"SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_DATA", "SQLITE_IOERR_CORRUPTFS"}
#: Files that opening and writing a base may need at once.
_DESCRIPTORS = 8
_MORE_DESCRIPTORS = "Allow this process more open files (ulimit -n), or end others"
#: Seconds to wait for another process's write. A write takes milliseconds, a large removal a few seconds.
LOCK_TIMEOUT = 60.0


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """Open the database ``path``; the caller holds ``write.lock`` if ``write``."""
    mode = "rwc" if write else "ro"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=LOCK_TIMEOUT,
    )
    connection.execute("PRAGMA mmap_size = 0")
    if write:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
    return connection


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Convert exceptions of SQLite into errors of clew."""
    try:
        yield
    except sqlite3.OperationalError as error:
        message, code = str(error), error.sqlite_errorname
        if ("lock" in message or "busy" in message or "LOCK" in code) and (
            fault := find_lock_fault(path.parent)
        ):
            raise fault from error
        if "locked" in message or "busy" in message:
            raise Locked(f"{path} is locked by another program", "Close it and try again") from error
        if code in _REFUSED_WRITES:
            raise StoreError(
                f"the disk of {path} refuses to write ({_REFUSED_WRITES[code]}); nothing that was stored is lost",
                "Make room on the disk, or see what is wrong with it, and try again",
            ) from error
        if code.startswith("SQLITE_CANTOPEN") and count_free_descriptors() < _DESCRIPTORS:
            raise StoreError(f"{path} cannot be opened: too many open files", _MORE_DESCRIPTORS) from error
        if code.startswith("SQLITE_IOERR") and code not in _DAMAGED_READS:
            raise StoreError(
                f"the disk of {path} fails ({message}, {code})",
                "See what is wrong with the disk, and try again; what was stored before is not changed",
            ) from error
        if "disk I/O" in message or "malformed" in message or "no such" in message:
            raise _damage_error(path, message) from error
        raise StoreError(
            f"{path} cannot be used: {message}", "Is the disk full, or the folder read-only?"
        ) from error
    except sqlite3.ProgrammingError as error:  # another thread closed it: nothing is wrong with the file
        raise StoreError(f"{path} cannot be used: {error}", "Open the knowledge base again") from error
    except sqlite3.DatabaseError as error:
        raise _damage_error(path, str(error)) from error


def _damage_error(path: Path, problem: str) -> Damaged:
    return Damaged(
        f"{path} is damaged ({problem})",
        "It cannot be rebuilt from the folder itself: restore it from a backup, or delete the folder of the "
        "knowledge base and add the documents again",
    )


@contextmanager
def hold_lock(
    path: Path,
    timeout: float = LOCK_TIMEOUT,
    problem: str = "another process is writing to this knowledge base",
    hint: str = "Try again when it is done",
) -> Iterator[None]:
    """Hold the lock file ``path``. Raises Locked, with ``problem`` and ``hint``, after ``timeout`` seconds.

    It is a lock of the kernel, so it is released when its process ends, in whatever way; another thread may release
    it. What the disk refuses meanwhile is raised as StoreError: whatever writes to a base holds a lock.
    """
    try:
        with guard_disk(path.parent), FileLock(path, timeout, FILE_RIGHTS, thread_local=False):
            yield
    except Timeout as error:
        raise find_lock_fault(path.parent) or Locked(problem, hint) from error
    except (OSError, NotImplementedError) as error:  # the second is of filelock, for a system without locks
        if fault := find_lock_fault(path.parent):
            raise fault from error
        raise


class Database:
    """The SQLite file of one base. Threads may share it: reads take turns on one connection."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / DATABASE_FILE
        self._lock = folder / "write.lock"
        self._turns = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        #: Opens what has nodes and texts, for a base in object storage; None: this database has them.
        self.packed_records: Callable[[], RecordSource] | None = None
        with translate_errors(self.path):
            self._check_version()
            self._reader = connect(self.path, write=False)

    @staticmethod
    def create(folder: Path, settings: dict[str, str]) -> None:
        """Create the database in ``folder`` unless another process just did.

        It is made under another name and renamed when it is complete, so that a process that is killed meanwhile
        leaves no half of it.
        """
        path, unfinished = folder / DATABASE_FILE, folder / _UNFINISHED_FILE
        with hold_lock(folder / "write.lock"), translate_errors(path):
            if path.exists() and not _is_empty(path):
                return
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{unfinished}{suffix}").unlink(missing_ok=True)
            open_private(unfinished).close()  # SQLite gives its logs the rights of the database
            connection = connect(unfinished, write=True)
            try:
                _migrate(connection, 0, settings)
                # On a full disk, closing it does not say that the log was not written into the file.
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                connection.close()
            unfinished.replace(path)
            sync_folder(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether there is a database in ``folder``. One without tables, which a process that was killed while
        it made it may leave, is none."""
        path = folder / DATABASE_FILE
        return path.exists() and not _is_empty(path)

    def _check_version(self) -> None:
        reader = connect(self.path, write=False)
        try:
            version = reader.execute("PRAGMA user_version").fetchone()[0]
        finally:
            reader.close()
        if version > len(MIGRATIONS):
            raise StoreError(
                f"this knowledge base was made by a newer clew (format {version}; this one knows {len(MIGRATIONS)})",
                f"Update clew: {format_install_command(upgrade=True)}",
            )
        if version == 0:
            raise _damage_error(self.path, "it contains no knowledge base")
        if version < len(MIGRATIONS):
            with hold_lock(self._lock):
                connection = connect(self.path, write=True)
                try:
                    _migrate(connection, connection.execute("PRAGMA user_version").fetchone()[0], {})
                finally:
                    connection.close()

    def hold_lock(self, timeout: float = LOCK_TIMEOUT) -> AbstractContextManager[None]:
        """Keep other processes from writing. Not to be called within a transaction. Raises Locked."""
        return hold_lock(self._lock, timeout)

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a short read transaction: everything read within it belongs to one state of the base."""
        with self._turns, translate_errors(self.path):
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.execute("COMMIT")

    @contextmanager
    def separate_read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a read transaction on a connection of its own, for long reads: other threads need not wait."""
        with translate_errors(self.path):
            connection = connect(self.path, write=False)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close()

    @contextmanager
    def write_transaction(self, *, truth: bool = True) -> Iterator[sqlite3.Connection]:
        """Open a write transaction; on an exception nothing of it remains.

        It counts as one generation if it changed anything. One that only stores derived data (``truth`` False) does
        not, and views stay valid. It waits for the lock first; meanwhile other threads may read. Not to be called
        within a read transaction.
        """
        with hold_lock(self._lock), self._turns, translate_errors(self.path):
            writer = self._open_writer()
            writer.execute("BEGIN IMMEDIATE")
            before = writer.total_changes
            try:
                yield writer
                if truth and writer.total_changes > before:
                    writer.execute("UPDATE state SET value = value + 1 WHERE name = 'generation'")
                writer.execute("COMMIT")
            except BaseException:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                raise

    def scrub(self, timeout: float = LOCK_TIMEOUT) -> bool:
        """Empty the write-ahead log, so that no removed text remains in it; return whether that was possible.

        A reader of another process can prevent it for the length of a read, which is waited for ``timeout`` seconds;
        ``state`` then notes that the log is still to be emptied, and the next writer does it.
        """
        with hold_lock(self._lock, timeout), self._turns, translate_errors(self.path):
            writer = self._open_writer()
            is_noted = writer.execute("SELECT value FROM state WHERE name = 'scrub'").fetchone()[0]
            if not is_noted and not self.has_log():
                return True
            writer.execute(f"PRAGMA busy_timeout = {round(1000 * timeout)}")
            try:
                if writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    return False
                if is_noted:
                    # The note is cleared last, since this process may be killed in between.
                    writer.execute("UPDATE state SET value = 0 WHERE name = 'scrub'")
                    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                writer.execute(f"PRAGMA busy_timeout = {round(1000 * LOCK_TIMEOUT)}")
            return True

    def has_log(self) -> bool:
        """Return whether the write-ahead log has content: changes being written, or left by a killed process."""
        log = Path(f"{self.path}-wal")
        return log.exists() and log.stat().st_size > 0

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = connect(self.path, write=True)
        return self._writer

    def write_copy(self, folder: Path) -> None:
        """Write the database as it is now into ``folder``, which has none, without anything that was removed.

        The same content gives the same bytes. Other processes may write meanwhile.
        """
        with translate_errors(self.path):
            connection = connect(self.path, write=False)
            try:
                open_private(folder / DATABASE_FILE).close()
                connection.execute("VACUUM INTO ?", (str(folder / DATABASE_FILE),))
            finally:
                connection.close()

    def check_integrity(self) -> list[str]:
        """Return the problems that SQLite's own check finds."""
        with self._turns, translate_errors(self.path):
            problems = [row[0] for row in self._reader.execute("PRAGMA integrity_check")]
        return [] if problems == ["ok"] else problems

    def close(self) -> None:
        """Close both connections; closing the writing one may checkpoint, so it takes the lock."""
        with self._turns:
            self._reader.close()
        if self._writer is not None:
            with hold_lock(self._lock), self._turns, translate_errors(self.path):
                self._writer.close()
                self._writer = None


def _is_empty(path: Path) -> bool:
    """Return whether a database has no tables. One of more than two pages of SQLite has some."""
    if path.stat().st_size > 8192:
        return False
    with translate_errors(path):
        connection = connect(path, write=False)
        try:
            return bool(connection.execute("SELECT count(*) = 0 FROM sqlite_schema").fetchone()[0])
        finally:
            connection.close()


def refuse_exhaustion(error: Exception) -> None:
    """Raise StoreError for an error that says that this process has too many open files. What cannot be opened for
    that is not missing, and must not be taken for missing."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise system_error(error, "a file of the knowledge base") from error


def count_free_descriptors() -> int:
    """Return how many of a few files this process could open now, at most :data:`_DESCRIPTORS`."""
    opened: list[int] = []
    try:
        while len(opened) < _DESCRIPTORS:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return len(opened)


def note_removal(connection: sqlite3.Connection) -> None:
    """Note in the transaction of a removal what is to be done after it: the write-ahead log still has the text, and
    derived data may be there (:meth:`clew.store.store.Store.finish_removals`)."""
    connection.execute(
        "UPDATE state SET value = CASE name WHEN 'scrub' THEN 1 ELSE value + 1 END "
        "WHERE name IN ('scrub', 'leftovers')"
    )


def _migrate(connection: sqlite3.Connection, version: int, settings: dict[str, str]) -> None:
    """Apply the migrations after ``version`` in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for migration in MIGRATIONS[version:]:
        for statement in migration.split(";"):
            if statement.strip():
                connection.execute(statement)
    connection.executemany("INSERT INTO setting VALUES (?, ?)", settings.items())
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
