"""Reads one file: its format is detected, its bytes are parsed, and every failure is an UnreadableFile.

The format is detected from the content first, and from the suffix where the content leaves it open.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path, PurePath

from clew.core.errors import UnreadableFile
from clew.core.files import open_private
from clew.core.text import clean_name
from clew.core.types import Member, ParsedDocument
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import is_binary
from clew.parse.documents.files import read_bytes
from clew.parse.documents.formats import DocumentFormat, MemberFile, document_formats, format_of_suffix
from clew.parse.documents.limits import LIMITS, SIMPLER, Limits, format_size
from clew.parse.documents.pdf.recognition import describe_recognition

#: Bytes at the start of a text file that :attr:`DocumentFormat.matches` is given.
_TEXT_START = 4_096
_FALLBACK = "text/plain"
_ARCHIVE = "application/zip"
_EXPORT = "Export it as PDF, DOCX, HTML or text and add that"
#: Text formats that are not read, by suffix: as plain text they would be full of markup.
_UNSUPPORTED_TEXT = {
    ".xml": "XML",
    ".svg": "an SVG image",
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
#: Notes name so many of the files within a file that are not read.
_NAMED = 5
#: The name of a file within a file is cut to its last so many characters.
_MAX_NAME = 200


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
        return _detect_in_zip(data, name, promised)
    if label := _unsupported_label(data):
        raise UnreadableFile(f"is {label}{_contradiction(promised)}", _unsupported_hint(label))
    if is_binary(data):
        if promised is None or promised.is_text:
            raise UnreadableFile("is binary data, not text")
        raise UnreadableFile(f"is damaged or not {promised.label}")
    if not data.translate(None, b"\0").strip(b" \t\r\n\x0b\x0c\xef\xbb\xbf\xff\xfe"):
        raise UnreadableFile("holds nothing but white space")
    return claimed or _format_of_text(data, name, promised)


def _has_magic(data: bytes, form: DocumentFormat) -> bool:
    return form.magic in data[: form.magic_window]


def _claim_text(data: bytes) -> DocumentFormat | None:
    """Return the text format that recognises the start of a file."""
    start = data[:_TEXT_START].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    return next((form for form in document_formats() if form.matches and form.matches(start)), None)


def _format_of_text(data: bytes, name: str, promised: DocumentFormat | None) -> DocumentFormat:
    if promised is not None and promised.is_text:
        return promised
    is_xml = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<?xml")
    if label := "XML" if is_xml else _UNSUPPORTED_TEXT.get(PurePath(name).suffix.lower()):
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
    if label in {"a PNG image", "a JPEG image", "a TIFF image"}:
        return f"{describe_recognition()}, or recognise its text into a PDF and add that"
    if label.endswith("image"):
        return "Save it as PNG, or recognise its text (OCR) into a PDF, and add that"
    if label.endswith("archive"):
        return "Unpack it and add what is inside"
    return _EXPORT if label in {"PostScript", "a DjVu document"} else ""


def _contradiction(promised: DocumentFormat | None) -> str:
    return f", not {promised.label}" if promised else ", which is not supported"


def _detect_in_zip(data: bytes, name: str, promised: DocumentFormat | None) -> DocumentFormat:
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
    for form in document_formats():
        damaged = form is promised and "META-INF" in folders
        if form.zip_mimetype and (mimetype.startswith(form.zip_mimetype.encode()) or damaged):
            return form
    if b"opendocument" in mimetype:
        raise UnreadableFile("is an OpenDocument drawing or formula, which is not supported", _EXPORT)
    plain = next(form for form in document_formats() if form.media_type == _ARCHIVE)
    if promised in (None, plain) and PurePath(name).suffix.lower() in {"", *plain.suffixes}:
        return plain
    raise UnreadableFile(f"is a zip archive{_contradiction(promised)}", "Rename it to .zip and add that")


def is_supported(path: Path) -> bool:
    """Return whether ``add`` picks a file with this name up from a folder."""
    return format_of_suffix(path.suffix) is not None


def read_file(
    path: Path, *, unit: PassageUnit = "paragraph", name: str = "", members: Path | None = None
) -> ParsedDocument:
    """Read and parse one file. Its content decides on its format before its name does.

    ``name`` is the file's name where it differs from that on disk. The files within it (attachments of a mail) are
    written to the folder ``members``, if one is given. Raises UnreadableFile, and nothing else, for a file that
    cannot be added.
    """
    data = read_bytes(path)
    document = parse(data, name or path.name, unit=unit)
    return document if members is None else _write_members(document, data, name or path.name, members)


def parse(data: bytes, name: str, *, unit: PassageUnit = "paragraph") -> ParsedDocument:
    """Parse the bytes of a file called ``name``. Raises UnreadableFile."""
    form = detect_format(data, name)
    try:
        document = form.parse(data, unit=unit, name=name)
        document.text.encode()
        document.title.encode()
    except UnicodeEncodeError as error:
        raise UnreadableFile("holds halves of characters, which no text can have", SIMPLER) from error
    except MemoryError:
        problem = "reading it takes more memory than there is (CLEW_READ_MEMORY sets the limit)"
        raise UnreadableFile(problem) from None
    return document


def member_files(data: bytes, name: str, limits: Limits = LIMITS) -> Iterator[MemberFile]:
    """Yield the files within a file, each under a name that no other has.

    The names have no empty parts and do not lead out of a folder: reading a file whose name does raises
    UnreadableFile, as reading a file beyond a limit does.
    """
    form = detect_format(data, name)
    names: Counter[str] = Counter()
    size = 0
    for number, member in enumerate(form.read_members(data) if form.read_members else ()):
        limits.check("too many files in it", number + 1, limits.members)
        parts = [" ".join(clean_name(part).split()) for part in member.name.replace("\\", "/").split("/")]
        parts = [part for part in parts if part not in {"", "."}]
        clean = "/".join(part for part in parts if part != "..")[-_MAX_NAME:] or "unnamed"
        names[clean] += 1
        if names[clean] > 1:
            stem, dot, suffix = clean.rpartition(".")
            clean = f"{stem or suffix} ({names[clean]}){dot}{suffix if dot else ''}"

        def read(member: MemberFile = member, leads_out: bool = ".." in parts) -> bytes:
            nonlocal size
            if leads_out:
                raise UnreadableFile("its name leads out of the archive")
            content = member.read()
            size += len(content)
            if size > limits.unpacked_bytes:
                raise UnreadableFile(f"the files before it take {format_size(limits.unpacked_bytes)}")
            return content

        yield MemberFile(clean, read)


def extract_member(path: Path, *, unit: str = "", name: str, member: Sequence[str], target: Path) -> Path:
    """Write a file within a file to ``target``; ``member`` has the names of the files within each other.

    A reader of :class:`clew.parse.documents.pool.ParsePool`, which passes ``unit``. Raises UnreadableFile.
    """
    data = read_bytes(path)
    for inner in member:
        file = next((it for it in member_files(data, name) if it.name == clean_name(inner)), None)
        if file is None:
            raise UnreadableFile(f"holds no '{inner}' any more")
        data, name = file.read(), PurePath(inner).name
    with open_private(target) as written:
        written.write(data)
    return target


def _write_members(document: ParsedDocument, data: bytes, name: str, folder: Path) -> ParsedDocument:
    """Return a document with its members, which are written to a new folder in ``folder``.

    Files of a type that is not read are no members, but named in a note.
    """
    members: list[Member] = []
    others: list[str] = []
    place: Path | None = None
    for number, file in enumerate(member_files(data, name)):
        if format_of_suffix(PurePath(file.name).suffix) is None:
            others.append(file.name)
            continue
        place = place or Path(tempfile.mkdtemp(dir=folder))
        path = place / str(number)
        try:
            with open_private(path) as written:
                written.write(file.read())
            members.append(Member(file.name, str(path)))
        except UnreadableFile as error:
            members.append(Member(file.name, problem=error.reason))
    notes = document.notes
    if others:
        named = ", ".join(others[:_NAMED]) + (", ..." if len(others) > _NAMED else "")
        files = "1 file in it is" if len(others) == 1 else f"{len(others):,} files in it are"
        notes += (f"{files} of a type that is not read: {named}",)
    return replace(document, members=tuple(members), notes=notes)
