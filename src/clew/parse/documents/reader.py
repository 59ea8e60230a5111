"""The front door of parsing: one file in, one document out, or one reason why not."""

from __future__ import annotations

import os
import stat
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.detection import (
    CSV,
    DOCX,
    HTML,
    MARKDOWN,
    PDF,
    PLAIN,
    SUFFIXES,
    TSV,
    XLSX,
    detect_media_type,
)
from clew.parse.documents.limits import LIMITS, Limits, format_size

_PARSERS = {
    PDF: "clew.parse.documents.pdf.reader",
    DOCX: "clew.parse.documents.docx",
    XLSX: "clew.parse.documents.xlsx",
    HTML: "clew.parse.documents.html",
    MARKDOWN: "clew.parse.documents.markdown",
    PLAIN: "clew.parse.documents.text",
    CSV: "clew.parse.documents.csv",
    TSV: "clew.parse.documents.csv",
}


class _Parse(Protocol):
    def __call__(self, data: bytes, *, unit: PassageUnit, name: str) -> ParsedDocument: ...


def is_supported(path: Path) -> bool:
    """Return whether a file with this name is one that ``add`` picks up from a folder."""
    return path.suffix.lower() in SUFFIXES


def read_file(path: Path, *, unit: PassageUnit = "paragraph", name: str = "") -> ParsedDocument:
    """Read and parse one file; what it is comes from its content, not from its name. ``name``: what it is called,
    where that is not what it is called on disk.

    Raises UnreadableFile, and nothing else, for a file that cannot be added.
    """
    return parse(read_bytes(path), name or path.name, unit=unit)


def parse(data: bytes, name: str, *, unit: PassageUnit = "paragraph") -> ParsedDocument:
    """Parse the bytes of a file called ``name``. Raises UnreadableFile."""
    parser = cast(_Parse, import_module(_PARSERS[detect_media_type(data, name)]).parse)
    try:
        return parser(data, unit=unit, name=name)
    except MemoryError:
        raise UnreadableFile("needs more memory than there is") from None


def read_bytes(path: Path, limits: Limits = LIMITS) -> bytes:
    """Return the content of a regular file, and never wait for one that is not. Raises UnreadableFile."""
    # O_NONBLOCK: opening a named pipe that nobody writes to would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableFile(_kind(status.st_mode))
            # One byte more than allowed, so that a file that grows meanwhile is noticed.
            data = file.read(limits.file_bytes + 1) if status.st_size <= limits.file_bytes else None
    except OSError as error:
        raise UnreadableFile(_why(path, error)) from error
    except ValueError as error:  # a path with a NUL in it
        raise UnreadableFile(f"cannot be opened ({error})") from error
    if data is None or len(data) > limits.file_bytes:
        raise UnreadableFile(f"is larger than {format_size(limits.file_bytes)}")
    return data


def _kind(mode: int) -> str:
    return "is a folder, not a file" if stat.S_ISDIR(mode) else "is a pipe or device, not a file"


def _why(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    if isinstance(error, PermissionError):
        return "cannot be read: no permission"
    if isinstance(error, FileNotFoundError):
        return "is a link to nowhere" if path.is_symlink() else "no longer exists"
    # A named pipe without a reader, a socket: "no such device or address".
    return f"cannot be read: {(error.strerror or str(error)).lower()}"
