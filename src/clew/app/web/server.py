"""The parts of a running server, with its cache of rendered PDF pages, and the FastAPI dependencies by which routes
reach them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Path, Request
from starlette.requests import HTTPConnection

from clew.app.web.bases import ServedBase, ServedBases, open_served_base
from clew.app.web.errors import RequestRefused, ServerBusy
from clew.app.web.events import StreamLimiter
from clew.app.web.grids import GridRunner
from clew.app.web.guard import is_local_user
from clew.app.web.question_queue import QuestionQueue
from clew.app.web.settings import Settings
from clew.app.web.setup import ModelSetup
from clew.app.web.sources.manager import SourceManager
from clew.app.web.uploads.manager import UploadManager
from clew.core.errors import UnreadableFile
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.shared_base import SharedBase
from clew.store.object_store import open_object_store

if TYPE_CHECKING:
    from clew.parse.documents.pdf.page_images import PageImage


#: Seconds that a change of a base in object storage waits for other writers.
_WRITER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Server:
    """The parts of a server."""

    settings: Settings
    bases: ServedBases
    questions: QuestionQueue
    uploads: UploadManager
    sources: SourceManager
    page_images: PageImageCache
    streams: StreamLimiter
    grids: GridRunner
    setup: ModelSetup | None = None

    def end_streams(self) -> None:
        """End all streams of events, before the server ends."""
        self.questions.stop_all()
        for channel in self.uploads.events.values():
            channel.close()

    def require_local_user(self, request: HTTPConnection) -> None:
        """Raise RequestRefused unless a request comes from the person who runs the server, on this machine."""
        if not is_local_user(self.settings, request):
            raise RequestRefused(
                403, "only the person who runs this server can do that, on the machine where it runs"
            )

    def require_writable(self) -> None:
        """Raise RequestRefused if the server is read-only."""
        if self.settings.read_only:
            raise RequestRefused(403, "this server is read-only: documents and graphs cannot be changed")

    @contextmanager
    def open_for_writing(self, base: ServedBase) -> Iterator[KnowledgeBase]:
        """Yield a base to write to, in a connection of its own, while the upload worker holds no lock. One in object
        storage is changed in a working copy, which is committed at the end.

        Raises RequestRefused if the server is read-only, Locked if another process writes for too long.
        """
        self.require_writable()
        path = base.knowledge_base.path
        if path in self.settings.addresses:
            # The worker takes turns with it: both claim the base in storage.
            shared = SharedBase(open_object_store(self.settings.addresses[path]), path)
            with shared.change(_WRITER_SECONDS) as writable:
                yield writable
            base.knowledge_base.store.refresh()
            return
        with (
            self.uploads.pause_worker(),
            open_served_base(self.settings, path) as writable,
        ):
            yield writable


def _current_server(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


def _current_base(
    request: Request, base: Annotated[str, Path(description="The base's name; see /api/bases.")]
) -> ServedBase:
    return _current_server(request).bases[base]


#: The server that a request reached.
CurrentServer = Annotated[Server, Depends(_current_server)]
#: The base that a request's path names.
CurrentBase = Annotated[ServedBase, Depends(_current_base)]


#: The scales of page images; a request for another scale gets the nearest one.
SCALES = (0.5, 1.0, 1.5, 2.0, 3.0)


#: Pages that are rendered at the same time: each holds a thread, and a page may take long.
MAX_CONCURRENT = 8
#: Pages that could not be rendered and are remembered.
_MAX_FAILURES = 256


class PageImageCache:
    """Page images of at most ``limit`` bytes in all; the least recently used are dropped. A page that cannot be
    rendered is tried once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._images: OrderedDict[tuple[str, str, int, float], PageImage] = OrderedDict()
        self._failed: OrderedDict[tuple[str, str, int], UnreadableFile] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._rendering = threading.BoundedSemaphore(MAX_CONCURRENT)

    def get(self, base: ServedBase, key: str, page: int, scale: float) -> PageImage:
        """Return a page of a document at the nearest of :data:`SCALES`; raises as
        :meth:`clew.knowledge_base.source_files.SourceFiles.page_image`, and Busy where too many are being drawn."""
        scale = nearest_scale(scale)
        place = (base.name, key, page, scale)
        with self._lock:
            if place in self._images:
                self._images.move_to_end(place)
                return self._images[place]
            if (failed := self._failed.get(place[:3])) is not None:
                raise failed
        if not self._rendering.acquire(blocking=False):
            raise ServerBusy("too many pages are being drawn", 5)
        try:
            image = base.knowledge_base.files.page_image(key, page, scale)
        except UnreadableFile as error:
            with self._lock:
                self._failed[place[:3]] = error
                while len(self._failed) > _MAX_FAILURES:
                    self._failed.popitem(last=False)
            raise
        finally:
            self._rendering.release()
        with self._lock:
            if place not in self._images:
                self._images[place] = image
                self._bytes += len(image.png)
            while self._bytes > self._limit and len(self._images) > 1:
                _, old = self._images.popitem(last=False)
                self._bytes -= len(old.png)
        return image

    def forget(self, base: ServedBase, key: str) -> None:
        """Drop the pages of a document."""
        with self._lock:
            for place in [key_ for key_ in self._images if key_[:2] == (base.name, key)]:
                self._bytes -= len(self._images.pop(place).png)


def nearest_scale(scale: float) -> float:
    """Return the nearest of :data:`SCALES`."""
    return min(SCALES, key=lambda known: abs(known - scale))
