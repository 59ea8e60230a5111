"""PDF: text in reading order with sections, pages, paragraphs and tables."""

from __future__ import annotations

from clew.core.types import ParsedDocument
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.formats import DocumentFormat

MEDIA_TYPE = "application/pdf"
PARSER = "pdf/11"


def parse(data: bytes, *, unit: PassageUnit, name: str) -> ParsedDocument:
    """Parse a PDF. Raises UnreadableFile."""
    from clew.parse.documents.pdf import reader

    return reader.parse(data, unit=unit, name=name)


#: The header of another program may precede the magic bytes; PDF readers accept them in the first 1,024 bytes.
FORMAT = DocumentFormat(
    MEDIA_TYPE, "a PDF", (".pdf",), parse, magic=b"%PDF-", magic_window=1_024, parser=PARSER
)
