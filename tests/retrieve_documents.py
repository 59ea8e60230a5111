"""Builds documents block by block and commits them to a base."""

from clew.core.types import Location, Table
from clew.parse.documents.builder import DocumentBuilder


def make_document(title, blocks, name=""):
    """A document of ``blocks``: a text, ("heading", level, text), ("page", n) or a Table."""
    builder = DocumentBuilder()
    pages = 0
    for block in blocks:
        if isinstance(block, Table):
            builder.add_table(block)
        elif isinstance(block, tuple) and block[0] == "page":
            builder.add_page(block[1])
            pages = max(pages, block[1])
        elif isinstance(block, tuple):
            builder.add_heading(block[1], block[2])
        else:
            builder.add_paragraph(block)
    data = repr((name, title, blocks)).encode()
    return builder.finish(data=data, title=title, media_type="text/plain", parser="test/1", pages=pages)


def add(base, name, title, *blocks):
    """Commit a document under a file name; return its key."""
    document = make_document(title, blocks, name)
    base.put_document(document, Location(f"/documents/{name}", "/documents", 1, 1, 1))
    return document.key
