"""Reads one file: its format is detected, its bytes are parsed, and every failure is an UnreadableFile."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.detection import detect_format
from clew.parse.documents.formats import format_of_suffix
from clew.parse.documents.limits import LIMITS, Limits, format_size


def is_supported(path: Path) -> bool:
    """Return whether ``add`` picks a file with this name up from a folder."""
    return format_of_suffix(path.suffix) is not None


def read_file(path: Path, *, unit: PassageUnit = "paragraph", name: str = "") -> ParsedDocument:
    """Read and parse one file. Its content decides on its format before its name does.

    ``name`` is the file's name where it differs from that on disk. Raises UnreadableFile, and nothing else, for a
    file that cannot be added.
    """
    return parse(read_bytes(path), name or path.name, unit=unit)


def parse(data: bytes, name: str, *, unit: PassageUnit = "paragraph") -> ParsedDocument:
    """Parse the bytes of a file called ``name``. Raises UnreadableFile."""
    form = detect_format(data, name)
    try:
        return form.parse(data, unit=unit, name=name)
    except MemoryError:
        raise UnreadableFile("needs more memory than there is") from None


def read_bytes(path: Path, limits: Limits = LIMITS) -> bytes:
    """Return the content of a regular file. Raises UnreadableFile; never waits for a pipe or device."""
    # O_NONBLOCK: opening a named pipe that nobody writes to would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISDIR(status.st_mode):
                raise UnreadableFile("is a folder, not a file")
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableFile("is a pipe or device, not a file")
            # One byte more than allowed, so that a file that grows meanwhile is noticed.
            data = file.read(limits.file_bytes + 1) if status.st_size <= limits.file_bytes else None
    except OSError as error:
        raise UnreadableFile(_problem_of(path, error)) from error
    except ValueError as error:  # a path with a NUL in it
        raise UnreadableFile(f"cannot be opened ({error})") from error
    if data is None or len(data) > limits.file_bytes:
        raise UnreadableFile(f"is larger than {format_size(limits.file_bytes)}")
    return data


def _problem_of(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    if isinstance(error, PermissionError):
        return "cannot be read: no permission"
    if isinstance(error, FileNotFoundError):
        return "is a link to nowhere" if path.is_symlink() else "no longer exists"
    # A named pipe without a reader, a socket: "no such device or address".
    return f"cannot be read: {(error.strerror or str(error)).lower()}"
