"""Jupyter notebooks (nbformat 3 and 4): text as Markdown, code, and what it printed, with tables as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import starmap
from pathlib import PurePath
from typing import Any

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument, Table
from clew.parse.documents.blocks import (
    Block,
    Field,
    Heading,
    Note,
    Paragraph,
    SourceFile,
    Title,
    build_document,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.html import fragment_blocks
from clew.parse.documents.json import load_json
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.markdown import markdown_blocks

PARSER = "notebook/4"
MEDIA_TYPE = "application/x-ipynb+json"

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")
#: How the outputs of nbformat 3 call what format 4 names by media type.
_OLD_NAMES = {"text/plain": "text", "text/html": "html"}


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a notebook. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    notebook = load_json(text)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([*map(Note, remarks), *_blocks(notebook, name, limits)], source)


FORMAT = DocumentFormat(MEDIA_TYPE, "a Jupyter notebook", (".ipynb",), parse, parser=PARSER)


def _blocks(notebook: Any, name: str, limits: Limits) -> Iterator[Block]:
    cells = _cells_of(notebook)
    if cells is None:
        raise UnreadableFile("is damaged or not a notebook: it has no list of cells")
    metadata = notebook.get("metadata")
    title = metadata.get("title") if isinstance(metadata, dict) else None
    blocks = [block for cell in cells for block in _cell_blocks(cell, limits)]
    if isinstance(metadata, dict):
        names = [author.get("name") for author in _dicts(metadata.get("authors"))]
        yield from starmap(Field, field_pairs({"author": [name for name in names if isinstance(name, str)]}))
    if isinstance(title, str) and title.strip():
        yield Title(title)
    elif not any(isinstance(block, Heading) and block.level == 1 for block in blocks):
        yield Title(PurePath(name).stem)
    yield from blocks


def _cells_of(notebook: Any) -> list[Mapping[str, Any]] | None:
    if not isinstance(notebook, dict):
        return None
    sheets = notebook.get("worksheets")
    holders = sheets if isinstance(sheets, list) and "cells" not in notebook else [notebook]
    lists = [holder.get("cells") for holder in holders if isinstance(holder, dict)]
    if not lists or not all(isinstance(cells, list) for cells in lists):
        return None
    return [cell for cells in lists for cell in _dicts(cells)]


def _dicts(values: Any) -> list[Mapping[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _cell_blocks(cell: Mapping[str, Any], limits: Limits) -> Iterator[Block]:
    text = _join(cell.get("source", cell.get("input"))).strip("\n")
    match cell.get("cell_type"):
        case "markdown":
            yield from markdown_blocks(text)
        case "heading" if text.strip():  # nbformat 3
            level = str(cell.get("level", 1))
            yield Heading(int(level) if level in set("123456") else 1, text)
        case "code":
            if text.strip():
                yield Paragraph(text)
            for output in _dicts(cell.get("outputs")):
                yield from _output_blocks(output, limits)
        case _ if text.strip():
            yield Paragraph(text)


def _output_blocks(output: Mapping[str, Any], limits: Limits) -> Iterator[Block]:
    data = output.get("data")
    values = data if isinstance(data, dict) else output
    if output.get("output_type") == "error" or "ename" in output:
        yield Paragraph(f"{_join(output.get('ename'))}: {_join(output.get('evalue'))}")
        return
    html = _join(values.get("text/html", values.get(_OLD_NAMES["text/html"])))
    tables = [block for block in _fragment(html, limits) if isinstance(block, Table)]
    if tables:
        yield from tables
        return
    if markdown := _join(values.get("text/markdown")):
        yield from markdown_blocks(markdown)
        return
    text = _join(values.get("text/plain", values.get(_OLD_NAMES["text/plain"])))
    # A carriage return begins its line anew, as bars of progress do.
    text = _OVERWRITTEN.sub("", _ANSI.sub("", text)).strip("\n")
    # An object without a text of its own (<Figure size 640x480 with 1 Axes>) says nothing.
    if text.strip() and not re.fullmatch(r"<[^<>\n]*>", text.strip()):
        yield Paragraph(text)


def _fragment(html: str, limits: Limits) -> Iterator[Block]:
    if "<table" in html:
        yield from fragment_blocks(html, limits)


def _join(value: Any) -> str:
    """Return a text that may be stored as the list of its lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
