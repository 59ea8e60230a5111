"""Copies of a knowledge base: from a folder to another folder or to object storage, and back.

A copy in object storage (docs/decisions/0038) is a *manifest* and *pieces*::

    manifest.json      the files of the base, each as a list of pieces, and the digest of the base; and those files
                       that only reading the base at that place needs (:mod:`clew.store.remote.layout`)
    pieces/DIGEST      a part of a file, of some 100 KiB; its name is the hash of its bytes
    writer.json        there while a copy is being written: by whom, and since when

Pieces are written first and never changed; the manifest is written last, by a conditional write that names the
manifest which it replaces. So a reader sees either the copy before or the whole new one; of two writers one commits
and the other is told. What was written before an interruption need not be written again. After the commit the
pieces that no file has any more are deleted.

Nothing of removed documents is copied (:meth:`clew.store.store.Store.write_copy`); neither are the trash, earlier
versions, the evidence basket, and files that are not clew's.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clew.core.errors import Damaged, Locked, NotFound, StoreError, UsageError
from clew.core.files import create_folder, mend_rights, open_private, replace_file
from clew.knowledge_base.source_files import link_uploads
from clew.store.database import hold_lock
from clew.store.documents import read_counter
from clew.store.object_store import ObjectStore, is_object_url, open_object_store
from clew.store.remote.layout import LAYOUT, READING, write_reading_files
from clew.store.remote.manifest import (
    FORMAT,
    MANIFEST,
    PIECE_NAME,
    PIECES,
    WRITER,
    Manifest,
    StoredFile,
    describe_file,
    is_below,
    parse_object,
    piece_digest,
    piece_name,
    read_manifest,
    read_pieces,
)
from clew.store.store import Store

#: Pieces that are on their way at once.
TRANSFERS = 16
#: Parts of the postings of a copy, where none are asked for, and the fewest rows of one then.
SHARDS, SMALLEST_SHARD = 8, 2048
#: Seconds between two signs of life of a process that writes.
BEAT = 10.0
#: The suffix of a folder that is being filled; it loses it when it is complete.
UNFINISHED = ".copying"
#: In the folder of a base: by which names it began copies that are not finished, by their addresses.
_WRITERS_FILE, _LOCK_FILE = "copies.json", "copy.lock"
#: Files that a base makes anew when it is opened.
_LEFT_OUT = (".lock", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The result of a copy: of ``bytes`` in ``files``, ``transferred`` bytes were not at the target yet."""

    source: str
    target: str
    digest: str
    files: int
    bytes: int
    transferred: int

    def to_dict(self) -> dict[str, Any]:
        """Return the report, JSON-compatible."""
        return asdict(self)


def copy_base(
    source: str | Path,
    target: str | Path,
    *,
    take_over: bool = False,
    shards: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CopyReport:
    """Copy the base ``source`` to ``target``; each is a folder or an address of object storage, at most one of them
    an address.

    ``take_over``: continue although another process seems to be writing at the address. ``shards``: how many parts
    the postings of a copy in object storage have (:func:`choose_shard_rows`). ``progress`` is called with
    the bytes that are there and the bytes in all. Raises NotFound, UsageError, StoreError, Locked where another
    process is copying, Damaged where a piece is not what its name says, and MissingExtra.
    """
    progress = progress or (lambda done, total: None)
    source, target = str(source), str(target)
    if is_object_url(target):
        if is_object_url(source):
            raise UsageError("one of the two must be a folder", f"Copy {source} to a folder first")
        return upload_base(
            Path(source), open_object_store(target), take_over=take_over, shards=shards, progress=progress
        )
    if take_over or shards is not None:
        raise UsageError("--take-over and --shards are for a target in object storage")
    if is_object_url(source):
        return download_base(open_object_store(source), Path(target), progress)
    return _copy_folder(Path(source), Path(target), progress)


# To object storage


def upload_base(
    folder: Path,
    objects: ObjectStore,
    *,
    take_over: bool,
    shards: int | None = None,
    progress: Callable[[int, int], None],
) -> CopyReport:
    """Write the base in ``folder`` to object storage, in place of a copy that is there."""
    with (
        hold_copy_lock(folder),
        claim_target(folder, objects, take_over=take_over),
        Store.open(folder) as store,
    ):
        return commit_base(store, objects, read_manifest(objects), progress, shards)


def choose_shard_rows(rows: int, shards: int | None, before: int) -> int:
    """Return how many rows a shard of a copy has, of a base of ``rows`` rows. A copy that was divided ``before`` into
    shards of so many (0: it was not) stays divided at the same places, and gets further shards at its end, as long as
    it has not more than twice as many as are wanted: only so a copy need not be sent anew."""
    wanted = shards or SHARDS
    if before and (shards or 1) <= math.ceil(rows / before) <= 2 * wanted:
        return before
    smallest = 1 if shards else SMALLEST_SHARD
    return max(smallest, math.ceil(rows / wanted))


def commit_base(
    store: Store,
    objects: ObjectStore,
    before: Manifest | None,
    progress: Callable[[int, int], None],
    shards: int | None = None,
    scale: float = 1.0,
) -> CopyReport:
    """Write a base to object storage in place of the state ``before``; the caller has claimed the target.

    With a ``scale``, what only reading needs has the form that it has for a base so many times as large.
    Raises Locked where another process has committed since ``before`` was read; nothing is changed then.
    """
    with store.temporary_folder() as temporary:
        copy = temporary / "base"
        create_folder(copy)
        divided = 0 if before is None else before.shard_rows
        with store.database.read_transaction() as connection:
            rows = read_counter(connection, "next_row")
        shard_rows = choose_shard_rows(rows, shards, divided)
        digest = store.write_copy(copy, shard_rows)
        link_uploads(store, copy)
        write_reading_files(store, copy, scale)
        described = _describe_files(copy)
        files = [file for file in described if not file.path.startswith(f"{READING}/")]
        reading = [file for file in described if file not in files]
        stored = objects.sizes(PIECES)
        transferred = _write_pieces(objects, copy, described, stored, progress)
    content = {
        "format": FORMAT,
        "clew": version("clew"),
        "copy": uuid.uuid4().hex,
        "written": _now(),
        "digest": digest,
        "shard_rows": shard_rows,
        "files": [file.to_dict() for file in files],
        "reading": {"layout": LAYOUT, "files": [file.to_dict() for file in reading]},
    }
    # Also where nothing has changed: whoever deletes pieces must have committed.
    replaced = None if before is None else before.version
    if not objects.write_if(MANIFEST, json.dumps(content).encode(), replaced):
        raise Locked(
            f"another process completed a copy at {objects.url} meanwhile; nothing was changed there",
            "To replace that copy, run the same command again",
        )
    needed = {piece_name(piece) for file in described for piece in file.pieces}
    # Only names that this module gives: the address may hold other people's files.
    objects.delete(sorted(name for name in stored.keys() - needed if PIECE_NAME.fullmatch(name)))
    return _report(str(store.path), objects.url, digest, described, transferred)


def hold_copy_lock(folder: Path) -> AbstractContextManager[None]:
    """Keep other processes on this machine from copying the base in, or to, ``folder``."""
    return hold_lock(folder / _LOCK_FILE, 0, f"another process is copying {folder}")


@contextmanager
def claim_target(folder: Path, objects: ObjectStore, *, take_over: bool) -> Iterator[None]:
    """Note at the target that this base is being written there, and remove the note afterwards. Raises Locked.

    A note that an earlier copy of the same base left, which was killed, is taken over: no other process copies the
    base now. While the note is there it is written again and again, so that others can tell that this process lives.
    """
    writers = _read_writers(folder)
    own_names = writers.get(objects.url, [])
    note = objects.read(WRITER)
    if note is not None and not take_over:
        writer = parse_object(note[0], objects, WRITER)
        if writer["writer"] not in own_names:
            raise Locked(
                f"a copy to {objects.url} is being written by process {writer['process']} on {writer['host']}, "
                f"since {writer['since']}",
                "Wait until it is done. If that process was killed, add --take-over",
            )
    name = uuid.uuid4().hex
    # First here, then there: after a kill in between or after it, the note there has one of these names.
    _write_writers(folder, writers | {objects.url: [*own_names, name]})
    claim = {"writer": name, "process": os.getpid(), "host": socket.gethostname(), "since": _now()}
    if not objects.write_if(WRITER, json.dumps(claim).encode(), note and note[1]):
        _write_writers(folder, writers)
        raise Locked(f"another process began a copy to {objects.url} in this moment", "Wait until it is done")
    done = threading.Event()
    beating = threading.Thread(
        target=_renew_claim, args=(objects, claim, done), daemon=True, name="clew-claim"
    )
    beating.start()
    try:
        yield
    finally:
        done.set()
        beating.join()
        # Where the storage fails, the note stays there and here, and the next copy of this base continues.
        with suppress(StoreError):
            note = objects.read(WRITER)
            if note is not None and parse_object(note[0], objects, WRITER)["writer"] == name:
                objects.delete([WRITER])
            _write_writers(folder, {url: names for url, names in writers.items() if url != objects.url})


def _renew_claim(objects: ObjectStore, claim: dict[str, Any], done: threading.Event) -> None:
    """Write the note of a writer again from time to time, until it is done or the note is no longer its own."""
    beat = 0
    while not done.wait(BEAT):
        with suppress(StoreError):  # the next beat may succeed; the commit does not rely on the note
            note = objects.read(WRITER)
            if note is None or parse_object(note[0], objects, WRITER)["writer"] != claim["writer"]:
                return
            beat += 1
            objects.write_if(WRITER, json.dumps(claim | {"beat": beat}).encode(), note[1])


def _read_writers(folder: Path) -> dict[str, list[str]]:
    with suppress(OSError, ValueError):
        writers = json.loads((folder / _WRITERS_FILE).read_text(encoding="utf-8"))
        # Earlier versions kept the last name alone.
        return {url: [names] if isinstance(names, str) else names for url, names in writers.items()}
    return {}


def _write_writers(folder: Path, writers: dict[str, list[str]]) -> None:
    path = folder / _WRITERS_FILE
    if not writers:
        path.unlink(missing_ok=True)
        return
    replace_file(path, json.dumps(writers))


def _describe_files(folder: Path) -> list[StoredFile]:
    """Return the files of a copy, sorted by path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [describe_file(folder, path) for path in paths if not path.name.endswith(_LEFT_OUT)]


def _write_pieces(
    objects: ObjectStore,
    folder: Path,
    files: list[StoredFile],
    stored: dict[str, int],
    progress: Callable[[int, int], None],
) -> int:
    """Write the pieces that are not ``stored``; return how many bytes they have."""
    total = sum(file.size for file in files)
    places = {
        digest: (folder / file.path, file.piece_start(number), file.piece_length(number))
        for file in files
        for number, digest in enumerate(file.pieces)
    }
    missing = {
        digest: place for digest, place in places.items() if stored.get(piece_name(digest)) != place[2]
    }

    def write_piece(digest: str) -> int:
        path, start, length = missing[digest]
        with path.open("rb") as stream:
            stream.seek(start)
            content = stream.read(length)
        objects.write(piece_name(digest), content)
        return length

    to_write = sum(length for _, _, length in missing.values())
    for written in _transfer(write_piece, list(missing)):
        progress(total - to_write + written, total)
    progress(total, total)
    return to_write


def _transfer(move: Callable[[str], int], digests: list[str]) -> Iterator[int]:
    """Yield the bytes that were moved so far, after each piece. On an exception no further piece is begun."""
    moved = 0
    with ThreadPoolExecutor(TRANSFERS) as pool:
        pieces = [pool.submit(move, digest) for digest in digests]
        try:
            for piece in as_completed(pieces):
                moved += piece.result()
                yield moved
        finally:
            for piece in pieces:
                piece.cancel()


# From object storage


def download_base(objects: ObjectStore, folder: Path, progress: Callable[[int, int], None]) -> CopyReport:
    """Make the base of which there is a copy in object storage, in the new folder ``folder``.

    Every piece is compared with its digest, also those that an interrupted download left in the folder beside it.
    """
    _refuse_existing(folder)
    manifest = read_manifest(objects)
    if manifest is None:
        raise NotFound(f"there is no complete copy of a knowledge base at {objects.url}", "Check the address")
    files = manifest.files
    if outside := [file.path for file in files if not is_below(file.path)]:
        raise Damaged(f"the copy at {objects.url} lists a file outside of its folder: {outside[0]}")
    unfinished = folder.with_name(folder.name + UNFINISHED)
    folder.parent.mkdir(parents=True, exist_ok=True)
    create_folder(unfinished)
    with hold_copy_lock(unfinished):
        _delete_other_files(unfinished, {file.path for file in files})
        places: dict[str, list[tuple[Path, int, int]]] = {}
        for file in files:
            path = unfinished / file.path
            create_folder(path.parent)
            pieces = read_pieces(path, file.ends) if path.exists() else []
            present = [piece_digest(piece) for _, piece in pieces]
            with open_private(path, "r+b" if path.exists() else "w+b") as stream:
                stream.truncate(file.size)
            for number, digest in enumerate(file.pieces):
                if number >= len(present) or present[number] != digest:
                    place = path, file.piece_start(number), file.piece_length(number)
                    places.setdefault(digest, []).append(place)

        def read_piece(digest: str) -> int:
            stored = objects.read(piece_name(digest))
            if stored is None:
                raise StoreError(
                    f"the copy at {objects.url} was replaced meanwhile", "Run the same command again"
                )
            if piece_digest(stored[0]) != digest:
                raise Damaged(f"{objects.url}/{piece_name(digest)} is damaged", "Copy the base there again")
            for path, start, _ in places[digest]:
                with path.open("r+b") as stream:
                    stream.seek(start)
                    stream.write(stored[0])
            return sum(length for _, _, length in places[digest])

        total = sum(file.size for file in files)
        to_read = sum(length for copies in places.values() for _, _, length in copies)
        for done in _transfer(read_piece, list(places)):
            progress(total - to_read + done, total)
        progress(total, total)
        _finish_folder(unfinished, folder, manifest.digest)
    return _report(objects.url, str(folder), manifest.digest, files, to_read)


def _delete_other_files(folder: Path, paths: set[str]) -> None:
    """Delete what an interrupted copy of another state left."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in paths | {_LOCK_FILE}:
            path.unlink()


# Folders


def _copy_folder(source: Path, folder: Path, progress: Callable[[int, int], None]) -> CopyReport:
    """Copy a base to a new folder. Interrupted, it begins again."""
    _refuse_existing(folder)
    with Store.open(source) as store, hold_copy_lock(source):
        unfinished = folder.with_name(folder.name + UNFINISHED)
        folder.parent.mkdir(parents=True, exist_ok=True)
        create_folder(unfinished)
        with hold_copy_lock(unfinished):
            _delete_other_files(unfinished, set())
            digest = store.write_copy(unfinished)
            link_uploads(store, unfinished)
            files = _describe_files(unfinished)
            total = sum(file.size for file in files)
            _finish_folder(unfinished, folder, digest)
            progress(total, total)
    return _report(str(source), str(folder), digest, files, total)


def _refuse_existing(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists already and is not empty", "Name a new folder, or remove that one")


def _finish_folder(unfinished: Path, folder: Path, digest: str) -> None:
    """Compare the digest of a complete copy with the expected one, and give the copy its name."""
    with Store.open(unfinished) as copy:
        copied = copy.digest()
    if copied != digest:
        raise Damaged(f"the copy in {unfinished} has the digest {copied} instead of {digest}", "Copy again")
    (unfinished / _LOCK_FILE).unlink(missing_ok=True)
    mend_rights(unfinished.rglob("*"))  # of files that are shared with a base whose own are not mended yet
    if folder.exists():
        folder.rmdir()
    unfinished.rename(folder)


def _report(
    source: str, target: str, digest: str, files: Sequence[StoredFile], transferred: int
) -> CopyReport:
    return CopyReport(source, target, digest, len(files), sum(file.size for file in files), transferred)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
