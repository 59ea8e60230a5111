"""Reads a PDF: the lines of its pages are assembled into headings, paragraphs and tables.

Headings and their levels are found by font size, emphasis, numbering, and the file's own outline.
pdfium is not safe for threads: a process parses one file at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from clew.core.cell_values import read_scale
from clew.core.errors import UnreadableFile
from clew.core.types import Box, ParsedDocument, Table
from clew.parse.arithmetic import check_arithmetic
from clew.parse.documents.builder import DocumentBuilder, PassageUnit
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.limits import extend_memory_limit, extend_processor_limit
from clew.parse.documents.pdf import MEDIA_TYPE, PARSER
from clew.parse.documents.pdf.annotations import add_annotations
from clew.parse.documents.pdf.cells import split_line
from clew.parse.documents.pdf.grids import SNAP, Grid, find_grids, label_levels, read_grid
from clew.parse.documents.pdf.hyphens import Hyphens
from clew.parse.documents.pdf.lines import Line, PageLines, bounding_box, extract_lines
from clew.parse.documents.pdf.ornaments import leave_out_watermark
from clew.parse.documents.pdf.recognition import (
    MAX_PIXELS,
    SCALE,
    PageTurn,
    can_recognise,
    describe_recognition,
    recognise_page,
    show_boxes,
)
from clew.parse.documents.pdf.recognition import MEMORY as RECOGNITION_MEMORY
from clew.parse.documents.pdf.recognition import SECONDS_PER_PAGE as RECOGNITION_SECONDS
from clew.parse.documents.pdf.tables import (
    build_table,
    find_tables,
    is_chart,
    is_no_table,
    split_at_headers,
    split_title,
)
from clew.parse.documents.pdf.words import Page, Rule, read_page
from clew.parse.documents.progress import report_pages
from clew.parse.documents.tables import SCALE_LINE, complete_table, introducing_sentence, place_rows

if TYPE_CHECKING:
    from clew.parse.documents.pdf.recognition import Pixels

_NUMBERED = re.compile(
    r"^(?P<part>part\s+[ivx]+\b)|^(?P<item>item\s+\d+[a-z]?\b)|^(?P<note>note\s+\d+\b)"
    r"|^(?P<chapter>(?:chapter|appendix|annex|exhibit)\s+[\dA-Zivx]+\b)"
    r"|^(?P<decimal>\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+(?=[A-Z])",
    re.IGNORECASE,
)
_MAX_LEVEL = 6


@dataclass(frozen=True, slots=True)
class HeadingStyle:
    """The size, emphasis and case that headings of one kind have in common."""

    size: float
    emphasis: int
    capitals: bool


@dataclass(frozen=True, slots=True)
class Headings:
    """The headings of one document: its body size, the level of each style, and the levels in its outline.

    ``min_depths`` is the least depth of numbering among the headings of a style ("4" has depth 0, "4.2" 1).
    ``outline`` has levels by page and normalized text, ``hyphens`` the words of the document.
    """

    body: float
    levels: Mapping[HeadingStyle, int]
    min_depths: Mapping[HeadingStyle, int]
    outline: Mapping[tuple[int, str], int]
    hyphens: Hyphens

    @classmethod
    def from_pages(cls, pages: Sequence[PageLines], outline: Mapping[tuple[int, str], int]) -> Headings:
        """Learn the headings from a document's lines; its body size is that of most characters."""
        sizes: Counter[float] = Counter()
        for page in pages:
            for line in page.lines:
                sizes[_round_size(line.size)] += len(line.text)
        body = sizes.most_common(1)[0][0] if sizes else 10.0
        candidates = [line for page in pages for line in page.lines if _may_be_heading(line, body)]
        styles = {style_of(line) for line in candidates}
        min_depths: dict[HeadingStyle, int] = {}
        for line in candidates:
            if (depth := _number_depth(line.text)) is not None:
                style = style_of(line)
                min_depths[style] = min(depth, min_depths.get(style, depth))
        ranked = sorted(styles, key=lambda style: (-style.size, -style.emphasis, not style.capitals))
        levels = {style: min(number + 1, _MAX_LEVEL) for number, style in enumerate(ranked)}
        hyphens = Hyphens.from_lines(line.text for page in pages for line in page.lines)
        return cls(body, levels, min_depths, outline, hyphens)

    def level_of(self, lines: Sequence[Line]) -> int | None:
        """Return the level of a paragraph as a heading, None if it is no heading."""
        text = " ".join(line.text for line in lines)
        if level := self.outline.get((lines[0].page, normalize_heading(text))):
            return level
        letters = sum(character.isalpha() for character in text)
        if len(lines) > 3 or len(text) > 160 or letters < 3 or letters < 0.5 * len(text):
            return None
        if not all(_may_be_heading(line, self.body) for line in lines):
            return None
        if text.rstrip().endswith((".", ",", ";")) and not _NUMBERED.match(text) and len(text) > 60:
            return None
        style = style_of(lines[0])
        depth = _number_depth(text)
        deeper = depth - self.min_depths[style] if depth is not None and style in self.min_depths else 0
        return min(self.levels.get(style, _MAX_LEVEL) + deeper, _MAX_LEVEL)


def _number_depth(text: str) -> int | None:
    """Return the depth of a heading's number: 0 for "4", 1 for "4.2", None without a number."""
    numbered = _NUMBERED.match(text)
    return numbered["decimal"].count(".") if numbered and numbered["decimal"] else None


def style_of(line: Line) -> HeadingStyle:
    """Return the style of a line."""
    letters = [character for character in line.text if character.isalpha()]
    return HeadingStyle(
        _round_size(line.size), line.emphasis, bool(letters) and all(c.isupper() for c in letters)
    )


def _may_be_heading(line: Line, body: float) -> bool:
    text = line.text.strip()
    # The first check is also true of an empty text, which is no heading either.
    if (
        text[:1] in "•·▪■◦‣●○"
        or len(text) > 120
        or not any(character.isalpha() for character in text)
        or len(line.split_cells()) > 2
    ):
        return False
    if _round_size(line.size) >= 1.15 * body:
        return True
    if line.size < 0.9 * body:
        return False
    return line.emphasis > 0 or (bool(_NUMBERED.match(text)) and style_of(line).capitals and len(text) > 6)


def normalize_heading(text: str) -> str:
    """Return the text of a heading without case, spaces and punctuation, to compare it with the outline's."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _round_size(size: float) -> float:
    return round(size * 2) / 2


_BULLET = re.compile(r"(?:[•·▪■◦‣●○]|\(?(?:\d{1,3}[a-z]?|([a-z])\1{,2}\d?|[ivx]{1,3})[.)])\s", re.IGNORECASE)
_SHORT_WORD = re.compile(r"[^\W\d_]{1,3}[.)]\s")
#: A line of no more words may be a label.
_LABEL_WORDS = 5
#: The mark that a footnote begins with.
_NOTE_MARK = re.compile(r"[\[(]?[\d*†‡§¹²³⁰-⁹]{1,3}[.)\]]?\s")
#: A caption has at most so many lines above its table.
MAX_CAPTION_LINES = 4


@dataclass(slots=True)
class Block:
    """A paragraph, a heading (with its level) or a table, and its lines; ``hyphens`` has the document's words.

    Of a table that is ruled, it has the grid, and where the label of each row begins.
    """

    lines: list[Line]
    hyphens: Hyphens
    level: int | None = None
    table: Table | None = None
    grid: Grid | None = None
    label_starts: list[float | None] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the lines; a word divided at a line's end is joined."""
        return reduce(self.hyphens.join, (line.text for line in self.lines), "")

    @property
    def boxes(self) -> tuple[Box, ...]:
        """One box for each page that it is on."""
        pages = dict.fromkeys(line.page for line in self.lines)
        return tuple(bounding_box([line for line in self.lines if line.page == page]) for page in pages)


def add_pages(pages: Sequence[PageLines], headings: Headings, builder: DocumentBuilder) -> None:
    """Add the headings, paragraphs and tables of all pages to ``builder``, in reading order."""
    blocks_of_pages = []
    for number, page_lines in enumerate(pages, 1):
        blocks_of_pages.append(_page_blocks(page_lines, headings))
        report_pages(round(_WORDS_SHARE * len(pages) + (1 - _WORDS_SHARE) * number), len(pages))
    _join_tables(blocks_of_pages, builder)
    _join_paragraphs(blocks_of_pages)
    for page_lines, blocks in zip(pages, blocks_of_pages, strict=True):
        page = page_lines.page
        box = Box(page.number, 0, 0, round(page.width, 1), round(page.height, 1))
        builder.add_page(page.number, page_lines.label, box)
        for text, line in page_lines.running:
            builder.add_paragraph(text, [line.box])
        for text in page_lines.repeated:
            builder.leave_out("headers and footers", text)
        for block in blocks:
            if block.table is not None:
                builder.add_table(_doubt_headers(_place_labels(block.table, block.label_starts)))
            elif block.level is not None:
                builder.add_heading(block.level, block.text, block.boxes)
            else:
                builder.add_paragraph(block.text, block.boxes)


def _place_labels(table: Table, label_starts: Sequence[float | None]) -> Table:
    """Return a ruled table with the groups of its rows, if its labels are indented."""
    levels = label_levels(label_starts) if len(label_starts) == len(table.rows) else []
    return replace(table, row_places=place_rows(table.rows, levels)) if levels else table


def _doubt_headers(table: Table) -> Table:
    """Return a table, its headers uncertain if its own arithmetic contradicts them."""
    table = complete_table(table)
    if table.headers_uncertain or not check_arithmetic(table).contradicts_headers:
        return table
    return replace(table, headers_uncertain=True)


def _page_blocks(page_lines: PageLines, headings: Headings) -> list[Block]:
    blocks: list[Block] = []
    lines: list[Line] = []  # outside of grids, since the last table
    grids = find_grids(page_lines.page)
    for line in page_lines.lines:
        grid = next((grid for grid in grids if any(map(grid.contains, line.words))), None)
        outside = tuple(word for word in line.words if not any(grid.contains(word) for grid in grids))
        if grid is not None and not any(block.grid is grid for block in blocks):
            # A table stands at the place of its first line, after the lines so far.
            blocks += _text_blocks(lines, headings, page_lines.page.rules)
            lines = []
            words = [word for page_line in page_lines.lines for word in page_line.words]
            table, starts = read_grid(grid, words, _take_caption(blocks, line), headings.hyphens)
            blocks.append(Block([], headings.hyphens, table=table, grid=grid, label_starts=starts))
        if outside:
            lines.append(line if grid is None else replace(line, words=outside))
        if grid is not None:
            grid_block = next(block for block in blocks if block.grid is grid)
            grid_block.lines.append(line)
    return blocks + _text_blocks(lines, headings, page_lines.page.rules)


def _text_blocks(lines: Sequence[Line], headings: Headings, rules: Sequence[Rule]) -> list[Block]:
    """Return the paragraphs, headings and tables without rules of lines outside of grids."""
    rows = [split_line(line) for line in lines]
    blocks: list[Block] = []
    position = 0
    for start, end in find_tables(rows):
        first, *others = split_at_headers(rows[start:end])
        titles, parts = zip(("", first), *map(split_title, others), strict=True)
        tables = [build_table(part, "", rules) for part in parts]
        if all(map(is_chart, tables)) or is_no_table(rows[start:end], tables[0]):
            continue
        blocks += _paragraphs(lines[position:start], headings)
        caption = _take_caption(blocks, rows[start].line)
        caption = _add_scale(caption, blocks, rows[start].line)
        introduction, statement = _introduction(blocks, rows[start].line), _statement(blocks)
        for title, part, table in zip(titles, parts, tables, strict=True):
            named = replace(
                table,
                caption=f"{title or caption} {table.caption}".strip(),
                introduction=introduction,
                statement=statement,
            )
            blocks.append(Block([row.line for row in part], headings.hyphens, table=named))
        position = end
    return blocks + _paragraphs(lines[position:], headings)


def _paragraphs(lines: Sequence[Line], headings: Headings) -> list[Block]:
    return [Block(group, headings.hyphens, headings.level_of(group)) for group in _group_paragraphs(lines)]


def _group_paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    group: list[Line] = []
    for line in lines:
        if group and _starts_paragraph(group, line):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _starts_paragraph(group: Sequence[Line], line: Line) -> bool:
    """Return whether ``line`` starts a new paragraph after the lines of ``group``."""
    before = group[-1]
    size = max(before.size, 4.0)
    if line.page != before.page or line.y < before.y - 1:
        # In the next column, or on the next page, the paragraph goes on if the sentence does.
        return not _continues_sentence(before, line)
    if (
        line.y - before.y > 1.75 * size
        or abs(line.size - before.size) > 0.12 * size
        or line.emphasis != before.emphasis
    ):
        return True
    if _BULLET.match(line.text):
        return True
    is_indented = (
        line.x0 - before.x0 > 0.9 * size and len(group) > 0 and before.text.rstrip().endswith((".", ":", "?"))
    )
    is_short = before.x1 < max(other.x1 for other in (*group, line)) - 6 * size
    ends = before.text.rstrip().endswith((".", ":", "?", "!")) or _SHORT_WORD.match(line.text)
    return is_indented or (is_short and bool(ends))


def _continues_sentence(before: Line, line: Line) -> bool:
    return (
        not before.text.rstrip().endswith((".", ":", "?", "!", ";"))
        and line.text[:1].islower()
        and abs(line.size - before.size) < 0.6
        and line.emphasis == before.emphasis
    )


def _take_caption(blocks: list[Block], first: Line) -> str:
    """Return the title lines right above a table. Short lines move out of ``blocks``; a heading stays a section."""
    parts: list[str] = []
    lowest = first
    while blocks and len(parts) < MAX_CAPTION_LINES:
        last = blocks[-1]
        if last.table is not None or last.lines[-1].page != first.page or len(last.lines) > 3:
            break
        if lowest.y - last.lines[-1].y > 4 * max(lowest.size, 6.0) or len(last.text) > 160:
            break
        if last.level is not None:
            parts.append(last.text)
            break
        if last.text.rstrip().endswith((".", ";", ",")) and not re.match(
            r"^\s*table\s", last.text, re.IGNORECASE
        ):
            break
        parts.append(last.text)
        lowest = last.lines[0]
        blocks.pop()
    return " ".join(reversed(parts)).rstrip(":")


def _add_scale(caption: str, blocks: Sequence[Block], first: Line) -> str:
    """Return a caption with the short line above the table that gives its scale ("In thousands"), if it lacks one."""
    if read_scale(caption) is not None:
        return caption
    for block in reversed(blocks[-3:]):
        for line in block.lines if block.table is None else ():
            is_near = line.page == first.page and 0 < first.y - line.y < 12 * max(first.size, 6.0)
            if is_near and len(line.text) < SCALE_LINE and read_scale(line.text) is not None:
                return f"{caption} {line.text}".strip()
    return caption


def _introduction(blocks: Sequence[Block], first: Line) -> str:
    """Return the sentence that ends the paragraph above a table, if it introduces one; "" otherwise."""
    last = blocks[-1] if blocks else None
    if last is None or last.table is not None or last.level is not None or last.lines[-1].page != first.page:
        return ""
    is_near = first.y - last.lines[-1].y < MAX_CAPTION_LINES * 2 * max(first.size, 6.0)
    return introducing_sentence(last.text) if is_near else ""


def _statement(blocks: Sequence[Block]) -> str:
    """Return the heading under which a table stands, if only tables and short paragraphs are in between."""
    for block in reversed(blocks[-6:]):
        if block.level is not None:
            return block.text
    return ""


def _join_tables(pages: list[list[Block]], builder: DocumentBuilder) -> None:
    """Join tables that run over pages: the last of a page with the first of the next, if their columns are alike."""
    last: Block | None = None
    for blocks in pages:
        first = blocks[0] if blocks else None
        if last is not None and first is not None and last.table is not None and first.table is not None:
            table = _with_header_as_row(last, first, first.table)
            joined = _join_two_tables(last.table, table)
            if joined is not None:
                builder.leave_out("repeated names of columns", " ".join(table.header))
                last.table = joined
                added = len(joined.rows) - len(last.label_starts) - len(first.label_starts)
                last.label_starts += [None] * added + first.label_starts[max(-added, 0) :]
                last.lines += blocks.pop(0).lines
                if not blocks:
                    continue
        last = blocks[-1] if blocks and blocks[-1].table is not None else None


def _with_header_as_row(before: Block, block: Block, table: Table) -> Table:
    """Return a table; its header becomes a row if its grid has the columns of the one before but another header."""
    if before.grid is None or block.grid is None or before.table is None or table.caption:
        return table
    xs, other_xs = before.grid.xs, block.grid.xs
    is_aligned = len(xs) == len(other_xs) and all(
        abs(a - b) <= SNAP for a, b in zip(xs, other_xs, strict=True)
    )
    if not is_aligned or table.header == before.table.header or not any(table.header):
        return table
    return replace(
        table,
        header=("",) * len(table.header),
        columns=(),
        rows=(table.header, *table.rows),
        row_pages=(block.grid.page, *table.row_pages),
        cell_boxes=((None,) * len(table.header), *table.cell_boxes),
        headers_uncertain=False,
    )


def _join_two_tables(first: Table, second: Table) -> Table | None:
    """Return two tables as one, None if the second has another header or caption."""
    if len(first.header) != len(second.header):
        return None
    if any(second.header) and second.header != first.header:
        return None
    # Tables that follow one another often have the same columns; a sentence of its own begins another.
    if second.caption and second.caption != first.caption:
        return None
    # A header that is printed again is no row.
    again = 1 if any(first.header) and second.rows[:1] == (first.header,) else 0
    # A ruled table gets the places of its rows later, a table without lines has them: of one of each, all are later.
    has_places = first.row_places and second.row_places
    return replace(
        first,
        rows=first.rows + second.rows[again:],
        boxes=first.boxes + second.boxes,
        row_pages=first.row_pages + second.row_pages[again:],
        row_places=first.row_places + second.row_places[again:] if has_places else (),
        cell_boxes=first.cell_boxes + second.cell_boxes[again:],
    )


def _join_paragraphs(pages: list[list[Block]]) -> None:
    """Join each paragraph that goes on in the next column or on the next page, over the footnotes of its own."""
    unfinished: list[Block] = []  # the last paragraph, then the footnotes below it
    for blocks in pages:
        remaining: list[Block] = []
        size = max((block.lines[-1].size for block in blocks if _is_prose(block)), default=0.0)
        for block in blocks:
            is_prose = _is_prose(block)
            before = next((other for other in unfinished if is_prose and _goes_on_apart(other, block)), None)
            if before:
                before.lines += block.lines
                continue
            remaining.append(block)
            above = unfinished if _is_footnote(size, block) else []
            unfinished = [*above, block] if is_prose else []
        blocks[:] = remaining


def _is_prose(block: Block) -> bool:
    return block.table is None and block.level is None


def _is_footnote(size: float, block: Block) -> bool:
    """Return whether a block begins with the mark of a note, in smaller letters than the text of its page."""
    return _is_prose(block) and block.lines[0].size < 0.93 * size and _NOTE_MARK.match(block.text) is not None


def _goes_on_apart(before: Block, first: Block) -> bool:
    """Return whether a paragraph goes on in another column or on another page, where a name may come first: it breaks
    off behind a small word, and is no short label."""
    last, line = before.lines[-1], first.lines[0]
    if line.page == last.page and line.y > last.y - 1:
        return False
    is_alike = abs(last.size - line.size) < 0.6 and last.emphasis == line.emphasis
    breaks_off = len(before.text.split()) > _LABEL_WORDS and last.words[-1].text.islower()
    is_open = is_alike and breaks_off and last.text[-1:].isalpha() and not _BULLET.match(line.text)
    return is_open or _continues_sentence(last, line)


#: A file with more pages is refused rather than read for an hour.
MAX_PAGES = 20_000
#: Processor time that a page may take beside what a file may; a page of a filing takes 0.03.
SECONDS_PER_PAGE = 0.2
#: A small file may list the same page twenty thousand times: only one page counts for so many bytes of the file.
_BYTES_PER_PAGE = 500
#: The share of the work on a page that reading its words is.
_WORDS_SHARE = 0.4
#: A page with fewer words is read from its picture, if one covers so large a share of it.
_MIN_WORDS = 10
_PAGE_IMAGE_SHARE = 0.6
#: A picture of text covers this share of a page at least; so many pages are looked at.
_PICTURE_SHARE, _SAMPLED = 0.05, 20
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
        with suppress(pdfium.PdfiumError):  # a form that cannot be opened is no reason to refuse the text
            document.init_forms()
        return _build_document(document, data, unit, name)
    finally:
        document.close()


def _build_document(document: Any, data: bytes, unit: PassageUnit, name: str) -> ParsedDocument:
    count = len(document)
    if count == 0:
        raise UnreadableFile("it has no pages")
    if count > MAX_PAGES:
        raise UnreadableFile(f"it has {count} pages, more than {MAX_PAGES}")
    extend_processor_limit(SECONDS_PER_PAGE * min(count, len(data) // _BYTES_PER_PAGE))
    builder = DocumentBuilder(unit=unit)
    pages = []
    for index in range(count):
        pages.append(_read_page(document, index, builder))
        # Words are a part of the work; tables and paragraphs, below, are the rest.
        report_pages(round(_WORDS_SHARE * (index + 1)), count)
    turns = _recognise_pages(document, pages) if can_recognise() else {}
    without_text = [page.number for page in pages if not page.words]
    if len(without_text) == count:
        raise _explain_no_text(document, pages)
    if without_text:
        hint = "" if can_recognise() else f". {describe_recognition()}"
        builder.notes.append(f"no text on {_name_pages(without_text)}{hint}")
    _add_pages(pages, turns, _read_outline(document), builder)
    stated = document.get_metadata_dict()
    names = ("Author", "CreationDate", "Keywords")
    for field_name, value in field_pairs({key: stated.get(key, "") for key in names}):
        builder.add_field(field_name, value)
    parser = f"{PARSER}+ocr" if turns else PARSER
    parsed = builder.finish(
        data=data, title=_title(document, name), media_type=MEDIA_TYPE, parser=parser, pages=count
    )
    turned = {page.number: PageTurn.from_page(page) for page in pages if page.quarters}
    return show_boxes(parsed, turns | turned)


def _explain_no_text(document: Any, pages: Sequence[Page]) -> UnreadableFile:
    """Return why there is no text on any page: it is hidden, the pages are pictures, or there is none."""
    problem = f"no text on any of its {len(pages)} pages"
    hidden = sum(len(text.split()) for page in pages for _, text in page.left_out)
    if hidden:
        return UnreadableFile(f"{problem} that can be seen ({hidden:,} hidden or turned words)")
    if not any(_has_picture(document, index) for index in range(min(len(pages), _SAMPLED))):
        return UnreadableFile(f"{problem}, and no picture of one")
    recognition = f"{describe_recognition()}, or run it through text recognition (OCR) first"
    return UnreadableFile(f"{problem}; it looks scanned", "" if can_recognise() else recognition)


def _has_picture(document: Any, index: int) -> bool:
    try:
        return _has_page_image(document[index], _PICTURE_SHARE)
    except pdfium.PdfiumError:  # a damaged page or picture
        return False


def _name_pages(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
    return f"page{'s' if len(numbers) > 1 else ''} {named}"


def _add_pages(
    pages: Sequence[Page],
    turns: Mapping[int, PageTurn],
    outline: Mapping[tuple[int, str], int],
    builder: DocumentBuilder,
) -> None:
    """Add pages to a document, and a note on those that were read from a picture."""
    recognised = [page for page in pages if page.number in turns]
    if recognised:
        confidences = [word.confidence or 0.0 for page in recognised for word in page.words]
        mean = sum(confidences) / max(len(confidences), 1)
        numbers = [page.number for page in recognised]
        builder.notes.append(f"{_name_pages(numbers)} read from a picture, confidence {mean:.2f}")
    for page in pages:
        for reason, text in page.left_out:
            builder.leave_out(reason, text)
    page_lines = extract_lines(pages)
    add_pages(page_lines, Headings.from_pages(page_lines, outline), builder)


def build_recognised_document(
    pictures: Iterable[tuple[Pixels, float, float]],
    data: bytes,
    *,
    unit: PassageUnit,
    title: str,
    media_type: str,
    parser: str,
) -> ParsedDocument:
    """Return the document of pictures of pages: their pixels, width and height in points. Raises UnreadableFile."""
    extend_memory_limit(RECOGNITION_MEMORY)
    pages: list[Page] = []
    turns: dict[int, PageTurn] = {}
    for number, (pixels, width, height) in enumerate(pictures, 1):
        extend_processor_limit(RECOGNITION_SECONDS)
        page, turns[number] = recognise_page(pixels, number, width, height)
        pages.append(page)
    if not any(page.words for page in pages):
        raise UnreadableFile("no text is recognised in it")
    builder = DocumentBuilder(unit=unit)
    _add_pages(pages, turns, {}, builder)
    parsed = builder.finish(data=data, title=title, media_type=media_type, parser=parser, pages=len(pages))
    return show_boxes(parsed, turns)


def _recognise_pages(document: Any, pages: list[Page]) -> dict[int, PageTurn]:
    """Read the pages without a text layer from their pictures; return how each of these was turned."""
    turns: dict[int, PageTurn] = {}
    for index, page in enumerate(pages):
        if len(page.words) >= _MIN_WORDS:
            continue
        try:
            pdf_page = document[index]
        except pdfium.PdfiumError:
            continue
        try:
            if page.words and not _has_page_image(pdf_page):
                continue
            if not turns:
                extend_memory_limit(RECOGNITION_MEMORY)
            extend_processor_limit(RECOGNITION_SECONDS)
            width, height = pdf_page.get_size()
            scale = min(SCALE, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
            pixels = pdf_page.render(scale=scale, rev_byteorder=True, may_draw_forms=True).to_numpy()[
                :, :, :3
            ]
        except pdfium.PdfiumError:
            continue
        finally:
            pdf_page.close()
        recognised, turn = recognise_page(pixels, page.number, width, height)
        if len(recognised.words) > len(page.words):
            pages[index], turns[page.number] = recognised, turn
    return turns


def _has_page_image(page: Any, share: float = _PAGE_IMAGE_SHARE) -> bool:
    """Return whether a picture covers a share of a page; of most of it, its few words are a stamp or a number."""
    width, height = page.get_size()
    for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=2):
        left, bottom, right, top = item.get_bounds()
        if (right - left) * (top - bottom) > share * width * height:
            return True
    return False


#: Points of the longest side of a page: ten times what PDF allows without a unit of its own.
_LARGEST_PAGE = 144_000.0


def _read_page(document: Any, index: int, builder: DocumentBuilder) -> Page:
    try:
        page = document[index]
    except pdfium.PdfiumError:
        builder.notes.append(f"page {index + 1} is damaged")
        return Page(index + 1, 612.0, 792.0, (), ())
    try:
        # Infinity is a size that a damaged file may give.
        if not max(page.get_size()) <= _LARGEST_PAGE:
            builder.notes.append(f"page {index + 1} is damaged")
            return Page(index + 1, 612.0, 792.0, (), ())
        return add_annotations(leave_out_watermark(read_page(page, index + 1)), page)
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
    # The first line of a filing's cover is the agency, which some programs take for the title.
    is_generated = folded in {
        "untitled",
        "document",
        "(anonymous)",
        "united states securities and exchange commission",
    } or folded.startswith("microsoft word")
    is_file_name = "." in title[-5:]
    return name if len(title) < 4 or is_generated or is_file_name else title
