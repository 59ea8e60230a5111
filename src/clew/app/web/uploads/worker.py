"""The process that reads uploads into bases: ``python -m clew.app.web.uploads.worker``, started by the server.

It takes what waits in the spools, one file after another, the oldest first; each file is read by a further process
with limits on time and memory (:mod:`clew.parse.documents.pool`). It writes, indexes and encodes, so that the
server itself
never does and is always free to answer. The first line of its input says which bases; each further line is a word:
``look`` (there is something new), ``pause`` (somebody else has to write: let go of the locks), ``resume``. Its
output is a JSON line for each thing that happens. When its input ends, the server is gone, and so is it: what it
was at is in the spool and continues with the next server.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from clew.app.web.uploads.graph_reader import read_uploaded_graph
from clew.app.web.uploads.spool import DONE, ENCODING, INDEXING, READING, Spool, Upload
from clew.core.errors import ClewError, ModelError, NotFound, StoreError
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.knowledge_base import open as open_base
from clew.knowledge_base.source_files import Uploads

LOG = logging.getLogger("clew.app.web")
#: A file during which the process was killed so often is not tried again.
_TRIES = 3
#: New passages after which they are made searchable though more files wait.
_CATCH_UP_EVERY = 2_000
#: Seconds after which it looks into the spools though nobody said so: what the disk did not take is tried again.
_LOOK_EVERY = 30.0
#: Seconds before a base that could not be written to is tried again.
_AFTER_TROUBLE = 5.0
#: By how much it and the processes that parse stand back behind the server where the processor is short.
_NICE = 5


class _Interrupted(Exception):
    """Encoding gives way to what is more urgent; it continues later."""


@dataclass(slots=True)
class ServerCommands:
    """What the server has said; and which file is being read, to be put back should the server end meanwhile."""

    wake: threading.Event = field(default_factory=threading.Event)
    may_write: threading.Event = field(default_factory=threading.Event)
    current_upload: tuple[Spool, Upload] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def record_attempt(self, spool: Spool, upload: Upload) -> Iterator[None]:
        """Note in the spool that reading a file is tried once more; it counts where this process does not survive
        it, not where the server ends."""
        with self.lock:
            spool.write_record(replace(upload, tries=upload.tries + 1))
            self.current_upload = spool, upload
        try:
            yield
        finally:
            with self.lock:
                self.current_upload = None

    def listen(self, lines: TextIO) -> None:
        """Take the server's words until there are no more; then end the process."""
        self.may_write.set()
        for line in lines:
            word = line.strip()
            if word == "pause":
                self.may_write.clear()
            elif word == "resume":
                self.may_write.set()
            self.wake.set()
        with self.lock:
            if self.current_upload is not None:
                with suppress(OSError):
                    self.current_upload[0].write_record(self.current_upload[1])
            os._exit(0)


@dataclass(slots=True)
class UploadWorker:
    """One base, its spool, and the uploads that are committed but not yet searchable."""

    name: str
    base: KnowledgeBase
    spool: Spool
    out: TextIO
    commands: ServerCommands
    unindexed: dict[str, Upload] = field(default_factory=dict)
    passages: int = 0
    tries: dict[str, int] = field(default_factory=dict)  # of uploads, before they were read here
    needs_catch_up: bool = True  # something may have no index or vectors: at the start, nobody knows
    reader: Uploads | None = None  # with the process that parses, until there is nothing more
    resources: ExitStack = field(default_factory=ExitStack)

    def report_upload(self, upload: Upload, state: str = "", **more: Any) -> None:
        """Tell the server what became of an upload."""
        shape = upload.to_dict() | ({"state": state} if state else {}) | more
        self.send({"base": self.name, "upload": shape})

    def send(self, message: dict[str, Any]) -> None:
        """Write a line to the server."""
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def read_upload(self, upload: Upload, seconds: float, memory: int) -> None:
        """Read one file into the base, or note why it cannot be. Raises StoreError for what is not the file's fault:
        the disk is full, or somebody else writes for long. Nothing is lost then, and it waits."""
        # As this process found it: where the disk is full, the spool cannot be told that it was no fair try.
        upload = replace(upload, tries=self.tries.setdefault(upload.id, upload.tries), error="", hint="")
        try:
            self._read(upload, seconds, memory)
        except (StoreError, OSError) as error:
            trouble = as_store_error(error)
            again = replace(upload, error=trouble.problem, hint=trouble.hint)
            with suppress(OSError):
                self.spool.write_record(again)
            self.report_upload(again)
            raise trouble from error
        self.tries.pop(upload.id)

    def _read(self, upload: Upload, seconds: float, memory: int) -> None:
        if upload.state == INDEXING and self.has_document(upload.key):
            self.mark_committed(upload)
            return
        if upload.tries >= _TRIES:
            self.report_upload(
                self.spool.record_failure(upload, "the server ended each time that it was read")
            )
            return
        self.report_upload(replace(upload, tries=upload.tries + 1), READING)
        try:
            with self.commands.record_attempt(self.spool, upload):
                read = self.add_graph if upload.kind == "graph" else self.add_document
                read(upload, seconds, memory)
        except StoreError:
            raise
        except ClewError as error:
            self.report_upload(self.spool.record_failure(upload, error.problem, error.hint))
            return
        if upload.kind == "graph":
            self.report_upload(upload, DONE)
            self.spool.forget(upload.id)

    def has_document(self, key: str) -> bool:
        """Return whether the base has a document; a power cut may have cost its commit."""
        try:
            return self.base.store.document(key).key == key
        except NotFound:
            return False

    def add_document(self, upload: Upload, seconds: float, memory: int) -> None:
        """Add a document; it is done when it is searchable."""
        if self.reader is None:
            self.reader = self.resources.enter_context(self.base.files.open_uploads(seconds, memory))
        added = self.reader.add(self.spool.data_path(upload.id), upload.name)
        self.commands.may_write.wait()
        self.passages += added.passages
        done = replace(upload, key=added.key, notes=added.notes, state=INDEXING)
        self.spool.write_record(done)  # should this process end now, it is not read again
        self.mark_committed(done)

    def mark_committed(self, upload: Upload) -> None:
        """Take a document on that is in the base, and not searchable yet."""
        self.unindexed[upload.id] = upload
        self.needs_catch_up = True
        self.report_upload(upload)

    def stop_parser(self) -> None:
        """End the process that parses: it takes memory."""
        self.resources.close()
        self.reader = None

    def add_graph(self, upload: Upload, seconds: float, memory: int) -> None:
        """Add a graph, in a process that can be killed: then nothing is added."""
        from clew.parse.documents.pool import ParsePool

        path = self.spool.data_path(upload.id)
        more = {
            "base": str(self.base.path),
            "graph": upload.graph,
            "form": upload.form,
            "name": upload.name,
        }
        with ParsePool(1, reader=read_uploaded_graph, time_limit=seconds, memory_limit=memory) as pool:
            ((_, outcome),) = pool.read_files([path], options={path: more})
        if isinstance(outcome, Exception):
            raise outcome

    def catch_up(self) -> None:
        """Make what is committed searchable by words; then it survives in the base, and leaves the spool."""
        self.commands.may_write.wait()
        self.base.store.catch_up()
        self.passages = 0
        encodes = self.base.encoding.name is not None
        for id, upload in list(self.unindexed.items()):
            # It has left already where encoding gave way to further files.
            with suppress(NotFound):
                self.spool.forget(id)
            self.report_upload(upload, ENCODING if encodes else DONE)
            if not encodes:
                del self.unindexed[id]

    def report_trouble(self, trouble: StoreError) -> None:
        """Say why what is committed cannot be made searchable now; it is tried again."""
        LOG.warning("%s: %s", self.name, trouble)
        for upload in self.unindexed.values():
            self.report_upload(replace(upload, error=trouble.problem, hint=trouble.hint), INDEXING)

    def encode_missing(self) -> None:
        """Make the missing vectors, unless something more urgent comes."""
        if self.base.encoding.encoder() is not None:

            def told(done: int, total: int) -> None:
                self.send({"base": self.name, "encoding": {"done": done, "total": total}})
                if not self.commands.may_write.is_set() or self.spool.waiting_uploads():
                    raise _Interrupted

            try:
                self.base.encoding.encode_missing(told)
            except _Interrupted:
                return
            except ModelError as error:
                # They can be found by words; the next file, or the next server, tries again.
                LOG.warning("%s: %s", self.name, error)
        for upload in self.unindexed.values():
            self.report_upload(upload, DONE)
        self.unindexed.clear()
        self.needs_catch_up = False


def as_store_error(error: StoreError | OSError) -> StoreError:
    """Return what keeps a base from being written to, in our words."""
    if isinstance(error, StoreError):
        return error
    return StoreError(f"the base cannot be written to: {error.strerror or error}", "Is the disk full?")


def run_forever(works: list[UploadWorker], told: ServerCommands, seconds: float, memory: int) -> None:
    """Read, index and encode, for ever."""
    while True:
        told.wake.clear()
        idle = True
        for one in works:
            told.may_write.wait()
            try:
                idle &= not _step(one, seconds, memory)
            except (StoreError, OSError) as error:  # it cannot be written to now: another base may
                one.report_trouble(as_store_error(error))
                idle = False
                time.sleep(_AFTER_TROUBLE)
        if idle and not told.wake.wait(_LOOK_EVERY):
            for one in works:
                one.stop_parser()


def _step(one: UploadWorker, seconds: float, memory: int) -> bool:
    """Do what is next for a base; return whether there was anything."""
    waiting = [upload for upload in one.spool.waiting_uploads() if upload.id not in one.unindexed]
    if waiting:
        one.read_upload(waiting[0], seconds, memory)
    if one.needs_catch_up and (one.passages >= _CATCH_UP_EVERY or len(waiting) <= 1):
        one.catch_up()
        if len(waiting) <= 1:
            one.encode_missing()
    return bool(waiting) or one.needs_catch_up


def main() -> None:
    """Do what the server says on the first line."""
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this ends
    if hasattr(os, "nice"):
        os.nice(_NICE)
    # What libraries print must not come between our lines.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    said = json.loads(sys.stdin.readline())
    told = ServerCommands()
    works = []
    for name, path in said["bases"].items():
        works.append(UploadWorker(name, open_base(path), Spool(Path(path)), out, told))
    threading.Thread(target=told.listen, args=(sys.stdin,), daemon=True).start()
    told.may_write.wait()
    run_forever(works, told, said["seconds"], said["memory"])


if __name__ == "__main__":
    main()
