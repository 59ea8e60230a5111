"""Mail: single messages (RFC 5322, MIME) and mailboxes (mbox, RFC 4155).

A message is a section called by its subject: who wrote to whom and when, the text, the names of the attachments. Of a
text in several forms the HTML counts, which has its tables and lists. Attachments are files within the file, and
become documents of their own. Nothing that a message refers to is loaded.
"""

from __future__ import annotations

import email
import email.utils
import mimetypes
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.errors import HeaderParseError, MessageError
from email.header import decode_header
from email.message import Message
from itertools import starmap
from pathlib import PurePath

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Field,
    Heading,
    Item,
    ListBlock,
    Note,
    Paragraph,
    SourceFile,
    Title,
    build_document,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.formats import DocumentFormat, MemberFile
from clew.parse.documents.html import decode_page, fragment_blocks
from clew.parse.documents.limits import LIMITS, UNPACK, Limits
from clew.parse.documents.text import text_blocks

MEDIA_TYPE = "message/rfc822"
MAILBOX_MEDIA_TYPE = "application/mbox"
PARSER, MAILBOX_PARSER = "eml/4", "mbox/4"

NO_SUBJECT = "(no subject)"
#: The line before each message of a mailbox.
_FROM_LINE = re.compile(rb"^From (?:\S+ )?.*\d{4}[ \t]*(?:[+-]\d{4}[ \t]*)?\r?$", re.MULTILINE)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z-]*:[ \t]")
_SURE_HEADERS = re.compile(rb"^(?:Message-ID|Received|MIME-Version|Return-Path|Delivered-To):", re.I | re.M)
_SPACES = re.compile(r"\s+")
_ENCRYPTED_TYPES = frozenset(("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"))
#: A header with more characters is an attack or damage.
_MAX_HEADER = 20_000
#: So many characters of a subject name a message of a mailbox among the members.
_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Mail:
    """A message: its headers as a reader sees them, its text as blocks, and its attachments."""

    subject: str
    headers: tuple[tuple[str, str], ...]  # name and value, those without a value left out
    blocks: tuple[Block, ...]
    attachments: tuple[MemberFile, ...] = ()
    notes: tuple[str, ...] = ()


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a single message. Raises UnreadableFile."""
    mail = read_mail(data, limits)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([Title(mail.subject), *mail_fields(mail), *mail_blocks(mail)], source)


def read_attachments(data: bytes) -> Iterator[MemberFile]:
    """Yield the attachments of a message."""
    yield from read_mail(data, LIMITS).attachments


def parse_mailbox(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a mailbox: a section for each message. Raises UnreadableFile."""
    source = SourceFile(data, name, MAILBOX_MEDIA_TYPE, MAILBOX_PARSER, unit, limits)
    return build_document(_mailbox_blocks(data, name, limits), source)


def read_mailbox_attachments(data: bytes) -> Iterator[MemberFile]:
    """Yield the attachments of all messages of a mailbox, each in a folder called by number and subject."""
    for number, message in enumerate(_messages(data), 1):
        try:
            mail = read_mail(message, LIMITS)
        except UnreadableFile:
            continue  # the document of the mailbox says so
        folder = f"{number} {mail.subject[:_NAME_LENGTH]}".replace("/", "-").strip(". ")
        for attachment in mail.attachments:
            yield MemberFile(f"{folder}/{attachment.name}", attachment.read)


def _is_mail(start: bytes) -> bool:
    head = start.partition(b"\n\n")[0].partition(b"\r\n\r\n")[0]
    return bool(_HEADER_LINE.match(start) and _SURE_HEADERS.search(head)) and b"From:" in head


def _is_mailbox(start: bytes) -> bool:
    line, _, rest = start.partition(b"\n")
    return bool(_FROM_LINE.match(line) and _HEADER_LINE.match(rest))


FORMATS = (
    DocumentFormat(
        MEDIA_TYPE,
        "an e-mail",
        # A page that a browser saves as one file is a message of MIME, too.
        (".eml", ".mht", ".mhtml"),
        parse,
        matches=_is_mail,
        read_members=read_attachments,
        parser=PARSER,
    ),
    DocumentFormat(
        MAILBOX_MEDIA_TYPE,
        "a mailbox",
        (".mbox", ".mbx"),
        parse_mailbox,
        matches=_is_mailbox,
        read_members=read_mailbox_attachments,
        parser=MAILBOX_PARSER,
    ),
)


def _messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a mailbox. A line counts as the start of one after a blank line only."""
    starts = [
        match
        for match in _FROM_LINE.finditer(data)
        if data[max(match.start() - 4, 0) : match.start()].endswith((b"\n\n", b"\r\n\r\n"))
        or not match.start()
    ]
    for match, following in zip(starts, [*starts[1:], None], strict=False):
        end = following.start() if following else len(data)
        yield _QUOTED_FROM.sub(rb"\1", data[match.end() : end].lstrip(b"\r\n"))


def _mailbox_blocks(data: bytes, name: str, limits: Limits) -> Iterator[Block]:
    yield Title(PurePath(name).stem)
    count = 0
    for number, message in enumerate(_messages(data), 1):
        try:
            mail = read_mail(message, limits)
            blocks = list(mail_blocks(mail))
        except UnreadableFile as error:
            yield Note(f"message {number:,} {error.problem}")
            continue
        count += 1
        yield from (
            Note(f"message {number:,}: {block.text}") if isinstance(block, Note) else block
            for block in blocks
        )
    if not count:
        raise UnreadableFile("is damaged or not a mailbox: no message in it can be read")


def mail_fields(mail: Mail) -> list[Field]:
    """Return sender and date of a message as fields."""
    pairs = field_pairs({name: value for name, value in mail.headers if name in {"From", "Date"}})
    return list(starmap(Field, pairs))


def mail_blocks(mail: Mail) -> Iterator[Block]:
    """Yield a message as a section: its headers, its text, the names of its attachments."""
    yield Heading(1, mail.subject)
    if mail.headers:
        yield Paragraph("\n".join(f"{name}: {value}" for name, value in mail.headers))
    for block in mail.blocks:
        yield replace(block, level=min(block.level + 1, 9)) if isinstance(block, Heading) else block
    if mail.attachments:
        yield Paragraph("Attachments:")
        yield ListBlock(tuple(Item(attachment.name) for attachment in mail.attachments))
    yield from map(Note, mail.notes)


def read_mail(data: bytes, limits: Limits) -> Mail:
    """Return a message. Raises UnreadableFile for bytes that are no message, and for an encrypted one."""
    try:
        message = email.message_from_bytes(data)
    except (RecursionError, MessageError, ValueError, LookupError, TypeError) as error:
        raise UnreadableFile("is damaged: its parts cannot be told apart") from error
    headers = _read_headers(message)
    if not headers.keys() & {"from", "to", "subject", "date", "message-id", "received"}:
        raise UnreadableFile("is damaged or not an e-mail: it has no headers")
    parts = _Parts(limits)
    parts.read(message)
    sender_and_date = [
        ("From", _addresses(headers.get("from", []))),
        ("To", _addresses(headers.get("to", []))),
        ("Cc", _addresses(headers.get("cc", []))),
        ("Date", _date(headers.get("date", [""])[0])),
    ]
    return Mail(
        headers.get("subject", [""])[0] or NO_SUBJECT,
        tuple((name, value) for name, value in sender_and_date if value),
        tuple(parts.blocks),
        tuple(parts.attachments),
        tuple(parts.notes),
    )


def _read_headers(message: Message) -> dict[str, list[str]]:
    """Return the decoded values of each header, by its name in lower case."""
    headers: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        headers.setdefault(name.lower(), []).append(_decode_header(str(value)[:_MAX_HEADER]))
    return headers


def _decode_header(value: str) -> str:
    """Return a header's text. Bytes that are not ASCII, which the standard forbids, are decoded as a text file's."""
    raw = value.encode("ascii", "surrogateescape") if _is_raw(value) else b""
    if raw:
        return _SPACES.sub(" ", decode_text(raw)[0]).strip()
    try:
        pieces = decode_header(value)
    except (HeaderParseError, ValueError):
        pieces = [(value, None)]
    text = ""
    for piece, charset in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        try:
            text += piece.decode(charset or "ascii")
        except (LookupError, ValueError):  # ValueError: also a NUL in the name of the encoding
            text += piece.decode("utf-8", "replace")
    return _SPACES.sub(" ", text.encode(errors="replace").decode()).strip()


def _is_raw(value: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in value)


def _addresses(values: Sequence[str]) -> str:
    """Return addresses as ``name <address>``, divided by commas."""
    try:
        pairs = email.utils.getaddresses(list(values))
    except (ValueError, TypeError, IndexError):
        pairs = []
    formatted = [f"{name} <{address}>" if name and address else name or address for name, address in pairs]
    return ", ".join(filter(None, formatted)) or ", ".join(values)


def _date(value: str) -> str:
    """Return a date with its day and month in words, the header itself where it is no date."""
    try:
        return format_date(email.utils.parsedate_to_datetime(value))
    except (ValueError, TypeError, IndexError, OverflowError):
        return value


def format_date(moment: datetime) -> str:
    """Return a moment as ``Friday, 3 May 2024, 14:05 +0200``."""
    return f"{moment:%A}, {moment.day} {moment:%B} {moment.year}, {moment:%H:%M %z}".strip()


@dataclass(slots=True)
class _Parts:
    """The text and the attachments of a message, read from its tree of parts."""

    limits: Limits
    blocks: list[Block] = field(default_factory=list)
    attachments: list[MemberFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read(self, message: Message) -> None:
        """Read the parts of a message in order. Raises UnreadableFile where it is encrypted or nested too deeply."""
        waiting: list[tuple[Message, int]] = [(message, 0)]
        while waiting:
            part, depth = waiting.pop()
            self.limits.check("nested too deeply", depth, 100, "levels", UNPACK)
            kind = part.get_content_type()
            if kind in _ENCRYPTED_TYPES and "signed-data" not in str(part.get("Content-Type", "")):
                raise UnreadableFile("is an encrypted message", "Save it decrypted and add that")
            children = part.get_payload() if part.is_multipart() else None
            if kind == "message/rfc822" and isinstance(children, list) and children:
                self._attach(part, children[0])
            elif isinstance(children, list):
                parts = [child for child in children if isinstance(child, Message)]
                if kind == "multipart/alternative":
                    parts = _best_alternative(parts)
                waiting += [(child, depth + 1) for child in parts[::-1]]
            elif kind in {"text/plain", "text/html"} and not _is_attachment(part):
                self._add_text(part, kind)
            elif kind != "application/pgp-signature" and "pkcs7-signature" not in kind:
                self._attach(part)

    def _add_text(self, part: Message, kind: str) -> None:
        data = _payload(part)
        if not data.strip():
            return
        declared = _charset(part)
        try:
            if kind == "text/html":
                text, remarks = decode_page(data, declared)
                self.blocks += fragment_blocks(text, self.limits)
            else:
                text, remarks = decode_text(data, declared)
                self.blocks += text_blocks(text)
            self.notes += remarks
        except UnreadableFile as error:
            self.notes.append(f"a part of the text {error.problem}")

    def _attach(self, part: Message, inner: object = None) -> None:
        if isinstance(inner, Message):
            subject = _read_headers(inner).get("subject", [""])[0] or "message"
            self.attachments.append(MemberFile(f"{subject[:_NAME_LENGTH]}.eml", _bytes_of(inner)))
            return
        name = _file_name(part)
        if not name:
            # A picture in the text of a message: a logo, a line.
            if part.get_content_maintype() == "image" and not _is_attachment(part):
                return
            suffix = mimetypes.guess_extension(part.get_content_type()) or ".bin"
            name = f"attachment {len(self.attachments) + 1}{suffix}"
        self.attachments.append(MemberFile(name, _payload_reader(part)))


def _best_alternative(parts: list[Message]) -> list[Message]:
    """Return the form of a text that is read: the first that has HTML, else the first with plain text."""
    for kind in ("text/html", "text/plain"):
        for part in parts:
            kinds = [inner.get_content_type() for inner in part.walk()]
            if kind in kinds:
                # Further parts, such as an invitation, are attachments.
                return [part, *(other for other in parts if other.get_content_maintype() == "application")]
    return parts


def _is_attachment(part: Message) -> bool:
    return str(part.get("Content-Disposition", "")).strip().lower().startswith("attachment")


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename() or ""
    except (ValueError, TypeError, LookupError):
        name = ""
    return _decode_header(name).replace("/", "-") if name else ""


def _charset(part: Message) -> str:
    try:
        return part.get_content_charset() or ""
    except (ValueError, TypeError, LookupError):
        return ""


def _payload(part: Message) -> bytes:
    try:
        payload = part.get_payload(decode=True)
    except (ValueError, LookupError, TypeError, AssertionError):
        raise UnreadableFile("is damaged: it cannot be decoded") from None
    return payload if isinstance(payload, bytes) else b""


def _payload_reader(part: Message) -> Callable[[], bytes]:
    return lambda: _payload(part)


def _bytes_of(message: Message) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            return message.as_bytes()
        except (ValueError, LookupError, TypeError, AttributeError, KeyError, MessageError, RecursionError):
            raise UnreadableFile("is damaged: it cannot be decoded") from None

    return read
