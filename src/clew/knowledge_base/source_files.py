"""The files that documents were read from: uploaded ones, kept inside the base, and pictures of pages.

An uploaded file has a name but no path: it is kept as ``uploads/<document key>``, and its location is written
``upload:<document key>/<name>``. So a name is never used as a path, whatever stands in it.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from clew.core.errors import NotFound, UnreadableFile, UsageError
from clew.core.types import Location, ParsedDocument

if TYPE_CHECKING:
    from clew.parse.documents.pdf.page_images import PageImage
    from clew.parse.documents.pool import ParsePool
    from clew.store.store import Store

UPLOAD_PREFIX = "upload:"
UPLOADS_FOLDER = "uploads"
#: Limits on drawing one page: a hostile one costs this and no more.
_DRAW_SECONDS, _DRAW_MEMORY = 30.0, 1 << 30
#: Seconds for which a kept file of no document is left alone: its document may be about to be committed.
_MAY_BECOME = 3_600.0
#: A page is drawn with at most so many pixels.
MAX_PIXELS = 8_000_000


@dataclass(frozen=True, slots=True)
class UploadResult:
    """What became of an uploaded file: the document's key, the passages and rows that are new, and remarks of the
    parser."""

    key: str
    passages: int = 0
    notes: tuple[str, ...] = ()


class Uploads:
    """Takes uploaded files into a base, each read by a process with limits on time and memory."""

    def __init__(self, store: Store, pool: ParsePool) -> None:
        self._store = store
        self._pool = pool

    def add(self, path: Path, name: str) -> UploadResult:
        """Add the file ``path`` under ``name``; the base keeps the bytes, and ``path`` is the caller's to delete.

        It is searchable when the base has caught up. Raises UnreadableFile.
        """
        from clew.core.types import RETRIEVED_KINDS

        if "/" in name or "\\" in name or not name.strip(". "):
            raise UsageError(f"'{name}' is no name for a file")
        ((_, outcome),) = self._pool.read_files([path], self._store.passage_unit, {path: {"name": name}})
        if isinstance(outcome, UnreadableFile):
            raise outcome
        done = self._keep(path, name, outcome)
        new = sum(node.kind in RETRIEVED_KINDS for node in outcome.nodes) if done == "added" else 0
        return UploadResult(outcome.key, new, outcome.notes)

    def _keep(self, path: Path, name: str, parsed: ParsedDocument) -> str:
        """Commit a document. Its bytes are kept first: killed in between, the next try finds them."""
        kept = _kept(self._store.path, parsed.key)
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        if not kept.exists():
            part = kept.with_suffix(".part")
            shutil.copyfile(path, part)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            part.replace(kept)
        status = kept.stat()
        place = f"{UPLOAD_PREFIX}{parsed.key}/{name}"
        return self._store.put_document(
            parsed, Location(place, place, status.st_size, status.st_mtime_ns, status.st_ino)
        )


#: Pages are drawn one at a time in the whole process: drawing keeps a processor busy.
_DRAWING = threading.Lock()


class SourceFiles:
    """The files that the documents of a knowledge base were read from: ``base.files``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool: ParsePool | None = None
        #: By document key, the path and status of a file whose bytes were found to be the document's.
        self._verified: dict[str, tuple[str, tuple[int, int, int]]] = {}

    @contextmanager
    def open_uploads(self, seconds: float | None = None, memory: int | None = None) -> Iterator[Uploads]:
        """Give what takes uploaded files; ``seconds`` and bytes of ``memory`` are what reading one may take."""
        from clew.parse.documents.pool import MEMORY_LIMIT, TIME_LIMIT, ParsePool

        with ParsePool(1, time_limit=seconds or TIME_LIMIT, memory_limit=memory or MEMORY_LIMIT) as pool:
            yield Uploads(self._store, pool)

    def original(self, document: str) -> Path:
        """Return a file that has exactly the bytes that the document (a key) was read from.

        The bytes are compared, so that no file is ever taken for a document that it is not. Raises NotFound where
        there is no such file any more.
        """
        from clew.parse.documents.builder import document_key
        from clew.parse.documents.reader import read_bytes

        known = self._store.document(document)
        uploaded = [_kept(self._store.path, known.key)]
        elsewhere = [Path(path) for path in known.paths if not path.startswith(UPLOAD_PREFIX)]
        for path in uploaded + elsewhere:
            try:
                status = path.stat()
                seen = str(path), (status.st_size, status.st_mtime_ns, status.st_ino)
                if self._verified.get(known.key) == seen:
                    return path
                data = read_bytes(path)
            except (OSError, UnreadableFile):
                continue
            if document_key(data, known.media_type, known.parser) == known.key:
                self._verified[known.key] = seen
                return path
        raise NotFound(
            f"the file of '{known.name}' is no longer where it was, or was changed", "Add it again: clew add"
        )

    def page_image(self, document: str, page: int, scale: float = 1.5) -> PageImage:
        """Return page ``page`` (from 1) of a PDF as a picture, ``scale`` pixels to the point (72 to the inch),
        smaller where it would have more than :data:`MAX_PIXELS`.

        It is drawn by a process with limits on time and memory, one page at a time. Raises NotFound for a page that
        is not there, UsageError where the document has none, UnreadableFile where it cannot be drawn.
        """
        known = self._store.document(document)
        if known.media_type != "application/pdf":
            raise UsageError(f"'{known.name}' has no pages to draw", "Its text: clew show")
        if not 1 <= page <= known.pages:
            raise NotFound(f"'{known.name}' has no page {page}", f"It has {known.pages}")
        if not 0.1 <= scale <= 8:
            raise UsageError(f"the scale {scale:g} is not between 0.1 and 8")
        from clew.parse.documents.pdf.page_images import PageImage, render_page
        from clew.parse.documents.pool import ParsePool

        path = self.original(known.key)
        with _DRAWING:
            if self._pool is None:
                self._pool = ParsePool(
                    1, reader=render_page, time_limit=_DRAW_SECONDS, memory_limit=_DRAW_MEMORY
                )
            page_options = {path: {"page": page, "scale": scale, "max_pixels": MAX_PIXELS}}
            ((_, outcome),) = self._pool.read_files([path], options=page_options)
        if isinstance(outcome, UnreadableFile):
            raise outcome
        return cast(PageImage, outcome)

    def forget_uploads(self, paths: Iterable[str]) -> None:
        """Delete the kept bytes of uploads that were removed."""
        keys = _keys(paths)
        if not keys:
            return
        for key in keys - _keys(self._store.locations()):
            with suppress(FileNotFoundError):
                _kept(self._store.path, key).unlink()

    def find_left_uploads(self, repair: bool) -> int:
        """Return how many kept files belong to no document (a server was killed while it took one in); ``repair``
        deletes them. Those of the last hour may yet become one."""
        folder = self._store.path / UPLOADS_FOLDER
        known = _keys(self._store.locations())
        before = time.time() - _MAY_BECOME
        left = [
            path
            for path in (folder.iterdir() if folder.is_dir() else ())
            if path.name not in known and path.stat().st_mtime < before
        ]
        for path in left if repair else ():
            path.unlink(missing_ok=True)
        return len(left)

    def close(self) -> None:
        """End the process that draws pages, if there is one."""
        with _DRAWING:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


def _kept(folder: Path, key: str) -> Path:
    return folder / UPLOADS_FOLDER / key


def _keys(paths: Iterable[str]) -> set[str]:
    """Return the keys of the uploads among the paths of documents."""
    return {path[len(UPLOAD_PREFIX) :].partition("/")[0] for path in paths if path.startswith(UPLOAD_PREFIX)}
