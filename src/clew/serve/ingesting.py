"""The process that reads uploads into bases: ``python -m clew.serve.ingesting``, started by the server.

It takes what waits in the spools, one file after another, the oldest first; each file is read by a further process
with limits on time and memory (:mod:`clew.parse.pool`). It writes, indexes and encodes, so that the server itself
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

from clew.api import Base
from clew.api import open as open_base
from clew.api.originals import Uploads
from clew.errors import ClewError, ModelError, NotFound, StoreError
from clew.serve.spool import DONE, ENCODING, INDEXING, READING, Spool, Upload
from clew.serve.uploadedgraph import read_graph

LOG = logging.getLogger("clew.serve")
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
class Told:
    """What the server has said; and which file is being read, to be put back should the server end meanwhile."""

    something: threading.Event = field(default_factory=threading.Event)
    free: threading.Event = field(default_factory=threading.Event)
    reading: tuple[Spool, Upload] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def trying(self, spool: Spool, upload: Upload) -> Iterator[None]:
        """Note in the spool that reading a file is tried once more; it counts where this process does not survive
        it, not where the server ends."""
        with self.lock:
            spool.write(replace(upload, tries=upload.tries + 1))
            self.reading = spool, upload
        try:
            yield
        finally:
            with self.lock:
                self.reading = None

    def listen(self, lines: TextIO) -> None:
        """Take the server's words until there are no more; then end the process."""
        self.free.set()
        for line in lines:
            word = line.strip()
            if word == "pause":
                self.free.clear()
            elif word == "resume":
                self.free.set()
            self.something.set()
        with self.lock:
            if self.reading is not None:
                with suppress(OSError):
                    self.reading[0].write(self.reading[1])
            os._exit(0)


@dataclass(slots=True)
class Work:
    """One base, its spool, and the uploads that are committed but not yet searchable."""

    name: str
    base: Base
    spool: Spool
    out: TextIO
    told: Told
    uncaught: dict[str, Upload] = field(default_factory=dict)
    passages: int = 0
    tries: dict[str, int] = field(default_factory=dict)  # of uploads, before they were read here
    behind: bool = True  # something may have no index or vectors: at the start, nobody knows
    uploads: Uploads | None = None  # with the process that parses, until there is nothing more
    open: ExitStack = field(default_factory=ExitStack)

    def tell(self, upload: Upload, state: str = "", **more: Any) -> None:
        """Tell the server what became of an upload."""
        shape = upload.shape() | ({"state": state} if state else {}) | more
        self.say({"base": self.name, "upload": shape})

    def say(self, message: dict[str, Any]) -> None:
        """Write a line to the server."""
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def read(self, upload: Upload, seconds: float, memory: int) -> None:
        """Read one file into the base, or note why it cannot be. Raises StoreError for what is not the file's fault:
        the disk is full, or somebody else writes for long. Nothing is lost then, and it waits."""
        # As this process found it: where the disk is full, the spool cannot be told that it was no fair try.
        upload = replace(upload, tries=self.tries.setdefault(upload.id, upload.tries), error="", hint="")
        try:
            self._read(upload, seconds, memory)
        except (StoreError, OSError) as error:
            trouble = disk_trouble(error)
            again = replace(upload, error=trouble.problem, hint=trouble.hint)
            with suppress(OSError):
                self.spool.write(again)
            self.tell(again)
            raise trouble from error
        self.tries.pop(upload.id)

    def _read(self, upload: Upload, seconds: float, memory: int) -> None:
        if upload.state == INDEXING and self.holds(upload.key):
            self.committed(upload)
            return
        if upload.tries >= _TRIES:
            self.tell(self.spool.fail(upload, "the server ended each time that it was read"))
            return
        self.tell(replace(upload, tries=upload.tries + 1), READING)
        try:
            with self.told.trying(self.spool, upload):
                read = self.graph if upload.kind == "graph" else self.document
                read(upload, seconds, memory)
        except StoreError:
            raise
        except ClewError as error:
            self.tell(self.spool.fail(upload, error.problem, error.hint))
            return
        if upload.kind == "graph":
            self.tell(upload, DONE)
            self.spool.forget(upload.id)

    def holds(self, key: str) -> bool:
        """Return whether the base has a document; a power cut may have cost its commit."""
        try:
            return self.base.store.document(key).key == key
        except NotFound:
            return False

    def document(self, upload: Upload, seconds: float, memory: int) -> None:
        """Add a document; it is done when it is searchable."""
        if self.uploads is None:
            self.uploads = self.open.enter_context(self.base.uploads(seconds, memory))
        added = self.uploads.add(self.spool.data(upload.id), upload.name)
        self.told.free.wait()
        self.passages += added.passages
        done = replace(upload, key=added.key, notes=added.notes, state=INDEXING)
        self.spool.write(done)  # should this process end now, it is not read again
        self.committed(done)

    def committed(self, upload: Upload) -> None:
        """Take a document on that is in the base, and not searchable yet."""
        self.uncaught[upload.id] = upload
        self.behind = True
        self.tell(upload)

    def rest(self) -> None:
        """End the process that parses: it takes memory."""
        self.open.close()
        self.uploads = None

    def graph(self, upload: Upload, seconds: float, memory: int) -> None:
        """Add a graph, in a process that can be killed: then nothing is added."""
        from clew.parse.pool import ParsePool

        path = self.spool.data(upload.id)
        more = {
            "base": str(self.base.path),
            "graph": upload.graph,
            "form": upload.form,
            "name": upload.name,
        }
        with ParsePool(1, reader=read_graph, seconds=seconds, memory=memory) as pool:
            ((_, outcome),) = pool.read([path], more={path: more})
        if isinstance(outcome, Exception):
            raise outcome

    def catch_up(self) -> None:
        """Make what is committed searchable by words; then it survives in the base, and leaves the spool."""
        self.told.free.wait()
        self.base.store.catch_up()
        self.passages = 0
        encodes = self.base.encoder_name() is not None
        for id, upload in list(self.uncaught.items()):
            # It has left already where encoding gave way to further files.
            with suppress(NotFound):
                self.spool.forget(id)
            self.tell(upload, ENCODING if encodes else DONE)
            if not encodes:
                del self.uncaught[id]

    def troubled(self, trouble: StoreError) -> None:
        """Say why what is committed cannot be made searchable now; it is tried again."""
        LOG.warning("%s: %s", self.name, trouble)
        for upload in self.uncaught.values():
            self.tell(replace(upload, error=trouble.problem, hint=trouble.hint), INDEXING)

    def encode(self) -> None:
        """Make the missing vectors, unless something more urgent comes."""
        if self.base.encoder() is not None:

            def told(done: int, total: int) -> None:
                self.say({"base": self.name, "encoding": {"done": done, "total": total}})
                if not self.told.free.is_set() or self.spool.waiting():
                    raise _Interrupted

            try:
                self.base.encode(told)
            except _Interrupted:
                return
            except ModelError as error:
                # They can be found by words; the next file, or the next server, tries again.
                LOG.warning("%s: %s", self.name, error)
        for upload in self.uncaught.values():
            self.tell(upload, DONE)
        self.uncaught.clear()
        self.behind = False


def disk_trouble(error: StoreError | OSError) -> StoreError:
    """Return what keeps a base from being written to, in our words."""
    if isinstance(error, StoreError):
        return error
    return StoreError(f"the base cannot be written to: {error.strerror or error}", "Is the disk full?")


def work(works: list[Work], told: Told, seconds: float, memory: int) -> None:
    """Read, index and encode, for ever."""
    while True:
        told.something.clear()
        idle = True
        for one in works:
            told.free.wait()
            try:
                idle &= not _step(one, seconds, memory)
            except (StoreError, OSError) as error:  # it cannot be written to now: another base may
                one.troubled(disk_trouble(error))
                idle = False
                time.sleep(_AFTER_TROUBLE)
        if idle and not told.something.wait(_LOOK_EVERY):
            for one in works:
                one.rest()


def _step(one: Work, seconds: float, memory: int) -> bool:
    """Do what is next for a base; return whether there was anything."""
    waiting = [upload for upload in one.spool.waiting() if upload.id not in one.uncaught]
    if waiting:
        one.read(waiting[0], seconds, memory)
    if one.behind and (one.passages >= _CATCH_UP_EVERY or len(waiting) <= 1):
        one.catch_up()
        if len(waiting) <= 1:
            one.encode()
    return bool(waiting) or one.behind


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
    told = Told()
    works = []
    for name, path in said["bases"].items():
        works.append(Work(name, open_base(path), Spool(Path(path)), out, told))
    threading.Thread(target=told.listen, args=(sys.stdin,), daemon=True).start()
    told.free.wait()
    work(works, told, said["seconds"], said["memory"])


if __name__ == "__main__":
    main()
