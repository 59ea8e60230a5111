"""Whether every word of a file is in the document that clew makes of it, or left out for a reason that is counted.

  python benchmarks/conservation.py FILE_OR_FOLDER [...]

The words of a file are counted without clew's parsers: pdfium's own text and the values of form fields, the XML of
office packages and e-books, the text of HTML, the parts of a mail. Words are compared as a multiset, in NFKC form,
without case and without hyphens between letters; what one side cuts and the other joins ("20211", "2021 1") is the
same. Of workbooks only words with letters are compared: numbers and days are written otherwise in the file. Prints a
line for each file (words in the file, left out by reason, unexplained, added) and the unexplained words; exits with 1
where there are any.
"""

from __future__ import annotations

import ctypes
import email
import email.policy
import re
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.reader import read_file

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_PARTS = {
    ".docx": re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|diagrams/data\d*)\.xml"),
    ".pptx": re.compile(r"ppt/(?:slides/slide\d+|notesSlides/notesSlide\d+|diagrams/data\d*)\.xml"),
    ".xlsx": re.compile(r"xl/(?:sharedStrings|worksheets/sheet\d+)\.xml"),
    ".odt": re.compile(r"content\.xml"),
    ".odp": re.compile(r"content\.xml"),
    ".ods": re.compile(r"content\.xml"),
}
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_BREAKS = {f"{_W}{name}" for name in ("p", "tab", "br", "cr", "tc")} | {
    f"{_A}p",
    f"{_A}br",
    f"{_S}c",
    f"{_S}si",
}
_TEXTS = {f"{_W}t", f"{_A}t", f"{_S}t"}
#: Markdown that no reader sees: targets of links, comments (of the front matter, too), tags, languages of listings.
_MARKUP = re.compile(
    r"(?<=\])\([^)\s]*\)|<!--.*?-->|<[^>\n]+>|^```\w+|^# SPDX[^\n]*|^title:", re.DOTALL | re.MULTILINE
)
_UNSEEN = {"script", "style", "template", "noscript", "head"}


def cut_words(text: str) -> Counter[str]:
    """Return the words of a text: runs of letters and digits, hyphens between letters taken out."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("\xad", "")
    text = re.sub(r"(?<=\w)(?:[-‐‑]\s*|\ufffe|\x02)\s*(?=\w)", "", text)
    return Counter(re.findall(r"[^\W_]+", text))


def read_words(path: Path) -> Counter[str]:
    """Return the words of a file as its own format has them; raises ValueError for formats that are not counted."""
    suffix = path.suffix.casefold()
    if suffix == ".pdf":
        return sum(map(cut_words, _pdf_texts(path)), Counter())
    if suffix in _PARTS:
        return sum(map(cut_words, _package_texts(path, _PARTS[suffix])), Counter())
    if suffix == ".epub":
        with zipfile.ZipFile(path) as archive:
            pages = [name for name in archive.namelist() if name.endswith((".xhtml", ".html", ".htm"))]
            return sum(
                (cut_words(_html_text(archive.read(name))) for name in pages if "nav" not in name), Counter()
            )
    if suffix in {".html", ".htm"}:
        return cut_words(_html_text(path.read_bytes()))
    if suffix == ".eml":
        return sum(map(cut_words, _mail_texts(path)), Counter())
    if suffix == ".md":
        return cut_words(_MARKUP.sub(" ", path.read_text("utf-8")))
    if suffix == ".txt":
        return cut_words(path.read_text("utf-8"))
    raise ValueError(f"{suffix} is not counted")


def _pdf_texts(path: Path) -> Iterator[str]:
    import pypdfium2 as pdfium
    from pypdfium2 import raw

    with pdfium.PdfDocument(path) as document:
        document.init_forms()
        for page in document:
            # pdfium writes mirrored and hidden text, too, wherever it stands.
            yield page.get_textpage().get_text_range()
            form = document.formenv
            for number in range(raw.FPDFPage_GetAnnotCount(page)) if form else ():
                annotation = raw.FPDFPage_GetAnnot(page, number)
                if raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_WIDGET:
                    yield _field_value(form, annotation, raw)
                raw.FPDFPage_CloseAnnot(annotation)


def _field_value(form: Any, annotation: Any, raw: Any) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind not in {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX}:
        return ""
    size = raw.FPDFAnnot_GetFormFieldValue(form, annotation, None, 0)
    buffer = (ctypes.c_ushort * (size // 2))()
    raw.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _package_texts(path: Path, parts: re.Pattern[str]) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if parts.fullmatch(name):
                yield "".join(_xml_text(etree.fromstring(archive.read(name))))


def _xml_text(element: etree._Element) -> Iterator[str]:
    if element.tag == _FALLBACK or not isinstance(element.tag, str):
        return
    is_text = "opendocument:xmlns:text" in element.tag
    if element.tag in _BREAKS or (is_text and element.tag.endswith(("}p", "}h", "}s"))):
        yield "\n"
    if element.tag in _TEXTS or "opendocument:xmlns" in element.tag:
        yield element.text or ""
    for inner in element:
        yield from _xml_text(inner)
        if "opendocument:xmlns" in element.tag:
            yield inner.tail or ""
    if element.tag in _BREAKS:
        yield "\n"


def _html_text(data: bytes) -> str:
    if not data.strip():
        return ""
    # An XML declaration names an encoding that a parser of bytes takes care of.
    root = lxml_html.document_fromstring(data)
    return "".join(_visit_html(root))


def _visit_html(element: etree._Element) -> Iterator[str]:
    if isinstance(element.tag, str) and element.tag not in _UNSEEN:
        yield (
            "" if element.tag in {"a", "b", "i", "em", "strong", "span", "sup", "sub", "u", "code"} else "\n"
        )
        yield element.text or ""
        for inner in element:
            yield from _visit_html(inner)
        yield (
            "" if element.tag in {"a", "b", "i", "em", "strong", "span", "sup", "sub", "u", "code"} else "\n"
        )
    yield element.tail or ""


def _mail_texts(path: Path) -> Iterator[str]:
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    yield str(message["subject"] or "")
    body = message.get_body(("html", "plain"))
    if body is not None:
        content = body.get_content()
        yield _html_text(content.encode()) if body.get_content_subtype() == "html" else content


def _with_letters(words: Counter[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if re.search(r"[^\W\d]", word)})


def stored_words(document: ParsedDocument) -> Counter[str]:
    """Return the words that clew keeps of a file: its text and fields, and what it left out, as often as it says."""
    kept = [document.text, document.title, *(value for _, value in document.fields)]
    words = sum(map(cut_words, kept), Counter())
    for _, text, times in document.left_out:
        for word, count in cut_words(text).items():
            words[word] += count * times
    return words


def count_file(path: Path, document: ParsedDocument) -> tuple[Counter[str], Counter[str]]:
    """Return the words of a file and those that are stored of it, as they are compared."""
    of_file, stored = read_words(path), stored_words(document)
    is_sheet = path.suffix.casefold() in {".xlsx", ".ods"}
    return (_with_letters(of_file), _with_letters(stored)) if is_sheet else (of_file, stored)


def find_unexplained(of_file: Counter[str], stored: Counter[str]) -> Counter[str]:
    """Return the words of a file that are not stored, without those that one side joins and the other cuts."""
    missing, added = of_file - stored, stored - of_file
    for longer, shorter in ((missing, added), (added, missing)):
        for word in sorted(longer, key=len, reverse=True):
            while longer[word] > 0 and (parts := _cut_into(word, shorter)):
                longer[word] -= 1
                shorter.subtract(parts)
    return +missing


def _cut_into(word: str, parts: Counter[str]) -> list[str] | None:
    """Return the parts, in order, that a word is made of; each may be used as often as it is there."""
    if not word:
        return []
    for length in range(len(word), 0, -1):
        head = word[:length]
        if parts[head] > 0:
            parts[head] -= 1
            rest = _cut_into(word[length:], parts)
            parts[head] += 1
            if rest is not None:
                return [head, *rest]
    return None


def _find_files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def main(paths: list[str]) -> int:
    total: Counter[str] = Counter()
    for path in _find_files(paths):
        try:
            document = read_file(path)
            of_file, stored = count_file(path, document)
        except (ValueError, UnreadableFile) as error:
            print(f"{path.name}: not counted ({error})")
            continue
        unexplained = find_unexplained(of_file, stored)
        left_out: Counter[str] = Counter()
        for reason, text, times in document.left_out:
            left_out[reason] += cut_words(text).total() * times
        words = {"words": of_file.total(), "unexplained": unexplained.total(), "files": 1}
        total.update({**words, **left_out})
        reasons = "".join(f", {count} {reason}" for reason, count in left_out.items())
        print(f"{path.name}: {of_file.total()} words{reasons}, {unexplained.total()} unexplained")
        if unexplained:
            print(
                "   ",
                " ".join(
                    f"{word}*{count}" if count > 1 else word for word, count in unexplained.most_common(20)
                ),
            )
    print("total:", ", ".join(f"{count:,} {name}" for name, count in total.items()))
    return int(total["unexplained"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
