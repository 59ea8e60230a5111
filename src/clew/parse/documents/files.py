"""Opens files for reading: every failure is an UnreadableFile, and nothing waits for a pipe or a device.

A process that parses what strangers wrote may open no file itself; its parent opens them and hands them over.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clew.core.errors import UnreadableFile
from clew.parse.documents.limits import LIMITS, MIB, Limits, format_size

#: Descriptors of files that another process opened for this one, which may open no other.
_HANDED_OVER: dict[Path, int] = {}


def read_bytes(path: Path, limits: Limits = LIMITS) -> bytes:
    """Return the content of a regular file. Raises UnreadableFile; never waits for a pipe or device."""
    data = None
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= limits.file_bytes:
                # Not more at once than it has, which would be allocated; then what it may have grown by.
                data = file.read(size + 1)
                while len(data) <= limits.file_bytes and (more := file.read(MIB)):
                    data += more
    except OSError as error:
        raise UnreadableFile(_problem_of(path, error)) from error
    if data is None or len(data) > limits.file_bytes:
        raise UnreadableFile(f"is larger than {format_size(limits.file_bytes)}")
    return data


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading, from its start. Raises UnreadableFile; never waits for a pipe or device."""
    if (descriptor := _HANDED_OVER.get(path)) is None:
        return os.fdopen(open_descriptor(path), "rb")
    file = os.fdopen(os.dup(descriptor), "rb")
    file.seek(0)
    return file


def open_descriptor(path: Path) -> int:
    """Open a regular file for reading and return its descriptor. Raises UnreadableFile as :func:`open_file` does."""
    # O_NONBLOCK: opening a named pipe that nobody writes to would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise UnreadableFile(_problem_of(path, error)) from error
    except ValueError as error:  # a path with a NUL in it
        raise UnreadableFile(f"cannot be opened ({error})") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise UnreadableFile(
        "is a folder, not a file" if stat.S_ISDIR(mode) else "is a pipe or device, not a file"
    )


@contextmanager
def handed_over(path: Path, descriptor: int) -> Iterator[None]:
    """While this lasts, :func:`open_file` takes ``path`` from a descriptor, which is closed at the end."""
    _HANDED_OVER[path] = descriptor
    try:
        yield
    finally:
        del _HANDED_OVER[path]
        os.close(descriptor)


def _problem_of(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    if isinstance(error, PermissionError):
        return "cannot be read: no permission"
    if isinstance(error, FileNotFoundError):
        return "is a link to nowhere" if path.is_symlink() else "no longer exists"
    # A named pipe without a reader, a socket: "no such device or address".
    return f"cannot be read: {(error.strerror or str(error)).lower()}"
