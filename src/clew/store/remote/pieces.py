"""The pieces of a copy: fetched many at a time, compared with their digests, and cached on disk.

A file of the cache is named by the digest of its bytes, so it never has to be refreshed, and processes may share it.
It is bounded in bytes: where there is too much, what was not used for the longest time is deleted.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

from clew.core.errors import BaseReplaced, Damaged, StoreError
from clew.core.files import create_folder
from clew.store.object_store import ObjectStore
from clew.store.remote.manifest import StoredFile, cut_file, piece_digest, piece_name, read_pieces

#: Requests that are under way at once.
TRANSFERS = 128
#: Bytes of pieces that a process keeps in memory.
MEMORY = 64 << 20
#: The share of the limit that is left when the cache was emptied to make room.
_REMAINING = 0.8


class PieceCache:
    """The pieces of the copy at ``objects``, on disk in ``folder`` with at most about ``limit`` bytes."""

    def __init__(self, objects: ObjectStore, folder: Path, limit: int) -> None:
        self._objects, self._folder, self._limit = objects, folder, limit
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._memory_bytes = 0
        self._fetching: dict[str, Future[bytes]] = {}
        self._kept: Set[str] | None = None  # the pieces that may be stored; None: any
        self._turns = threading.Lock()
        self._pool = ThreadPoolExecutor(TRANSFERS, thread_name_prefix="clew-pieces")
        self._disk_bytes: int | None = None  # counted at the first write

    def submit(self, work: Callable[[], object]) -> threading.Thread:
        """Do work in a thread of its own, which need not succeed; return the thread."""

        def attempt() -> None:
            # RuntimeError: the threads have been ended meanwhile.
            with suppress(StoreError, OSError, CancelledError, RuntimeError):
                work()

        thread = threading.Thread(target=attempt, name="clew-prefetch", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def get(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return pieces by digest; those that are not on this machine are fetched at the same time.

        Raises BaseReplaced where one is gone, Damaged, StoreError.
        """
        pieces: dict[str, bytes] = {}
        waiting: dict[str, Future[bytes]] = {}
        for digest in dict.fromkeys(digests):
            content = self._recall(digest) or self._read(digest)
            if content is not None:
                pieces[digest] = content
            else:
                waiting[digest] = self._begin_to_fetch(digest)
        for digest, future in waiting.items():
            pieces[digest] = future.result()
        return pieces

    def begin(self, digests: Iterable[str]) -> None:
        """Begin to fetch the pieces that are not on this machine, without waiting for them. What fails is fetched
        again by whoever needs it."""
        for digest in dict.fromkeys(digests):
            if self._recall(digest) is None and not self._path(digest).exists():
                self._begin_to_fetch(digest)

    def _begin_to_fetch(self, digest: str) -> Future[bytes]:
        with self._turns:
            if digest not in self._fetching:
                self._fetching[digest] = self._pool.submit(self._fetch_and_store, digest)
            return self._fetching[digest]

    def download(
        self,
        files: Iterable[StoredFile],
        folder: Path,
        previous: Iterable[Path] = (),
        stop: threading.Event | None = None,
    ) -> None:
        """Write whole files of the copy below ``folder``; each appears when it is complete.

        ``previous`` are folders of earlier states of the copy: a piece that the file of the same path has there is
        taken from it. These pieces do not go through the cache. Once ``stop`` is set, no further piece is waited for;
        raises CancelledError then.
        """
        earlier = list(previous)
        unfinished: dict[StoredFile, Path] = {}
        writes: dict[Future[bytes], list[tuple[StoredFile, int]]] = {}
        fetches: dict[str, Future[bytes]] = {}
        try:
            for file in files:
                target = folder / file.path
                create_folder(target.parent)
                descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".unfinished-")
                os.close(descriptor)
                unfinished[file] = Path(name)
                present: set[int] = set()
                for path in (place / file.path for place in earlier):
                    if path.is_file() and not present:
                        present = set(self._copy_pieces(path, file, unfinished[file]))
                for number, digest in enumerate(file.pieces):
                    if number not in present:
                        if digest not in fetches:
                            fetches[digest] = self._pool.submit(self._fetch, digest)
                        writes.setdefault(fetches[digest], []).append((file, number))
            for future in _iterate_completed(writes, stop):
                content = future.result()
                for file, number in writes.pop(future):
                    with unfinished[file].open("r+b") as stream:
                        stream.seek(file.piece_start(number))
                        stream.write(content)
            for file, path in unfinished.items():
                path.replace(folder / file.path)
        finally:
            for future in fetches.values():
                future.cancel()
            for path in unfinished.values():
                path.unlink(missing_ok=True)

    def _copy_pieces(self, path: Path, file: StoredFile, target: Path) -> Iterator[int]:
        """Copy those pieces of ``file`` that ``path`` has; yield their numbers."""
        wanted: dict[str, list[int]] = {}
        for number, digest in enumerate(file.pieces):
            wanted.setdefault(digest, []).append(number)
        with target.open("r+b") as stream:
            for _, content in read_pieces(path, cut_file(path, file.path)):
                for number in wanted.pop(piece_digest(content), ()):
                    stream.seek(file.piece_start(number))
                    stream.write(content)
                    yield number

    def keep_only(self, digests: Set[str]) -> None:
        """Delete all other pieces from the cache, because they may contain removed texts; fetches of an earlier state
        that are still running are not stored."""
        with self._turns:
            self._kept = digests
        self.forget(self.stored() - digests)

    def forget(self, digests: Iterable[str]) -> None:
        """Delete pieces from the cache."""
        for digest in digests:
            with self._turns:
                self._memory_bytes -= len(self._memory.pop(digest, b""))
            with suppress(OSError):
                self._path(digest).unlink()

    def stored(self) -> set[str]:
        """Return the digests of the pieces on disk."""
        return {path.name for path in self._files()}

    # One piece

    def _fetch_and_store(self, digest: str) -> bytes:
        try:
            content = self._fetch(digest)
            self._write(digest, content)
            return content
        finally:
            with self._turns:
                self._fetching.pop(digest, None)

    def _fetch(self, digest: str) -> bytes:
        name = piece_name(digest)
        for _ in range(2):  # a transfer may be damaged, the object hardly
            stored = self._objects.read(name)
            if stored is None:
                raise BaseReplaced(
                    f"a part of the copy at {self._objects.url} is gone",
                    "Was it replaced meanwhile? Ask again; if that does not help, copy the base there again",
                )
            if piece_digest(stored[0]) == digest:
                return stored[0]
        raise Damaged(f"{self._objects.url}/{name} is damaged", "Copy the base there again")

    def _recall(self, digest: str) -> bytes | None:
        with self._turns:
            content = self._memory.get(digest)
            if content is not None:
                self._memory.move_to_end(digest)
            return content

    def _remember(self, digest: str, content: bytes) -> None:
        with self._turns:
            if digest not in self._memory:
                self._memory[digest] = content
                self._memory_bytes += len(content)
            while self._memory_bytes > MEMORY:
                self._memory_bytes -= len(self._memory.popitem(last=False)[1])

    def _read(self, digest: str) -> bytes | None:
        """Return a piece from disk; None where it is not there, or damaged."""
        path = self._path(digest)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if piece_digest(content) != digest:
            return None
        with suppress(OSError):
            os.utime(path)
        self._remember(digest, content)
        return content

    def _write(self, digest: str, content: bytes) -> None:
        """Put a piece into the cache. A disk that is full makes reading slower, not impossible."""
        self._remember(digest, content)
        path = self._path(digest)
        with suppress(OSError):
            create_folder(path.parent)
            descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            with self._turns:
                if self._kept is not None and digest not in self._kept:
                    Path(unfinished).unlink()
                    return
                Path(unfinished).replace(path)
        with self._turns:
            if self._disk_bytes is None:
                self._disk_bytes = sum(size for _, size, _ in self._measure())
            else:
                self._disk_bytes += len(content)
            if self._disk_bytes > self._limit:
                self._disk_bytes = self._make_room()

    def _make_room(self) -> int:
        """Delete the pieces that were not used for the longest time; return the bytes that are left."""
        files = sorted(self._measure())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= _REMAINING * self._limit:
                break
            with suppress(OSError):
                path.unlink()
            total -= size
        return total

    def _measure(self) -> list[tuple[int, int, Path]]:
        """Return time of last use, size and path of every file of the cache; other processes may delete some."""
        measured = []
        for path in self._files():
            with suppress(OSError):
                status = path.stat()
                measured.append((status.st_mtime_ns, status.st_size, path))
        return measured

    def _files(self) -> list[Path]:
        hour_ago = time.time() - 3600
        files = []
        for path in self._folder.glob("*/*"):
            if not path.name.startswith("."):
                files.append(path)
            else:
                with suppress(OSError):  # a killed process left it
                    if path.stat().st_mtime < hour_ago:
                        path.unlink()
        return files

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest


def _iterate_completed(
    futures: Iterable[Future[bytes]], stop: threading.Event | None
) -> Iterator[Future[bytes]]:
    """Yield futures as they complete. Raises CancelledError once ``stop`` is set."""
    for future in as_completed(futures):
        if stop is not None and stop.is_set():
            raise CancelledError
        yield future


class StoredBytes:
    """The bytes of one file of a copy, read in ranges."""

    def __init__(self, cache: PieceCache, file: StoredFile) -> None:
        self.cache, self.file = cache, file

    def digests(self, start: int, end: int) -> tuple[str, ...]:
        """Return the digests of the pieces that contain the bytes ``start`` to ``end``."""
        if start >= end:
            return ()
        return self.file.pieces[self._piece_at(start) : self._piece_at(end - 1) + 1]

    def _piece_at(self, place: int) -> int:
        return bisect_right(self.file.ends, place)

    def read_ranges(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range, all fetched at the same time."""
        wanted = list(ranges)
        pieces = self.cache.get(digest for start, end in wanted for digest in self.digests(start, end))
        return [self._cut(start, end, pieces.__getitem__) for start, end in wanted]

    def _cut(self, start: int, end: int, piece: Callable[[str], bytes]) -> bytes:
        if start >= end:
            return b""
        joined = b"".join(piece(digest) for digest in self.digests(start, end))
        offset = self.file.piece_start(self._piece_at(start))
        return joined[start - offset : end - offset]
