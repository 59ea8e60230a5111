"""What a file is: by its content first, by its suffix where content leaves it open."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import PurePath

from clew.core.errors import UnreadableFile
from clew.parse.documents.encoding import is_binary

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HTML = "text/html"
MARKDOWN = "text/markdown"
PLAIN = "text/plain"
CSV = "text/csv"
TSV = "text/tab-separated-values"

SUFFIXES: dict[str, str] = {
    ".pdf": PDF,
    ".docx": DOCX,
    ".docm": DOCX,
    ".dotx": DOCX,
    ".xlsx": XLSX,
    ".xlsm": XLSX,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".txt": PLAIN,
    ".text": PLAIN,
    ".csv": CSV,
    ".tsv": TSV,
    ".tab": TSV,
}
"""Suffixes that are read, and what they promise."""

_NAMES = {
    PDF: "a PDF",
    DOCX: "a Word document",
    XLSX: "an Excel workbook",
    HTML: "an HTML page",
    MARKDOWN: "Markdown",
    PLAIN: "plain text",
    CSV: "a CSV table",
    TSV: "a TSV table",
}
_CONVERT = {
    "doc": "Save it as .docx and add that",
    "xls": "Save it as .xlsx and add that",
    "ppt": "Save it as PDF and add that",
    "other": "Export it as PDF, DOCX, HTML or text and add that",
}
_TEXT_FORMATS = {
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
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
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
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_HTML_START = re.compile(
    rb"(?:\s|<!--.*?-->|<\?xml[^>]*\?>)*<(?:!doctype\s+html|html|head|body|title|meta)[\s>]", re.I | re.S
)


def detect_media_type(data: bytes, name: str) -> str:
    """Return the media type of a file's content; ``name`` decides between kinds of text.

    Raises UnreadableFile, with what the file is, for everything that is not read.
    """
    suffix = PurePath(name).suffix.lower()
    if not data.strip(b"\0"):
        raise UnreadableFile("is empty" if not data else "holds nothing but zero bytes")
    # Other programs' headers may precede the mark; readers accept it within the first 1,024 bytes.
    if b"%PDF-" in data[:1024] and not _HTML_START.match(data[:1024]):
        return PDF
    if data.startswith(_ZIPS):
        return _zip(data, suffix)
    if data.startswith(_OLE):
        raise _ole(data)
    if what := _signature(data):
        raise UnreadableFile(f"is {what}{_not_what_it_says(suffix)}", _hint(what))
    if is_binary(data):
        promised = _NAMES[SUFFIXES[suffix]] if suffix in SUFFIXES else ""
        is_text = not promised or SUFFIXES[suffix].startswith("text/")
        raise UnreadableFile("is binary data, not text" if is_text else f"is damaged or not {promised}")
    return _text(data, suffix)


def _text(data: bytes, suffix: str) -> str:
    if not data.translate(None, b"\0").strip(b" \t\r\n\x0b\x0c\xef\xbb\xbf\xff\xfe"):
        raise UnreadableFile("holds nothing but white space")
    if _HTML_START.match(data[:4096].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")):
        return HTML
    if suffix in _TEXT_FORMATS:
        raise UnreadableFile(f"is {_TEXT_FORMATS[suffix]}, which is not supported", _CONVERT["other"])
    promised = SUFFIXES.get(suffix, PLAIN)
    return promised if promised.startswith("text/") else PLAIN


def _signature(data: bytes) -> str:
    for start, what in _SIGNATURES:
        if data.startswith(start):
            return what
    if data[4:8] == b"ftyp":
        return "a video or photo"
    if data[:4] == b"RIFF":
        return {b"WEBP": "a WebP image", b"WAVE": "a WAV recording"}.get(data[8:12], "a RIFF recording")
    if data[:2] == b"MZ" and b"\0" in data[:64]:
        return "a program"
    return "a BMP image" if data[:2] == b"BM" and data[6:10] == b"\0\0\0\0" else ""


def _not_what_it_says(suffix: str) -> str:
    return f", not {_NAMES[SUFFIXES[suffix]]}" if suffix in SUFFIXES else ", which is not supported"


def _hint(what: str) -> str:
    if what.endswith("image"):
        return "Recognise its text (OCR) into a PDF and add that"
    if what.endswith("archive"):
        return "Unpack it and add what is inside"
    return _CONVERT["other"] if what in {"RTF", "PostScript", "a DjVu document"} else ""


def _zip(data: bytes, suffix: str) -> str:
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = set(archive.namelist())
            mimetype = archive.read("mimetype")[:100] if _small(archive, "mimetype") else b""
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError) as error:
        what = _NAMES[SUFFIXES[suffix]] if suffix in SUFFIXES else "a zip archive"
        raise UnreadableFile(f"is damaged: the zip container of {what} cannot be read ({error})") from error
    folders = {name.split("/")[0] for name in names}
    if "word" in folders or ("[Content_Types].xml" in names and SUFFIXES.get(suffix) == DOCX):
        return DOCX
    if "xl" in folders or ("[Content_Types].xml" in names and SUFFIXES.get(suffix) == XLSX):
        return XLSX
    if "ppt" in folders:
        raise UnreadableFile("is a PowerPoint presentation, which is not supported", _CONVERT["ppt"])
    if b"opendocument" in mimetype:
        raise UnreadableFile("is an OpenDocument file, which is not supported", _CONVERT["other"])
    if b"epub" in mimetype:
        raise UnreadableFile("is an EPUB book, which is not supported", _CONVERT["other"])
    raise UnreadableFile(f"is a zip archive{_not_what_it_says(suffix)}", "Unpack it and add what is inside")


def _small(archive: zipfile.ZipFile, name: str) -> bool:
    return name in archive.namelist() and archive.getinfo(name).file_size < 1000


def _ole(data: bytes) -> UnreadableFile:
    """Return why an OLE compound file is not read: its directory names its streams in UTF-16."""
    if _holds(data, "EncryptedPackage") or _holds(data, "EncryptionInfo"):
        return UnreadableFile("is encrypted", "Save it without a password and add that")
    if _holds(data, "WordDocument"):
        return UnreadableFile("is a Word document in the old .doc format", _CONVERT["doc"])
    if _holds(data, "Workbook") or _holds(data, "Book"):
        return UnreadableFile("is an Excel workbook in the old .xls format", _CONVERT["xls"])
    if _holds(data, "PowerPoint Document"):
        return UnreadableFile("is a PowerPoint presentation in the old .ppt format", _CONVERT["ppt"])
    return UnreadableFile(
        "is an old Microsoft Office file or message, which is not supported", _CONVERT["other"]
    )


def _holds(data: bytes, stream: str) -> bool:
    return (stream.encode("utf-16-le") + b"\0\0") in data
