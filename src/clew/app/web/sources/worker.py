"""The process that follows the sources of all bases: ``python -m clew.app.web.sources.worker``, started by the server
once there is a source.

Each line of its input is JSON: the ``sources`` of a base with its name and path, which replace those that it followed
before. Its output is a line of JSON for each change of a source's state. Folders are looked at again and again
(:class:`clew.knowledge_base.watch.FolderWatch`); a page is read once. Documents are committed one by one, so that the
process can be killed at any time. When its input ends, it ends, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

import clew
from clew.core.errors import ClewError
from clew.core.messages import take_output
from clew.knowledge_base.ingest.report import Event, Report
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.watch import FolderWatch

#: Seconds between two looks at the folders, and without a change before a file is read.
EVERY, QUIET = 1.0, 1.0
#: Seconds between two reports of progress, and failures that one report names.
_REPORT_EVERY, _MAX_FAILURES = 0.3, 20
_NICE = 5


@dataclass(slots=True)
class _Base:
    """A base with its sources by id: watches of folders, and the ids of pages that were read."""

    name: str
    base: KnowledgeBase
    sources: dict[str, dict[str, Any]]
    watches: dict[str, FolderWatch] = field(default_factory=dict)
    pages: set[str] = field(default_factory=set)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)


class SourceWorker:
    """Follows the sources of bases, and writes what becomes of them to ``out``."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._bases: dict[str, _Base] = {}
        self._reported = 0.0

    def follow(self, name: str, path: str, sources: list[dict[str, Any]]) -> None:
        """Follow these sources of a base from now on; without any, the base is closed."""
        old = self._bases.pop(name, None)
        if old is not None:
            old.base.close()
        if sources:
            fresh = _Base(name, clew.open(path), {source["id"]: source for source in sources})
            fresh.pages = {source["id"] for source in sources if source["kind"] == "page" and source["read"]}
            self._bases[name] = fresh
        else:
            self._send({"base": name, "closed": True})

    def look(self) -> None:
        """Check each source once, and add or remove what changed."""
        for served in list(self._bases.values()):
            for id, source in served.sources.items():
                try:
                    read = self._read_page if source["kind"] == "page" else self._look_at_folder
                    read(served, id, source)
                except ClewError as error:
                    self._set_state(served, id, {"state": "failed", "error": str(error)})

    def _read_page(self, served: _Base, id: str, source: dict[str, Any]) -> None:
        if id in served.pages:
            return
        served.pages.add(id)
        self._set_state(served, id, {"state": "reading"})
        report = served.base.add(source["place"], progress=lambda event: None)
        self._finish(served, id, source, report)

    def _look_at_folder(self, served: _Base, id: str, source: dict[str, Any]) -> None:
        if source["paused"]:
            self._set_state(served, id, {"state": "paused"})
            return
        folder = Path(source["place"])
        watch = served.watches.get(id)
        if watch is None:
            watch = served.watches[id] = FolderWatch(served.base, folder, QUIET, anyway=source["anyway"])
        if not folder.is_dir():
            self._set_state(served, id, {"state": "missing"})
            return
        if not watch.is_due() or not watch.changes():
            if served.states.get(id, {}).get("state") not in {"watching", "failed"}:
                self._set_state(served, id, self._watching(served, watch))
            return
        self._set_state(served, id, {"state": "reading"})

        def tell_progress(event: Event) -> None:
            now = time.monotonic()
            if event.stage in {"files", "encode"} and now - self._reported >= _REPORT_EVERY:
                self._reported = now
                state = {"state": "reading", "done": event.done, "total": event.total, "stage": event.stage}
                self._set_state(served, id, state)

        report, _ = watch.synchronise(tell_progress)
        self._finish(served, id, source, report, self._watching(served, watch))

    def _watching(self, served: _Base, watch: FolderWatch) -> dict[str, Any]:
        root = f"{watch.folders[0]}{os.sep}"
        files = sum(path.startswith(root) for path in served.base.store.locations())
        return {"state": "watching", "files": files}

    def _finish(
        self,
        served: _Base,
        id: str,
        source: dict[str, Any],
        report: Report,
        state: dict[str, Any] | None = None,
    ) -> None:
        served.base.store.tag([*report.added, *report.replaced, *report.located], add=source["tags"])
        failed = [[Path(failure.path).name, failure.reason] for failure in report.failed[:_MAX_FAILURES]]
        state = state or {"state": "failed" if failed else "done"}
        notes = [[Path(path).name, note] for path, note in report.notes[:_MAX_FAILURES]]
        more = {"failed": failed, "failures": len(report.failed), "notes": notes, "changed": True}
        self._set_state(served, id, {**state, **more, "error": failed[0][1] if failed else ""})

    def _set_state(self, served: _Base, id: str, state: dict[str, Any]) -> None:
        if served.states.get(id) != state:
            served.states[id] = state
            self._send({"base": served.name, "id": id, "state": state})

    def _send(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def main() -> None:
    """Follow what the input names, until it ends."""
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this ends
    if hasattr(os, "nice"):
        os.nice(_NICE)
    out = TextIOWrapper(take_output(), encoding="utf-8")
    commands: SimpleQueue[dict[str, Any]] = SimpleQueue()
    wake = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            commands.put(json.loads(line))
            wake.set()
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    worker = SourceWorker(out)
    while True:
        wake.clear()
        while not commands.empty():
            command = commands.get()
            worker.follow(command["base"], command["path"], command["sources"])
        worker.look()
        wake.wait(EVERY)


if __name__ == "__main__":
    main()
