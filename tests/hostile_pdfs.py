"""Hostile PDFs and pictures, drawn at random."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

from bad_files import good_pdf
from hostile_texts import Kinds, log_uniform

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_TEXT = b"BT /F1 9 Tf 50 700 Td (Words of a page.) Tj ET\n"


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """Return a packed stream."""
    packed = zlib.compress(data)
    return (
        b"<< /Length %d /Filter /FlateDecode %s >>\nstream\n" % (len(packed), entries)
        + packed
        + b"\nendstream"
    )


def write_pdf(
    content: bytes,
    *more: bytes,
    page: bytes = b"",
    resources: bytes = b"",
    catalog: bytes = b"",
    pages: bytes = b"",
    trailer: bytes = b"",
    font: bytes = _FONT,
) -> bytes:
    """Return a PDF of one page. Objects 1 to 5 are catalog, pages, page, content (a stream's bytes) and font.

    ``more`` are those from 6 on, and the other arguments are entries of the dictionaries that they name.
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        b"<< /Type /Pages %s >>" % (pages or b"/Kids [3 0 R] /Count 1"),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R %s " % page
        + b"/Resources << /Font << /F1 5 0 R >> %s >> >>" % resources,
        content if content.startswith(b"<<") else stream(content),
        font,
        *more,
    ]
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + b"trailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF" % (size, trailer, len(out))
    )


def long_content(rng: random.Random) -> bytes:
    """Return a PDF with one page, or the same page again and again, whose packed content is long."""
    operator = rng.choice(
        [b"BT /F1 9 Tf 1 1 Td (a) Tj ET\n", b"0 0 1 1 re S\n", b"q ", b"0 0 m 9 9 l S\n", b"(a) Tj "]
    )
    count = rng.choice([1, 1, 20, 2_000])
    pages = b"/Kids [" + b"3 0 R " * count + b"] /Count %d" % count
    return write_pdf(operator * log_uniform(rng, 10**3, 10**6), pages=pages)


def page_trees(rng: random.Random) -> bytes:
    """Return a PDF whose pages lead to themselves, are counted falsely, or are very many."""
    many = log_uniform(rng, 10, 30_000)
    pages = rng.choice(
        [
            b"/Kids [2 0 R 3 0 R] /Count 2",
            b"/Kids [1 0 R 3 0 R] /Count 2",
            b"/Kids [3 0 R] /Count 2147483647",
            b"/Kids [3 0 R] /Count -1",
            b"/Kids [3 0 R] /Count %d" % many,
            b"/Kids [" + b"3 0 R " * many + b"] /Count %d" % many,
            b"/Kids [6 0 R 6 0 R] /Count 4 /Parent 6 0 R",
        ]
    )
    return write_pdf(_TEXT, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 4 >>", pages=pages)


def nested_forms(rng: random.Random) -> bytes:
    """Return a PDF whose forms draw each other several times, or themselves."""
    depth, width = rng.randint(2, 60), rng.randint(1, 12)
    forms = [
        stream(
            b"/X Do\n" * width + _TEXT,
            b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] "
            b"/Resources << /Font << /F1 5 0 R >> /XObject << /X %d 0 R >> >>" % (6 + (number + 1) % depth),
        )
        for number in range(depth)
    ]
    return write_pdf(_TEXT + b"/X Do\n" * width, *forms, resources=b"/XObject << /X 6 0 R >>")


def packed_again(rng: random.Random) -> bytes:
    """Return a PDF whose content is packed several times over, and large once it is unpacked."""
    times = rng.randint(1, 4)
    data = _TEXT + rng.choice([b" ", b"q\n", b"% x\n", b"0 0 m\n"]) * log_uniform(rng, 10**6, 10**8)
    for _ in range(times):
        data = zlib.compress(data, 9)
    filters = b"/FlateDecode " * times
    head = b"<< /Length %d /Filter [%s] >>\nstream\n" % (len(data), filters)
    return write_pdf(head + data + b"\nendstream")


def huge_picture(rng: random.Random) -> bytes:
    """Return a PDF with pictures of very many pixels, and a line of text."""
    side = rng.choice([10_000, 60_000, 2**31 - 1])
    kind = rng.choice([b"/FlateDecode", b"/DCTDecode", b"/JPXDecode", b"/JBIG2Decode", b"/CCITTFaxDecode"])
    data = zlib.compress(bytes(log_uniform(rng, 10**4, 5 * 10**7)))
    picture = (
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB /BitsPerComponent 16 "
        b"/Length %d /Filter %s >>\nstream\n" % (side, side, len(data), kind) + data + b"\nendstream"
    )
    content = _TEXT + b"600 0 0 800 0 0 cm /X Do\n" * rng.randint(1, 50)
    return write_pdf(content, picture, resources=b"/XObject << /X 6 0 R >>")


def hostile_fonts(rng: random.Random) -> bytes:
    """Return a PDF with a font that maps very many codes, draws itself, has too many widths, or is damaged."""
    many = log_uniform(rng, 10**3, 5 * 10**5)
    ranges = b"".join(b"<%04x> <ffff> <%04x>\n" % (n % 65_536, n % 65_536) for n in range(many))
    long_text = b"<0041> <" + b"0042" * many + b">\n"
    cmap = b"/CIDInit /ProcSet findresource begin begincmap\n1 begincodespacerange <0000> <ffff> endcodespacerange\n"
    type0 = b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H "
    type0 += b"/DescendantFonts [6 0 R] /ToUnicode 7 0 R >>"
    child = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A /CIDSystemInfo << /Registry (A) /Ordering (B) "
    )
    child += (
        b"/Supplement 0 >> /FontDescriptor 8 0 R /W [0 ["
        + b"500 " * (many if rng.random() < 0.5 else 1)
        + b"]] >>"
    )
    descriptor = b"<< /Type /FontDescriptor /FontName /A /Flags 4 /FontBBox [0 0 1 1] /FontFile2 9 0 R >>"
    truetype = b"\0\1\0\0" + struct.pack(">H", rng.choice([9, 65_535])) + rng.randbytes(min(many, 10**5))
    mapping = rng.choice(
        [b"%d beginbfrange\n" % many + ranges, b"1 beginbfchar\n" + long_text, b"beginbfrange " * many]
    )
    text = b"BT /F1 9 Tf 50 700 Td <" + b"0041" * rng.choice([9, 5_000]) + b"> Tj ET"
    type3 = (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 1 1] /FontMatrix [.1 0 0 .1 0 0] /FirstChar 65 /LastChar 65 "
        b"/Widths [1] /Encoding << /Differences [65 /a] >> /CharProcs << /a 6 0 R >> /Resources << /Font "
        b"<< /F1 5 0 R >> >> >>"
    )
    if rng.random() < 0.25:
        glyph = stream(b"1 0 0 0 1 1 d1 BT /F1 9 Tf (AAAAAAAAAA) Tj ET")
        return write_pdf(_TEXT + b"BT /F1 9 Tf (AAAA) Tj ET", glyph, font=type3)
    return write_pdf(text, child, stream(cmap + mapping), descriptor, stream(truetype), font=type0)


def outlines(rng: random.Random) -> bytes:
    """Return a PDF whose outline leads back, is very deep, or very long."""
    many = log_uniform(rng, 10, 20_000)
    entry = b"<< /Title (Words) /Parent 6 0 R /Dest [3 0 R /Fit] %s >>"
    loops = rng.choice(
        [
            [b"<< /First 7 0 R /Last 7 0 R >>", entry % b"/Next 7 0 R"],
            [b"<< /First 7 0 R /Last 7 0 R >>", entry % b"/First 6 0 R /Next 6 0 R"],
            [b"<< /First 7 0 R >>", *(entry % (b"/First %d 0 R" % (8 + n)) for n in range(many))],
            [b"<< /First 7 0 R >>", *(entry % (b"/Next %d 0 R" % (8 + n)) for n in range(many))],
        ]
    )
    return write_pdf(_TEXT, *loops, catalog=b"/Outlines 6 0 R")


def cross_references(rng: random.Random) -> bytes:
    """Return a PDF whose table of objects leads back, lies about its size, or holds streams of objects that lie."""
    trailer = rng.choice(
        [b"/Prev 15", b"/Prev 0", b"/Size 2147483647", b"/XRefStm 15", b"/Prev -1", b"/Encrypt 3 0 R"]
    )
    many = rng.choice([1, 10**4, 2**31 - 1])
    objects = stream(b"10 0 " * 1_000, b"/Type /ObjStm /N %d /First 4 /Extends 6 0 R" % many)
    data = write_pdf(_TEXT, objects, trailer=trailer, catalog=b"/PageLabels 6 0 R /Names 6 0 R")
    if rng.random() < 0.4:
        place = data.rfind(b"startxref")
        return data[:place] + b"startxref\n%d\n%%%%EOF" % rng.choice([0, place, 10**12, -1])
    return data


def lying_lengths(rng: random.Random) -> bytes:
    """Return a PDF whose content has another length than it says, or a length that is found within itself."""
    length = rng.choice([b"0", b"999999999", b"-1", b"4 0 R", b"99999999999999999999", b"(x)"])
    filters = rng.choice(
        [b"", b"/Filter /FlateDecode", b"/Filter [/ASCIIHexDecode /LZWDecode]", b"/Filter /Crypt"]
    )
    data = _TEXT * log_uniform(rng, 1, 10**4)
    return write_pdf(b"<< /Length " + length + filters + b" >>\nstream\n" + data + b"\nendstream")


def crowded_page(rng: random.Random) -> bytes:
    """Return a PDF with as many words and lines on a page as are read, at random places or in a grid."""
    count, is_grid = log_uniform(rng, 10**3, 3 * 10**4), rng.random() < 0.5
    side = max(int(count**0.5), 1)
    words = []
    for number in range(count):
        x = 600 * (number % side) / side if is_grid else rng.random() * 600
        y = 800 * (number // side) / side if is_grid else rng.random() * 800
        size = 1 if is_grid else rng.choice([1, 3, 9, 40])
        words.append(b"BT /F1 %d Tf %.2f %.2f Td (%d) Tj ET" % (size, x, y, number % 1_000))
    rules = [b"0 %.2f m 600 %.2f l S %.2f 0 m %.2f 800 l S" % ((n % 800,) * 4) for n in range(count // 4)]
    copies = rng.choice([1, 1, 5])
    pages = b"/Kids [" + b"3 0 R " * copies + b"] /Count %d" % copies
    return write_pdf(b"\n".join(words + (rules if is_grid or rng.random() < 0.5 else [])), pages=pages)


def odd_pages(rng: random.Random) -> bytes:
    """Return a PDF with sizes, turns, units and titles that no page has, and programs in it."""
    page = rng.choice(
        [
            b"/MediaBox [0 0 1e38 1e38]",
            b"/MediaBox [0 0 0 0]",
            b"/MediaBox [600 800 0 0] /Rotate 12345",
            b"/UserUnit 1e30",
            b"/CropBox [-1e9 -1e9 1e9 1e9]",
            b"/Annots [" + b"6 0 R " * log_uniform(rng, 10, 10**5) + b"]",
            b"/AA << /O << /S /Launch /F (/bin/true) >> >>",
        ]
    )
    annotation = b"<< /Type /Annot /Subtype /FreeText /Rect [0 0 9 9] /Contents (Words) /AP << /N 4 0 R >> >>"
    info = b"<< /Title (" + b"x" * log_uniform(rng, 10, 10**7) + b") >>"
    action = b"/OpenAction << /S /JavaScript /JS (while\\(1\\){}) >>"
    return write_pdf(_TEXT, annotation, info, page=page, catalog=action, trailer=b"/Info 7 0 R")


def locked(rng: random.Random) -> bytes:
    """Return a PDF with a password, whole or cut."""
    data = good_pdf("secret")
    return data[: rng.choice([len(data), rng.randrange(20, len(data))])]


def picture(rng: random.Random) -> bytes:
    """Return a PNG, JPEG or TIFF: of very many pixels, with lengths that lie, a loop, or cut."""
    side = rng.choice([100, 65_500, 2**31 - 1])
    data = zlib.compress(bytes(log_uniform(rng, 10**3, 10**8)))

    def chunk(kind: bytes, content: bytes, size: int | None = None) -> bytes:
        length = len(content) if size is None else size
        return struct.pack(">I", length) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    png = (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", data, rng.choice([None, 2**31 - 1]))
        + chunk(b"IEND", b"")
    )
    size = struct.pack(">HH", min(side, 65_535), min(side, 65_535))
    jpeg = (
        b"\xff\xd8\xff\xe0\0\x10JFIF\0"
        + bytes(9)
        + b"\xff\xc0\0\x11\x08"
        + size
        + b"\x03"
        + rng.randbytes(3_000)
    )
    entries = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (273, 4, 2**31, 8), (279, 4, 2**31, 8)]
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries)
    tiff = (
        b"II*\0" + struct.pack("<I", 8) + directory + struct.pack("<I", 8)
    )  # the next directory is the first
    whole: Callable[[], bytes] = lambda: rng.choice([png, jpeg, tiff])  # noqa: E731
    drawn = whole()
    return drawn[: rng.choice([len(drawn), rng.randrange(12, len(drawn))])]


KINDS: Kinds = {
    "pdf, long content": ("pdf", long_content),
    "pdf, page trees": ("pdf", page_trees),
    "pdf, nested forms": ("pdf", nested_forms),
    "pdf, packed again": ("pdf", packed_again),
    "pdf, huge pictures": ("pdf", huge_picture),
    "pdf, fonts": ("pdf", hostile_fonts),
    "pdf, outlines": ("pdf", outlines),
    "pdf, cross-references": ("pdf", cross_references),
    "pdf, lying lengths": ("pdf", lying_lengths),
    "pdf, crowded page": ("pdf", crowded_page),
    "pdf, odd pages": ("pdf", odd_pages),
    "pdf, password": ("pdf", locked),
    "picture as png": ("png", picture),
    "picture as jpeg": ("jpg", picture),
    "picture as tiff": ("tiff", picture),
    "picture as pdf": ("pdf", picture),
}
