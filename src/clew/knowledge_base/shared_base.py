"""A base in object storage that several processes change, each of which may be on another machine.

A change is made in a *working copy* on this machine and committed as a whole, by the same steps as ``clew copy``
(:mod:`clew.knowledge_base.base_copy`): the writer's note, so that writers take turns; the present state, of which
only the parts that differ are fetched; the change; and the conditional write of the manifest, which alone decides.
Where the process is killed before that, the storage has the state of before, and the working copy is made anew.

A note that shows no sign of life for :data:`STALE` seconds belongs to a process that was killed, or cannot reach the
storage; it is taken over. Should that process go on after all, its commit is refused, since the manifest is another.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from clew.core.config import storage_cache_limit
from clew.core.errors import Damaged, Locked, NotFound
from clew.core.files import create_folder, replace_file
from clew.knowledge_base.base_copy import claim_target, commit_base, hold_copy_lock
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.store.object_store import ObjectStore, Version
from clew.store.remote.manifest import WRITER, Manifest, is_below, read_manifest
from clew.store.remote.pieces import PieceCache
from clew.store.store import Store

#: Seconds without a sign of life after which a writer counts as killed: several of its beats.
STALE = 60.0
#: Seconds between two attempts while another process writes.
_PAUSE = 0.5
#: In the folder of this machine: the working copy, the one that is being fetched, and which state it is.
WORKING, _FETCHED, _STATE = "working", "working.new", "working.state"


class SharedBase:
    """The base at ``objects``. ``folder`` is the folder on this machine that belongs to it."""

    def __init__(self, objects: ObjectStore, folder: Path) -> None:
        self._objects, self._folder = objects, folder
        self._seen: tuple[Version, float] | None = (
            None  # the note of another writer, and since when it is the same
        )

    @contextmanager
    def change(self, wait: float = 0.0) -> Iterator[KnowledgeBase]:
        """Yield the base, to be changed; everything is committed at the end, or nothing where an exception leaves it.

        ``wait`` are the seconds to wait for other writers. Raises Locked where one is still at work, and where a
        commit came in between; NotFound where there is no base at the address; StoreError.
        """
        with ExitStack() as resources:
            self._claim(resources, time.monotonic() + wait)
            before = read_manifest(self._objects)
            if before is None:
                raise NotFound(f"there is no complete copy of a knowledge base at {self._objects.url}")
            self._fetch(before)
            (self._folder / _STATE).unlink(missing_ok=True)
            with KnowledgeBase(Store.open(self._folder / WORKING)) as base:
                base.store.own_path = self._folder
                yield base
                commit_base(base.store, self._objects, before, lambda done, total: None)
            after = read_manifest(self._objects)
            if after is not None:
                replace_file(self._folder / _STATE, after.copy)

    def _claim(self, resources: ExitStack, deadline: float) -> None:
        """Become the only writer, until ``resources`` are closed."""
        create_folder(self._folder)
        while True:
            try:
                with ExitStack() as held:
                    held.enter_context(hold_copy_lock(self._folder))
                    held.enter_context(claim_target(self._folder, self._objects, take_over=self._is_stale()))
                    resources.push(held.pop_all())
                return
            except Locked:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def _is_stale(self) -> bool:
        """Return whether the note of another writer has been the same for too long, by the clock of this process."""
        version, now = self._objects.version(WRITER), time.monotonic()
        if version is None or self._seen is None or self._seen[0] != version:
            self._seen = None if version is None else (version, now)
            return False
        return now - self._seen[1] > STALE

    def _fetch(self, manifest: Manifest) -> None:
        """Make the working copy be the state of ``manifest``."""
        working, fetched, state = (self._folder / name for name in (WORKING, _FETCHED, _STATE))
        if state.exists() and state.read_text(encoding="utf-8") == manifest.copy and Store.exists(working):
            return
        if outside := [file.path for file in manifest.files if not is_below(file.path)]:
            raise Damaged(f"the copy at {self._objects.url} lists a file outside of its folder: {outside[0]}")
        shutil.rmtree(fetched, ignore_errors=True)
        create_folder(fetched)
        pieces = PieceCache(self._objects, self._folder / "pieces", storage_cache_limit())
        with closing(pieces):
            pieces.download(manifest.files, fetched, [working] if working.exists() else [])
        shutil.rmtree(working, ignore_errors=True)
        fetched.rename(working)
