"""From bytes to text: what a file's encoding is when it may or may not say so."""

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
# C0 controls that do not occur in text. Tab, newline, form feed, return and escape (ANSI colours) do.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b")
_SIGN_IN_WORD = re.compile(r"[^\W\d_](?:[^\w\s!-~’‘'“”„–—\u00ad\u00a0…·«»‹›]|[²³¹¼½¾])[^\W\d_]")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x1b")) + b"\x7f"
#: Encodings of Latin letters, the likeliest first: the first that puts no sign into the middle of a word.
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1257", "cp1254")
#: The other legacy encodings that files are still found in.
_OTHER = "cp1251 koi8_r cp1253 cp1255 cp1256 cp874 shift_jis euc_jp gb18030 big5 euc_kr".split()
#: Share of control characters above which a file is not text.
_BINARY_SHARE = 0.01


def decode_text(data: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the text of ``data`` and remarks on what could not be read as it stands.

    A byte order mark wins, then ``declared`` if it fits, UTF-8, UTF-16 without a mark, and the likeliest
    legacy encoding. Raises UnreadableFile for what is not text.
    """
    encoding, start, remarks = _encoding(data, declared)
    text = data[start:].decode(encoding, "replace")
    broken = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    if broken > 0:
        remarks += (f"{broken:,} bytes are not {encoding.upper()} and were replaced",)
    text, removed = _CONTROL.subn("", _ANSI.sub("", text) if "\x1b" in text else text)
    if removed > max(len(text) * _BINARY_SHARE, 4):
        raise UnreadableFile("is binary data, not text")
    if removed:
        remarks += (f"{removed:,} control characters were left out",)
    return text.replace("\r\n", "\n").replace("\r", "\n"), remarks


def is_binary(data: bytes) -> bool:
    """Return whether ``data`` is not text in any encoding that :func:`decode` reads."""
    sample = data[:_SAMPLE]
    if not sample or _marked(sample) or _utf16(sample):
        return False
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls > max(len(sample) * _BINARY_SHARE, 4)


def _marked(data: bytes) -> tuple[str, int] | None:
    return next(((name, len(mark)) for mark, name in _BOMS if data.startswith(mark)), None)


def _encoding(data: bytes, declared: str) -> tuple[str, int, tuple[str, ...]]:
    """Return the encoding, where the text starts, and remarks."""
    if marked := _marked(data):
        return *marked, ()
    if declared and (name := _known(declared)) and _fits(data, name):
        return name, 0, ()
    if _fits(data, "utf-8"):
        # UTF-16 of ASCII text is also valid UTF-8, full of NULs.
        return _utf16(data[:_SAMPLE]) or "utf-8", 0, ()
    if utf16 := _utf16(data[:_SAMPLE]):
        return utf16, 0, ()
    return _legacy(data), 0, ()


def _known(label: str) -> str:
    """Return Python's name of a declared encoding, "" for one that no browser would follow either."""
    label = label.strip().strip("'\"").lower()
    if label in {"iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"}:
        return "cp1252"  # as browsers read them (WHATWG Encoding Standard, 4.2)
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return ""
    # A declaration that could be read as ASCII cannot stand in UTF-16; "rot13" and the like are no encodings.
    return "" if name.startswith(("utf-16", "utf-32", "utf-7")) or _not_text(name) else name


def _not_text(name: str) -> bool:
    try:
        b"a".decode(name)
    except (LookupError, UnicodeError):
        return True
    return False


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeError:
        return False
    return True


def _utf16(sample: bytes) -> str:
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


def _legacy(data: bytes) -> str:
    """Return the encoding of text that is not valid UTF-8."""
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

    best = from_bytes(sample, cp_isolation=[*_LATIN, *_OTHER]).best()
    return best.encoding if best else "cp1252"
