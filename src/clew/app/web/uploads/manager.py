"""The server's side of uploads: what was accepted, its state, and the worker process that reads it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.app.web.errors import LOG, RequestRefused, ServerBusy
from clew.app.web.events import EventChannel
from clew.app.web.settings import Settings
from clew.app.web.uploads.multipart import storage_error
from clew.app.web.uploads.spool import DONE, ENCODING, FINAL_STATES, INDEXING, READING, WAITING, Spool, Upload
from clew.core.errors import NotFound
from clew.core.messages import read_output

#: Uploads that have ended and are still listed.
_LISTED = 500
#: States in which an upload can be found by a search.
SEARCHABLE = (ENCODING, DONE)
#: Seconds that the worker gets to leave a base alone.
_CLOSE_SECONDS = 15.0
#: Seconds before the worker is restarted if it ended by itself: the first time, and at most.
_FIRST_DELAY, _MAX_DELAY = 1.0, 60.0
#: Of the work on a document, the share that reading it is; the rest is encoding.
_READING_SHARE = 0.5


@dataclass(slots=True)
class _Batch:
    """The uploads that a base works on, by id, until nothing is left; ``share`` of the work was seen to be done."""

    ids: set[str] = field(default_factory=set)
    share: float = 0.0


class UploadManager:
    """The uploads of all bases in their last known states, and the worker process; ``events`` sends every change.

    ``changed`` is called with the name of a base that has new searchable content, once nothing more waits to be read
    into it.
    """

    def __init__(self, settings: Settings, changed: Callable[[str], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._known: dict[str, OrderedDict[str, Upload]] = {}
        self.spools = {name: Spool(path) for name, path in settings.bases.items()}
        self.events = {name: EventChannel(keep=200) for name in settings.bases}
        self._arriving = dict.fromkeys(settings.bases, 0)  # bytes
        self._arrivals = threading.BoundedSemaphore(settings.limits.arriving)
        self._encoding: dict[str, dict[str, int]] = {}
        self._batches: dict[str, _Batch] = {}
        #: Of each upload that is being read: pages that are done, of how many, and when the first were.
        self._pages: dict[str, tuple[int, int, float]] = {}
        self._lock = threading.Lock()
        self._writing = threading.RLock()  # guards the worker's input, line by line
        self._paused = 0
        self._process: subprocess.Popen[str] | None = None
        self._closing = threading.Event()
        self._delay = _FIRST_DELAY
        self._paths = dict(settings.bases)
        self._closed_bases: dict[str, threading.Event] = {}
        for name, spool in self.spools.items():
            self._read_spool(name, spool)

    def _read_spool(self, name: str, spool: Spool) -> None:
        if not self._settings.read_only:
            spool.delete_leftovers()
        self._known[name] = OrderedDict((upload.id, upload) for upload in spool.all_uploads())
        waiting = {upload.id for upload in self._known[name].values() if upload.state not in FINAL_STATES}
        self._batches[name] = _Batch(waiting)

    def add_base(self, name: str, path: Path) -> None:
        """Take uploads into a further base."""
        self.spools[name] = Spool(path)
        self.events[name] = EventChannel(keep=200)
        self._arriving[name] = 0
        self._read_spool(name, self.spools[name])
        self._paths[name] = path
        self._send(json.dumps({"open": {name: str(path)}}))

    def drop_base(self, name: str) -> None:
        """Take uploads into a base no more; nothing of it is open afterwards. Raises ServerBusy where the worker is
        busy with a file of it for too long."""
        for upload in self.all_uploads(name):
            with suppress(NotFound, ServerBusy):
                self.forget(name, upload["id"])
        closed = self._closed_bases[name] = threading.Event()
        self._send(json.dumps({"close": name}))
        if self._process is not None and not closed.wait(_CLOSE_SECONDS):
            raise ServerBusy("documents are being added to this project", 10)
        self._closed_bases.pop(name, None)
        self.events[name].close()
        by_base = (
            self.spools,
            self.events,
            self._arriving,
            self._known,
            self._paths,
            self._encoding,
            self._batches,
        )
        for known in by_base:
            known.pop(name, None)

    def start(self) -> None:
        """Start the worker, which also finishes what an earlier one left."""
        if not self._settings.read_only:
            self._start()

    def close(self) -> None:
        """End the worker; the next server continues its work."""
        self._closing.set()
        with self._writing:
            process = self._process
        if process is not None:
            with suppress(OSError, ValueError):
                assert process.stdin is not None
                process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for channel in self.events.values():
            channel.close()

    @contextmanager
    def reserve_space(self, base: str, claimed: int) -> Iterator[Callable[[int], None]]:
        """Reserve space for an upload of ``claimed`` bytes (0 if unknown) until it is accepted; yield a function that
        counts its bytes as they arrive. Both raise ServerBusy if too much waits or arrives already."""
        limits, arrived = self._settings.limits, 0

        def take(more: int) -> None:
            nonlocal arrived
            with self._lock:
                waiting = [
                    upload.size for upload in self._known[base].values() if upload.state not in FINAL_STATES
                ]
                held = sum(waiting) + self._arriving[base]
                if (
                    len(waiting) >= limits.spool_files
                    or held + max(more, claimed - arrived) > limits.spool_bytes
                ):
                    raise ServerBusy(
                        f"{len(waiting)} uploaded files wait to be read; more are not taken on", 30
                    )
                arrived += more
                self._arriving[base] += more

        if not self._arrivals.acquire(blocking=False):
            raise ServerBusy(f"{limits.arriving} uploads are arriving already", 10)
        try:
            take(0)
            yield take
        finally:
            self._arrivals.release()
            with self._lock:
                self._arriving[base] -= arrived

    def accept(self, base: str, uploads: Sequence[Upload]) -> list[tuple[Upload, RequestRefused]]:
        """Accept files that have arrived; after this they survive a power cut. Return those that could not be stored,
        each with the error; nothing of them is kept."""
        refused = []
        for upload in uploads:
            try:
                self.spools[base].accept(upload)
            except OSError as error:
                self.spools[base].discard(upload.id)
                refused.append((upload, storage_error(error)))
            else:
                self._note(base, upload)
        self._send("look")
        return refused

    def all_uploads(self, base: str) -> list[dict[str, Any]]:
        """Return the uploads of a base, the oldest first."""
        with self._lock:
            return [
                upload.to_dict() | self._reading_progress(upload) for upload in self._known[base].values()
            ]

    def _reading_progress(self, upload: Upload) -> dict[str, Any]:
        """Return how far the reading of an upload is: ``pages`` with ``done``, ``total`` and ``seconds_left``, where
        that is known."""
        if upload.id not in self._pages or upload.state != READING:
            return {}
        done, total, began = self._pages[upload.id]
        seconds = (time.monotonic() - began) * (total - done) / done if done else None
        return {"pages": {"done": done, "total": total, "seconds_left": seconds and round(seconds)}}

    def encoding_progress(self, base: str) -> dict[str, int] | None:
        """Return how many passages are encoded, of how many, while the worker encodes; None otherwise."""
        return self._encoding.get(base)

    def progress(self, base: str) -> dict[str, Any] | None:
        """Return how far the work on all that was uploaded is, None where there is none: how many ``files`` cannot be
        asked yet, and the ``share`` of the work that is done, which never falls."""
        encoding = self._encoding.get(base)
        encoded = encoding["done"] / max(encoding["total"], 1) if encoding is not None else 0.0
        with self._lock:
            batch, uploads = self._batches[base], self._batch_uploads(base)
            if encoding is None and all(upload.state in FINAL_STATES for upload in uploads):
                return None
            done = sum(upload.size * self._work_done(upload, encoded) for upload in uploads)
            total = sum(upload.size for upload in uploads)
            batch.share = max(batch.share, done / total if total else encoded)
            files = sum(upload.state not in {*FINAL_STATES, *SEARCHABLE} for upload in uploads)
            return {"files": files, "share": round(batch.share, 3)}

    def _batch_uploads(self, base: str) -> list[Upload]:
        known = self._known[base]
        return [known[id] for id in self._batches[base].ids if id in known]

    def _work_done(self, upload: Upload, encoded: float) -> float:
        """Return the finished share of the work on an upload; ``encoded`` is the finished share of all vectors."""
        if upload.state in FINAL_STATES:
            return 1.0
        if upload.state == ENCODING:
            return _READING_SHARE + (1 - _READING_SHARE) * encoded
        if upload.state == INDEXING:
            return _READING_SHARE
        done, total, _ = self._pages.get(upload.id, (0, 1, 0.0))
        return _READING_SHARE * done / max(total, 1)

    def forget(self, base: str, id: str) -> None:
        """Forget an upload that has ended or still waits, and cancel one that is being read. Raises NotFound, and
        ServerBusy for a document that is in the base already."""
        with self._lock:
            known = self._known[base].get(id)
        if known is None:
            raise NotFound(f"no upload '{id}'")
        if known.state == READING:
            self._send(f"cancel {id}")  # the worker reports when it is gone
            return
        if known.state not in {*FINAL_STATES, WAITING}:
            raise ServerBusy(f"'{known.name}' has been read and is being made ready", 5)
        with suppress(NotFound):  # one that is done has left the spool
            self.spools[base].forget(id)
        with self._lock:
            self._known[base].pop(id, None)
        self.events[base].send("forgotten", {"id": id})

    def discard_document(self, base: str, key: str) -> None:
        """Delete the upload of a removed document, which may still be in the spool, so that it does not come back."""
        for upload in self.spools[base].all_uploads():
            if upload.key == key:
                with suppress(NotFound):  # it has just left the spool
                    self.spools[base].forget(upload.id)

    def request_catch_up(self, base: str) -> None:
        """Make the worker index and encode what was written to a base by others."""
        self._send(f"catch-up {base}")

    @contextmanager
    def pause_worker(self) -> Iterator[None]:
        """Make the worker release its locks, so that the caller can write."""
        with self._writing:
            self._paused += 1
            self._send("pause")
        try:
            yield
        finally:
            with self._writing:
                self._paused -= 1
                if not self._paused:
                    self._send("resume")

    def _note(self, base: str, upload: Upload) -> None:
        with self._lock:
            known = self._known[base]
            if upload.state not in FINAL_STATES:
                if base not in self._encoding and all(
                    other.state in FINAL_STATES for other in self._batch_uploads(base)
                ):
                    self._batches[base] = _Batch()
                self._batches[base].ids.add(upload.id)
            known[upload.id] = upload
            ended = [other.id for other in known.values() if other.state in FINAL_STATES]
            old = ended[: max(0, len(ended) - _LISTED)]
            for id in old:
                del known[id]
        for id in old:
            with suppress(NotFound):  # one that is done has left the spool
                self.spools[base].forget(id)
        self.events[base].send("upload", upload.to_dict())

    def _reading(self, base: str) -> bool:
        with self._lock:
            return any(
                upload.state not in {*FINAL_STATES, *SEARCHABLE} for upload in self._known[base].values()
            )

    def _send(self, command: str) -> None:
        with self._writing:
            if self._process is None or self._process.stdin is None:
                return
            with suppress(OSError, ValueError):  # it has just ended and is restarted
                self._process.stdin.write(command + "\n")
                self._process.stdin.flush()

    def _start(self) -> None:
        limits = self._settings.limits
        setup = {
            "bases": {name: str(path) for name, path in self._paths.items()},
            "addresses": {str(path): url for path, url in self._settings.addresses.items()},
            "seconds": limits.parse_seconds,
            "memory": limits.parse_memory,
        }
        with self._writing:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "clew.app.web.uploads.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl-C is the server's
            )
            self._send(json.dumps(setup))
            if self._paused:
                self._send("pause")
        threading.Thread(target=self._listen, args=(process,), daemon=True, name="clew-uploads").start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Receive the worker's events; start another worker if it ends by itself."""
        assert process.stdout is not None and process.stdin is not None
        with process.stdout as lines:
            self._receive(read_output(lines))
        code = process.wait()
        with suppress(OSError, ValueError):
            process.stdin.close()
        if not self._closing.wait(self._delay):
            LOG.error("the process that reads uploads ended (%s); it is started again", code)
            self._delay = min(2 * self._delay, _MAX_DELAY)
            self._start()

    def _note_progress(self, base: str, message: dict[str, Any]) -> None:
        if "encoding" in message:
            progress: dict[str, int] | None = message["encoding"]
            if progress:
                self._encoding[base] = progress
            elif last := self._encoding.pop(base, None):  # it has ended
                progress = last | {"done": last["total"]}
            if progress:
                self.events[base].send("encoding", progress)
        if pages := message.get("pages"):
            began = self._pages.get(pages["id"], (0, 0, time.monotonic()))[2]
            self._pages[pages["id"]] = pages["done"], pages["total"], began
            self.events[base].send("pages", pages)

    def _receive(self, lines: Iterable[str]) -> None:
        for line in lines:
            message = json.loads(line)
            base = message["base"]
            if "closed" in message:
                if base in self._closed_bases:
                    self._closed_bases[base].set()
                continue
            if base not in self._known:  # it was deleted meanwhile
                continue
            if "encoding" in message or "pages" in message:
                self._note_progress(base, message)
                continue
            if "forgotten" in message:
                with self._lock:
                    self._known[base].pop(message["forgotten"], None)
                self._pages.pop(message["forgotten"], None)
                self.events[base].send("forgotten", {"id": message["forgotten"]})
                continue
            upload = Upload.from_dict(message["upload"])
            if upload.state != READING:
                self._pages.pop(upload.id, None)
            if upload.state == DONE:
                self._delay = _FIRST_DELAY
            with self._lock:
                forgotten = upload.id not in self._known[base] and upload.state == WAITING
            if not forgotten:
                self._note(base, upload)
            if upload.state in SEARCHABLE and not self._reading(base):
                self._changed(base)
