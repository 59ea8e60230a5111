"""Files that cannot be added, each with words of the reason that a person must be given.

``BAD_FILES`` are regular files that a folder may hold; ``SPECIAL_FILES`` are what else may lie at a path.
"""

from __future__ import annotations

import io
import os
import random
import socket
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from compound_writer import Tree, message_tree, write_compound_file

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(40)
_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file called ``name`` whose refusal must say ``reason``."""

    name: str
    build: Callable[[Path], None]
    reason: str

    def write(self, folder: Path) -> Path:
        path = folder / self.name
        self.build(path)
        return path


def _bytes(data: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(data) and None


def good_docx(text: str = "A paragraph that says something.") -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("Heading", 1)
    document.add_paragraph(text)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def good_xlsx() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["Item", "Price"], ["Mill", 12], ["Ferry", 7]):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def good_pdf(encrypt: str | None = None) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    stream = io.BytesIO()
    canvas = Canvas(stream, encrypt=encrypt)
    canvas.drawString(72, 720, "A line of text that says something.")
    canvas.save()
    return stream.getvalue()


def plain_pdf() -> bytes:
    """Return a PDF of two pages whose content is not packed: a heading, a table with lines, and two columns."""
    from reportlab.pdfgen.canvas import Canvas

    stream = io.BytesIO()
    canvas = Canvas(stream, pageCompression=0)
    canvas.setFont("Helvetica-Bold", 18)
    canvas.drawString(72, 760, "1 Tolls")
    canvas.setFont("Helvetica", 10)
    for row, texts in enumerate(
        [("Item", "2021", "2022"), ("Barges", "1,200", "1,340"), ("Ferries", "(87)", "-")]
    ):
        for column, text in enumerate(texts):
            canvas.drawString(80 + 120 * column, 706 - 18 * row, text)
    canvas.grid([72, 192, 312, 432], [664, 682, 700, 718])
    canvas.showPage()
    for column in range(2):
        for line in range(12):
            canvas.drawString(72 + 250 * column, 720 - 14 * line, f"Line {line} of a column that goes on.")
    canvas.linkURL("http://example.org", (72, 700, 200, 730))
    canvas.bookmarkPage("top")
    canvas.addOutlineEntry("Columns", "top")
    canvas.save()
    return stream.getvalue()


def changed_zip(data: bytes, changes: dict[str, bytes | None]) -> bytes:
    """Return a zip with parts replaced, added, or (None) left out."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name not in changes:
                new.writestr(name, old.read(name))
        for name, content in changes.items():
            if content is not None:
                new.writestr(name, content)
    return stream.getvalue()


def _docx(changes: dict[str, bytes | None]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(changed_zip(good_docx(), changes)) and None


def _xlsx(changes: dict[str, bytes | None]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(changed_zip(good_xlsx(), changes)) and None


def _zip(parts: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _garbage() -> bytes:
    # Not by a signature that some format has.
    return b"\x01\x02" + random.Random(7).randbytes(5_000)


def _cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


def _damaged_inside(data: bytes, part: str) -> bytes:
    """Return a zip in which the packed bytes of one part are changed, its directory whole."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo(part)
    start = info.header_offset + 30 + len(part)
    middle = start + info.compress_size // 2
    return data[:middle] + bytes(byte ^ 0xFF for byte in data[middle : middle + 20]) + data[middle + 20 :]


def flagged_encrypted(data: bytes) -> bytes:
    """Return a zip whose every entry says that it is encrypted."""
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data = data[: at + offset] + bytes([data[at + offset] | 1]) + data[at + offset + 1 :]
            at = data.find(signature, at + 4)
    return data


def _bomb() -> bytes:
    """A megabyte that unpacks to eighty."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w") as part:
            for _ in range(80):
                part.write(b" " * (1 << 20))
    return stream.getvalue()


def _liar(folder: str = "word/") -> bytes:
    """A zip whose directory claims sixteen parts of half a gibibyte each."""
    types = {"[Content_Types].xml": b"<Types/>"} if folder == "word/" else {}
    data = _zip(types | {f"{folder}{n}.xml": b"<a/>" for n in range(16)})
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data = data[: at + 24] + (1 << 29).to_bytes(4, "little") + data[at + 28 :]
        at = data.find(b"PK\x01\x02", at + 4)
    return data


def _ole(stream: str) -> bytes:
    return _OLE + bytes(1_000) + stream.encode("utf-16-le") + bytes(1_000)


def _image_pdf(path: Path) -> None:
    import pypdfium2 as pdfium

    source = pdfium.PdfDocument(good_pdf())
    image = source[0].render(scale=1).to_pil()
    image.save(path, "PDF")
    source.close()


def _deep(tag: str, depth: int) -> bytes:
    return (f"<{tag}>" * depth + "deep" + f"</{tag}>" * depth).encode()


_DEEP_WORD = (
    f'<w:document xmlns:w="{_WORD}"><w:body>'.encode()
    + b"<w:tbl><w:tr><w:tc>" * 200
    + b"<w:p/>"
    + b"</w:tc></w:tr></w:tbl>" * 200
    + b"</w:body></w:document>"
)
_WIDE = b"<table><tr><th>a<th>b</tr>" + b"<tr><td colspan=1000>x<td colspan=1000>y</tr>" * 2_500 + b"</table>"

SAMPLES = Path(__file__).parent / "data" / "formats"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns"
_MAIL = b"From: a@example.org\nSubject: Tolls\nMIME-Version: 1.0\n"
_DRM = (
    b'<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    + b"".join(
        b'<EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/><CipherData>'
        b'<CipherReference URI="EPUB/text/%s.xhtml"/></CipherData></EncryptedData>' % name
        for name in (b"title_page", b"ch001", b"ch002", b"ch003", b"ch004", b"ch005", b"ch006")
    )
    + b"</encryption>"
)
_WIDE_SHEET = (
    b'<t:table t:name="a">' + b'<t:table-row><t:table-cell t:number-columns-repeated="16000">'
    b"<x:p>a</x:p></t:table-cell></t:table-row>" * 300 + b"</t:table>"
)


def _open_body(kind: str, content: bytes = b"") -> bytes:
    """Return the content.xml of an OpenDocument file."""
    spaces = f'xmlns:o="{_OPEN}:office:1.0" xmlns:t="{_OPEN}:table:1.0" xmlns:x="{_OPEN}:text:1.0"'
    start = f"<o:document-content {spaces}><o:body><o:{kind}>".encode()
    return start + content + f"</o:{kind}></o:body></o:document-content>".encode()


def sample(suffix: str) -> bytes:
    """Return the sample of a format: brannick.<suffix>, written by another program."""
    return (SAMPLES / f"brannick.{suffix}").read_bytes()


def _sample_part(suffix: str, part: str, content: bytes | None) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(changed_zip(sample(suffix), {part: content})) and None


def _package_files(suffix: str, main: str, label: str) -> tuple[BadFile, ...]:
    """Return what may be wrong with every format in a zip container, whose part ``main`` is read first."""
    data = sample(suffix)
    return (
        BadFile(f"empty.{suffix}", _bytes(b""), "is empty"),
        BadFile(f"garbage.{suffix}", _bytes(_garbage()), f"damaged or not {label}"),
        BadFile(f"truncated.{suffix}", _bytes(_cut(data, 0.6)), "is damaged"),
        BadFile(f"archive.{suffix}", _bytes(_zip({"a.txt": b"text"})), f"is a zip archive, not {label}"),
        BadFile(f"locked-zip.{suffix}", _bytes(flagged_encrypted(data)), "is encrypted"),
        BadFile(f"hollow.{suffix}", _sample_part(suffix, main, None), f"{main} is missing"),
        BadFile(f"scratched.{suffix}", _bytes(_damaged_inside(data, main)), f"damaged: {main}"),
        BadFile(f"crooked.{suffix}", _sample_part(suffix, main, b"<a><b>"), "not well-formed"),
        *(
            BadFile(
                f"{encoding}.{suffix}",
                _sample_part(suffix, main, f'<?xml version="1.0" encoding="{encoding}"?><a/>'.encode()),
                "not well-formed",
            )
            for encoding in ("UF-8", "shift_jis", "base64", "undefined")
        ),
        BadFile(
            f"laughs.{suffix}", _sample_part(suffix, main, f"{_LAUGHS}<a>&i;</a>".encode()), "document type"
        ),
        BadFile(f"deep.{suffix}", _sample_part(suffix, main, _deep("a", 500)), "nested too deeply"),
        BadFile(f"claims.{suffix}", lambda path: path.write_bytes(_with_claim(data)) and None, "zip bomb"),
        BadFile(f"picture.{suffix}", _bytes(b"GIF89a" + bytes(50)), f"is a GIF image, not {label}"),
    )


def _with_claim(data: bytes) -> bytes:
    """Return a zip whose directory claims two gibibytes for its first part."""
    at = data.find(b"PK\x01\x02")
    return data[: at + 24] + (1 << 31).to_bytes(4, "little") + data[at + 28 :]


def _deep_mail(depth: int) -> bytes:
    head = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(depth))
    return _MAIL + head + b"\nWords.\n"


def _compound(tree: Tree) -> bytes:
    return write_compound_file(tree)


def good_msg() -> bytes:
    """Return an Outlook message with a text and an attachment."""
    attachments = {"plan.md": b"# Plan\n\nThe lock will be closed in June."}
    return write_compound_file(message_tree("Tolls", body="The tolls are up.", attachments=attachments))


def _looped_msg() -> bytes:
    """A message whose directory is a chain that leads back to its start."""
    data = good_msg()
    start = int.from_bytes(data[48:52], "little")
    table = (int.from_bytes(data[76:80], "little") + 1) * 512
    at = table + start * 4
    return data[:at] + start.to_bytes(4, "little") + data[at + 4 :]


def _sealed_msg() -> bytes:
    return write_compound_file(message_tree("Tolls", kind="IPM.Note.SMIME"))


def _crowded() -> bytes:
    return _zip({f"{number}.txt": b"" for number in range(10_001)})


#: Where the extra ocr is installed, pictures are read.
_READS_PICTURES = find_spec("rapidocr") is not None
_PICTURES = (
    BadFile("image.pdf", _bytes(_PNG), "is a PNG image, not a PDF"),
    BadFile("photo.docx", _bytes(b"\xff\xd8\xff\xe0" + bytes(50)), "is a JPEG image, not a Word document"),
)

BAD_FILES = (
    BadFile("empty.txt", _bytes(b""), "is empty"),
    BadFile("empty.pdf", _bytes(b""), "is empty"),
    BadFile("empty.docx", _bytes(b""), "is empty"),
    BadFile("blank.md", _bytes(b" \n\t\r\n   \n"), "white space"),
    BadFile("blank-utf16.txt", _bytes("\ufeff \n \n".encode("utf-16-le")), "white space"),
    BadFile("zeros.txt", _bytes(bytes(4_096)), "zero bytes"),
    BadFile("garbage.txt", _bytes(_garbage()), "binary data"),
    BadFile("garbage.csv", _bytes(_garbage()), "binary data"),
    BadFile("garbage.pdf", _bytes(_garbage()), "damaged or not a PDF"),
    BadFile("garbage.docx", _bytes(_garbage()), "damaged or not a Word document"),
    BadFile("garbage.xlsx", _bytes(_garbage()), "damaged or not an Excel workbook"),
    *(() if _READS_PICTURES else _PICTURES),
    BadFile("picture.html", _bytes(b"GIF89a" + bytes(50)), "is a GIF image, not an HTML page"),
    BadFile("packed.csv", _bytes(b"\x1f\x8b\x08" + bytes(50)), "is a gzip archive, not a CSV or TSV table"),
    BadFile("database.txt", _bytes(b"SQLite format 3\0" + bytes(100)), "is an SQLite database"),
    BadFile("program.txt", _bytes(b"\x7fELF\x02\x01\x01" + bytes(100)), "is a program"),
    BadFile("archive.docx", _bytes(_zip({"a.txt": b"text"})), "is a zip archive, not a Word document"),
    BadFile("slides.docx", _bytes(_zip({"ppt/presentation.xml": b"<a/>"})), "holds no slides"),
    BadFile(
        "open.docx",
        _bytes(_zip({"mimetype": b"application/vnd.oasis.opendocument.text"})),
        "content.xml is missing",
    ),
    BadFile(
        "drawing.docx", _bytes(_zip({"mimetype": b"application/vnd.oasis.opendocument.graphics"})), "drawing"
    ),
    BadFile("book.html", _bytes(_zip({"mimetype": b"application/epub+zip"})), "container.xml is missing"),
    BadFile("encrypted.docx", _bytes(_ole("EncryptedPackage")), "is encrypted"),
    BadFile("encrypted.xlsx", _bytes(_ole("EncryptionInfo")), "is encrypted"),
    BadFile("legacy.docx", _bytes(_ole("WordDocument")), "old .doc format"),
    BadFile("legacy.xlsx", _bytes(_ole("Workbook")), "old .xls format"),
    BadFile(
        "locked.docx", lambda path: path.write_bytes(flagged_encrypted(good_docx())) and None, "encrypted"
    ),
    BadFile("truncated.docx", lambda path: path.write_bytes(_cut(good_docx(), 0.6)) and None, "damaged"),
    BadFile("truncated.xlsx", lambda path: path.write_bytes(_cut(good_xlsx(), 0.6)) and None, "damaged"),
    BadFile(
        "scratched.docx",
        lambda path: path.write_bytes(_damaged_inside(good_docx(), "word/document.xml")) and None,
        "damaged: word/document.xml",
    ),
    BadFile("hollow.docx", _docx({"word/document.xml": None}), "word/document.xml is missing"),
    BadFile("crooked.docx", _docx({"word/document.xml": b"<w:document><w:body>"}), "not well-formed"),
    BadFile(
        "laughs.docx",
        _docx({"word/document.xml": f'{_LAUGHS}<w:document xmlns:w="{_WORD}">&i;</w:document>'.encode()}),
        "declares a document type",
    ),
    BadFile(
        "laughs.xlsx",
        _xlsx({"xl/worksheets/sheet1.xml": f'{_LAUGHS}<worksheet xmlns="{_SHEET}">&i;</worksheet>'.encode()}),
        "declares a document type",
    ),
    BadFile("deep.docx", _docx({"word/document.xml": _DEEP_WORD}), "nested too deeply"),
    BadFile("bomb.docx", lambda path: path.write_bytes(_bomb()) and None, "zip bomb"),
    BadFile("claims.docx", _bytes(_liar()), "zip bomb"),
    BadFile("nothing.docx", lambda path: path.write_bytes(good_docx_without_text()) and None, "no text"),
    BadFile("nothing.xlsx", lambda path: path.write_bytes(xlsx_without_text()) and None, "no text"),
    BadFile(
        "sheetless.xlsx",
        _xlsx({"xl/workbook.xml": f'<workbook xmlns="{_SHEET}"/>'.encode()}),
        "no visible sheet",
    ),
    BadFile("lost-sheet.xlsx", _xlsx({"xl/worksheets/sheet1.xml": None}), "sheet1.xml is missing"),
    BadFile("crooked.xlsx", _xlsx({"xl/worksheets/sheet1.xml": b"<worksheet><row>"}), "not well-formed"),
    BadFile("divs.html", _bytes(b"<html><body>" + _deep("div", 10_000)), "nested too deeply"),
    BadFile("script.html", _bytes(b"<html><script>let a = 1;</script></html>"), "no text"),
    BadFile("wide.html", _bytes(b"<html><body>" + _WIDE), "tables too large"),
    BadFile("quotes.md", _bytes(b"> " * 500 + b"deep\n"), "nested too deeply"),
    BadFile("encrypted.pdf", lambda path: path.write_bytes(good_pdf("secret")) and None, "encrypted"),
    BadFile(
        "truncated.pdf", lambda path: path.write_bytes(_cut(good_pdf(), 0.15)) and None, "not a whole PDF"
    ),
    BadFile("header-only.pdf", _bytes(b"%PDF-1.7\n"), "not a whole PDF"),
    BadFile("scanned.pdf", _image_pdf, "no text"),
    *_package_files("pptx", "ppt/presentation.xml", "a PowerPoint presentation"),
    *_package_files("odt", "content.xml", "an OpenDocument text"),
    *_package_files("ods", "content.xml", "an OpenDocument spreadsheet"),
    *_package_files("odp", "content.xml", "an OpenDocument presentation"),
    *_package_files("epub", "META-INF/container.xml", "an EPUB book"),
    BadFile(
        "locked.odt",
        _sample_part("odt", "META-INF/manifest.xml", b"<a><encryption-data/></a>"),
        "is encrypted",
    ),
    BadFile("textless.odt", _sample_part("odt", "content.xml", _open_body("text")), "no text"),
    BadFile(
        "sheetless.ods", _sample_part("ods", "content.xml", _open_body("spreadsheet")), "no visible sheet"
    ),
    BadFile("contradictory.odt", _sample_part("odt", "content.xml", _open_body("drawing")), "has no text"),
    BadFile("lost-slide.pptx", _sample_part("pptx", "ppt/slides/slide2.xml", None), "slide2.xml is missing"),
    BadFile(
        "wide.ods",
        _sample_part("ods", "content.xml", _open_body("spreadsheet", _WIDE_SHEET)),
        "tables too large",
    ),
    BadFile("drm.epub", _sample_part("epub", "META-INF/encryption.xml", _DRM), "protected against reading"),
    BadFile("empty.rtf", _bytes(b""), "is empty"),
    BadFile("braces.rtf", _bytes(b"{\\rtf1" + b"{" * 5_000), "nested too deeply"),
    BadFile("code-page.rtf", _bytes(b"{\\rtf1\\ansicpg99999 Words.}"), "code page 99999"),
    BadFile("pictures.rtf", _bytes(b"{\\rtf1{\\pict\\pngblip 89504e470d0a1a0a}}"), "no text"),
    BadFile("garbage.rtf", _bytes(_garbage()), "damaged or not an RTF document"),
    BadFile("empty.eml", _bytes(b""), "is empty"),
    BadFile("garbage.eml", _bytes(_garbage()), "binary data"),
    BadFile("novel.eml", _bytes(b"It was a dark night.\n\nThe end.\n"), "not an e-mail"),
    BadFile(
        "secret.eml",
        _bytes(_MAIL + b"Content-Type: multipart/encrypted; boundary=x\n\n--x\n\na\n--x--\n"),
        "encrypted message",
    ),
    BadFile(
        "sealed.eml",
        _bytes(_MAIL + b"Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIAG"),
        "encrypted message",
    ),
    BadFile("deep.eml", _bytes(_deep_mail(300)), "nested too deeply"),
    BadFile("novel.mbox", _bytes(b"It was a dark night.\n"), "not a mailbox"),
    BadFile(
        "sealed.mbox",
        _bytes(b"From a@b Fri May  3 14:05:00 2024\nThe end.\n"),
        "no message in it can be read",
    ),
    BadFile("cut.msg", lambda path: path.write_bytes(good_msg()[:700]) and None, "is damaged"),
    BadFile("loop.msg", lambda path: path.write_bytes(_looped_msg()) and None, "is damaged"),
    BadFile("garbage.msg", _bytes(_garbage()), "damaged or not an Outlook message"),
    BadFile("letter.msg", _bytes(_ole("WordDocument")), "old .doc format"),
    BadFile(
        "database.msg",
        lambda path: path.write_bytes(_compound({"Data": b"x"})) and None,
        "old Microsoft Office",
    ),
    BadFile("secret.msg", lambda path: path.write_bytes(_sealed_msg()) and None, "encrypted message"),
    BadFile("cut.json", _bytes(b'{"name": "Saltreach", "tolls": [1, 2'), "damaged or not JSON"),
    BadFile("comments.json", _bytes(b"// settings\n{}"), "damaged or not JSON"),
    BadFile("deep.json", _bytes(b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
    BadFile("levels.json", _bytes(b'{"a":' * 150 + b"1" + b"}" * 150), "nested too deeply"),
    BadFile("nothing.json", _bytes(b"{}"), "no text"),
    BadFile("garbage.json", _bytes(_garbage()), "binary data"),
    BadFile("prose.jsonl", _bytes(b"It was a dark night.\nThe end.\n"), "no line of it is JSON"),
    BadFile("list.ipynb", _bytes(b"[1, 2]"), "not a notebook"),
    BadFile("cells.ipynb", _bytes(b'{"cells": 3}'), "not a notebook"),
    BadFile("blank.ipynb", _bytes(b'{"cells": []}'), "no text"),
    BadFile("cut.ipynb", _bytes(b'{"cells": [{"cell_type": "mark'), "damaged or not JSON"),
    BadFile("braces.tex", _bytes(b"\\textbf{" * 3 + b"\\footnote{" * 400 + b"deep"), "nested too deeply"),
    BadFile("comment.tex", _bytes(b"% nothing but a remark\n"), "no text"),
    BadFile("garbage.tex", _bytes(_garbage()), "binary data"),
    BadFile("nothing.zip", _bytes(_zip({})), "is an empty archive"),
    BadFile("cut.zip", _bytes(_cut(_zip({"a.txt": b"Words." * 99}), 0.6)), "is damaged"),
    BadFile("locked.zip", _bytes(flagged_encrypted(_zip({"a.txt": b"Words."}))), "is encrypted"),
    BadFile("claims.zip", _bytes(_liar("a/")), "zip bomb"),
    BadFile("crowded.zip", lambda path: path.write_bytes(_crowded()) and None, "too many files"),
)
"""Regular files that cannot be added. All have a suffix that a folder is searched for."""


_WRONG_CONTENT = (
    ("empty", b"", "is empty"),
    ("zeros", bytes(4_096), "zero bytes"),
    ("blank", b" \n\t\r\n   \n", "white space"),
    ("picture", b"GIF89a" + bytes(50), "is a GIF image, not "),
    ("packed", b"\x1f\x8b\x08" + bytes(50), "is a gzip archive, not "),
    ("database", b"SQLite format 3\0" + bytes(100), "is an SQLite database, not "),
    ("program", b"\x7fELF\x02\x01\x01" + bytes(100), "is a program, not "),
    ("archive", b"Rar!\x1a\x07\x01\0" + bytes(50), "is a RAR archive, not "),
    ("recording", b"fLaC" + bytes(50), "is a FLAC recording, not "),
    ("printout", b"%!PS-Adobe-3.0\n%%Pages: 1\n", "is PostScript, not "),
    ("columns", b"PAR1" + bytes(50), "is a Parquet table, not "),
    ("scan", b"AT&TFORM" + bytes(50), "is a DjVu document, not "),
)


def wrong_files(suffix: str) -> list[BadFile]:
    """Return files with the suffix of a format and other contents, which :data:`BAD_FILES` does not have."""
    names = {bad.name for bad in BAD_FILES}
    return [
        BadFile(name, _bytes(content), reason)
        for stem, content, reason in _WRONG_CONTENT
        if (name := f"{stem}{suffix}") not in names
    ]


def good_docx_without_text() -> bytes:
    import docx

    stream = io.BytesIO()
    docx.Document().save(stream)
    return stream.getvalue()


def xlsx_without_text() -> bytes:
    import openpyxl

    stream = io.BytesIO()
    openpyxl.Workbook().save(stream)
    return stream.getvalue()


def _unread_pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    # The path of a socket may be hardly longer than a hundred bytes, so it is bound from its own folder.
    before = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)
    os.chdir(before)


SPECIAL_FILES = (
    BadFile("folder.txt", lambda path: path.mkdir(), "is a folder"),
    BadFile("pipe.txt", _unread_pipe, "is a pipe or device"),
    BadFile("socket.txt", _socket, "cannot be read"),
    BadFile("dangling.txt", lambda path: path.symlink_to("nowhere.txt"), "is a link to nowhere"),
    BadFile("loop.txt", lambda path: path.symlink_to("loop.txt"), "cannot be read"),
    BadFile("vanished.txt", lambda path: None, "no longer exists"),
)
"""What else may lie at a path; the last of them is gone by the time it is read."""

UNSUPPORTED_FILES = (
    BadFile("book.fb2", _bytes(b"<?xml version='1.0'?><FictionBook/>"), "is XML, which is not supported"),
    BadFile("data.xml", _bytes(b"<?xml version='1.0'?><a/>"), "is XML, which is not supported"),
    *(
        ()
        if _READS_PICTURES
        else (BadFile("photo.png", _bytes(_PNG), "is a PNG image, which is not supported"),)
    ),
    BadFile("letter.doc", _bytes(_ole("WordDocument")), "old .doc format"),
)
"""Files that a folder is not searched for, named by the person."""
