"""The server's side of sources: what each base follows, its state, and the worker process."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from clew.app.web.errors import LOG, ServerBusy
from clew.core.addresses import without_password
from clew.core.errors import NotFound, UsageError
from clew.core.files import replace_file
from clew.core.messages import read_output

FILE = "sources.json"
#: Sources of one base.
MAX_SOURCES = 100
#: Seconds that the worker gets to leave a base alone before it is killed.
_CLOSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Source:
    """A source: ``kind`` is ``folder`` or ``page``, ``place`` its path or address; its documents get ``tags``. A
    folder that is ``paused`` is not looked at, a system folder only with ``anyway``; ``read`` says that a page was
    read."""

    id: str
    kind: Literal["folder", "page"]
    place: str
    tags: tuple[str, ...] = ()
    added: float = 0.0
    paused: bool = False
    read: bool = False
    anyway: bool = False


@dataclass(slots=True)
class _Followed:
    path: Path
    sources: dict[str, Source]
    states: dict[str, dict[str, Any]] = field(default_factory=dict)


class SourceManager:
    """The sources of all bases. ``changed`` is called with the name of a base and whether it has new documents."""

    def __init__(
        self, bases: Mapping[str, Path], changed: Callable[[str, bool], None], *, read_only: bool
    ) -> None:
        self._changed = changed
        self._bases: dict[str, _Followed] = {}
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.RLock()
        self._closed: dict[str, threading.Event] = {}
        self._closing = False
        for name, path in {} if read_only else bases.items():
            self.add_base(name, path)

    def add_base(self, name: str, path: Path) -> None:
        """Follow the sources that a base has from before."""
        followed = self._bases[name] = _Followed(path, _read_sources(path / FILE))
        for id, source in followed.sources.items():
            if source.kind == "page" and (place := without_password(source.place)) != source.place:
                followed.sources[id] = replace(source, place=place)  # earlier versions stored it
                self._save(followed)
        if followed.sources:
            self._follow(name)

    def drop_base(self, name: str) -> None:
        """Follow nothing of a base any more; the worker has nothing of it open afterwards."""
        with self._lock:
            followed = self._bases.pop(name, None)
            process = self._process
        if followed is None or not followed.sources or process is None:
            return
        closed = self._closed[name] = threading.Event()
        self._send({"base": name, "path": str(followed.path), "sources": []})
        if not closed.wait(_CLOSE_SECONDS):
            process.kill()  # it is started again for the others; documents are committed one by one
            process.wait()
        self._closed.pop(name, None)

    def close(self) -> None:
        """End the worker."""
        self._closing = True
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def sources(self, base: str) -> list[dict[str, Any]]:
        """Return the sources of a base with their states, in the order in which they were added."""
        followed = self._bases.get(base)
        if followed is None:
            return []
        return [
            asdict(source) | {"state": followed.states.get(source.id, {"state": "waiting"})}
            for source in followed.sources.values()
        ]

    def add(
        self,
        base: str,
        kind: Literal["folder", "page"],
        place: str,
        tags: Sequence[str],
        *,
        anyway: bool = False,
    ) -> Source:
        """Add a source and begin with it. Raises UsageError for a place that is a source already."""
        with self._lock:
            followed = self._sources_of(base)
            if len(followed.sources) >= MAX_SOURCES:
                raise ServerBusy(f"a project has at most {MAX_SOURCES} sources", 60)
            for source in followed.sources.values():
                if source.place == place:
                    raise UsageError(f"{place} is a source of this project already")
            source = Source(secrets.token_hex(6), kind, place, tuple(tags), time.time(), anyway=anyway)
            followed.sources[source.id] = source
            self._save(followed)
        self._follow(base)
        return source

    def remove(self, base: str, id: str) -> Source:
        """Follow a source no more; its documents stay. Raises NotFound."""
        with self._lock:
            followed = self._sources_of(base)
            if id not in followed.sources:
                raise NotFound(f"no source '{id}'")
            source = followed.sources.pop(id)
            followed.states.pop(id, None)
            self._save(followed)
        # Whatever is being read of it ends at once.
        self._restart(base)
        return source

    def change(self, base: str, id: str, *, paused: bool | None = None, again: bool = False) -> Source:
        """Pause or go on with a folder, or read a page ``again``. Raises NotFound."""
        with self._lock:
            followed = self._sources_of(base)
            if id not in followed.sources:
                raise NotFound(f"no source '{id}'")
            source = followed.sources[id]
            source = replace(source, paused=source.paused if paused is None else paused)
            followed.sources[id] = replace(source, read=False) if again else source
            followed.states[id] = {"state": "waiting"}
            self._save(followed)
        self._restart(base)
        return source

    def _sources_of(self, base: str) -> _Followed:
        if base not in self._bases:
            raise NotFound(
                f"'{base}' follows no folders and pages",
                "Only a knowledge base in a folder of this machine does",
            )
        return self._bases[base]

    def _save(self, followed: _Followed) -> None:
        content = json.dumps([asdict(source) for source in followed.sources.values()])
        replace_file(followed.path / FILE, content)

    def _restart(self, base: str) -> None:
        """Make the worker begin anew with a base, and end what it reads now."""
        process = self._process
        reads = any(state.get("state") == "reading" for state in self._bases[base].states.values())
        if process is not None and reads:
            process.kill()
            process.wait()
        else:
            self._follow(base)

    def _follow(self, base: str) -> None:
        followed = self._bases[base]
        sources = [asdict(source) for source in followed.sources.values()]
        self._send({"base": base, "path": str(followed.path), "sources": sources})

    def _send(self, command: dict[str, Any]) -> None:
        with self._lock:
            if self._process is None:
                if not command["sources"]:
                    return
                self._start()
            assert self._process is not None and self._process.stdin is not None
            with suppress(OSError, ValueError):  # it has just ended and is started again
                self._process.stdin.write(json.dumps(command) + "\n")
                self._process.stdin.flush()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "clew.app.web.sources.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C is the server's
        )
        threading.Thread(target=self._listen, args=(self._process,), daemon=True, name="clew-sources").start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Receive the worker's messages; start another one where there is still something to follow."""
        assert process.stdout is not None and process.stdin is not None
        with process.stdout as lines:
            for line in read_output(lines):
                self._receive(json.loads(line))
        code = process.wait()
        with suppress(OSError, ValueError):
            process.stdin.close()
        with self._lock:
            self._process = None
            names = [name for name, followed in self._bases.items() if followed.sources]
        if self._closing or not names:
            return
        if code >= 0:  # it was not ended by us
            LOG.error("the process that follows sources ended (%s); it is started again", code)
            time.sleep(1.0)
        for name in names:
            self._follow(name)

    def _receive(self, message: dict[str, Any]) -> None:
        base = message["base"]
        if message.get("closed"):
            if base in self._closed:
                self._closed[base].set()
            return
        with self._lock:
            followed = self._bases.get(base)
            if followed is None or message["id"] not in followed.sources:
                return
            state = message["state"]
            followed.states[message["id"]] = state
            source = followed.sources[message["id"]]
            if source.kind == "page" and state["state"] in {"done", "failed"} and not source.read:
                followed.sources[source.id] = replace(source, read=True)
                self._save(followed)
        self._changed(base, bool(state.get("changed")))


def _read_sources(path: Path) -> dict[str, Source]:
    """Return the sources of a base, none where the file cannot be read."""
    try:
        records = json.loads(path.read_text("utf-8"))
        sources = [Source(**record | {"tags": tuple(record["tags"])}) for record in records]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        LOG.warning("%s cannot be read: %s", path, error)
        return {}
    return {source.id: source for source in sources}
