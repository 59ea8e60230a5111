"""A document format: INI files, whose sections are sections and whose entries are paragraphs."""

from __future__ import annotations

from clew.core.types import ParsedDocument
from clew.parse.documents.builder import DocumentBuilder, PassageUnit
from clew.parse.documents.formats import DocumentFormat


def parse_ini(data: bytes, *, unit: PassageUnit, name: str) -> ParsedDocument:
    """Return the document of an INI file."""
    builder = DocumentBuilder(unit)
    for line in data.decode("utf-8").splitlines():
        if line.startswith("["):
            builder.add_heading(1, line.strip("[] "))
        elif line.strip():
            builder.add_paragraph(line.replace("=", " is "))
    return builder.finish(data=data, title=name, media_type="text/x-ini", parser="ini/1")


INI = DocumentFormat("text/x-ini", "an INI file", (".ini",), parse_ini)
