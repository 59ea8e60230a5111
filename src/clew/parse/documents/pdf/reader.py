"""Reads a PDF through pdfium, which is not safe for threads: a process parses one file at a time."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.builder import DocumentBuilder, PassageUnit
from clew.parse.documents.pdf import MEDIA_TYPE
from clew.parse.documents.pdf.assembly import add_pages
from clew.parse.documents.pdf.headings import Headings, normalize_heading
from clew.parse.documents.pdf.lines import extract_lines
from clew.parse.documents.pdf.words import Page, read_page

PARSER = "pdf/1"
#: A file with more pages is refused rather than read for an hour.
MAX_PAGES = 20_000
#: Further entries of the outline are ignored.
MAX_OUTLINE_ENTRIES = 5_000
_DAMAGED = "it is not a whole PDF (truncated or damaged)"
_PROBLEMS = {
    raw.FPDF_ERR_PASSWORD: "it is encrypted and needs a password",
    raw.FPDF_ERR_FORMAT: _DAMAGED,
    raw.FPDF_ERR_SECURITY: "it uses an encryption that is not supported",
}


def parse(data: bytes, *, unit: PassageUnit = "paragraph", name: str = "") -> ParsedDocument:
    """Parse a PDF; ``name`` is its title where it has none. Raises UnreadableFile."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        problem = _PROBLEMS.get(getattr(error, "err_code", None), _DAMAGED)
        hint = "Save it without a password" if "password" in problem else ""
        raise UnreadableFile(problem, hint) from error
    try:
        return _build_document(document, data, unit, name)
    finally:
        document.close()


def _build_document(document: Any, data: bytes, unit: PassageUnit, name: str) -> ParsedDocument:
    count = len(document)
    if count == 0:
        raise UnreadableFile("it has no pages")
    if count > MAX_PAGES:
        raise UnreadableFile(f"it has {count} pages, more than {MAX_PAGES}")
    builder = DocumentBuilder(unit=unit)
    pages = [_read_page(document, index, builder) for index in range(count)]
    without_text = [page.number for page in pages if not page.words]
    if len(without_text) == count:
        raise UnreadableFile(
            f"no text on any of its {count} pages; it looks scanned",
            "Run it through text recognition (OCR) first",
        )
    if without_text:
        numbers = ", ".join(map(str, without_text[:10])) + (", ..." if len(without_text) > 10 else "")
        builder.notes.append(f"no text on page{'s' if len(without_text) > 1 else ''} {numbers}")
    page_lines = extract_lines(pages)
    add_pages(page_lines, Headings.from_pages(page_lines, _read_outline(document)), builder)
    title = _title(document, name)
    return builder.finish(data=data, title=title, media_type=MEDIA_TYPE, parser=PARSER, pages=count)


def _read_page(document: Any, index: int, builder: DocumentBuilder) -> Page:
    try:
        page = document[index]
    except pdfium.PdfiumError:
        builder.notes.append(f"page {index + 1} is damaged")
        return Page(index + 1, 612.0, 792.0, (), ())
    try:
        return read_page(page, index + 1)
    finally:
        page.close()


def _read_outline(document: Any) -> dict[tuple[int, str], int]:
    """Return the level of each entry of the file's outline, by its page and normalized text."""
    levels: dict[tuple[int, str], int] = {}
    for entry in islice(document.get_toc(max_depth=6), MAX_OUTLINE_ENTRIES):
        destination = entry.get_dest()
        page = destination.get_index() if destination else None
        if page is not None and (text := normalize_heading(entry.get_title())):
            levels[page + 1, text] = min(entry.level + 1, 6)
    return levels


def _title(document: Any, name: str) -> str:
    """Return the title in the file's metadata, unless it is a file name or a program's own; else ``name``."""
    title = " ".join(document.get_metadata_dict().get("Title", "").split())
    folded = title.casefold()
    is_generated = folded in {"untitled", "document"} or folded.startswith("microsoft word")
    is_file_name = "." in title[-5:]
    return name if len(title) < 4 or is_generated or is_file_name else title
