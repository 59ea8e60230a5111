"""The process that reads uploads into bases: ``python -m clew.app.web.uploads.worker``, started by the server.

It reads the files in the spools one after another, the smallest first; one that arrives while a larger one is parsed
is read meanwhile. Another process parses each file, with limits on time and memory
(:mod:`clew.parse.documents.pool`). This process writes, indexes and encodes, so that the server never
does and is always free to answer.

The first line of its input names the bases and limits. Each further line is a command: ``look`` (there is something
new), ``pause`` (release the locks, as the server has to write), ``resume``, ``cancel ID``, ``catch-up BASE`` (the
server has written documents to it), or JSON with a base to ``open`` or to ``close``. Its output is a line of JSON for
each event. When its input ends, the server has ended, and this process ends too; what it was doing is in the spool,
and the next server continues it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

import clew
from clew.app.web.log import LOG
from clew.app.web.uploads.graph_reader import read_uploaded_graph
from clew.app.web.uploads.spool import DONE, ENCODING, INDEXING, READING, Spool, Upload
from clew.core.errors import ClewError, ModelError, NotFound, StoreError
from clew.core.files import system_error
from clew.core.messages import take_output
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.shared_base import SharedBase
from clew.knowledge_base.source_files import Uploads
from clew.store.object_store import open_object_store
from clew.store.remote.store import RemoteStore

#: A file is given up after the process was killed so often while reading it.
_MAX_TRIES = 3
#: Files that are committed together to a base in object storage: each commit writes the parts that have changed.
_BATCH = 50
#: New passages after which they are indexed although more files wait.
_INDEX_EVERY = 2_000
#: Seconds after which it looks into the spools without a command, to retry what could not be written.
_LOOK_EVERY = 30.0
#: Seconds before a base that could not be written to is tried again.
_RETRY_AFTER = 5.0
#: The niceness of this process and the parsers, so that the server goes first.
_NICE = 5


class _Interrupted(Exception):
    """Encoding stops for more urgent work and continues later."""


@dataclass(slots=True)
class ServerCommands:
    """The commands of the server, and the files that are being read, by id, to restore their records if the server
    ends; ``stops`` end the reading of each. ``cancelled`` are the ids of uploads that are no longer wanted;
    ``behind`` are the names of bases that the server has written to, and ``changes`` the bases to open or close."""

    wake: threading.Event = field(default_factory=threading.Event)
    may_write: threading.Event = field(default_factory=threading.Event)
    attempts: dict[str, tuple[Spool, Upload]] = field(default_factory=dict)
    stops: dict[str, Callable[[], None]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    changes: SimpleQueue[dict[str, Any]] = field(default_factory=SimpleQueue)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def record_attempt(self, spool: Spool, upload: Upload) -> Iterator[None]:
        """Count an attempt to read a file in the spool, in case this process does not survive it. If the server ends
        instead, :meth:`listen` takes the attempt back."""
        with self.lock:
            spool.write_record(replace(upload, tries=upload.tries + 1))
            self.attempts[upload.id] = spool, upload
        try:
            yield
        finally:
            with self.lock:
                del self.attempts[upload.id]
                self.stops.pop(upload.id, None)

    def cancel(self, id: str) -> None:
        """Give up an upload, and end its reading if it is being read."""
        with self.lock:
            self.cancelled.add(id)
            if (stop := self.stops.get(id)) is not None:
                stop()

    def listen(self, lines: TextIO) -> None:
        """Receive the server's commands until there are no more; then end the process."""
        self.may_write.set()
        for line in lines:
            command = line.strip()
            if command == "pause":
                self.may_write.clear()
            elif command == "resume":
                self.may_write.set()
            elif command.startswith("{"):
                self.changes.put(json.loads(command))
            elif command.startswith("catch-up "):
                self.behind.add(command.removeprefix("catch-up "))
            elif command.startswith("cancel "):
                self.cancel(command.removeprefix("cancel "))
            self.wake.set()
        with self.lock:
            for spool, upload in self.attempts.values():
                with suppress(OSError):
                    spool.write_record(upload)
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
    tries: dict[str, int] = field(default_factory=dict)  # by upload id, before this process read it
    needs_catch_up: bool = True  # documents may lack an index or vectors; unknown at the start
    shared: SharedBase | None = (
        None  # the base, where it lies in object storage; ``base`` is its working copy then
    )
    #: Have the parser processes, until there is no more work: one for a file, one for those that are read meanwhile.
    readers: list[Uploads] = field(default_factory=list)
    encoded: int = 0  # passages, before encoding was interrupted
    resources: ExitStack = field(default_factory=ExitStack)

    def report_upload(self, upload: Upload, state: str = "", **more: Any) -> None:
        """Tell the server the state of an upload."""
        record = upload.to_dict() | ({"state": state} if state else {}) | more
        self.send({"base": self.name, "upload": record})

    def send(self, message: dict[str, Any]) -> None:
        """Write a line to the server."""
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def read_upload(self, upload: Upload, seconds: float, memory: int) -> None:
        """Read one file into the base, or record why it cannot be read.

        Raises StoreError for what is not the file's fault, such as a full disk; the upload then waits.
        """
        # With a full disk the attempt cannot be taken back in the spool, so the count before it is kept here.
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
        if upload.id in self.commands.cancelled:
            self.discard(upload)
            return
        if upload.tries >= _MAX_TRIES:
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
            if upload.id in self.commands.cancelled:
                self.discard(upload)
                return
            self.report_upload(self.spool.record_failure(upload, error.problem, error.hint))
            return
        if upload.kind == "graph" and self.shared is not None:
            self.mark_committed(
                replace(upload, state=INDEXING)
            )  # it stays in the spool until it is in storage
        elif upload.kind == "graph":
            self.report_upload(upload, DONE)
            self.spool.forget(upload.id)

    def discard(self, upload: Upload) -> None:
        """Drop an upload that was cancelled."""
        self.commands.cancelled.discard(upload.id)
        with suppress(NotFound):
            self.spool.forget(upload.id)
        self.send({"base": self.name, "forgotten": upload.id})

    def report_pages(self, path: Path, done: int, total: int) -> None:
        """Report the number of pages read to the server, except for files inside an archive, whose pages are not the
        upload's."""
        if path.stem in self.commands.attempts:
            self.send({"base": self.name, "pages": {"id": path.stem, "done": done, "total": total}})

    def has_document(self, key: str) -> bool:
        """Return whether the base has a document; a power cut may have undone its commit."""
        try:
            return self.base.store.document(key).key == key
        except NotFound:
            return False

    def add_document(self, upload: Upload, seconds: float, memory: int) -> None:
        """Add a document and make it searchable."""
        place = len(self.commands.attempts) - 1
        if place == len(self.readers):
            uploads = self.base.files.open_uploads(seconds, memory, self.report_pages)
            self.readers.append(self.resources.enter_context(uploads))
        reader = self.readers[place]
        self.commands.stops[upload.id] = reader.cancel
        if place == 0 and self.shared is None:
            reader.meanwhile = lambda: self.read_smaller(upload, seconds, memory)
        result = reader.add(self.spool.data_path(upload.id), upload.name)
        if self.shared is None:
            self.commands.may_write.wait()
        self.passages += result.passages
        record = replace(upload, key=result.key, notes=result.notes, state=INDEXING)
        self.spool.write_record(record)  # if this process ends now, the file is not read again
        self.mark_committed(record)

    def waiting_uploads(self) -> list[Upload]:
        """Return the uploads that are neither committed nor being read, the smallest first."""
        begun = {*self.unindexed, *self.commands.attempts}
        return [upload for upload in self.spool.waiting_uploads() if upload.id not in begun]

    def read_smaller(self, current: Upload, seconds: float, memory: int) -> None:
        """Read the documents that wait and are smaller than the one that is being parsed, so that they can be asked
        before it."""
        smaller = [
            upload
            for upload in self.waiting_uploads()
            if upload.size < current.size and upload.kind == "document"
        ]
        try:
            for upload in smaller:
                self.read_upload(upload, seconds, memory)
            if smaller:
                self.catch_up()
        except (StoreError, OSError) as error:  # it is no fault of the current one, and is tried again
            self.report_trouble(as_store_error(error))
            time.sleep(_RETRY_AFTER)

    def mark_committed(self, upload: Upload) -> None:
        """Note a document that is in the base and not searchable yet."""
        self.unindexed[upload.id] = upload
        self.needs_catch_up = True
        self.report_upload(upload)

    def stop_parser(self) -> None:
        """End the parser process, to free its memory."""
        self.resources.close()
        self.readers.clear()

    def add_graph(self, upload: Upload, seconds: float, memory: int) -> None:
        """Add a graph in a process that can be killed; then nothing is added."""
        from clew.parse.documents.pool import ParsePool

        path = self.spool.data_path(upload.id)
        arguments = {
            "base": str(self.base.path),
            "graph": upload.graph,
            "form": upload.form,
            "name": upload.name,
        }
        # It reads and writes files of the base, in which the spool is, and no others.
        with ParsePool(
            1,
            reader=read_uploaded_graph,
            time_limit=seconds,
            memory_limit=memory,
            processor_limit=0,
            folder=self.base.path,
        ) as pool:
            self.commands.stops[upload.id] = pool.cancel
            ((_, outcome),) = pool.read_files([path], options={path: arguments})
        if isinstance(outcome, Exception):
            raise outcome

    def catch_up(self) -> None:
        """Index the committed documents, so that they can be found by words; then they leave the spool."""
        self.commands.may_write.wait()
        self.base.store.catch_up()
        self.passages = 0
        encodes = self.base.encoding.name is not None
        for id, upload in list(self.unindexed.items()):
            # It has left already if encoding was interrupted by further files.
            with suppress(NotFound):
                self.spool.forget(id)
            self.report_upload(upload, ENCODING if encodes else DONE)
            if not encodes:
                del self.unindexed[id]

    def report_trouble(self, error: StoreError) -> None:
        """Report why committed documents cannot be indexed now; it is tried again."""
        LOG.warning("%s: %s", self.name, error)
        for upload in self.unindexed.values():
            self.report_upload(replace(upload, error=error.problem, hint=error.hint), INDEXING)

    def encode_missing(self) -> None:
        """Make the missing vectors, until something more urgent arrives."""
        if self.base.encoding.encoder() is not None:
            before = self.encoded

            def report_progress(done: int, total: int) -> None:
                self.encoded = before + done
                self.send({"base": self.name, "encoding": {"done": self.encoded, "total": before + total}})
                if not self.commands.may_write.is_set() or self.spool.waiting_uploads():
                    raise _Interrupted

            try:
                self.base.encoding.encode_missing(report_progress)
            except _Interrupted:
                return
            except ModelError as error:
                # The documents can be found by words; the next file or server tries again.
                LOG.warning("%s: %s", self.name, error)
        self.encoded = 0
        self.send({"base": self.name, "encoding": None})
        for upload in self.unindexed.values():
            self.report_upload(upload, DONE)
        self.unindexed.clear()
        self.needs_catch_up = False

    def read_into_storage(self, seconds: float, memory: int) -> bool:
        """Read what waits into a base in object storage, and commit it as one change; return whether there was any.

        Files stay in the spool until they are committed: if this process or the machine ends before, they are read
        again. Raises Locked while another process writes, and StoreError; nothing was changed then.
        """
        assert self.shared is not None
        behind = self.name in self.commands.behind
        waiting = self.spool.waiting_uploads()[:_BATCH]
        if not waiting and not behind:
            return False
        reading_copy = self.base
        try:
            with self.shared.change() as self.base:
                self.commands.behind.discard(self.name)
                for upload in waiting:
                    self.read_upload(upload, seconds, memory)
                self.stop_parser()  # its files are those of the working copy
                self.base.store.catch_up()
                if self.base.encoding.encoder() is not None:
                    try:
                        self.base.encoding.encode_missing()
                    except ModelError as error:  # they can be found by words; the next change tries again
                        LOG.warning("%s: %s", self.name, error)
        except BaseException:
            if behind:
                self.commands.behind.add(self.name)
            self.unindexed.clear()
            raise
        finally:
            self.stop_parser()
            self.base = reading_copy
        for id, upload in self.unindexed.items():
            with suppress(NotFound):
                self.spool.forget(id)
            self.report_upload(upload, DONE)
        self.unindexed.clear()
        return True


def as_store_error(error: StoreError | OSError) -> StoreError:
    """Return an error of the disk as a StoreError."""
    if isinstance(error, StoreError):
        return error
    problem = system_error(error)
    return StoreError(f"the base cannot be written to: {problem.problem}", problem.hint)


def _apply_changes(workers: list[UploadWorker], commands: ServerCommands, out: TextIO) -> None:
    """Open and close bases as the server has said."""
    while not commands.changes.empty():
        change = commands.changes.get()
        for name, path in change.get("open", {}).items():
            workers.append(UploadWorker(name, clew.open(path), Spool(Path(path)), out, commands))
        if name := change.get("close"):
            for worker in [worker for worker in workers if worker.name == name]:
                workers.remove(worker)
                worker.stop_parser()
                worker.base.close()
            out.write(json.dumps({"base": name, "closed": True}) + "\n")
            out.flush()


def run_forever(
    workers: list[UploadWorker], commands: ServerCommands, out: TextIO, seconds: float, memory: int
) -> None:
    """Read, index and encode, forever."""
    while True:
        commands.wake.clear()
        idle = True
        _apply_changes(workers, commands, out)
        for worker in workers:
            commands.may_write.wait()
            try:
                idle &= not _step(worker, seconds, memory)
            except (StoreError, OSError) as error:  # this base cannot be written to now; another may
                worker.report_trouble(as_store_error(error))
                idle = False
                time.sleep(_RETRY_AFTER)
        if idle and not commands.wake.wait(_LOOK_EVERY):
            for worker in workers:
                worker.stop_parser()


def _step(worker: UploadWorker, seconds: float, memory: int) -> bool:
    """Do the next piece of work for a base; return whether there was any."""
    if worker.shared is not None:
        return worker.read_into_storage(seconds, memory)
    if worker.name in worker.commands.behind:
        worker.commands.behind.discard(worker.name)
        worker.needs_catch_up = True
    waiting = worker.waiting_uploads()
    if waiting:
        worker.read_upload(waiting[0], seconds, memory)
    is_last = not worker.waiting_uploads()
    if worker.needs_catch_up and (worker.passages >= _INDEX_EVERY or is_last):
        worker.catch_up()
        if is_last:
            worker.encode_missing()
    return bool(waiting) or worker.needs_catch_up


def main() -> None:
    """Read the bases and limits from the first line, then work until the input ends."""
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this ends
    if hasattr(os, "nice"):
        os.nice(_NICE)
    out = TextIOWrapper(take_output(), encoding="utf-8")
    setup = json.loads(sys.stdin.readline())
    commands = ServerCommands()
    workers = []
    for name, path in setup["bases"].items():
        address = setup["addresses"].get(path)
        shared = SharedBase(open_object_store(address), Path(path)) if address else None
        base = KnowledgeBase(RemoteStore.open_url(address, Path(path))) if address else clew.open(path)
        workers.append(UploadWorker(name, base, Spool(Path(path)), out, commands, shared=shared))
    threading.Thread(target=commands.listen, args=(sys.stdin,), daemon=True).start()
    commands.may_write.wait()
    run_forever(workers, commands, out, setup["seconds"], setup["memory"])


if __name__ == "__main__":
    main()
