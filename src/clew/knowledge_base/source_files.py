"""The files that documents were read from: files on disk, uploaded files, and pictures of PDF pages.

An uploaded file has a name but no path. Its bytes are stored as ``uploads/<document key>`` in the folder of the base,
and its location is ``upload:<document key>/<name>``: a name is never used as a path, whatever characters it has.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast

from clew.core.errors import NotFound, UnreadableFile, UsageError
from clew.core.files import copy_file, create_folder, link_file, open_private
from clew.core.types import MEMBER_SEPARATOR, Location, ParsedDocument, container_path

if TYPE_CHECKING:
    from clew.parse.documents.pdf.page_images import PageImage
    from clew.parse.documents.pool import ParsePool
    from clew.store.store import Store

UPLOAD_PREFIX = "upload:"
UPLOADS_FOLDER = "uploads"
#: Has, while documents are removed, an empty file for each upload that is to be deleted.
FORGOTTEN_UPLOADS = f"{UPLOADS_FOLDER}/.removed"
#: Limits on drawing one page, which may be made to take for ever.
_DRAW_SECONDS, _DRAW_MEMORY = 30.0, 1 << 30
#: Seconds for which an uploaded file without a document is left alone: its document may be about to be committed.
_GRACE_SECONDS = 3_600.0
#: The most pixels of a picture of a page.
MAX_PIXELS = 8_000_000


@dataclass(frozen=True, slots=True)
class UploadResult:
    """The result of an upload: the document's key, how many passages and rows are new, and remarks of the parser."""

    key: str
    passages: int = 0
    notes: tuple[str, ...] = ()


class Uploads:
    """Adds uploaded files to a base. Each is parsed in a process with limits on time and memory; ``meanwhile`` is
    called now and then while one is, and may add others by another :class:`Uploads`."""

    def __init__(self, store: Store, pool: ParsePool, folder: Path) -> None:
        self.meanwhile: Callable[[], None] | None = None
        self._store = store
        self._pool = pool
        self._folder = folder  # of the files within uploads, while they are read

    def add(self, path: Path, name: str) -> UploadResult:
        """Add the file ``path`` under ``name``. The base stores a copy; the caller may delete ``path``.

        The document is searchable once the store has caught up. Raises UnreadableFile.
        """
        from clew.core.types import RETRIEVED_KINDS

        if "/" in name or "\\" in name or not name.strip(". "):
            raise UsageError(f"'{name}' is no name for a file")
        options = {path: {"name": name, "members": self._folder}}
        self._pool.on_wait = self.meanwhile
        ((_, outcome),) = self._pool.read_files([path], self._store.passage_unit, options)
        self._pool.on_wait = None
        if isinstance(outcome, UnreadableFile):
            raise outcome
        place = f"{UPLOAD_PREFIX}{outcome.key}/{name}"
        passages, notes = self._add_members(outcome, place)
        if self._commit(path, place, outcome) == "added":
            passages += sum(node.kind in RETRIEVED_KINDS for node in outcome.nodes)
        return UploadResult(outcome.key, passages, (*outcome.notes, *notes))

    def cancel(self) -> None:
        """End the reading of the current file, which then fails. Called from any thread."""
        self._pool.cancel()

    def _add_members(self, parsed: ParsedDocument, place: str) -> tuple[int, list[str]]:
        """Add the files within an upload; return how many passages and rows are new, and remarks on the files."""
        from clew.core.types import MEMBER_SEPARATOR, RETRIEVED_KINDS
        from clew.parse.documents.limits import LIMITS

        passages = count = 0
        notes: list[str] = []
        waiting = [(f"{place}{MEMBER_SEPARATOR}{member.name}", member) for member in parsed.members]
        while waiting:
            path, member = waiting.pop(0)
            name = path.removeprefix(f"{place}{MEMBER_SEPARATOR}")
            count += 1
            if (
                member.problem
                or count > LIMITS.members
                or name.count(MEMBER_SEPARATOR) >= LIMITS.member_depth
            ):
                notes.append(f"{name}: {member.problem or 'too many files within each other'}")
                continue
            file = Path(member.path)
            size = file.stat().st_size
            options = {file: {"name": PurePath(name).name, "members": self._folder}}
            ((_, outcome),) = self._pool.read_files([file], self._store.passage_unit, options)
            file.unlink(missing_ok=True)
            if isinstance(outcome, UnreadableFile):
                notes.append(f"{name}: {outcome.reason}")
                continue
            notes += (f"{name}: {note}" for note in outcome.notes)
            waiting += [(f"{path}{MEMBER_SEPARATOR}{inner.name}", inner) for inner in outcome.members]
            location = Location(path, place, size, 0, 0)
            if self._store.put_document(replace(outcome, members=()), location) == "added":
                passages += sum(node.kind in RETRIEVED_KINDS for node in outcome.nodes)
        return passages, notes

    def _commit(self, path: Path, place: str, parsed: ParsedDocument) -> str:
        """Commit a document. Its bytes are stored first: after a kill in between, the next upload finds them."""
        copy = upload_path(self._store.path, parsed.key)
        create_folder(copy.parent)
        if not copy.exists():
            part = copy.with_suffix(".part")
            copy_file(path, part)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            part.replace(copy)
        status = copy.stat()
        return self._store.put_document(
            replace(parsed, members=()),
            Location(place, place, status.st_size, status.st_mtime_ns, status.st_ino),
        )


#: Pages are drawn one at a time in the whole process: drawing keeps a processor busy.
_DRAWING = threading.Lock()


class SourceFiles:
    """The files that the documents of a knowledge base were read from: ``base.files``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool: ParsePool | None = None
        self._folder: Path | None = None
        self._resources = ExitStack()
        #: By document key, the path and status of a file whose bytes were found to be the document's.
        self._verified: dict[str, tuple[str, tuple[int, int, int]]] = {}

    @contextmanager
    def open_uploads(
        self,
        seconds: float | None = None,
        memory: int | None = None,
        on_pages: Callable[[Path, int, int], None] | None = None,
    ) -> Iterator[Uploads]:
        """Yield an :class:`Uploads`; ``seconds`` and ``memory`` (in bytes) limit the parsing of one file, and
        ``on_pages`` is called with how many of its pages of how many are read."""
        from clew.parse.documents.pool import ParsePool

        with (
            self._store.temporary_folder() as folder,
            ParsePool(1, time_limit=seconds or None, memory_limit=memory, folder=folder) as pool,
        ):
            pool.on_pages = on_pages
            yield Uploads(self._store, pool, folder)

    def original(self, document: str) -> Path:
        """Return a file with exactly the bytes that the document (a key) was read from.

        The bytes are compared: a file that was changed is not returned. Raises NotFound where no such file is left.
        """
        from clew.parse.documents.builder import document_key
        from clew.parse.documents.files import read_bytes

        record = self._store.document(document)
        uploaded = [self._store.fetch_file(f"{UPLOADS_FOLDER}/{record.key}")]
        elsewhere = [
            Path(path)
            for path in record.paths
            if not path.startswith(UPLOAD_PREFIX) and container_path(path) == path
        ]
        within = (path for path in record.paths if container_path(path) != path)
        for path in chain(uploaded, elsewhere, self._extracted_files(record.key, within)):
            try:
                status = path.stat()
                seen = str(path), (status.st_size, status.st_mtime_ns, status.st_ino)
                if self._verified.get(record.key) == seen:
                    return path
                data = read_bytes(path)
            except (OSError, UnreadableFile):
                continue
            if document_key(data, record.media_type, record.parser) == record.key:
                self._verified[record.key] = seen
                return path
        raise NotFound(
            f"the file of '{record.name}' is no longer where it was, or was changed", "Add it again: clew add"
        )

    def _extracted_files(self, key: str, paths: Iterable[str]) -> Iterator[Path]:
        """Yield the file of a document that is within another file, written to a folder of its own, for each path.

        A process with limits on time and memory opens the other file.
        """
        from clew.parse.documents.pool import ParsePool
        from clew.parse.documents.reader import extract_member

        for path in paths:
            place = container_path(path)
            member = path[len(place) :].split(MEMBER_SEPARATOR)[1:]
            key_of_upload = min(_upload_keys([place]), default="")
            container = self._store.fetch_file(f"{UPLOADS_FOLDER}/{key_of_upload}")
            if not place.startswith(UPLOAD_PREFIX):
                container = Path(place)
            if self._folder is None:
                self._folder = self._resources.enter_context(self._store.temporary_folder())
            folder = self._folder
            options = {"name": PurePath(place).name, "member": member, "target": folder / key}
            with ParsePool(1, reader=extract_member, time_limit=_DRAW_SECONDS, folder=folder) as pool:
                ((_, outcome),) = pool.read_files([container], options={container: options})
            if isinstance(outcome, Path):
                yield outcome

    def page_image(self, document: str, page: int, scale: float = 1.5) -> PageImage:
        """Return page ``page`` (from 1) of a PDF as a picture.

        It has ``scale`` pixels to the point (72 points to the inch), fewer where it would have more than
        :data:`MAX_PIXELS`. A process with limits on time and memory draws one page at a time. Raises NotFound for a
        page that the document does not have, UsageError for a document without pages, and UnreadableFile for a page
        that cannot be drawn.
        """
        record = self._store.document(document)
        if record.media_type != "application/pdf":
            raise UsageError(f"'{record.name}' has no pages to draw", "Its text: clew show")
        if not 1 <= page <= record.pages:
            raise NotFound(f"'{record.name}' has no page {page}", f"It has {record.pages}")
        if not 0.1 <= scale <= 8:
            raise UsageError(f"the scale {scale:g} is not between 0.1 and 8")
        from clew.parse.documents.pdf.page_images import PageImage, render_page
        from clew.parse.documents.pool import ParsePool

        path = self.original(record.key)
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

    @contextmanager
    def forgetting_uploads(self, paths: Iterable[str]) -> Iterator[None]:
        """Delete, once ``paths`` are removed, the stored bytes of the uploads among them that no document has then.

        What is to be deleted is noted before, so that :meth:`finish_forgetting` can do it after a kill.
        """
        keys = _upload_keys(paths)
        notes = self._store.path / FORGOTTEN_UPLOADS
        if keys:
            create_folder(notes)
        for key in keys:
            open_private(notes / key).close()
        yield
        if keys:
            self.finish_forgetting(keys)

    def finish_forgetting(self, removed: Iterable[str] = ()) -> None:
        """Delete the uploads that are noted as removed and belong to no document; ``removed``: of a removal that came
        to its end. A note of another that is not an hour old may be of a removal that is under way."""
        notes = self._store.path / FORGOTTEN_UPLOADS
        if not notes.is_dir():
            return
        keys = _upload_keys(self._store.locations())
        latest = time.time() - _GRACE_SECONDS
        for note in notes.iterdir():
            if note.name not in keys:
                upload_path(self._store.path, note.name).unlink(missing_ok=True)
            elif note.name not in removed and note.stat().st_mtime >= latest:
                continue
            note.unlink(missing_ok=True)
        with suppress(OSError):  # notes are left
            notes.rmdir()

    def count_orphaned_uploads(self, repair: bool) -> int:
        """Return how many uploaded files belong to no document, as after a killed server; ``repair`` deletes them.

        Files of the last hour are left out: their documents may be about to be committed.
        """
        folder = self._store.path / UPLOADS_FOLDER
        keys = _upload_keys(self._store.locations())
        latest = time.time() - _GRACE_SECONDS
        orphans = [
            path
            for path in (folder.iterdir() if folder.is_dir() else ())
            if path.is_file() and path.name not in keys and path.stat().st_mtime < latest
        ]
        for path in orphans if repair else ():
            path.unlink(missing_ok=True)
        return len(orphans)

    def close(self) -> None:
        """End the process that draws pages, if there is one, and delete extracted files."""
        with _DRAWING:
            self._folder = None
            self._resources.close()
            if self._pool is not None:
                self._pool.close()
                self._pool = None


def link_uploads(store: Store, target: Path) -> None:
    """Make, in the copy of a base in ``target``, the uploaded files that its documents have."""
    from clew.store.store import Store

    with Store.open(target) as copy:
        keys = sorted(_upload_keys(copy.locations()))
    for key in keys:
        source, link = upload_path(store.path, key), upload_path(target, key)
        if source.exists():
            create_folder(link.parent)
            link_file(source, link)


def upload_path(folder: Path, key: str) -> Path:
    """Return where the bytes of an upload are, in the folder of a base."""
    return folder / UPLOADS_FOLDER / key


def _upload_keys(paths: Iterable[str]) -> set[str]:
    """Return the keys of the uploads among the paths of documents."""
    return {path[len(UPLOAD_PREFIX) :].partition("/")[0] for path in paths if path.startswith(UPLOAD_PREFIX)}
