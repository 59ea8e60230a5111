"""Reads one file: its format is detected, its bytes are parsed, and every failure is an UnreadableFile.

The format is detected from the content first, and from the suffix where the content leaves it open.
"""

from __future__ import annotations

import os
import stat
import zipfile
from io import BytesIO
from pathlib import Path, PurePath

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import is_binary
from clew.parse.documents.formats import DocumentFormat, document_formats, format_of_suffix
from clew.parse.documents.limits import LIMITS, MIB, Limits, format_size

#: Bytes at the start of a text file that :attr:`DocumentFormat.matches` is given.
_TEXT_START = 4_096
_FALLBACK = "text/plain"
_EXPORT = "Export it as PDF, DOCX, HTML or text and add that"
#: Text formats that are not read, by suffix: as plain text they would be full of markup.
_UNSUPPORTED_TEXT = {
    ".json": "JSON",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".xml": "XML",
    ".svg": "an SVG image",
    ".eml": "an e-mail",
    ".tex": "LaTeX",
    ".rtf": "RTF",
    ".ipynb": "a Jupyter notebook",
    ".yaml": "YAML",
    ".yml": "YAML",
}
#: Formats that are not read, by their first bytes.
_UNSUPPORTED_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"8BPS", "a Photoshop image"),
    (b"{\\rtf", "RTF"),
    (b"%!PS", "PostScript"),
    (b"\x1f\x8b\x08", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"PAR1", "a Parquet table"),
    (b"OggS", "an Ogg recording"),
    (b"fLaC", "a FLAC recording"),
    (b"ID3", "an MP3 recording"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"AT&TFORM", "a DjVu document"),
    (b"ITOLITLS", "a Microsoft e-book"),
)
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: Files in OLE containers, by a stream that the container holds: the problem and the hint.
_OLE_STREAMS = (
    ("EncryptedPackage", "is encrypted", "Save it without a password and add that"),
    ("EncryptionInfo", "is encrypted", "Save it without a password and add that"),
    ("WordDocument", "is a Word document in the old .doc format", "Save it as .docx and add that"),
    ("Workbook", "is an Excel workbook in the old .xls format", "Save it as .xlsx and add that"),
    ("Book", "is an Excel workbook in the old .xls format", "Save it as .xlsx and add that"),
    (
        "PowerPoint Document",
        "is a PowerPoint presentation in the old .ppt format",
        "Save it as PDF and add that",
    ),
)


def detect_format(data: bytes, name: str) -> DocumentFormat:
    """Return the format of a file with this content; its ``name`` decides between kinds of text.

    Raises UnreadableFile, which says what the file is, for every format that is not read.
    """
    promised = format_of_suffix(PurePath(name).suffix)
    if not data.strip(b"\0"):
        raise UnreadableFile("is empty" if not data else "holds nothing but zero bytes")
    claimed = _claim_text(data)
    for form in document_formats():
        # A page of text that is about a binary format may have its magic bytes further down.
        if form.magic and (data.startswith(form.magic) or (_has_magic(data, form) and claimed is None)):
            return form
    if data.startswith(_ZIP_STARTS):
        return _detect_in_zip(data, promised)
    if data.startswith(_OLE_START):
        raise _ole_error(data)
    if label := _unsupported_label(data):
        raise UnreadableFile(f"is {label}{_contradiction(promised)}", _unsupported_hint(label))
    if is_binary(data):
        if promised is None or promised.is_text:
            raise UnreadableFile("is binary data, not text")
        raise UnreadableFile(f"is damaged or not {promised.label}")
    if not data.translate(None, b"\0").strip(b" \t\r\n\x0b\x0c\xef\xbb\xbf\xff\xfe"):
        raise UnreadableFile("holds nothing but white space")
    return claimed or _format_of_text(name, promised)


def _has_magic(data: bytes, form: DocumentFormat) -> bool:
    return form.magic in data[: form.magic_window]


def _claim_text(data: bytes) -> DocumentFormat | None:
    """Return the text format that recognises the start of a file."""
    start = data[:_TEXT_START].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    return next((form for form in document_formats() if form.matches and form.matches(start)), None)


def _format_of_text(name: str, promised: DocumentFormat | None) -> DocumentFormat:
    if promised is not None and promised.is_text:
        return promised
    if label := _UNSUPPORTED_TEXT.get(PurePath(name).suffix.lower()):
        raise UnreadableFile(f"is {label}, which is not supported", _EXPORT)
    return next(form for form in document_formats() if form.media_type == _FALLBACK)


def _unsupported_label(data: bytes) -> str:
    """Return what a binary file is that is not read, "" where that is unknown."""
    for start, label in _UNSUPPORTED_BINARY:
        if data.startswith(start):
            return label
    if data[4:8] == b"ftyp":
        return "a video or photo"
    if data[:4] == b"RIFF":
        return {b"WEBP": "a WebP image", b"WAVE": "a WAV recording"}.get(data[8:12], "a RIFF recording")
    if data[:2] == b"MZ" and b"\0" in data[:64]:
        return "a program"
    return "a BMP image" if data[:2] == b"BM" and data[6:10] == b"\0\0\0\0" else ""


def _unsupported_hint(label: str) -> str:
    if label.endswith("image"):
        return "Recognise its text (OCR) into a PDF and add that"
    if label.endswith("archive"):
        return "Unpack it and add what is inside"
    return _EXPORT if label in {"RTF", "PostScript", "a DjVu document"} else ""


def _contradiction(promised: DocumentFormat | None) -> str:
    return f", not {promised.label}" if promised else ", which is not supported"


def _detect_in_zip(data: bytes, promised: DocumentFormat | None) -> DocumentFormat:
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = set(archive.namelist())
            has_type = "mimetype" in names and archive.getinfo("mimetype").file_size < 1_000
            mimetype = archive.read("mimetype")[:100] if has_type else b""
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError) as error:
        label = promised.label if promised else "a zip archive"
        raise UnreadableFile(f"is damaged: the zip container of {label} cannot be read ({error})") from error
    folders = {name.split("/")[0] for name in names}
    for form in document_formats():
        damaged = form is promised and "[Content_Types].xml" in names
        if form.zip_folder and (form.zip_folder in folders or damaged):
            return form
    if "ppt" in folders:
        raise UnreadableFile(
            "is a PowerPoint presentation, which is not supported", "Save it as PDF and add that"
        )
    if b"opendocument" in mimetype:
        raise UnreadableFile("is an OpenDocument file, which is not supported", _EXPORT)
    if b"epub" in mimetype:
        raise UnreadableFile("is an EPUB book, which is not supported", _EXPORT)
    raise UnreadableFile(f"is a zip archive{_contradiction(promised)}", "Unpack it and add what is inside")


def _ole_error(data: bytes) -> UnreadableFile:
    """Return the error for an OLE container, whose directory names its streams in UTF-16."""
    for stream, problem, hint in _OLE_STREAMS:
        if stream.encode("utf-16-le") + b"\0\0" in data:
            return UnreadableFile(problem, hint)
    return UnreadableFile("is an old Microsoft Office file or message, which is not supported", _EXPORT)


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
        problem = "reading it takes more memory than there is (CLEW_READ_MEMORY sets the limit)"
        raise UnreadableFile(problem) from None


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
            data = None
            if status.st_size <= limits.file_bytes:
                # Not more at once than it has, which would be allocated; then what it may have grown by.
                data = file.read(status.st_size + 1)
                while len(data) <= limits.file_bytes and (more := file.read(MIB)):
                    data += more
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
