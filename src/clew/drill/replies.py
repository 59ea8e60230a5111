"""The paragraph numbers and the verdicts in what a language model wrote, however it wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
_RANGE = re.compile(
    r"(\d+)(?:\s*(?:-|–|—|\.\.\.?|\bto\b|\bthrough\b)\s*(?:p(?:aragraph)?\s*)?(\d+))?", re.IGNORECASE
)
#: Words that may stand around numbers in a line that is a list of them and nothing else.
_AROUND = re.compile(
    r"(?:relevant|paragraphs?|paragraph_ids|ids?|numbers?|and|to|through|answer|output|list|the|are|is|p)(?![a-z])"
    r"|p(?=\d)",
    re.IGNORECASE,
)
_LIST = re.compile(r"[\s\d\W_]*\d[\s\d\W_]*")
# "1. Paragraph 12": the number of the line is no paragraph's.
_NUMBERED = re.compile(r"^\s*\d+[.)]\s+(?=[\[(\"'*]*(?:paragraph|id\b|p\d)|\d+\s*$)", re.IGNORECASE)
_LEAD = re.compile(
    r"^[\s\[(\"'*•-]*(?:(?:paragraph|id|p)\s*)?(\d+(?:\s*[-–]\s*\d+)?)[\])\"'*]*\s*[:.)—–-]", re.I
)
_SERIES = r"\d+(?:\s*(?:,|;|&|-|–|\band\b|\bto\b|\bthrough\b|\s)+\s*(?:paragraph\s*)?\d+)*"
_MARKED = re.compile(
    rf"\b(?:paragraphs?|ids?)\s*(?:ids?|numbers?)?\s*[:#]?\s*({_SERIES})|\[\s*({_SERIES})\s*\]", re.I
)
_NONE = re.compile(r"^\W*(?:none|no|not|nothing|n/?a|empty|null|there (?:is|are) no)\b", re.IGNORECASE)
_ALL = re.compile(
    r"^\W*(?:all|every)(?:\s+(?:of\s+)?(?:the\s+)?(?:given\s+)?paragraphs?)?\b[^\d]*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ParagraphNumbers:
    """What a reply names: numbers that were offered, in its order, each once; others; whether it can be read.

    An empty reply, or one that says that there are none, can be read.
    """

    chosen: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    readable: bool = True


def parse_numbers(reply: str, offered: range) -> ParagraphNumbers:
    """Return the numbers that a reply names.

    Lists in any punctuation, ranges (``3-5``, ``3 to 5``), ``[3]``, ``P3``, ``paragraph 3``, JSON, one to a
    line, and paragraphs repeated behind their numbers. Where a line is a list of numbers, what stands around
    it is commentary and its numbers mean nothing.
    """
    text = _THOUGHT.sub("", reply).strip()
    lines = [
        _NUMBERED.sub("", line) for line in text.splitlines() if line.strip("` \t") and "```" not in line
    ]
    lists = [line for line in lines if _LIST.fullmatch(_AROUND.sub(" ", line))]
    if not lists and _ALL.match(text):
        return ParagraphNumbers(tuple(offered))
    if not lists and (not text or _NONE.match(text)):
        return ParagraphNumbers(())
    named = [
        n for line in lists or lines for n in (_in_list(line, offered) if lists else _in_prose(line, offered))
    ]
    known = [n for n in named if n in offered]
    unknown = [n for n in named if n not in offered]
    empty = not text.strip("[]{}()\"'`.- \n")
    return ParagraphNumbers(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)), bool(named) or empty)


def _in_prose(line: str, offered: range) -> Iterator[int]:
    if lead := _LEAD.match(line):
        yield from _in_list(lead[1], offered)
        return
    for found in _MARKED.finditer(line):
        yield from _in_list(found[1] or found[2], offered)


def _in_list(text: str, offered: range) -> Iterator[int]:
    for found in _RANGE.finditer(text):
        first, last = int(found[1]), int(found[2] or found[1])
        # A range beyond what was offered is unknown by its ends: nobody wants its million members.
        if first > last or last - first > len(offered):
            yield from dict.fromkeys((first, last))
        else:
            yield from range(first, last + 1)


_YES = re.compile(r"^\W*(?:yes|true|relevant|1)\b", re.IGNORECASE)
_NO = re.compile(r"^\W*(?:no|false|irrelevant|not|none|0)\b", re.IGNORECASE)


def parse_verdict(reply: str) -> bool | None:
    """Return what a reply to a yes-or-no question says, or None where it says neither.

    The first word counts; where that says nothing, the only one of ``yes`` and ``no`` that occurs.
    """
    text = _THOUGHT.sub("", reply)
    if _YES.match(text) or _NO.match(text):
        return bool(_YES.match(text))
    said = {word.lower() for word in re.findall(r"\b(?:yes|no|true|false)\b", text, re.IGNORECASE)}
    meant = {word in {"yes", "true"} for word in said}
    return meant.pop() if len(meant) == 1 else None
