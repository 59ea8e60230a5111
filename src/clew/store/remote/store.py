"""A base in object storage as a :class:`~clew.store.store.Store` that is only read.

A *view* is one state of the copy on this machine: a folder with the files that are read whole (the database without
nodes and texts, the resident arrays of the segments, vectors when they are first searched), and the manifest, which
says where the rest is. The view of a new manifest takes over what is the same. Before a question the version of the
manifest is compared, at most once in :data:`CHECK_INTERVAL` seconds; within a question nothing changes.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from clew.core.arrays import Mask, Rows
from clew.core.config import cache_path, storage_cache_limit
from clew.core.errors import BaseReplaced, Damaged, NotFound, StoreError, UsageError
from clew.core.files import FILE_RIGHTS, copy_file, create_folder
from clew.core.protocols import Encoder, PropertyGraph, VectorIndex
from clew.core.types import TABLE, Document, Node, Scope
from clew.store.database import DATABASE_FILE, Database, hold_lock
from clew.store.documents import DocumentEntry, read_counter, read_entries
from clew.store.graphs.graph_store import GraphStore
from clew.store.graphs.tables import StoredGraph
from clew.store.object_store import ObjectStore, local_name, open_object_store, storage_path
from clew.store.remote import layout
from clew.store.remote.manifest import (
    MANIFEST,
    Manifest,
    StoredFile,
    is_below,
    read_manifest,
)
from clew.store.remote.pieces import PieceCache, StoredBytes
from clew.store.remote.postings import RemotePostings, RemoteSegment, open_segment
from clew.store.remote.records import PackedRecords
from clew.store.segments import SegmentedPostings, SegmentIndex
from clew.store.snapshot import StoreSnapshot
from clew.store.store import Finding, Store, StoreInfo
from clew.store.vectors import vectors_folder

if TYPE_CHECKING:
    import sqlite3

#: Seconds for which the state of the copy need not be compared again.
CHECK_INTERVAL = 1.0
#: Bytes that are fetched before it is known whether they are needed.
MAX_PREFETCH = 16 << 20
#: How often a new state is read while others follow at once.
_ATTEMPTS = 5


class ReadOnlyDatabase(Database):
    """The database of a view. Derived values can be stored in it, for as long as the view lasts."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url
        # It is used until nothing refers to it any more, also after its view was replaced.
        weakref.finalize(self, self._reader.close)

    @contextmanager
    def write_transaction(self, *, truth: bool = True) -> Iterator[sqlite3.Connection]:
        """Open a write transaction for derived values. Raises UsageError for others."""
        if truth:
            raise read_only_error(self._url)
        with super().write_transaction(truth=False) as connection:
            yield connection

    def scrub(self, timeout: float = 0.0) -> bool:
        """Return True: a view has nothing that was removed."""
        return True


def read_only_error(url: str) -> UsageError:
    """Return the error for a change of a base in object storage."""
    return UsageError(
        f"the knowledge base at {url} is only read there",
        f"Change the base that it is a copy of, and copy again: clew copy BASE {url}",
    )


class View:
    """One state of the copy at ``objects``, in a folder on this machine."""

    def __init__(self, folder: Path, manifest: Manifest, cache: PieceCache, url: str, use: ViewUse) -> None:
        self.folder, self.manifest, self.cache, self.url, self.use = folder, manifest, cache, url, use
        self.files = manifest.all_files()
        self.derived = folder / "derived"
        self._turns = threading.Lock()
        self._fetched: set[str] = set()
        self._ahead: list[threading.Thread] = []
        self._replaced = threading.Event()
        self.database: ReadOnlyDatabase

    def open(self, previous: Iterable[Path]) -> None:
        """Fetch what every use of the base needs, and open the database."""
        self.fetch([layout.RESIDENT], previous)
        layout.unpack_archive(self.folder, layout.RESIDENT)
        self.database = self._open_database(layout.CATALOGUE)
        self.database.packed_records = lambda: self.packed_records.reader()

    def fetch(
        self, paths: Iterable[str], previous: Iterable[Path] = (), stop: threading.Event | None = None
    ) -> None:
        """Make files of the copy be there as whole files of the folder (:meth:`PieceCache.download`)."""
        wanted = sorted(paths)
        with self._turns:
            missing = [
                self.files[path]
                for path in wanted
                if path not in self._fetched and not self._is_complete(self.files[path])
            ]
            self.cache.download(missing, self.folder, previous, stop)
            self._fetched |= set(wanted)

    def _is_complete(self, file: StoredFile) -> bool:
        """Return whether a file is there: it got its name when it was complete."""
        with suppress(OSError):
            return (self.folder / file.path).stat().st_size == file.size
        return False

    def _open_database(self, path: str) -> ReadOnlyDatabase:
        """Open a database of the copy, under the name that a database has."""
        folder = self.folder / Path(path).stem
        if not (folder / DATABASE_FILE).exists():
            create_folder(folder)
            unfinished = folder / f"{uuid.uuid4().hex}.unfinished"
            copy_file(self.folder / path, unfinished)
            unfinished.replace(folder / DATABASE_FILE)
        return ReadOnlyDatabase(folder, self.url)

    def open_graphs(self) -> tuple[ReadOnlyDatabase, Path]:
        """Fetch the graphs, whole; return their database and the folder of derived data."""
        self.fetch(self._graph_files())
        layout.unpack_archive(self.folder, layout.GRAPHS)
        self.fetch(path for path in self.files if path.startswith(layout.GRAPH_FILES))
        return self._open_database(layout.GRAPH_TABLES), self.derived

    def _graph_files(self) -> list[str]:
        """Return the archive of the graphs, if there are any, and the files that are too large to be in it."""
        large = [path for path, file in self.files.items() if file.size > layout.MAX_WHOLE]
        archive = [path for path in self.files if path == layout.GRAPHS]
        return [*archive, *(path for path in large if path.startswith(layout.GRAPH_FILES))]

    def prefetch(self) -> None:
        """Begin to fetch what a search needs next: vectors, where there are those of one encoder, graphs of at most
        :data:`MAX_PREFETCH` bytes, and the files of :func:`choose_prefetched`. So the first question to a small base
        waits for few requests in turn. Whoever needs a part waits for it, and is told what fails."""
        sizes = {path: file.size for path, file in self.files.items()}
        whole, graphs = [path for path in sizes if path.startswith(layout.VECTORS)], self._graph_files()
        if len({path.rpartition("/")[0] for path in whole}) != 1:
            whole = []
        if sum(sizes[path] for path in graphs) <= MAX_PREFETCH:
            whole += graphs
        self._ahead.append(self.cache.submit(lambda: self.fetch(whole, stop=self._replaced)))
        cache, pieces = self.cache, [n for path in choose_prefetched(sizes) for n in self.files[path].pieces]
        cache.submit(lambda: cache.get(pieces))

    def stop_prefetch(self) -> None:
        """Wait until nothing is written to the folder that was not asked for: another view has replaced this one."""
        self._replaced.set()
        for thread in self._ahead:
            thread.join()

    def stored_bytes(self, path: str) -> StoredBytes:
        """Return a file of which ranges are read."""
        return StoredBytes(self.cache, self.files[path])

    @cached_property
    def packed_records(self) -> PackedRecords:
        """The nodes and texts."""
        import numpy as np

        with np.load(self.folder / layout.DOCUMENTS) as directory:
            arrays = {name: directory[name] for name in directory.files}
        parts = [self.stored_bytes(path) for path in (layout.RECORDS, layout.TEXTS, layout.OPENINGS)]
        return PackedRecords(parts[0], parts[1], parts[2], arrays)

    def segments(self) -> list[RemoteSegment]:
        """Return the segments in order of rows."""
        import numpy as np

        segments = []
        for entry in SegmentIndex(self.derived / "segments").read_manifest():
            name = entry["name"]
            with np.load(self.folder / layout.segment_file(name)) as file:
                arrays = {key: file[key] for key in file.files}
            folder = f"derived/segments/{name}/"
            content = {
                path.removeprefix(folder).removesuffix(".npy"): self.stored_bytes(path)
                for path in self.files
                if path.startswith(folder)
            }
            segments.append(open_segment(name, arrays, content))
        return segments


def choose_prefetched(sizes: Mapping[str, int]) -> list[str]:
    """Return which files of a copy are fetched before it is known whether they are needed, from the bytes of all: the
    openings of texts, the postings that are read in ranges and the nodes, in this order, up to :data:`MAX_PREFETCH`
    bytes."""
    chosen: list[str] = []
    total = 0
    for path in (layout.OPENINGS, *sorted(layout.ranged_postings(sizes)), layout.RECORDS):
        total += sizes[path]
        if total > MAX_PREFETCH:
            break
        chosen.append(path)
    return chosen


class RemoteStore(Store):
    """The base at ``objects``, read where it lies. Every method that would change it raises UsageError."""

    is_remote = True

    def __init__(self, objects: ObjectStore, folder: Path | None = None, *, prefetch: bool = True) -> None:
        """Read the manifest. ``folder`` has what belongs to who reads, such as the questions of a server and the
        basket; by default it is that of this machine's user. ``prefetch``: whether to fetch what a first question is
        likely to need before it is asked.

        Raises NotFound, StoreError, and BaseReplaced where the copy is replaced again and again.
        """
        self.url = objects.url
        self._objects = objects
        self._prefetch = prefetch
        self._resources = ExitStack()
        self._cache_folder = cache_path() / "storage" / local_name(objects.url)
        self._cache = PieceCache(objects, self._cache_folder / "pieces", storage_cache_limit())
        self._resources.callback(self._cache.close)
        try:
            self._view = self._open_view(self._read_manifest())
        except BaseException:
            self._resources.close()
            raise
        folder = folder or storage_path(objects.url)
        create_folder(folder)
        super().__init__(folder, self._view.database)
        self.place = self.url
        self.derived = self._view.derived
        self.index_on_snapshot = False
        self._checked = time.monotonic()

    @classmethod
    def open_url(cls, url: str, folder: Path | None = None) -> RemoteStore:
        """Open the base at an address. Raises NotFound, UsageError, StoreError, MissingExtra."""
        return cls(open_object_store(url), folder)

    def close(self) -> None:
        """Close the files."""
        super().close()
        self._resources.close()

    # States of the copy

    def _read_manifest(self) -> Manifest:
        manifest = read_manifest(self._objects)
        if manifest is None:
            raise NotFound(
                f"there is no complete copy of a knowledge base at {self.url}",
                f"Check the address, or make one: clew copy BASE {self.url}",
            )
        if outside := [path for path in manifest.all_files() if not is_below(path)]:
            raise Damaged(f"the copy at {self.url} lists a file outside of its folder: {outside[0]}")
        if manifest.layout != layout.LAYOUT:
            raise StoreError(
                f"the copy at {self.url} was written by another version of clew and cannot be read there",
                f"Copy the base again with this version: clew copy BASE {self.url}. If this copy is all there is, "
                f"bring it back first: clew copy {self.url} FOLDER",
            )
        return manifest

    def _open_view(self, manifest: Manifest) -> View:
        """Return the view of a manifest. Where the copy was replaced meanwhile, return that of the new one."""
        for attempt in range(_ATTEMPTS):
            views = self._cache_folder / "views"
            folder = views / manifest.copy
            with ExitStack() as resources:
                use = resources.enter_context(closing(ViewUse(folder)))
                try:
                    view = View(folder, manifest, self._cache, self.url, use)
                    view.open([path for path in views.iterdir() if path != folder])
                except BaseReplaced:
                    if attempt == _ATTEMPTS - 1:
                        raise
                    use.replaced = True
                    manifest = self._read_manifest()
                    continue
                weakref.finalize(view.database, resources.pop_all().close)
            self._forget_others(view)
            return view
        raise AssertionError("unreachable")

    def _forget_others(self, view: View) -> None:
        """Delete cached files of other states of the copy: they may contain removed texts."""
        self._cache.keep_only(view.manifest.pieces())
        for folder in view.folder.parent.iterdir():
            if folder != view.folder:
                _delete_unused(folder)

    def refresh(self) -> bool:
        """Take up the present state of the copy, if it is another one; return whether it is."""
        with self._snapshot_lock:
            self._checked = time.monotonic()
            if self._objects.version(MANIFEST) == self._view.manifest.version:
                return False
            previous, self._view = self._view, self._open_view(self._read_manifest())
            previous.use.replaced = True
            previous.stop_prefetch()
            self.database, self.derived = self._view.database, self._view.derived
            self._snapshot = None
            return True

    def copy_id(self) -> str:
        """Return which state of the copy is read."""
        return self._view.manifest.copy

    def snapshot(self) -> StoreSnapshot:
        """Return a view of the base as it is now, or was at most :data:`CHECK_INTERVAL` seconds ago."""
        self._follow()
        with self._snapshot_lock:
            if self._snapshot is None:
                self._snapshot = (self._view, self._make_remote_snapshot())
            return self._snapshot[1]

    def _follow(self) -> None:
        """Take up the present state, unless that was looked at a moment ago."""
        if time.monotonic() - self._checked > CHECK_INTERVAL:
            self.refresh()

    def _make_remote_snapshot(self) -> RemoteSnapshot:
        with self.database.read_transaction() as connection:
            entries = read_entries(connection)
            generation = read_counter(connection, "generation")
        if self._prefetch:
            self._view.prefetch()
        return RemoteSnapshot(self._view, generation, entries, self._view.segments(), self.graphs)

    # What a base on this machine does in another way

    @property
    def graphs(self) -> GraphStore:
        """The imported and mounted graphs."""
        return RemoteGraphs(self._view, self._index_lock)

    def documents(self) -> list[Document]:
        """Return every document, sorted by key."""
        self._follow()
        return super().documents()

    def fetch_file(self, path: str) -> Path:
        """Return a file of the copy, fetched whole; it may be missing."""
        if path in self._view.files:
            self._view.fetch([path])
        return self._view.folder / path

    def table_nodes(self) -> list[Node]:
        """Return the nodes of all tables, those of a document in reading order."""
        import numpy as np

        snapshot = self.snapshot()
        return snapshot.nodes(np.flatnonzero(snapshot.mask(Scope(), (TABLE,))))

    def info(self, *, digest: bool = True) -> StoreInfo:
        """Return the sizes of the base; ``bytes`` are those in storage."""
        self._follow()
        size = sum(file.size for file in self._view.files.values())
        return replace(super().info(digest=digest), bytes=size)

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Return 0: a copy is complete."""
        return 0

    def finish_removals(self, timeout: float = 0.0) -> None:
        """Do nothing: a copy contains no removed data."""

    def encode(self, encoder: Encoder, progress: Callable[[int, int], None] | None = None) -> int:
        """Raise UsageError: vectors are made in the base that this is a copy of."""
        raise read_only_error(self.url)

    def write_copy(self, folder: Path, shard_rows: int | None = None) -> str:
        """Raise UsageError: a copy is made by copying its pieces."""
        raise UsageError(f"{self.url} is itself a copy", f"Copy it: clew copy {self.url} FOLDER")

    def doctor(self, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Raise UsageError: every piece is compared with its digest when it is read."""
        raise UsageError(
            f"{self.url} is checked whenever it is read", f"To check all of it: clew copy {self.url} FOLDER"
        )


class RemoteSnapshot(StoreSnapshot):
    """A :class:`clew.core.protocols.Snapshot` of a copy: one manifest, the small arrays in memory, the rest in
    ranges. Raises BaseReplaced where what is needed is gone."""

    def __init__(
        self,
        view: View,
        generation: int,
        entries: list[DocumentEntry],
        segments: list[RemoteSegment],
        graphs: GraphStore,
    ) -> None:
        self._view = view
        self._remote_segments = segments
        plain = [remote.segment for remote in segments]
        super().__init__(view.database, view.derived, generation, entries, plain, graphs)

    def _open_postings(self, field: str, live: Mask) -> SegmentedPostings:
        return RemotePostings(
            [remote.segment.fields[field] for remote in self._remote_segments],
            live,
            [remote.row_lengths[field] for remote in self._remote_segments],
            self._view.cache,
        )

    def prefetch_nodes(self, rows: Rows) -> None:
        """Begin to fetch the nodes of ``rows``, without waiting for them."""
        self._view.cache.begin(self._view.packed_records.chunk_digests(rows.tolist()))

    def vectors(self, encoder: str, dimension: int = 0) -> VectorIndex:
        """Return the vectors of the encoder named ``encoder``; they are fetched whole when they are first needed."""
        folder = vectors_folder(Path("derived"), encoder).as_posix()
        self._view.fetch([path for path in self._view.files if path.startswith(f"{folder}/")])
        return super().vectors(encoder, dimension)


class RemoteGraphs(GraphStore):
    """The graphs of a copy. Their names are in the database of the view; the rest is fetched when one is opened."""

    def __init__(self, view: View, lock: Path) -> None:
        super().__init__(view.database, view.derived, lock)
        self._view, self._view_lock = view, lock

    def open(self, stored: StoredGraph | tuple[str, str, str]) -> PropertyGraph:
        """Open a graph or a mount. Raises Damaged and NotFound."""
        if isinstance(stored, tuple):
            return super().open(stored)
        database, derived = self._view.open_graphs()
        return GraphStore(database, derived, self._view_lock).open(stored)


# Folders on this machine


class ViewUse:
    """Notes that this process uses the folder of a view, by a lock of its own, until it is closed. The folder is
    deleted then if another view has ``replaced`` it and no other process uses it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.replaced = False
        while True:
            create_folder(folder)
            self._path = folder / f"{os.getpid()}-{uuid.uuid4().hex}.use"
            # It is released by whatever thread drops the view.
            self._lock = FileLock(self._path, 0, FILE_RIGHTS, thread_local=False)
            with suppress(FileNotFoundError):  # another process deleted the folder in this moment
                self._lock.acquire()
                if self._path.exists():
                    return
                self._lock.release()

    def close(self) -> None:
        """Release the lock."""
        self._path.unlink(missing_ok=True)
        self._lock.release()
        if self.replaced:
            _delete_unused(self._folder)


def _delete_unused(folder: Path) -> None:
    """Delete the folder of a view that no process uses."""
    with suppress(StoreError, OSError):
        for path in folder.glob("*.use"):
            with hold_lock(path, timeout=0):
                pass
        shutil.rmtree(folder, ignore_errors=True)
