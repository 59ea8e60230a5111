"""Keeps a knowledge base in step with folders, and keeps what disappears from them in a trash.

The folders are polled: a scan reads the names, sizes and times of files alone, works on every file system (network
drives send no events) and misses nothing. What changed is added once it has been quiet for a moment, so that no file
is read while it is being written.

A document whose file disappears is moved to the trash: first its content is written to a file of the trash, then it
is removed. A process that is killed in between does it again. A folder that is missing altogether (a drive that is
not mounted) empties nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import NotFound, UsageError
from clew.core.types import Box, Location, ParsedDocument, ParsedNode, container_path
from clew.knowledge_base.ingest.documents import has_vanished
from clew.knowledge_base.ingest.plan import scan_paths

if TYPE_CHECKING:
    from clew.knowledge_base.ingest.report import Progress, Report
    from clew.knowledge_base.knowledge_base import KnowledgeBase

TRASH_FOLDER = "trash"
#: Days for which the trash keeps a document.
TRASH_DAYS = 30.0
_DAY = 86_400.0
_SUFFIX = ".json.gz"
#: A restored document whose file is gone has this before its path, so that no watch takes it for vanished again.
RESTORED_PREFIX = "restored:"


@dataclass(frozen=True, slots=True)
class TrashedDocument:
    """A document in the trash: its ``id`` there, the path that it had, its title, and when it came there, in seconds
    since 1970."""

    id: str
    path: str
    title: str
    when: float


class Trash:
    """The trash of a knowledge base: one compressed file for each path that disappeared."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._folder = base.path / TRASH_FOLDER

    def add(self, paths: Sequence[str]) -> None:
        """Move the documents at ``paths``, and those within these files, to the trash. Raises NotFound."""
        locations = self._base.store.locations()
        gone = set(paths)
        for path, (location, key) in sorted(locations.items()):
            if path in gone or container_path(path) in gone:
                self._write(location, key)
        self._base.remove(*paths)

    def documents(self) -> list[TrashedDocument]:
        """Return what is in the trash, the latest first. A file that is damaged is left out."""
        entries = []
        for file in self._folder.glob(f"*{_SUFFIX}"):
            try:
                content = _read(file)
                entries.append(
                    TrashedDocument(
                        file.name.removesuffix(_SUFFIX),
                        content["location"]["path"],
                        content["title"],
                        content["when"],
                    )
                )
            except (OSError, ValueError, KeyError, EOFError):
                continue
        return sorted(entries, key=lambda entry: (-entry.when, entry.path))

    def restore(self, *names: str) -> list[str]:
        """Put documents back, named by their ids or paths in the trash; return the paths that they have now.

        Where the file of a document is there again, it has its own path, else one that begins with
        :data:`RESTORED_PREFIX`. Raises NotFound.
        """
        entries = self.documents()
        places = []
        for name in names:
            absolute = os.path.abspath(Path(name).expanduser())  # noqa: PTH100 - links stay, as when it was added
            chosen = [entry for entry in entries if name in {entry.id, entry.path} or absolute == entry.path]
            if not chosen:
                raise NotFound(f"nothing in the trash is '{name}'", "See: clew trash list")
            for entry in chosen:
                file = self._folder / f"{entry.id}{_SUFFIX}"
                content = _read(file)
                location = Location(**content["location"])
                if has_vanished(container_path(location.path)):
                    location = Location(
                        RESTORED_PREFIX + location.path, RESTORED_PREFIX, location.size, location.mtime_ns, 0
                    )
                self._base.store.put_document(_document_from_json(content), location)
                places.append(location.path)
                file.unlink()
        self._base.store.catch_up()
        return places

    def empty(self, days: float = 0.0) -> int:
        """Delete for good what has been in the trash for more than ``days``; return how many documents."""
        before = time.time() - days * _DAY
        old = [entry for entry in self.documents() if entry.when <= before]
        for entry in old:
            (self._folder / f"{entry.id}{_SUFFIX}").unlink(missing_ok=True)
        return len(old)

    def _write(self, location: Location, key: str) -> None:
        parsed = self._base.store.parsed_document(key)
        content = {
            "when": time.time(),
            "location": asdict(location),
            **{
                name: getattr(parsed, name)
                for name in ("key", "title", "media_type", "parser", "text", "pages")
            },
            "fields": [list(pair) for pair in parsed.fields],
            "nodes": [_node_to_json(node) for node in parsed.nodes],
        }
        self._folder.mkdir(exist_ok=True)
        id = hashlib.blake2b(f"{location.path}\0{key}".encode(), digest_size=6).hexdigest()
        unfinished = self._folder / f"{id}.unfinished"
        with unfinished.open("wb") as opened:
            opened.write(gzip.compress(json.dumps(content, ensure_ascii=False).encode()))
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(self._folder / f"{id}{_SUFFIX}")


def _read(file: Path) -> dict[str, Any]:
    content = json.loads(gzip.decompress(file.read_bytes()))
    if not isinstance(content, dict):
        raise ValueError("no document")
    return content


def _node_to_json(node: ParsedNode) -> list[Any]:
    boxes = [box.to_list() for box in node.boxes]
    cells = [None if box is None else box.to_list() for box in node.cells]
    return [
        node.kind,
        node.text,
        node.parent,
        node.name,
        node.level,
        node.page,
        list(node.span),
        boxes,
        cells,
    ]


def _node_from_json(values: list[Any]) -> ParsedNode:
    kind, text, parent, name, level, page, (first, last), boxes, cells = values
    return ParsedNode(
        kind,
        text,
        parent,
        name,
        level,
        page,
        (first, last),
        tuple(Box(*box) for box in boxes),
        cells=tuple(None if box is None else Box(*box) for box in cells),
    )


def _document_from_json(content: dict[str, Any]) -> ParsedDocument:
    nodes = tuple(map(_node_from_json, content["nodes"]))
    return ParsedDocument(
        content["key"],
        content["title"],
        content["media_type"],
        content["parser"],
        content["text"],
        nodes,
        content["pages"],
        fields=tuple((name, value) for name, value in content["fields"]),
    )


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """What a scan of the folders shows, against the knowledge base: files to read (new or changed), and paths whose
    file is gone; folders that are missing altogether, whose documents stay."""

    new: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.vanished)


@dataclass(slots=True)
class FolderWatch:
    """Watches ``folders`` for a knowledge base; :meth:`run` polls, :meth:`synchronise` does the work of one change.

    A change is taken up once the folders have been the same for ``quiet`` seconds, or after ``patience`` seconds of
    changes without a pause. What disappears is kept in the trash for ``trash_days``.
    """

    base: KnowledgeBase
    folders: Sequence[Path]
    quiet: float = 2.0
    patience: float = 60.0
    trash_days: float = TRASH_DAYS
    workers: int | None = None
    _seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folders = [Path(os.path.abspath(Path(folder).expanduser())) for folder in self.folders]  # noqa: PTH100
        for folder in self.folders:
            if folder.exists() and not folder.is_dir():
                raise UsageError(f"{folder} is a file", f"Watch its folder: clew watch {folder.parent}")

    @property
    def trash(self) -> Trash:
        """The trash of the knowledge base."""
        return Trash(self.base)

    def changes(self) -> FolderChanges:
        """Return what is to be done, and do nothing."""
        files, missing = self._scan()
        locations = self.base.store.locations()
        new = [
            path
            for path, visit in files.items()
            if path not in locations or _visit(locations[path][0]) != visit
        ]
        present = [folder for folder in self.folders if str(folder) not in missing]
        vanished = sorted(
            path
            for path in locations
            if container_path(path) == path
            and any(folder in Path(path).parents for folder in present)
            and has_vanished(path)
        )
        return FolderChanges(tuple(sorted(new)), tuple(vanished), tuple(missing))

    def synchronise(self, progress: Progress | None = None) -> tuple[Report, FolderChanges]:
        """Add what is new, move what is gone to the trash, and delete what has been there too long.

        Files are added first: a file that was moved is then another path of its document, which stays.
        """
        present = [folder for folder in self.folders if folder.is_dir()]
        report = self.base.add(present, workers=self.workers, progress=progress)
        changes = self.changes()
        if changes.vanished:
            self.trash.add(changes.vanished)
        self.trash.empty(self.trash_days)
        return report, changes

    def run(
        self,
        every: float = 2.0,
        should_stop: Callable[[], bool] = lambda: False,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Report, FolderChanges]]:
        """Poll each ``every`` seconds, and yield what was done whenever something changed."""
        self._seen = {}
        pending_since: float | None = 0.0  # the first look is a change: nothing has been seen
        changed_at = 0.0
        while not should_stop():
            now = time.monotonic()
            files, _ = self._scan()
            if files != self._seen:
                self._seen, changed_at = files, now
                pending_since = now if pending_since is None else pending_since
            is_due = pending_since is not None and (
                now - changed_at >= self.quiet or now - pending_since >= self.patience or not pending_since
            )
            if is_due:
                pending_since = None
                if self.changes():
                    yield self.synchronise(progress)
            time.sleep(every)

    def _scan(self) -> tuple[dict[str, tuple[int, int, int]], list[str]]:
        """Return size, time and inode of each file that is read, and the folders that are missing."""
        from clew.parse.documents.reader import is_supported

        missing = [str(folder) for folder in self.folders if not folder.is_dir()]
        present = [folder for folder in self.folders if str(folder) not in missing]
        scan = scan_paths(present, is_supported, exclude=self.base.path)
        return {file.path: _visit(file) for file in scan.files}, missing


def _visit(location: Location) -> tuple[int, int, int]:
    return location.size, location.mtime_ns, location.inode
