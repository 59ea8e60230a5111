"""The parts of a running server, and the FastAPI dependencies by which routes reach them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request

from clew.app.web.bases import ServedBase, ServedBases, open_served_base
from clew.app.web.errors import RequestRefused
from clew.app.web.page_images import PageImageCache
from clew.app.web.question_queue import QuestionQueue
from clew.app.web.settings import Settings
from clew.app.web.uploads.manager import UploadManager
from clew.knowledge_base.knowledge_base import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Server:
    """The parts of a server."""

    settings: Settings
    bases: ServedBases
    questions: QuestionQueue
    uploads: UploadManager
    page_images: PageImageCache

    def end_streams(self) -> None:
        """End all streams of events, before the server ends."""
        self.questions.stop_all()
        for channel in self.uploads.events.values():
            channel.close()

    def require_writable(self) -> None:
        """Raise RequestRefused if the server is read-only."""
        if self.settings.read_only:
            raise RequestRefused(403, "this server is read-only: documents and graphs cannot be changed")

    @contextmanager
    def open_for_writing(self, base: ServedBase) -> Iterator[KnowledgeBase]:
        """Yield a base to write to, in a connection of its own, while the upload worker holds no lock.

        Raises RequestRefused if the server is read-only.
        """
        self.require_writable()
        with self.uploads.pause_worker(), open_served_base(self.settings, base.name) as writable:
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
