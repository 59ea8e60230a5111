"""Decodes text files, whether or not they declare their encoding."""

from __future__ import annotations

import codecs
import re

from clew.core.errors import UnreadableFile

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16
#: Code pages of Windows that Python does not call by their number.
_PAGES = {
    0: "cp1252", 936: "gb18030", 10000: "mac_roman", 20127: "ascii", 20866: "koi8_r", 20932: "euc_jp",
    21866: "koi8_u", 50220: "iso2022_jp", 50221: "iso2022_jp", 50222: "iso2022_jp", 50225: "iso2022_kr",
    51932: "euc_jp", 51936: "gb18030", 51949: "euc_kr", 52936: "hz", 54936: "gb18030", 65001: "utf_8",
    28591: "latin1", **{28590 + part: f"iso8859_{part}" for part in range(2, 16)},
}  # fmt: skip
# C0 controls that do not occur in text. Tab, newline, form feed, return and escape (ANSI colours) do.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b")
# A sign in the middle of a word: the encoding was guessed wrong.
_SIGN_IN_WORD = re.compile(r"[^\W\d_](?:[^\w\s!-~’‘'“”„–—\u00ad\u00a0…·«»‹›]|[²³¹¼½¾])[^\W\d_]")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x1b")) + b"\x7f"
#: Encodings of Latin letters, the likeliest first: the first that puts no sign into the middle of a word.
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1257", "cp1254")
#: The other legacy encodings that files are still found in.
_OTHER_LEGACY = "cp1251 koi8_r cp1253 cp1255 cp1256 cp874 shift_jis euc_jp gb18030 big5 euc_kr".split()
#: A file with a larger share of control characters is not text.
_MAX_CONTROL_SHARE = 0.01


def decode_text(data: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the text of ``data``, with line feeds as line ends, and remarks on what was replaced or left out.

    The encoding is that of the byte order mark, else ``declared`` if it fits, else UTF-8, else UTF-16 without a
    mark, else the likeliest legacy encoding. Raises UnreadableFile for data that is not text.
    """
    encoding, start = detect_encoding(data, declared)
    text = data[start:].decode(encoding, "replace")
    remarks: tuple[str, ...] = ()
    broken = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    if broken > 0:
        remarks += (f"{broken:,} bytes are not {encoding.upper()} and were replaced",)
    text, removed = _CONTROL.subn("", _ANSI.sub("", text) if "\x1b" in text else text)
    if removed > max(len(text) * _MAX_CONTROL_SHARE, 4):
        raise UnreadableFile("is binary data, not text")
    if removed:
        remarks += (f"{removed:,} control characters were left out",)
    return text.replace("\r\n", "\n").replace("\r", "\n"), remarks


def page_encoding(number: int) -> str:
    """Return Python's name of a code page of Windows, "" for one that it does not know."""
    return _codec_name(_PAGES.get(number, f"cp{number}"))


def is_binary(data: bytes) -> bool:
    """Return whether ``data`` is not text in any encoding that :func:`decode_text` reads."""
    sample = data[:_SAMPLE]
    if not sample or _byte_order_mark(sample) or _detect_utf16(sample):
        return False
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls > max(len(sample) * _MAX_CONTROL_SHARE, 4)


def _byte_order_mark(data: bytes) -> tuple[str, int] | None:
    """Return the encoding that a byte order mark declares, and the length of the mark."""
    return next(((name, len(mark)) for mark, name in _BOMS if data.startswith(mark)), None)


def detect_encoding(data: bytes, declared: str = "") -> tuple[str, int]:
    """Return the encoding of a text, and where it starts after a byte order mark."""
    if mark := _byte_order_mark(data):
        return mark
    if declared and (name := _codec_name(declared)) and _fits(data, name):
        return name, 0
    if _fits(data, "utf-8"):
        # UTF-16 of ASCII text is also valid UTF-8, full of NULs.
        return _detect_utf16(data[:_SAMPLE]) or "utf-8", 0
    return _detect_utf16(data[:_SAMPLE]) or _guess_legacy(data), 0


def _codec_name(label: str) -> str:
    """Return Python's name of a declared encoding, "" for one that a browser would not follow either."""
    label = label.strip().strip("'\"").lower()
    if label in {"iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"}:
        return "cp1252"  # as browsers read them (WHATWG Encoding Standard, 4.2)
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):  # the latter: a NUL in the label
        return ""
    # A declaration that could be read as ASCII cannot stand in UTF-16; "rot13" and the like are no encodings.
    return name if not name.startswith(("utf-16", "utf-32", "utf-7")) and _fits(b"a", name) else ""


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except (LookupError, UnicodeError):
        return False
    return True


def _detect_utf16(sample: bytes) -> str:
    """Return "utf-16-le" or "utf-16-be" if every other byte is mostly NUL, as in text of Latin letters."""
    if len(sample) < 4 or b"\0" not in sample:
        return ""
    sample = sample[: len(sample) & ~1]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return ""


def _guess_legacy(data: bytes) -> str:
    """Return the likeliest encoding of text that is not valid UTF-8."""
    sample = data[:_SAMPLE]
    high = sum(byte > 127 for byte in sample)
    replaced = sample.decode("utf-8", "replace").count("\ufffd")
    # Two bytes or more make one character: mostly well-formed sequences mean UTF-8 with damage in it.
    if high > 4 * replaced:
        return "utf-8"
    letters = sum(chr(byte).isalpha() for byte in sample if byte < 128)
    if high <= 0.4 * (letters + high):  # here and there an accent or a typographic quote
        for encoding in _LATIN:
            if not _SIGN_IN_WORD.search(sample.decode(encoding, "replace")):
                return encoding
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=[*_LATIN, *_OTHER_LEGACY]).best()
    return best.encoding if best else "cp1252"
