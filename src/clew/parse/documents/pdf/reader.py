"""PDF: text in reading order with sections, pages, paragraphs and tables, through pdfium.

pdfium is not safe for threads: one process parses one file at a time.
"""

from __future__ import annotations

from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.builder import DocumentBuilder, PassageUnit
from clew.parse.documents.pdf.assembly import add_pages
from clew.parse.documents.pdf.headings import Headings, normalize_heading
from clew.parse.documents.pdf.lines import extract_lines
from clew.parse.documents.pdf.words import Page, read_page

PARSER = "pdf/1"
MEDIA_TYPE = "application/pdf"
#: A file with more pages is refused rather than read for an hour.
MAX_PAGES = 20_000
#: Entries of the outline that are looked at.
MAX_OUTLINE_ENTRIES = 5_000
_REASONS = {
    raw.FPDF_ERR_PASSWORD: "it is encrypted and needs a password",
    raw.FPDF_ERR_FORMAT: "it is not a whole PDF (truncated or damaged)",
    raw.FPDF_ERR_SECURITY: "it uses an encryption that is not supported",
}


def parse(data: bytes, *, unit: PassageUnit = "paragraph", name: str = "") -> ParsedDocument:
    """Return a PDF as a document; ``name`` is its title where it has none. Raises UnreadableFile."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        reason = _REASONS.get(
            getattr(error, "err_code", None), "it is not a whole PDF (truncated or damaged)"
        )
        hint = "Save it without a password" if "password" in reason else ""
        raise UnreadableFile(reason, hint) from error
    try:
        return _read(document, data, unit, name)
    finally:
        document.close()


def _read(document: Any, data: bytes, unit: PassageUnit, name: str) -> ParsedDocument:
    count = len(document)
    if count == 0:
        raise UnreadableFile("it has no pages")
    if count > MAX_PAGES:
        raise UnreadableFile(f"it has {count} pages, more than {MAX_PAGES}")
    builder = DocumentBuilder(unit=unit)
    pages = [_page(document, index, builder) for index in range(count)]
    silent = [page.number for page in pages if not page.words]
    if len(silent) == count:
        raise UnreadableFile(
            f"no text on any of its {count} pages; it looks scanned",
            "Run it through text recognition (OCR) first",
        )
    if silent:
        shown = ", ".join(map(str, silent[:10])) + (", ..." if len(silent) > 10 else "")
        builder.notes.append(f"no text on page {shown}" if len(silent) == 1 else f"no text on pages {shown}")
    made = extract_lines(pages)
    headings = Headings.from_pages(made, _outline(document))
    add_pages(made, headings, builder)
    title = _title(document, builder, name)
    return builder.finish(data=data, title=title, media_type=MEDIA_TYPE, parser=PARSER, pages=count)


def _page(document: Any, index: int, builder: DocumentBuilder) -> Page:
    try:
        page = document[index]
    except pdfium.PdfiumError:
        builder.notes.append(f"page {index + 1} is damaged")
        return Page(index + 1, 612.0, 792.0, (), ())
    try:
        return read_page(page, index + 1)
    finally:
        page.close()


def _outline(document: Any) -> dict[tuple[int, str], int]:
    """Return the level of each entry of the file's outline, by page and text."""
    found: dict[tuple[int, str], int] = {}
    for number, entry in enumerate(document.get_toc(max_depth=6)):
        if number >= MAX_OUTLINE_ENTRIES:
            break
        destination = entry.get_dest()
        page = destination.get_index() if destination else None
        if page is not None and (key := normalize_heading(entry.get_title())):
            found[page + 1, key] = min(entry.level + 1, 6)
    return found


def _title(document: Any, builder: DocumentBuilder, name: str) -> str:
    """Return the title that the file gives itself, unless it is a file name or a tool's leaving; else ``name``."""
    title = " ".join(document.get_metadata_dict().get("Title", "").split())
    useless = not title or title.casefold() in {"untitled", "document"} or "." in title[-5:] or len(title) < 4
    useless = useless or title.casefold().startswith("microsoft word")
    return name if useless else title
