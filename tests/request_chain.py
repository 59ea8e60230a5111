"""How many requests of a reader of object storage wait for one another, counted without a clock."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from clew.store.remote.manifest import StoredFile
from clew.store.remote.pieces import PieceCache


class RequestChain:
    """The longest chain of requests that were waited for: a piece is one later than the latest that had been waited
    for when it was asked for. The manifest is the first."""

    def __init__(self) -> None:
        self.length = 1
        self._places: dict[str, int] = {}

    def ask(self, digests: Iterable[str]) -> None:
        """Note that pieces are asked for, unless they were already."""
        for digest in digests:
            self._places.setdefault(digest, self.length + 1)

    def wait(self, digests: Iterable[str]) -> None:
        """Note that pieces are waited for."""
        wanted = list(digests)
        self.ask(wanted)
        self.length = max([self.length, *(self._places[digest] for digest in wanted)])


@contextmanager
def count_request_chain(*, ahead: bool = True) -> Iterator[RequestChain]:
    """Count the requests of one reader with an empty cache, on this thread, until the end of the block. ``ahead``:
    whether pieces may be fetched before they are waited for.

    What a thread of its own fetches as soon as the base is opened (vectors, small graphs) is not counted: names and
    words are asked for at the same time.
    """
    chain, own = RequestChain(), threading.get_ident()
    get, begin, download = PieceCache.get, PieceCache.begin, PieceCache.download

    def waiting_get(cache: PieceCache, digests: Iterable[str]) -> dict[str, bytes]:
        wanted = list(digests)
        if threading.get_ident() == own:
            chain.wait(wanted)
        return get(cache, wanted)

    def noted_begin(cache: PieceCache, digests: Iterable[str]) -> None:
        if ahead:
            wanted = list(digests)
            chain.ask(wanted)
            begin(cache, wanted)

    def waiting_download(cache: PieceCache, files: Iterable[StoredFile], *rest: Any) -> None:
        wanted = list(files)
        if threading.get_ident() == own:
            chain.wait(piece for file in wanted for piece in file.pieces)
        download(cache, wanted, *rest)

    with (
        patch.object(PieceCache, "get", waiting_get),
        patch.object(PieceCache, "begin", noted_begin),
        patch.object(PieceCache, "download", waiting_download),
    ):
        yield chain
