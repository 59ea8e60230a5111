"""Outlook messages (.msg): the properties of a message as streams of a compound file ([MS-OXMSG], [MS-OXPROPS]).

Read as mail is (:mod:`clew.parse.documents.mail`). The text is the HTML, else what is packed as RTF ([MS-OXRTFCP]),
else the plain text. A message within the message stands in its text; its attachments are those of the whole. olefile
opens the container; python-oxmsg above it loads every stream at once, and reads no message within a message.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import Block, SourceFile, Title, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text, detect_encoding, page_encoding
from clew.parse.documents.formats import DocumentFormat, MemberFile
from clew.parse.documents.html import decode_page, fragment_blocks
from clew.parse.documents.limits import LIMITS, UNPACK, Limits
from clew.parse.documents.mail import NO_SUBJECT, Mail, format_date, mail_blocks, mail_fields
from clew.parse.documents.rtf import rtf_blocks
from clew.parse.documents.text import text_blocks

if TYPE_CHECKING:
    from olefile import OleFileIO

PARSER = "msg/4"
MEDIA_TYPE = "application/vnd.ms-outlook"

_PROPERTIES = "__properties_version1.0"
_CLASS, _SUBJECT, _SENT, _DELIVERED = 0x001A, 0x0037, 0x0039, 0x0E06
_SENDER, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_TO, _CC = 0x0E04, 0x0E03
_BODY, _RTF, _HTML, _INTERNET_PAGE, _CODE_PAGE = 0x1000, 0x1009, 0x1013, 0x3FDE, 0x3FFD
_ATTACHED, _SHORT_NAME, _LONG_NAME, _DISPLAY_NAME = 0x3701, 0x3704, 0x3707, 0x3001
_MESSAGE = "__substg1.0_3701000d"  # a message within the message; names are looked up in lower case
#: The text that a packed RTF may refer back to before it has text of its own ([MS-OXRTFCP] 2.1.2.1).
_RTF_PRELOAD = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    + b"\r\n"
    + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4096
_STREAM = 2
_DAMAGED = "is damaged: its container cannot be read"
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
    magic=b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    read_members=read_attachments,
    parser=PARSER,
)


def _open_message(data: bytes, limits: Limits) -> Mail:
    try:
        container = _open_container(data)
    except UnreadableFile:
        # Of a damaged container, the directory may still say what it was.
        _refuse_others(lambda stream: stream.encode("utf-16-le") + b"\0\0" in data)
        raise
    names = container.root.kids_dict
    if _PROPERTIES not in names:
        _refuse_others(lambda stream: stream.lower() in names)
        if container.parsing_issues:
            raise UnreadableFile(_DAMAGED)
        raise UnreadableFile(
            "is an old Microsoft Office file, which is not supported", "Export it as PDF and add that"
        )
    storage = _Storage(container, ())
    kind = storage.read_text(_CLASS).upper()
    if "SMIME" in kind and "MULTIPARTSIGNED" not in kind:
        raise UnreadableFile("is an encrypted message", "Save it decrypted and add that")
    return _read_message(storage, limits)


def _open_container(data: bytes) -> OleFileIO:
    """Open a compound file ([MS-CFB]). Raises UnreadableFile."""
    from olefile import OleFileIO

    try:
        tables = struct.unpack_from("<I16xI", data, 44)  # how many sectors they have
        container = OleFileIO(io.BytesIO(data)) if max(tables) <= len(data) // 512 else None
    except (OSError, ValueError, IndexError, OverflowError, RecursionError, struct.error) as error:
        raise UnreadableFile(_DAMAGED) from error
    # What claims more than there is would be read from the same sectors again and again.
    if container is None or container.root.size > len(data):
        raise UnreadableFile(_DAMAGED)
    return container


def _refuse_others(has_stream: Callable[[str], bool]) -> None:
    """Raise UnreadableFile for a compound file that holds a document of old Microsoft Office."""
    for stream, problem, hint in _OTHERS:
        if has_stream(stream):
            raise UnreadableFile(problem, hint)


class _Storage:
    """The properties of a message, an attachment or a recipient."""

    def __init__(self, container: OleFileIO, path: Sequence[str], encoding: str = "") -> None:
        """``encoding`` is that of the message around it."""
        self.container, self.path = container, path
        entry = container.root
        for name in path:
            entry = entry.kids_dict[name.lower()]
        self.kids = entry.kids_dict
        self.encoding = self._find_encoding(encoding)

    def inner(self, name: str) -> _Storage:
        """Return a storage within this one."""
        return _Storage(self.container, (*self.path, name), self.encoding)

    def read_stream(self, name: str) -> bytes | None:
        """Return the content of a stream, None where there is none. Raises UnreadableFile."""
        entry = self.kids.get(name.lower())
        if entry is None or entry.entry_type != _STREAM:
            return None
        content = b""
        if entry.size <= len(self.container.fp.getbuffer()):
            try:
                content = self.container.openstream([*self.path, name]).read()
            except (OSError, ValueError, IndexError, struct.error) as error:
                raise UnreadableFile(_DAMAGED) from error
        if len(content) < entry.size:
            raise UnreadableFile("is damaged: it is cut off")
        return content

    def read_bytes(self, number: int) -> bytes:
        """Return a property's bytes, b"" where there is none."""
        return self.read_stream(f"__substg1.0_{number:04X}0102") or b""

    def read_text(self, number: int) -> str:
        """Return a property's text, "" where there is none."""
        data = self.read_stream(f"__substg1.0_{number:04X}001F")
        if data is not None:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        data = self.read_stream(f"__substg1.0_{number:04X}001E")
        return decode_text(data.rstrip(b"\0"), self.encoding)[0] if data else ""

    def read_number(self, number: int) -> int | None:
        """Return a property of fixed length as a number, None where there is none."""
        data = self.read_stream(_PROPERTIES) or b""
        # What precedes the entries of 16 bytes: 32 in a message, 24 in one within it, 8 in an attachment.
        for start in range(len(data) % 16, len(data) - 15, 16):
            tag, _, value = struct.unpack_from("<IIQ", data, start)
            if tag >> 16 == number and tag & 0xFFFF in (0x40, 0x03):
                return int(value) if tag & 0xFFFF == 0x40 else int(value & 0xFFFFFFFF)
        return None

    def _find_encoding(self, around: str) -> str:
        """Return the encoding of 8-bit texts: that of the code page, else ``around``, else the body's likeliest."""
        page = self.read_number(_CODE_PAGE) or self.read_number(_INTERNET_PAGE)
        if encoding := (page_encoding(page) if page else "") or around:
            return encoding
        body = self.read_stream(f"__substg1.0_{_BODY:04X}001E")
        return detect_encoding(body)[0] if body else ""


def _read_message(storage: _Storage, limits: Limits) -> Mail:
    limits.check("nested too deeply", len(storage.path), 20, "messages", UNPACK)
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
    for name in sorted(storage.kids):
        if name.startswith("__attach_version1.0_"):
            attached = storage.inner(name)
            message = attached.inner(_MESSAGE) if _MESSAGE in attached.kids else attached
            if message is not attached and _PROPERTIES in message.kids:
                mail = _read_message(message, limits)
                blocks += mail_blocks(Mail(mail.subject, mail.headers, mail.blocks))
                attachments += mail.attachments
            else:
                attachments.append(_attachment(attached, len(attachments) + 1))
    return Mail(
        " ".join(storage.read_text(_SUBJECT).split()) or NO_SUBJECT,
        tuple((name, " ".join(value.split())) for name, value in headers if value.strip("; ")),
        tuple(blocks),
        tuple(attachments),
    )


def _attachment(storage: _Storage, number: int) -> MemberFile:
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
    if text := storage.read_text(_HTML):
        return list(fragment_blocks(text, limits))
    if html := storage.read_bytes(_HTML):
        page = storage.read_number(_INTERNET_PAGE) or storage.read_number(_CODE_PAGE)
        return list(fragment_blocks(decode_page(html, page_encoding(page) if page else "")[0], limits))
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
    text = bytearray(_RTF_PRELOAD.rjust(_WINDOW, b"\0"))
    place = 16
    while place < len(data) and len(text) < _WINDOW + raw_size:
        flags = data[place]
        place += 1
        for bit in range(8):
            if not flags >> bit & 1:
                text += data[place : place + 1]
                place += 1
                continue
            reference = int.from_bytes(data[place : place + 2], "big")
            place += 2
            distance = (len(text) + len(_RTF_PRELOAD) - (reference >> 4)) % _WINDOW
            if not distance or place > len(data):
                return bytes(text[_WINDOW:])
            for _ in range((reference & 15) + 2):
                text.append(text[-distance])
    return bytes(text[_WINDOW:])


#: Tokens of RTF that encloses HTML ([MS-OXRTFEX]): a group of markup, a word, a byte, a symbol, a brace, text.
_RTF_TOKEN = re.compile(
    rb"\{\\\*\\htmltag\d* ?|\\([a-z]+)(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)
_BREAKS = {b"par": b"\n", b"line": b"\n", b"tab": b"\t"}
_DROPPED_GROUPS = frozenset((b"fonttbl", b"colortbl", b"stylesheet", b"pntext", b"mhtmltag", b"generator"))


def _html_in_rtf(rtf: bytes) -> str:
    """Return the HTML that was enclosed in RTF."""
    code_page = re.search(rb"\\ansicpg(\d{1,9})", rtf)
    encoding = page_encoding(int(code_page[1])) if code_page else ""
    return b"".join(_html_tokens(_shown_tokens(rtf))).decode(encoding or "cp1252", "replace")


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
