"""What the routes of one server share, and how they get at it."""

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
        """End all streams of events: the server is about to end."""
        self.questions.stop_all()
        for channel in self.uploads.events.values():
            channel.close()

    def require_writable(self) -> None:
        """Raise Refused where the server is read-only."""
        if self.settings.read_only:
            raise RequestRefused(403, "this server is read-only: documents and graphs cannot be changed")

    @contextmanager
    def open_for_writing(self, base: ServedBase) -> Iterator[KnowledgeBase]:
        """Give a base to write to: opened apart, so that nobody who reads waits for it, while the process that reads
        uploads holds no lock. Raises Refused where the server is read-only."""
        self.require_writable()
        with self.uploads.pause_worker(), open_served_base(self.settings, base.name) as writable:
            yield writable


def _server(request: Request) -> Server:
    found: Server = request.app.state.server
    return found


def _shelved(
    request: Request, base: Annotated[str, Path(description="The base's name; see /api/bases.")]
) -> ServedBase:
    return _server(request).bases[base]


CurrentServer = Annotated[Server, Depends(_server)]
#: The base that the address names.
CurrentBase = Annotated[ServedBase, Depends(_shelved)]
