"""ZIP archives: the files within become documents of their own; the archive itself is the list of their names.

Nothing is unpacked to a place that a name within the archive could choose, and nothing before its size is known.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import PurePath

from clew.core.errors import UnreadableFile
from clew.core.text import clean_name, file_name
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import Block, Item, ListBlock, Paragraph, SourceFile, Title, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.formats import DocumentFormat, MemberFile
from clew.parse.documents.limits import LIMITS, UNPACK, Limits, format_size

PARSER = "zip/1"
MEDIA_TYPE = "application/zip"

_ENCRYPTED_FLAG = 1
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse the list of the files in an archive. Raises UnreadableFile."""
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(_blocks(_list_files(_open_archive(data), limits), name), source)


def read_members(data: bytes) -> Iterator[MemberFile]:
    """Yield the files of an archive."""
    archive = _open_archive(data)
    for info in _list_files(archive, LIMITS):
        yield MemberFile(info.filename, _reader_of(archive, info, LIMITS))


FORMAT = DocumentFormat(
    MEDIA_TYPE, "a zip archive", (".zip",), parse, read_members=read_members, parser=PARSER
)


def _open_archive(data: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(BytesIO(data))
    except _DAMAGE as error:
        raise UnreadableFile(f"is damaged: the zip archive cannot be read ({error})") from error


def _list_files(archive: zipfile.ZipFile, limits: Limits) -> list[zipfile.ZipInfo]:
    """Return the files of an archive, without those that a program or system hides, or that have no name.

    Raises UnreadableFile.
    """
    named = [info for info in archive.infolist() if info.filename]
    files = [info for info in named if not info.is_dir() and not _is_hidden(info.filename)]
    limits.check("too many files in the archive", len(files), limits.members, hint=UNPACK)
    if not files:
        raise UnreadableFile("is an empty archive")
    if all(info.flag_bits & _ENCRYPTED_FLAG for info in files):
        raise UnreadableFile("is encrypted", "Save it without a password and add that")
    if sum(info.file_size for info in files) > limits.unpacked_bytes:
        raise UnreadableFile(
            f"unpacks to more than {format_size(limits.unpacked_bytes)} (a zip bomb?)", UNPACK
        )
    return files


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX", "~$")) and part != ".." for part in name.split("/"))


def _reader_of(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limits: Limits) -> Callable[[], bytes]:
    def read() -> bytes:
        ratio = info.file_size / max(info.compress_size, 1)
        if info.file_size > limits.ratio_floor and ratio > limits.unpacked_ratio:
            raise UnreadableFile(f"unpacks to {ratio:,.0f} times its size (a zip bomb?)", UNPACK)
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise UnreadableFile("is encrypted", "Save it without a password and add that")
        try:
            return archive.read(info)
        except _DAMAGE as error:
            raise UnreadableFile(f"is damaged: it cannot be unpacked ({error})") from error

    return read


def _blocks(files: list[zipfile.ZipInfo], name: str) -> Iterator[Block]:
    yield Title(PurePath(name).stem)
    yield Paragraph(
        f"The archive {file_name(name)} holds {len(files):,} file{'s' if len(files) > 1 else ''}:"
    )
    yield ListBlock(tuple(Item(clean_name(info.filename)) for info in files))
