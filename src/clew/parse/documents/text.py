"""Plain text: blank lines divide paragraphs; a line is a heading only where it can hardly be anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Heading,
    Item,
    ListBlock,
    Note,
    Paragraph,
    SourceFile,
    build_document,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, Limits

PARSER = "plain/2"
MEDIA_TYPE = "text/plain"

#: A line longer than this was not wrapped by hand, so it is a paragraph of its own.
_MAX_WRAPPED_LENGTH = 140
_MAX_HEADING_LENGTH = 80
_UNDERLINE = re.compile(r"^([=\-~^*#_])\1{2,}$")
_NUMBERED = re.compile(r"^(?:§\s*)?(\d{1,2}(?:\.\d{1,2}){0,4})\.?\)?\s+(\S.*)$")
_NAMED = re.compile(r"^(?:chapter|part|section|article|appendix|book)\s+(?:\d+|[ivxlc]+|[a-z])\b[.:]?", re.I)
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
#: A line that holds only a date, as above the entries of a diary.
_DATE = re.compile(
    rf"^(?:[a-z]+day,? )?(?:\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?),?(?: \d{{4}})?$"
    r"|^\d{4}-\d{2}-\d{2}$",
    re.I,
)
_BULLET = re.compile(r"^(\s*)([-*•‣◦–·o+]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)])\s+(\S.*)$")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a text file. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(chain(map(Note, remarks), text_blocks(text)), source)


FORMAT = DocumentFormat(MEDIA_TYPE, "plain text", (".txt", ".text"), parse, parser=PARSER)


def text_blocks(text: str) -> Iterator[Block]:
    """Yield the headings, paragraphs and lists of a plain text, in order."""
    groups = _groups(text)
    capitals = _capitals_mark_headings(groups)
    for number, lines in enumerate(groups):
        following = groups[number + 1] if number + 1 < len(groups) else []
        if heading := _heading(lines, following, capitals):
            yield heading
            continue
        if underlined := _underlined_heading(lines):
            heading, count = underlined
            yield heading
            lines = lines[count:]
        yield from _body_blocks(lines)


def _groups(text: str) -> list[list[str]]:
    """Return the runs of lines between blank lines."""
    groups: list[list[str]] = [[]]
    for line in text.replace("\f", "\n\n").expandtabs(4).split("\n"):
        if line.strip():
            groups[-1].append(line.rstrip())
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]


def _capitals_mark_headings(groups: Sequence[Sequence[str]]) -> bool:
    """Return whether a line in capitals may be a heading: not where over a quarter of the lines are in capitals."""
    in_capitals = sum(line.isupper() for group in groups for line in group)
    return in_capitals <= 0.25 * sum(map(len, groups)) or len(groups) < 4


def _underlined_heading(lines: Sequence[str]) -> tuple[Heading, int] | None:
    """Return the underlined heading at the start of a group, and how many lines it takes with its rules."""
    start = 1 if len(lines) > 2 and _UNDERLINE.match(lines[0].strip()) else 0
    if len(lines) < start + 2 or not _UNDERLINE.match(rule := lines[start + 1].strip()):
        return None
    title = lines[start].strip()
    # Much shorter or longer than the title, it is a separator or the frame of a table.
    if not any(map(str.isalpha, title)) or not 0.5 * len(title) <= len(rule) <= 2 * len(title) + 4:
        return None
    return Heading({"=": 1, "#": 1, "*": 1, "-": 2}.get(rule[0], 3), title), start + 2


def _heading(lines: Sequence[str], following: Sequence[str], capitals: bool) -> Heading | None:
    """Return a group of one line as a heading if it is numbered, named, a date or in capitals, and text follows."""
    title = lines[0].strip()
    if (
        len(lines) > 1
        or not following
        or len(title) > _MAX_HEADING_LENGTH
        or title.endswith((".", ",", ";", ":"))
    ):
        return None
    letters = sum(map(str.isalpha, title))
    if letters < 3 and not _DATE.match(title):
        return None
    if _NAMED.match(title):
        return Heading(1, title)
    if _DATE.match(title):
        return Heading(2, title)
    if numbered := _NUMBERED.match(title):
        number, words = numbered.groups()
        # "1. Buy milk", "2. Buy eggs" is a list; a heading has something else below it.
        is_item = "." not in number and _NUMBERED.match(following[0].strip())
        return None if is_item or not words[0].isupper() else Heading(number.count(".") + 1, title)
    if capitals and title.isupper() and letters >= 5 and letters > 0.6 * len(title.replace(" ", "")):
        return Heading(1, title)
    return None


def _body_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the paragraphs and lists of a group of lines."""
    prose: list[str] = []
    items: list[Item] = []
    for line in lines:
        if _UNDERLINE.match(line.strip()):
            continue
        bullet = _BULLET.match(line)
        if bullet and (items or _starts_list(bullet, lines)):
            if prose:
                yield from _paragraphs(prose)
                prose = []
            indent, marker, text = bullet.groups()
            items.append(Item(text, min(len(indent) // 2, 8), marker))
        elif items:
            last = items[-1]
            items[-1] = Item(f"{last.text} {line.strip()}", last.depth, last.marker)
        else:
            prose.append(line)
    if prose:
        yield from _paragraphs(prose)
    if items:
        least = min(item.depth for item in items)
        yield ListBlock(tuple(Item(item.text, item.depth - least, item.marker) for item in items))


def _starts_list(bullet: re.Match[str], lines: Sequence[str]) -> bool:
    """Return whether a line with a marker belongs to a list: "I." or "4." alone may also start a sentence."""
    if bullet[2] in {"-", "*", "•", "‣", "◦", "·"} or bullet[2].endswith(")"):
        return True
    return sum(1 for line in lines if _BULLET.match(line)) > 1


def _paragraphs(lines: Sequence[str]) -> Iterator[Paragraph]:
    """Yield the paragraphs of lines: wrapped lines are joined; lines of verse, addresses and code are not."""
    longest = max(map(len, lines))
    if longest > _MAX_WRAPPED_LENGTH:
        yield from (Paragraph(line.strip()) for line in lines)
    elif longest < 50 or any(len(line) < 0.5 * longest for line in lines[:-1]):
        yield Paragraph("\n".join(line.rstrip() for line in lines))
    else:
        yield Paragraph(" ".join(line.strip() for line in lines))
