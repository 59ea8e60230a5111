"""The trash of a knowledge base: documents that were removed in the app, or whose file disappeared from a watched
folder, with all that is needed to put them back; and earlier versions of watched documents, which answers quote.

First the content of a document is written to a file of the trash, then it is removed. A process that is killed in
between does it again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import NotFound
from clew.core.files import copy_file, create_folder, replace_file
from clew.core.sources import Sources, expand_path, list_sources
from clew.core.text import file_name
from clew.core.types import (
    SECTION,
    Box,
    Location,
    Node,
    ParsedDocument,
    ParsedNode,
    container_path,
)
from clew.knowledge_base.ingest.documents import has_vanished
from clew.knowledge_base.source_files import UPLOAD_PREFIX, upload_path

if TYPE_CHECKING:
    from clew.knowledge_base.knowledge_base import KnowledgeBase

TRASH_FOLDER, VERSIONS_FOLDER = "trash", "versions"
#: Days for which the trash keeps a document.
TRASH_DAYS = 30.0
_DAY = 86_400.0
_PLAIN_FIELDS = ("key", "title", "media_type", "parser", "text", "pages")
_SUFFIX = ".json.gz"
#: The bytes of an uploaded file, beside its document.
_ORIGINAL = ".original"
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

    @property
    def name(self) -> str:
        """The name of its file."""
        return file_name(self.path)


class Trash:
    """The trash of a knowledge base: one compressed file for each path that disappeared."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        own = base.store.own_path
        self._folder, self._versions = own / TRASH_FOLDER, own / VERSIONS_FOLDER

    def add(self, paths: Sources) -> list[str]:
        """Move the documents at ``paths``, and those within these files, to the trash; return their ids there. Raises
        NotFound."""
        locations = self._base.store.locations()
        tags = self._base.store.tags()
        gone = set(list_sources(paths))
        ids = [
            self._write(self._folder, _trash_id(location, key), location, key, tags.get(path, ()))
            for path, (location, key) in sorted(locations.items())
            if path in gone or container_path(path) in gone
        ]
        self._base.remove(*gone)
        return ids

    def count(self) -> int:
        """Return how many documents are in the trash."""
        return sum(1 for _ in self._folder.glob(f"*{_SUFFIX}"))

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

    def restore(self, *names: Sources) -> list[str]:
        """Put documents back, named by their ids or paths in the trash; return the paths that they have now.

        Where the file of a document is there again, it has its own path, else one that begins with
        :data:`RESTORED_PREFIX`. Raises NotFound.
        """
        entries = self.documents()
        places = []
        for name in list_sources(*names):
            absolute = str(expand_path(name))
            chosen = [entry for entry in entries if name in {entry.id, entry.path} or absolute == entry.path]
            if not chosen:
                raise NotFound(f"nothing in the trash is '{name}'", "See: clew trash list")
            for entry in chosen:
                file = self._folder / f"{entry.id}{_SUFFIX}"
                content = _read(file)
                location = Location(**content["location"])
                if location.path.startswith(UPLOAD_PREFIX):
                    self._restore_upload(entry.id, content["key"])
                elif has_vanished(container_path(location.path)):
                    location = Location(
                        RESTORED_PREFIX + location.path, RESTORED_PREFIX, location.size, location.mtime_ns, 0
                    )
                self._base.store.put_document(_document_from_json(content), location)
                self._base.store.tag([location.path], add=content.get("tags", ()))
                places.append(location.path)
                self._delete(entry.id)
        self._base.store.catch_up()
        return places

    def empty(self, days: float = 0.0) -> int:
        """Delete for good what has been in the trash for more than ``days``; return how many documents."""
        before = time.time() - days * _DAY
        old = [entry for entry in self.documents() if entry.when <= before]
        for entry in old:
            self._delete(entry.id)
        for file in self._versions.glob(f"*{_SUFFIX}"):
            if file.stat().st_mtime <= before:
                file.unlink(missing_ok=True)
        return len(old)

    def delete(self, *ids: Sources) -> None:
        """Delete documents of the trash for good. Raises NotFound."""
        known = {entry.id for entry in self.documents()}
        for id in list_sources(*ids):
            if id not in known:
                raise NotFound(f"nothing in the trash is '{id}'", "See: clew trash list")
            self._delete(id)

    def _delete(self, id: str) -> None:
        for suffix in (_SUFFIX, _ORIGINAL):
            (self._folder / f"{id}{suffix}").unlink(missing_ok=True)

    def _restore_upload(self, id: str, key: str) -> None:
        """Put the bytes of an upload back, from which its pages are drawn."""
        original, place = self._folder / f"{id}{_ORIGINAL}", upload_path(self._base.path, key)
        if original.exists() and not place.exists():
            create_folder(place.parent)
            unfinished = place.with_suffix(".part")
            copy_file(original, unfinished)
            unfinished.replace(place)

    def keep_versions(self, paths: Sources) -> None:
        """Keep the documents at ``paths`` as they are now, before their files are read again."""
        locations = self._base.store.locations()
        for path in list_sources(paths):
            if path in locations:
                location, key = locations[path]
                self._write(self._versions, key, location, key, ())

    def forget_versions(self, paths: Sources) -> None:
        """Delete the earlier versions of ``paths``."""
        gone = set(list_sources(paths))
        for file in self._versions.glob(f"*{_SUFFIX}"):
            content = _read_or_none(file)
            if content is not None and content["location"]["path"] in gone:
                file.unlink(missing_ok=True)

    def earlier_nodes(self, key: str) -> list[Node]:
        """Return the nodes of a document that was changed or removed, as it was; [] where it was not kept."""
        version = self._versions / f"{key}{_SUFFIX}"
        for file in (version, *self._folder.glob(f"*{_SUFFIX}")):
            content = _read_or_none(file)
            if content is not None and content["key"] == key:
                return _nodes_from_json(content)
        return []

    def _write(self, folder: Path, id: str, location: Location, key: str, tags: Sequence[str]) -> str:
        parsed = self._base.store.parsed_document(key)
        content = {
            "when": time.time(),
            "location": asdict(location),
            "tags": list(tags),
            **{name: getattr(parsed, name) for name in _PLAIN_FIELDS},
            "fields": [list(pair) for pair in parsed.fields],
            "left_out": [list(triple) for triple in parsed.left_out],
            "nodes": [_node_to_json(node) for node in parsed.nodes],
        }
        create_folder(folder)
        uploaded = upload_path(self._base.path, key)
        if folder == self._folder and location.path.startswith(UPLOAD_PREFIX) and uploaded.exists():
            copy_file(uploaded, folder / f"{id}{_ORIGINAL}")
        compressed = gzip.compress(json.dumps(content, ensure_ascii=False).encode())
        replace_file(folder / f"{id}{_SUFFIX}", compressed)
        return id


def _trash_id(location: Location, key: str) -> str:
    return hashlib.blake2b(f"{location.path}\0{key}".encode(), digest_size=6).hexdigest()


def _read(file: Path) -> dict[str, Any]:
    content = json.loads(gzip.decompress(file.read_bytes()))
    if not isinstance(content, dict):
        raise ValueError("no document")
    return content


def _read_or_none(file: Path) -> dict[str, Any] | None:
    """Return the content of a file, None where it is damaged or has just been deleted."""
    try:
        return _read(file)
    except (OSError, ValueError, EOFError):
        return None


def _nodes_from_json(content: dict[str, Any]) -> list[Node]:
    key, name = content["key"], file_name(content["location"]["path"])
    nodes: list[Node] = []
    for position, parsed in enumerate(map(_node_from_json, content["nodes"])):
        above = None if parsed.parent is None else nodes[parsed.parent]
        headings: tuple[str, ...] = ()
        if above is not None:
            headings = (*above.headings, above.name) if above.kind == SECTION else above.headings
        nodes.append(
            Node(
                f"{key}:{position}",
                parsed.kind,
                parsed.text,
                key,
                name,
                position,
                None if above is None else above.id,
                parsed.name,
                parsed.level,
                parsed.page,
                headings,
                parsed.span,
                parsed.boxes,
                parsed.cells,
            )
        )
    return nodes


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
        left_out=tuple((reason, text, times) for reason, text, times in content.get("left_out", ())),
    )
