"""Outlook messages (.msg): the properties of a message as streams of a compound file ([MS-OXMSG], [MS-OXPROPS]).

Read as mail is (:mod:`clew.parse.documents.mail`). The text is the HTML, else what is packed as RTF ([MS-OXRTFCP]),
else the plain text. A message within the message stands in its text; its attachments are those of the whole.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import Block, SourceFile, Title, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import DocumentFormat, MemberFile
from clew.parse.documents.html import decode_page, fragment_blocks
from clew.parse.documents.limits import LIMITS, UNPACK, Limits
from clew.parse.documents.mail import NO_SUBJECT, Mail, format_date, mail_blocks, mail_fields
from clew.parse.documents.rtf import rtf_blocks
from clew.parse.documents.text import text_blocks

PARSER = "msg/4"
MEDIA_TYPE = "application/vnd.ms-outlook"

#: How a container of old Microsoft Office files and of Outlook messages begins ([MS-CFB]).
SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PROPERTIES = "__properties_version1.0"
_CLASS, _SUBJECT, _SENT, _DELIVERED = 0x001A, 0x0037, 0x0039, 0x0E06
_SENDER, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_TO, _CC = 0x0E04, 0x0E03
_BODY, _RTF, _HTML, _CODE_PAGE = 0x1000, 0x1009, 0x1013, 0x3FFD
_ATTACHED, _SHORT_NAME, _LONG_NAME, _DISPLAY_NAME = 0x3701, 0x3704, 0x3707, 0x3001
#: The text that a packed RTF may refer back to before it has text of its own ([MS-OXRTFCP] 2.1.2.1).
_RTF_PRELOAD = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    + b"\r\n"
    + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4096
#: Files in OLE containers that are not messages, by a stream that the container holds: the problem and the hint.
_OTHERS = (
    ("EncryptedPackage", "is encrypted", "Save it without a password and add that"),
    ("EncryptionInfo", "is encrypted", "Save it without a password and add that"),
    ("WordDocument", "is a Word document in the old .doc format", "Save it as .docx and add that"),
    ("Workbook", "is an Excel workbook in the old .xls format", "Save it as .xlsx and add that"),
    ("Book", "is an Excel workbook in the old .xls format", "Save it as .xlsx and add that"),
    (
        "PowerPoint Document",
        "is a PowerPoint presentation in the old .ppt format",
        "Save it as .pptx and add that",
    ),
)


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an Outlook message. Raises UnreadableFile, which says what another compound file is."""
    mail = _open_message(data, limits)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([Title(mail.subject), *mail_fields(mail), *mail_blocks(mail)], source)


def read_attachments(data: bytes) -> Iterator[MemberFile]:
    """Yield the attachments of a message."""
    yield from _open_message(data, LIMITS).attachments


FORMAT = DocumentFormat(
    MEDIA_TYPE,
    "an Outlook message",
    (".msg",),
    parse,
    magic=SIGNATURE,
    read_members=read_attachments,
    parser=PARSER,
)


def _open_message(data: bytes, limits: Limits) -> Mail:
    try:
        container = CompoundFile(data)
        names = container.names()
    except UnreadableFile:
        # Of a damaged container, the directory may still say what it was.
        _refuse_others(lambda stream: stream.encode("utf-16-le") + b"\0\0" in data)
        raise
    if _PROPERTIES not in names:
        _refuse_others(names.__contains__)
        raise UnreadableFile(
            "is an old Microsoft Office file, which is not supported", "Export it as PDF and add that"
        )
    kind = _Storage(container, ()).read_text(_CLASS).upper()
    if "SMIME" in kind and "MULTIPARTSIGNED" not in kind:
        raise UnreadableFile("is an encrypted message", "Save it decrypted and add that")
    return _read_message(container, (), limits)


def _refuse_others(has_stream: Callable[[str], bool]) -> None:
    """Raise UnreadableFile for a compound file that holds a document of old Microsoft Office."""
    for stream, problem, hint in _OTHERS:
        if has_stream(stream):
            raise UnreadableFile(problem, hint)


#: What olefile raises over damaged containers.
_DAMAGE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
    struct.error,
)


class CompoundFile:
    """An open container of storages (folders) and streams (files). Raises UnreadableFile where it is damaged."""

    def __init__(self, data: bytes) -> None:
        import olefile

        self._children: dict[tuple[str, ...], list[str]] = {}
        with _refusing_damage():
            self._file = olefile.OleFileIO(BytesIO(data), raise_defects=olefile.DEFECT_INCORRECT)
            for *above, name in self._file.listdir(streams=True, storages=True):
                self._children.setdefault(tuple(map(str.casefold, above)), []).append(name)

    def names(self, path: tuple[str, ...] = ()) -> list[str]:
        """Return the names of the storages and streams in a storage, [] where there is no such storage."""
        return self._children.get(tuple(map(str.casefold, path)), [])

    def read(self, *path: str) -> bytes | None:
        """Return the content of a stream, None where there is none."""
        import olefile

        with _refusing_damage():
            if self._file.get_type(list(path)) != olefile.STGTY_STREAM:
                return None
            content: bytes = self._file.openstream(list(path)).read()
        return content


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise UnreadableFile("is damaged: its container cannot be read") from error


class _Storage:
    """The properties of a message, an attachment or a recipient."""

    def __init__(self, container: CompoundFile, path: tuple[str, ...]) -> None:
        self._container, self._path = container, path

    def read_bytes(self, number: int) -> bytes:
        """Return a property's bytes, b"" where there is none."""
        return self._container.read(*self._path, f"__substg1.0_{number:04X}0102") or b""

    def read_text(self, number: int) -> str:
        """Return a property's text, "" where there is none."""
        data = self._container.read(*self._path, f"__substg1.0_{number:04X}001F")
        if data is not None:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        data = self._container.read(*self._path, f"__substg1.0_{number:04X}001E")
        return decode_text(data.rstrip(b"\0"))[0] if data else ""

    def read_number(self, number: int) -> int | None:
        """Return a property of fixed length as a number, None where there is none."""
        data = self._container.read(*self._path, _PROPERTIES) or b""
        # What precedes the entries of 16 bytes: 32 in a message, 24 in one within it, 8 in an attachment.
        for start in range(len(data) % 16, len(data) - 15, 16):
            tag, _, value = struct.unpack_from("<IIQ", data, start)
            if tag >> 16 == number and tag & 0xFFFF in (0x40, 0x03):
                return int(value) if tag & 0xFFFF == 0x40 else int(value & 0xFFFFFFFF)
        return None


def _read_message(container: CompoundFile, path: tuple[str, ...], limits: Limits) -> Mail:
    limits.check("nested too deeply", len(path), 20, "messages", UNPACK)
    storage = _Storage(container, path)
    sender = storage.read_text(_SENDER)
    address = storage.read_text(_SENDER_SMTP) or storage.read_text(_SENDER_ADDRESS)
    if "@" in address and address != sender:
        sender = f"{sender} <{address}>".strip()
    ticks = storage.read_number(_SENT) or storage.read_number(_DELIVERED)
    headers = [
        ("From", sender),
        ("To", storage.read_text(_TO)),
        ("Cc", storage.read_text(_CC)),
        ("Date", _format_ticks(ticks)),
    ]
    blocks = _body_blocks(storage, limits)
    attachments: list[MemberFile] = []
    for name in container.names(path):
        if name.startswith("__attach_version1.0_"):
            inner = (*path, name, f"__substg1.0_{_ATTACHED:04X}000D")
            if _PROPERTIES in container.names(inner):
                message = _read_message(container, inner, limits)
                blocks += mail_blocks(Mail(message.subject, message.headers, message.blocks))
                attachments += message.attachments
            else:
                attachments.append(_attachment(container, (*path, name), len(attachments) + 1))
    return Mail(
        " ".join(storage.read_text(_SUBJECT).split()) or NO_SUBJECT,
        tuple((name, " ".join(value.split())) for name, value in headers if value.strip("; ")),
        tuple(blocks),
        tuple(attachments),
    )


def _attachment(container: CompoundFile, path: tuple[str, ...], number: int) -> MemberFile:
    storage = _Storage(container, path)
    name = storage.read_text(_LONG_NAME) or storage.read_text(_DISPLAY_NAME) or storage.read_text(_SHORT_NAME)
    return MemberFile(name.replace("/", "-").strip() or f"attachment {number}.bin", _reader_of(storage))


def _reader_of(storage: _Storage) -> Callable[[], bytes]:
    return lambda: storage.read_bytes(_ATTACHED)


def _format_ticks(ticks: int | None) -> str:
    """Return the date of so many tenths of microseconds since 1601."""
    if not ticks:
        return ""
    try:
        return format_date(datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10))
    except OverflowError:
        return ""


def _body_blocks(storage: _Storage, limits: Limits) -> list[Block]:
    html = storage.read_bytes(_HTML) or storage.read_text(_HTML).encode()
    if html:
        page = storage.read_number(_CODE_PAGE)
        return list(fragment_blocks(decode_page(html, f"cp{page}" if page else "")[0], limits))
    if packed := storage.read_bytes(_RTF):
        rtf = unpack_rtf(packed, limits)
        if b"\\fromhtml" in rtf[:2_000]:
            return list(fragment_blocks(_html_in_rtf(rtf), limits))
        if b"\\fromtext" not in rtf[:2_000]:
            return [block for block in rtf_blocks(rtf, limits) if not isinstance(block, Title)]
    return list(text_blocks(storage.read_text(_BODY).replace("\r\n", "\n").replace("\r", "\n")))


def unpack_rtf(data: bytes, limits: Limits) -> bytes:
    """Return RTF that is packed as Outlook packs it. Raises UnreadableFile."""
    if len(data) < 16:
        raise UnreadableFile("is damaged: its text cannot be unpacked")
    _, raw_size, kind = struct.unpack_from("<III", data)
    limits.check("too much text", raw_size, limits.characters, "bytes")
    if kind == 0x414C454D:  # not compressed
        return data[16 : 16 + raw_size]
    if kind != 0x75465A4C:
        raise UnreadableFile("is damaged: its text cannot be unpacked")
    window = bytearray(_RTF_PRELOAD.ljust(_WINDOW, b"\0"))
    write, place = len(_RTF_PRELOAD), 16
    out = bytearray()
    while place < len(data) and len(out) < raw_size:
        flags = data[place]
        place += 1
        for bit in range(8):
            if flags >> bit & 1:
                if place + 2 > len(data):
                    return bytes(out)
                reference = data[place] << 8 | data[place + 1]
                place += 2
                offset, length = reference >> 4, (reference & 15) + 2
                if offset == write:
                    return bytes(out)
                piece = bytearray()
                for step in range(length):
                    byte = window[(offset + step) % _WINDOW]
                    window[write] = byte
                    write = (write + 1) % _WINDOW
                    piece.append(byte)
                out += piece
            elif place < len(data):
                out.append(data[place])
                window[write] = data[place]
                write = (write + 1) % _WINDOW
                place += 1
    return bytes(out)


#: Tokens of RTF that encloses HTML ([MS-OXRTFEX]): a group of markup, a word, a byte, a symbol, a brace, text.
_RTF_TOKEN = re.compile(
    rb"\{\\\*\\htmltag\d* ?|\\([a-z]+)(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)
_BREAKS = {b"par": b"\n", b"line": b"\n", b"tab": b"\t"}
_DROPPED_GROUPS = frozenset((b"fonttbl", b"colortbl", b"stylesheet", b"pntext", b"mhtmltag", b"generator"))


def _html_in_rtf(rtf: bytes) -> str:
    """Return the HTML that was enclosed in RTF."""
    code_page = re.search(rb"\\ansicpg(\d{1,9})", rtf)
    encoding = f"cp{int(code_page[1])}" if code_page else "cp1252"
    content = b"".join(_html_tokens(_shown_tokens(rtf)))
    try:
        return content.decode(encoding, "replace")
    except LookupError:
        return content.decode("cp1252", "replace")


def _shown_tokens(rtf: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the tokens that are not within a group that is dropped."""
    depth, dropped_depth = 0, 0
    for token in _RTF_TOKEN.finditer(rtf):
        if token[0].startswith(b"{"):
            depth += 1
        elif token[5] == b"}":
            depth -= 1
            if depth < dropped_depth:
                dropped_depth = 0
        elif dropped_depth:
            continue
        elif token[1] in _DROPPED_GROUPS:
            dropped_depth = depth
        else:
            yield token


def _html_tokens(tokens: Iterator[re.Match[bytes]]) -> Iterator[bytes]:
    """Yield the HTML of tokens; what stands between htmlrtf and htmlrtf0 is there for readers of RTF alone."""
    is_rtf, ignored = False, 0
    for token in tokens:
        word, number, code, symbol, _, text = token.groups()
        if word == b"htmlrtf":
            is_rtf = number != b"0"
        elif is_rtf:
            continue
        elif word in _BREAKS:
            yield _BREAKS[word]
        elif word == b"u" and number:
            yield f"&#{int(number) % 0x10000};".encode()
            ignored = 1
        elif code or text or symbol in {b"\\", b"{", b"}"}:
            yield (bytes.fromhex(code.decode()) if code else text or symbol)[ignored:]
            ignored = 0
