"""The server's side of uploads: what was accepted, what became of it, and the process that reads it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from clew.app.web.errors import LOG, RequestRefused, ServerBusy
from clew.app.web.events import EventChannel
from clew.app.web.settings import Settings
from clew.app.web.uploads.multipart import storage_error
from clew.app.web.uploads.spool import DONE, ENCODING, FINAL_STATES, WAITING, Spool, Upload
from clew.core.errors import NotFound

#: Uploads that are done, or have failed, and are still listed.
_LISTED = 500
#: States in which an upload can be found.
_FOUND = (ENCODING, DONE)
#: Seconds before the process that reads is started again, where it ended by itself: the first time, and at most.
_AGAIN, _LATER = 1.0, 60.0


class UploadManager:
    """Uploads of all bases by base and id, as last heard; ``events`` tells of each change.

    The process that reads is started with the first upload, or at once where something waits from before. ``changed``
    is called with the name of a base in which something new can be found, once nothing more waits to be read into it.
    """

    def __init__(self, settings: Settings, changed: Callable[[str], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._known: dict[str, OrderedDict[str, Upload]] = {}
        self.spools = {name: Spool(path) for name, path in settings.bases.items()}
        self.events = {name: EventChannel(keep=200) for name in settings.bases}
        self._arriving = dict.fromkeys(settings.bases, 0)  # bytes
        self._gates = threading.BoundedSemaphore(settings.limits.arriving)
        self._encoding: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()
        self._writing = threading.RLock()  # what the process is told, line by line
        self._paused = 0
        self._process: subprocess.Popen[str] | None = None
        self._closing = threading.Event()
        self._again = _AGAIN
        for name, spool in self.spools.items():
            if not settings.read_only:
                spool.delete_leftovers()
            self._known[name] = OrderedDict((one.id, one) for one in spool.all_uploads())

    def start(self) -> None:
        """Start the process that reads: it also makes searchable what another has left."""
        if not self._settings.read_only:
            self._start()

    def close(self) -> None:
        """End the process; what it is at continues when the next server starts."""
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
        """Hold a place for an upload of ``claimed`` bytes (0 where it does not say) until it is accepted; give what
        counts its bytes as they arrive. Both raise Busy where too much waits or arrives already."""
        limits, arrived = self._settings.limits, 0

        def take(more: int) -> None:
            nonlocal arrived
            with self._lock:
                waiting = [one.size for one in self._known[base].values() if one.state not in FINAL_STATES]
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

        if not self._gates.acquire(blocking=False):
            raise ServerBusy(f"{limits.arriving} uploads are arriving already", 10)
        try:
            take(0)
            yield take
        finally:
            self._gates.release()
            with self._lock:
                self._arriving[base] -= arrived

    def accept(self, base: str, uploads: Sequence[Upload]) -> list[tuple[Upload, RequestRefused]]:
        """Take files on that have arrived; when this returns, they survive a power cut. Return those that could not
        be stored, each with the reason: nothing of them is kept."""
        refused = []
        for upload in uploads:
            try:
                self.spools[base].accept(upload)
            except OSError as error:
                self.spools[base].discard(upload.id)
                refused.append((upload, storage_error(error)))
            else:
                self._note(base, upload)
        self._say("look")
        return refused

    def all_uploads(self, base: str) -> list[dict[str, Any]]:
        """Return the uploads of a base, the oldest first."""
        with self._lock:
            return [one.to_dict() for one in self._known[base].values()]

    def encoding_progress(self, base: str) -> dict[str, int] | None:
        """Return how many passages have been encoded, of how many, while that is being done."""
        return self._encoding.get(base)

    def forget(self, base: str, id: str) -> None:
        """Forget an upload that is done or has failed, or one that still waits. Raises NotFound, Busy."""
        with self._lock:
            known = self._known[base].get(id)
        if known is None:
            raise NotFound(f"no upload '{id}'")
        if known.state not in {*FINAL_STATES, WAITING}:
            raise ServerBusy(f"'{known.name}' is being read", 5)
        with suppress(NotFound):  # one that is done has left the spool
            self.spools[base].forget(id)
        with self._lock:
            self._known[base].pop(id, None)
        self.events[base].send("forgotten", {"id": id})

    def discard_document(self, base: str, key: str) -> None:
        """Let a document that was removed not come back: its upload may lie in the spool still."""
        for upload in self.spools[base].all_uploads():
            if upload.key == key:
                with suppress(NotFound):  # it has just become searchable
                    self.spools[base].forget(upload.id)

    @contextmanager
    def pause_worker(self) -> Iterator[None]:
        """Make the process let go of a base's locks, so that the caller may write."""
        with self._writing:
            self._paused += 1
            self._say("pause")
        try:
            yield
        finally:
            with self._writing:
                self._paused -= 1
                if not self._paused:
                    self._say("resume")

    def _note(self, base: str, upload: Upload) -> None:
        with self._lock:
            known = self._known[base]
            known[upload.id] = upload
            ended = [one.id for one in known.values() if one.state in FINAL_STATES]
            old = ended[: max(0, len(ended) - _LISTED)]
            for id in old:
                del known[id]
        for id in old:
            with suppress(NotFound):  # one that is done has left the spool
                self.spools[base].forget(id)
        self.events[base].send("upload", upload.to_dict())

    def _reading(self, base: str) -> bool:
        with self._lock:
            return any(one.state not in {*FINAL_STATES, *_FOUND} for one in self._known[base].values())

    def _say(self, word: str) -> None:
        with self._writing:
            if self._process is None or self._process.stdin is None:
                return
            with suppress(OSError, ValueError):  # it has just ended, and is started again
                self._process.stdin.write(word + "\n")
                self._process.stdin.flush()

    def _start(self) -> None:
        limits = self._settings.limits
        said = {
            "bases": {name: str(path) for name, path in self._settings.bases.items()},
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
                start_new_session=True,  # Ctrl-C is the server's
            )
            self._say(json.dumps(said))
            if self._paused:
                self._say("pause")
        threading.Thread(target=self._listen, args=(process,), daemon=True, name="clew-uploads").start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Take what the process tells; start another where it ends by itself."""
        assert process.stdout is not None and process.stdin is not None
        with process.stdout as lines:
            self._take(lines)
        code = process.wait()
        with suppress(OSError, ValueError):
            process.stdin.close()
        if not self._closing.wait(self._again):
            LOG.error("the process that reads uploads ended (%s); it is started again", code)
            self._again = min(2 * self._again, _LATER)
            self._start()

    def _take(self, lines: IO[str]) -> None:
        for line in lines:
            message = json.loads(line)
            base = message["base"]
            if "encoding" in message:
                told = message["encoding"]
                self._encoding[base] = told
                self.events[base].send("encoding", told)
                if told["done"] >= told["total"]:
                    self._encoding.pop(base, None)
                continue
            upload = Upload.from_dict(message["upload"])
            if upload.state == DONE:
                self._again = _AGAIN
            with self._lock:
                gone = upload.id not in self._known[base] and upload.state == WAITING
            if not gone:
                self._note(base, upload)
            if upload.state in _FOUND and not self._reading(base):
                self._changed(base)
