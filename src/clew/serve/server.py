"""What the routes of one server share, and how they get at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request

from clew.api import Base
from clew.serve.asking import Asking
from clew.serve.pictures import Pictures
from clew.serve.problems import Refused
from clew.serve.settings import Settings
from clew.serve.shelf import Shelf, Shelved, opened
from clew.serve.uploading import Uploads


@dataclass(frozen=True, slots=True)
class Server:
    """The parts of a server."""

    settings: Settings
    shelf: Shelf
    asking: Asking
    uploads: Uploads
    pictures: Pictures

    def hang_up(self) -> None:
        """End all streams of events: the server is about to end."""
        self.asking.hang_up()
        for channel in self.uploads.events.values():
            channel.close()

    def need_writing(self) -> None:
        """Raise Refused where the server is read-only."""
        if self.settings.read_only:
            raise Refused(403, "this server is read-only: documents and graphs cannot be changed")

    @contextmanager
    def writing(self, shelved: Shelved) -> Iterator[Base]:
        """Give a base to write to: opened apart, so that nobody who reads waits for it, while the process that reads
        uploads holds no lock. Raises Refused where the server is read-only."""
        self.need_writing()
        with self.uploads.paused(), opened(self.settings, shelved.name) as base:
            yield base


def _server(request: Request) -> Server:
    found: Server = request.app.state.server
    return found


def _shelved(
    request: Request, base: Annotated[str, Path(description="The base's name; see /api/bases.")]
) -> Shelved:
    return _server(request).shelf[base]


Here = Annotated[Server, Depends(_server)]
#: The base that the address names.
Opened = Annotated[Shelved, Depends(_shelved)]
