"""JSON and JSON lines: objects become sections called by their keys, lists of alike objects become tables.

Numbers are shown as they are written. A value that is a text of its own (several lines, or long) becomes paragraphs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument, Table
from clew.parse.documents.blocks import (
    Block,
    Heading,
    Item,
    ListBlock,
    Note,
    Paragraph,
    SourceFile,
    Title,
    build_document,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, SMALLER, Limits

PARSER = "json/3"
MEDIA_TYPE = "application/json"
LINES_PARSER = "jsonl/2"
LINES_MEDIA_TYPE = "application/x-ndjson"

#: Each level costs a few frames of Python.
_MAX_NESTING = 100
#: A text with more characters is a paragraph of its own, and does not stand in a table.
_MAX_VALUE_LENGTH = 300
#: Lists of longer texts are not written in one line.
_MAX_ITEM_LENGTH = 40
_MAX_COLUMNS = 60
#: The least share of filled cells in a table.
_MIN_FILLED = 0.5
#: The keys whose value names an object.
_NAMES = ("title", "name", "label", "subject", "headline", "question", "id", "_id", "key")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a JSON file. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    try:
        value = load_json(text)
    except UnreadableFile:
        # Many files of JSON lines are called .json.
        if "\n" not in text.strip():
            raise
        try:
            load_json(text.strip().split("\n", 1)[0].strip())
        except UnreadableFile:
            value = _load_sequence(text)
        else:
            return parse_lines(data, unit=unit, name=name, limits=limits)
        if value is None:
            raise
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([*map(Note, remarks), *_file_blocks(value, name)], source)


def parse_lines(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a file of JSON lines: one value on each. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    values, bad = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(load_json(line))
            except UnreadableFile:
                bad.append(number)
    if not values:
        raise UnreadableFile("is damaged: no line of it is JSON")
    notes = [*map(Note, remarks)]
    if bad:
        count = f"{len(bad):,} lines are" if len(bad) > 1 else "1 line is"
        notes.append(Note(f"{count} not JSON and left out, the first is line {bad[0]:,}"))
    source = SourceFile(data, name, LINES_MEDIA_TYPE, LINES_PARSER, unit, limits)
    return build_document([*notes, *_file_blocks(values, name)], source)


FORMATS = (
    DocumentFormat(MEDIA_TYPE, "a JSON file", (".json", ".geojson"), parse, parser=PARSER),
    DocumentFormat(
        LINES_MEDIA_TYPE, "a file of JSON lines", (".jsonl", ".ndjson"), parse_lines, parser=LINES_PARSER
    ),
)


def _load_sequence(text: str) -> list[Any] | None:
    """Return the values of a file that holds several, one after the other; None where what is between is not JSON."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
    values: list[Any] = []
    place = len(text) - len(text.lstrip())
    while place < len(text):
        try:
            value, end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            return None
        values.append(value)
        place = _SPACES.match(text, end).end()  # type: ignore[union-attr]
    return values if len(values) > 1 else None


_SPACES = re.compile(r"\s*")
#: An escape that may be half of a character: two in a row are one beyond the first 65,536.
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str) -> Any:
    """Return the value of a JSON text; numbers stay as they are written. Raises UnreadableFile."""
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        if _HALF_CHARACTER.search(text):
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(whole.decode("utf-16", "replace"))
        return value
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"is damaged or not JSON: {error.msg} in line {error.lineno:,}") from error
    except RecursionError:
        raise UnreadableFile("nested too deeply", SMALLER) from None


def _file_blocks(value: Any, name: str) -> Iterator[Block]:
    stem = PurePath(name).stem
    title = _name_of(value) if isinstance(value, dict) else ""
    yield Title(title or stem)
    yield from _blocks(value, title or stem, 1)


def _blocks(value: Any, name: str, level: int) -> Iterator[Block]:
    """Yield the blocks of a value that is called ``name`` and stands in a section of the level above ``level``."""
    if level > _MAX_NESTING:
        raise UnreadableFile(f"nested too deeply: more than {_MAX_NESTING} levels", SMALLER)
    if isinstance(value, dict):
        yield from _object_blocks(value, level, name)
    elif isinstance(value, list):
        yield from _list_blocks(value, name, level)
    elif text := _scalar(value):
        yield from _text_paragraphs("", text)


def _object_blocks(value: Mapping[str, Any], level: int, name: str) -> Iterator[Block]:
    """Yield the plain values of an object, a line each, then its texts, then its objects and lists.

    The value that is the heading above, ``name``, is not repeated.
    """
    lines = [f"{key}: {text}" for key, item in value.items() if (text := _plain(item)) and text != name]
    if lines:
        yield Paragraph("\n".join(lines))
    for key, item in value.items():
        if _plain(item) is not None:
            continue
        if isinstance(item, dict):
            if item:
                yield Heading(level, key)
                yield from _blocks(item, key, level + 1)
        elif isinstance(item, list):
            if not item:
                continue
            if (table := _as_table(item, key)) is not None:
                yield table
            elif not any(isinstance(inner, dict | list) for inner in item):
                yield Paragraph(f"{key}:")
                yield from _list_blocks(item, key, level)
            else:
                yield Heading(level, key)
                yield from _list_blocks(item, key, level + 1)
        else:
            yield from _text_paragraphs(key, item)


def _list_blocks(items: Sequence[Any], name: str, level: int) -> Iterator[Block]:
    if (table := _as_table(items, "")) is not None:
        yield table
        return
    plain: list[Item] = []
    for number, item in enumerate(items, 1):
        if isinstance(item, dict | list):
            if plain:
                yield ListBlock(tuple(plain))
                plain = []
            label = _name_of(item) if isinstance(item, dict) else ""
            yield Heading(level, label or f"{name} {number}")
            yield from _blocks(item, label or name, level + 1)
        elif text := _scalar(item):
            plain.append(Item(text))
    if plain:
        yield ListBlock(tuple(plain))


def _text_paragraphs(key: str, text: str) -> Iterator[Block]:
    paragraphs = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]
    for number, part in enumerate(paragraphs):
        yield Paragraph(f"{key}: {part}" if key and number == 0 else part)


def _as_table(items: Sequence[Any], caption: str) -> Table | None:
    """Return a list as a table, None unless it holds objects with plain values that are mostly alike.

    A list of lists with one length is a table, too, without a header.
    """
    if len(items) < 2:
        return None
    if all(isinstance(item, list) and 1 < len(item) == len(items[0]) for item in items):
        cells = [[_plain(cell) for cell in item] for item in items]
        if len(cells[0]) > _MAX_COLUMNS or any(cell is None for row in cells for cell in row):
            return None
        return Table((), tuple(tuple(cell or "" for cell in row) for row in cells), caption)
    if not all(isinstance(item, dict) for item in items):
        return None
    keys = dict.fromkeys(key for item in items for key in item)
    filled = sum(map(len, items))
    if not 1 < len(keys) <= _MAX_COLUMNS or filled < _MIN_FILLED * len(keys) * len(items):
        return None
    rows = []
    for item in items:
        row = [_plain(item[key]) if key in item else "" for key in keys]
        if any(cell is None for cell in row):
            return None
        rows.append(tuple(cell or "" for cell in row))
    return Table(tuple(keys), tuple(rows), caption)


def _plain(value: Any) -> str | None:
    """Return a short value as text, also a short list of such values; None for another value."""
    if isinstance(value, list):
        if not value or any(isinstance(item, dict | list) for item in value):
            return None if value else ""
        texts = list(map(_scalar, value))
        if max(map(len, texts)) > _MAX_ITEM_LENGTH:
            return None
        text = ", ".join(texts)
    elif isinstance(value, dict):
        return None if value else ""
    else:
        text = _scalar(value)
    return text if len(text) <= _MAX_VALUE_LENGTH and "\n" not in text.strip() else None


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value).strip()


def _name_of(value: Mapping[str, Any]) -> str:
    """Return what an object is called, "" if nothing says so."""
    names: Iterable[Any] = (value.get(key) for key in _NAMES)
    return next((name for name in names if isinstance(name, str) and 0 < len(name.strip()) <= 120), "")
