"""Files of a knowledge base: their owner alone reads them, they are whole or not there, and a disk may fail.

A base has the texts of private documents. Its folders have the rights 700 and its files 600, whatever the umask.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from clew.core.errors import StoreError

FILE_RIGHTS, FOLDER_RIGHTS = 0o600, 0o700

_MAKE_ROOM = "Make room on the disk and try again; nothing that was stored is lost"
_SEE_DISK = "See what is wrong with the disk, and try again; nothing that was stored is lost"
_OTHER_FOLDER = "Name a folder that you may write to: --kb FOLDER"
_CANNOT_LOCK = (
    "files cannot be locked there",
    "Keep the knowledge base on a disk of this machine: --kb FOLDER",
)
#: What a person is told about errors of the system that are nobody's mistake in the program, and what to do.
_SYSTEM_ERRORS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", _MAKE_ROOM),
    errno.EDQUOT: ("there is no room left that you may use on the disk", _MAKE_ROOM),
    errno.EFBIG: (
        "a file may not grow so large",
        "Allow larger ones (ulimit -f), or name another folder: --kb FOLDER",
    ),
    errno.EIO: ("the disk fails", _SEE_DISK),
    errno.EROFS: ("the disk is read-only", _OTHER_FOLDER),
    errno.EACCES: ("permission denied", _OTHER_FOLDER),
    errno.ENOLCK: _CANNOT_LOCK,
    errno.ENOSYS: _CANNOT_LOCK,
    errno.EOPNOTSUPP: _CANNOT_LOCK,
    errno.ENOMEM: ("there is not enough memory", "Allow this process more memory, or end other programs"),
    errno.EMFILE: ("too many open files", "Allow this process more open files (ulimit -n), or end others"),
    errno.ENFILE: ("the system has too many open files", "End other programs"),
}
#: Those of them that come from the disk, whatever else is done while it is written to.
_DISK_ERRORS = frozenset(_SYSTEM_ERRORS) - {errno.EACCES, errno.ENOMEM}


def is_system_error(error: OSError) -> bool:
    """Return whether an error says that the system has no room, no locks, no free descriptors, or no permission."""
    return error.errno in _SYSTEM_ERRORS


def system_error(error: OSError, place: Path | str = "") -> StoreError:
    """Return an error of the system as one of clew. ``place`` is where it happened, if the error names no file."""
    problem, hint = _SYSTEM_ERRORS.get(error.errno or 0, (error.strerror or str(error), _SEE_DISK))
    where = error.filename or place
    return StoreError(f"{where}: {problem}" if where else problem, hint)


@contextmanager
def guard_disk(place: Path) -> Iterator[None]:
    """Raise StoreError where the disk of ``place`` is full, fails, is read-only or cannot lock."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        raise system_error(error, place) from error


def find_lock_fault(folder: Path) -> StoreError | None:
    """Return the error for a folder on whose file system no file can be locked; None where files can be."""
    try:
        import fcntl

        file = TemporaryFile(dir=folder)  # noqa: SIM115 - closed below
    except (ImportError, OSError):  # Windows; nothing can be written
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return StoreError(f"{folder}: {_CANNOT_LOCK[0]}", _CANNOT_LOCK[1])
    return None


# Rights


def open_private(path: Path, mode: str = "wb", **options: Any) -> IO[Any]:
    """Open a file as ``open`` does; one that is made by it can be read by its owner alone."""
    return open(path, mode, opener=_open_descriptor, **options)


def _open_descriptor(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, FILE_RIGHTS)
    mend_rights([Path(path)])
    return descriptor


def create_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing, which only their owner can enter."""
    if not path.is_dir():
        create_folder(path.parent)
        path.mkdir(FOLDER_RIGHTS, exist_ok=True)
        mend_rights([path])


def mend_rights(paths: Iterable[Path], *, repair: bool = True) -> tuple[int, int]:
    """Give files and folders the rights of a base; return how many had others, and how many of these have them now.

    What belongs to somebody else or lies on a file system without rights stays as it is. Links are left out.
    """
    wrong = mended = 0
    for path in paths if os.name != "nt" else ():
        with suppress(FileNotFoundError):  # another process has just deleted it
            mode = path.lstat().st_mode
            rights = FOLDER_RIGHTS if stat.S_ISDIR(mode) else FILE_RIGHTS
            if stat.S_ISLNK(mode) or stat.S_IMODE(mode) == rights:
                continue
            wrong += 1
            if repair:
                with suppress(OSError):
                    path.chmod(rights)
                    mended += 1
    return wrong, mended


# Whole files


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace the content of a file atomically: after a crash it has the old or the new content."""
    unfinished = path.with_suffix(".new")
    with open_private(unfinished) as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def link_file(source: Path, target: Path) -> None:
    """Make the new file ``target`` of one that is never written again: a link, or a copy where the file system has
    no links."""
    try:
        os.link(source, target)
    except OSError:
        copy_file(source, target)


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file."""
    open_private(target).close()
    shutil.copyfile(source, target)


def sync_folder(path: Path) -> None:
    """Make renames in a folder survive a power cut, where the system can."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
