"""Blocks: what every parser but the PDF parser yields, in reading order, and how they become a document.

A parser is a generator of blocks. :func:`build_document` decides once, for all formats, what a passage is: a short
list goes with the line that introduces it, a long item is a passage of its own, and a paragraph far longer than
what a person would cite is divided between sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from clew.core.cell_values import read_scale
from clew.core.errors import UnreadableFile
from clew.core.text import clean_name, sentence_spans
from clew.core.types import ParsedDocument, Table
from clew.parse.documents.builder import DocumentBuilder, PassageUnit
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import (
    SCALE_LINE,
    Row,
    collapse_group_heading,
    count_header_rows,
    introducing_sentence,
    max_distinct_cells,
    merge_header,
    split_titles,
)

# Lengths in characters.
#: A list up to this length is one passage; a longer one is several passages of up to this length.
LIST_LENGTH = 900
#: A list item longer than this is a passage of its own.
ITEM_LENGTH = 300
#: A line before a list introduces it if it ends in a colon and is no longer than this.
LEAD_LENGTH = 500
#: A paragraph longer than this is divided.
PASSAGE_LENGTH = 4_000
#: A line above or below a table is no caption if it is longer than this.
CAPTION_LENGTH = 300
#: The only filled cell of a row is a remark below a table, not the heading of a group, if it is longer than this.
REMARK_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Title:
    """The document's own title, from its metadata. Of several, the first counts."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """What the file says of itself: an author, a date, a tag (:mod:`clew.parse.documents.fields`)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; ``level`` 1 is outermost."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, block quotation or piece of code."""

    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list. ``depth`` is 0 for the outermost list; ``marker`` is printed before it (``-``, ``2.``)."""

    text: str
    depth: int = 0
    marker: str = "-"

    def to_line(self) -> str:
        """Return the item as a line of a passage."""
        return f"{'  ' * self.depth}{self.marker} {self.text}" if self.marker else self.text


@dataclass(frozen=True, slots=True)
class ListBlock:
    """A whole list, with the lists nested in it."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Caption:
    """A paragraph that is marked as a caption: of the table below it, else of the table above it, if any."""

    text: str


@dataclass(frozen=True, slots=True)
class PageStart:
    """The start of page (or slide) ``number``, from 1; ``label`` is its name where that differs from the number."""

    number: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for the person who added the file."""

    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Text of the file that is no text of the document, and why: ``hidden``, ``struck out``."""

    reason: str
    text: str


Block = Title | Field | Heading | Paragraph | ListBlock | Table | Caption | PageStart | Note | LeftOut
_Listed = Title | Field | Heading | Paragraph | ListBlock | Table | PageStart | Note | LeftOut
_Final = Title | Field | Heading | Paragraph | Table | PageStart | Note | LeftOut

#: The mark of a paragraph that is an item of a list, "(a)" or "2)", and the orders in which such marks go on.
_MARK = re.compile(r"\(?([a-z]|[ivx]{1,5}|\d{1,2})\)\s+(?=\S)", re.IGNORECASE)
_ORDERS = (
    list("abcdefghijklmnopqrstuvwxyz"),
    "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split(),
    [str(number) for number in range(1, 100)],
)

_CAPTION = re.compile(r"^(?:table|tab\.|tabelle|tableau|tabla|tabella)\s+\w[\w.-]*\s*[:.–—-]|^table:\s", re.I)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file that is parsed, and the parser: its name and version (``html/1``)."""

    data: bytes
    name: str
    media_type: str
    parser: str
    unit: PassageUnit = "paragraph"
    limits: Limits = LIMITS


_RAISED = str.maketrans("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ")
#: The end of a word that is no unit, or of a year.
_WORD_END = re.compile(r"(?:[^\W\d_]{4}|(?<!\d)(?:19|20)\d\d)$")
_RAISED_NUMBER = re.compile(r"[+\-−]?(?:\d{1,3}|n)[+\-−]?|\d{1,3}(?:[,–-] ?\d{1,3})+")


def superscript(text: str, before: str = "") -> str:
    """Return raised text as it is written in a line: digits in their raised form, so that a power, or the mark of a
    note, is not read as part of the number ``before`` it; after a word, where it marks a note, with a space.

    >>> "10" + superscript("6", "10"), "m" + superscript("-2"), "4" + superscript("th"), superscript("1", "in 2021")
    ('10⁶', 'm⁻²', '4th', ' ¹')
    """
    clean = text.strip()
    if not _RAISED_NUMBER.fullmatch(clean):
        return text
    raised = text.replace(clean, clean.translate(_RAISED))
    return f" {raised}" if _WORD_END.search(before[-20:]) and clean.isdigit() else raised


def build_document(blocks: Iterable[Block], source: SourceFile) -> ParsedDocument:
    """Return the document that consists of ``blocks``.

    Its title is its own, else its first heading of level 1, else the file's name without suffix. Raises
    UnreadableFile if the blocks hold no text or exceed a limit.
    """
    builder = DocumentBuilder(source.unit)
    title = top_heading = ""
    nodes = characters = pages = 0
    for block in _introduce_tables(_lists_as_passages(_find_lists(_attach_captions(blocks)))):
        match block:
            case Title(text):
                title = title or clean_name(text).strip()
            case Heading(level, text):
                top_heading = top_heading or (clean_name(text).strip() if level == 1 else "")
                builder.add_heading(level, text)
                size = len(text)
            case Paragraph(text):
                builder.add_paragraph(text)
                size = len(text)
            case Table():
                source.limits.check_nodes(nodes + len(block.rows))
                builder.add_table(block)
                nodes += len(block.rows)
                size = sum(len(cell) for row in block.rows for cell in row)
            case PageStart(number, label):
                builder.add_page(number, label)
                pages = max(pages, number)
                size = 0
            case Note(text):
                builder.notes.append(text)
            case LeftOut(reason, text):
                builder.leave_out(reason, text)
            case Field(name, value):
                builder.add_field(name, value)
        if isinstance(block, Heading | Paragraph | Table | PageStart):
            nodes += 1
            characters += size
            source.limits.check_nodes(nodes)
            source.limits.check_characters(characters)
    if builder.is_empty:
        raise UnreadableFile("holds no text")
    return builder.finish(
        data=source.data,
        title=title or top_heading or PurePath(source.name).stem,
        media_type=source.media_type,
        parser=source.parser,
        pages=pages,
    )


def _attach_captions(blocks: Iterable[Block]) -> Iterator[_Listed]:
    """Move each caption into its table: the one right below, else the one right above."""
    table: Table | None = None
    caption: Caption | None = None
    for block in blocks:
        if isinstance(block, Title | Field | Note | LeftOut):
            yield block
        elif isinstance(block, Table):
            if table:
                yield table
            if caption and block.caption:
                yield Paragraph(caption.text)
            table = replace(block, caption=caption.text) if caption and not block.caption else block
            caption = None
        else:
            if caption:
                yield from _table_and_caption(table, caption)
                table = None
            caption = _as_caption(block)
            if caption or isinstance(block, Caption):
                continue
            if table:
                yield table
                table = None
            yield block
    yield from _table_and_caption(table, caption)


def _as_caption(block: Heading | Paragraph | ListBlock | Caption | PageStart) -> Caption | None:
    if isinstance(block, Caption):
        return block
    if isinstance(block, Paragraph) and len(block.text) <= CAPTION_LENGTH and _CAPTION.match(block.text):
        return Caption(block.text)
    return None


def _table_and_caption(table: Table | None, caption: Caption | None) -> Iterator[Table | Paragraph]:
    """Yield a table and a caption below it, which becomes the table's if that has none."""
    if table and caption and not table.caption:
        yield replace(table, caption=caption.text)
        return
    if table:
        yield table
    if caption:
        yield Paragraph(caption.text)


def _find_lists(blocks: Iterable[_Listed]) -> Iterator[_Listed]:
    """Make a list of the paragraphs that are numbered in order, "(a)", "(b)" ..., below what introduces one."""
    items: list[Item] = []
    marks: list[str] = []
    has_lead = False
    for block in blocks:
        if (
            isinstance(block, Paragraph)
            and has_lead
            and (mark := _MARK.match(block.text))
            and any(order[: len(marks) + 1] == [*marks, mark[1].casefold()] for order in _ORDERS)
        ):
            marks.append(mark[1].casefold())
            items.append(Item(block.text[mark.end() :], marker=mark[0].strip()))
            continue
        if items:
            yield ListBlock(tuple(items))
            items, marks = [], []
        has_lead = isinstance(block, Paragraph) and _ends_as_lead(block.text)
        yield block
    if items:
        yield ListBlock(tuple(items))


def _lists_as_passages(blocks: Iterable[_Listed]) -> Iterator[_Final]:
    """Turn lists into paragraphs that begin with their lead-in, join what a colon introduces to it (a command below
    "run:"), and divide paragraphs that are too long."""
    pending: Paragraph | None = None  # the last paragraph, in case a list follows
    for block in blocks:
        if isinstance(block, ListBlock):
            before, lead = _split_lead(pending.text) if pending else ("", "")
            if before:
                yield from _divide(Paragraph(before))
            pending = None
            yield from _list_passages(lead, block.items)
            continue
        if isinstance(block, Title | Field | Note | LeftOut):
            yield block
            continue
        if pending and isinstance(block, Paragraph) and _ends_as_lead(pending.text):
            joined = f"{pending.text}\n{block.text}"
            if len(joined) <= LIST_LENGTH:
                pending, block = None, Paragraph(joined)
        if pending:
            yield from _divide(pending)
        pending = block if isinstance(block, Paragraph) else None
        if not pending:
            yield block
    if pending:
        yield from _divide(pending)


def _introduce_tables(blocks: Iterable[_Final]) -> Iterator[_Final]:
    """Give each table the sentence that introduces it, and the scale that a line or heading right above it gives.

    The paragraph above stays where it is: it is read for itself, too.
    """
    above = ""
    for block in blocks:
        if isinstance(block, Table):
            is_scale = len(above) < SCALE_LINE and read_scale(above) is not None
            sentence = above if is_scale else introducing_sentence(above)
            block = replace(block, introduction=block.introduction or sentence)
        if not isinstance(block, Title | Note | LeftOut):
            above = block.text if isinstance(block, Heading | Paragraph) else ""
        yield block


def _ends_as_lead(text: str) -> bool:
    return text.rstrip().endswith((":", "：", "—"))


def _split_lead(text: str) -> tuple[str, str]:
    """Return a paragraph before a list in two: what stands for itself, and what introduces the list. Of a long one
    that is its last sentence."""
    if not _ends_as_lead(text):
        return text, ""
    start = 0 if len(text) <= LEAD_LENGTH else sentence_spans(text)[-1][0]
    return (text[:start], text[start:]) if len(text) - start <= LEAD_LENGTH else (text, "")


def _list_passages(lead: str, items: Sequence[Item]) -> Iterator[Paragraph]:
    lines, length = ([lead], len(lead)) if lead else ([], 0)
    for item in items:
        if not item.text.strip():
            continue
        line = item.to_line()
        alone = len(item.text) > ITEM_LENGTH
        # A lead-in without an item would be a passage that says nothing, so the first item stays with it.
        if lines and (length + len(line) > LIST_LENGTH or alone) and lines != [lead]:
            yield Paragraph("\n".join(lines))
            lines, length = [], 0
        lines.append(line)
        length += len(line) + 1
        if alone:
            yield from _divide(Paragraph("\n".join(lines)))
            lines, length = [], 0
    if lines:
        yield Paragraph("\n".join(lines))


def _divide(paragraph: Paragraph) -> Iterator[Paragraph]:
    text, start = paragraph.text, 0
    while len(text) - start > PASSAGE_LENGTH:
        end = start + _cut(text[start : start + PASSAGE_LENGTH])
        yield Paragraph(text[start:end])
        start = end
    yield Paragraph(text[start:])


def _cut(window: str) -> int:
    """Return where to end a passage within ``window``: after a sentence, else a line, else a word."""
    half = len(window) // 2
    spans = sentence_spans(window)
    # The last sentence is the one that the window itself cuts.
    if len(spans) > 1 and spans[-2][1] > half:
        return spans[-2][1]
    for separator in ("\n", " "):
        if (place := window.rfind(separator, half)) > 0:
            return place + 1
    return len(window)


def table_blocks(
    rows: Sequence[Row], spanned: frozenset[int], name: str, headers: frozenset[Row] = frozenset()
) -> Iterator[Block]:
    """Yield a grid as a table, with the title lines above it as its caption, and remarks below it as paragraphs.

    ``name`` is the caption where there is no title line. ``spanned`` has the numbers of the rows in which a cell
    spans columns. ``headers`` are rows, without their empty cells, that are known to name columns. A grid of a single
    column is paragraphs.
    """
    title_lines, count = split_titles(rows)
    body = list(rows[count:])
    if max_distinct_cells(rows) < 2 or not body:
        yield from (Paragraph(next(cell for cell in row if cell.strip())) for row in rows)
        return
    remarks: list[str] = []
    while len(body) > 1 and (remark := _remark_of(body[-1])):
        remarks.insert(0, remark)
        body.pop()
    header_spans = frozenset(row - count for row in spanned if row >= count)
    header = count_header_rows(body, header_spans) or int(tuple(filter(None, body[0])) in headers)
    table_rows = tuple(
        collapse_group_heading(row) if number in header_spans else row
        for number, row in enumerate(body)
        if number >= header
    )
    yield Table(merge_header(body[:header]), table_rows, " – ".join(title_lines) or name)
    yield from map(Paragraph, remarks)


def _remark_of(row: Row) -> str:
    """Return the remark that a row consists of, "" for another row."""
    cells = {cell for cell in row if cell.strip()}
    text = next(iter(cells)) if len(cells) == 1 else ""
    return text if len(text) > REMARK_LENGTH else ""
