"""How many people work for a company: "How many employees does Adobe have?", answered by the sentence that says so.

All passages with words for employees are looked at in the documents about the company, whether search returned them
or not. Reports also count the employees of segments and countries; the whole has most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from clew.core.protocols import Snapshot
from clew.core.text import sentence_spans
from clew.core.types import PASSAGE, Node
from clew.core.values import parse_number
from clew.methods.readers.passages import nodes_with_words

_PEOPLE = r"(?:employees|people|persons|workers|colleagues|associates|team members|staff members|staff)"
_EVERYWHERE = r"(?: (?:worldwide|globally|in total|in all|overall|altogether))?"
_YEAR = r"(?:19|20)\d\d"
_TIME = rf"(?: (?:in|at the end of|as of) (?:[\w,]+ )*?(?P<year>{_YEAR}))?"
_QUESTIONS = tuple(
    re.compile(rf"^{pattern}{_EVERYWHERE}{_TIME}\W*$", re.IGNORECASE)
    for pattern in (
        rf"how many {_PEOPLE} (?:does|do|did) (?P<whose>.+?) (?:employ|have)",
        rf"how many {_PEOPLE} (?:works?|worked|are working|(?:are|were) employed|are there) (?:for|at|by|in) "
        r"(?P<whose>.+?)",
        rf"(?:what (?:is|was) )?(?:the )?(?:total )?(?:number of {_PEOPLE}|head ?count|workforce) (?:of|at) "
        r"(?P<whose>.+?)",
        rf"(?:what (?:is|was) )?(?P<whose>.+?)['’]s? (?:total )?(?:number of {_PEOPLE}|head ?count)",
        r"(?:how (?:large|big) is|what(?:['’]s| is) the size of) (?P<whose>.+?)['’]s? workforce",
    )
)
_ABOUT = r"(?:(?:approximately|about|around|over|nearly|almost|some|roughly|more than|a total of) )*"
_NUMBER = r"(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? (?:thousand|million)|\d{1,6})"
_KIND = r"(?:(?:full|part)[- ]time |regular |active |permanent |global |salaried |and )*"
#: "We employed 29,239 people", "With approximately 117,100 employees", "a workforce of 500".
_STATEMENT = re.compile(
    rf"(?:\bemploy(?:s|ed|ing)?|\bha(?:d|ve|s)|^With|\b(?:workforce|staff|headcount|team) (?:of|was|is)|\bwere|\bare)"
    rf" {_ABOUT}{_NUMBER} {_KIND}{_PEOPLE}\b"
    rf"|\b(?:workforce|headcount|number of employees) (?:of|was|is|stood at|totall?ed) {_ABOUT}(?P<total>"
    rf"\d{{1,3}}(?:,\d{{3}})+|\d{{2,6}})\b",
    re.IGNORECASE,
)
_WORDS = ("employees", "employed", "colleagues", "associates", "workforce", "headcount")
_MAX_NODES = 400


@dataclass(frozen=True, slots=True)
class HeadcountQuestion:
    """A question for how many people work for ``whose``, in ``year`` where it is not empty."""

    whose: str
    year: str = ""


@dataclass(frozen=True, slots=True)
class Headcount:
    """A number of people as ``node`` prints it at ``start`` to ``end``. ``year`` is the latest that its sentence
    names, "" for none."""

    text: str
    node: Node
    start: int
    end: int
    year: str


def parse_headcount_question(text: str) -> HeadcountQuestion | None:
    """Return a question for the number of people who work somewhere, None for any other.

    >>> parse_headcount_question("How many people work for Acme?")
    HeadcountQuestion(whose='Acme', year='')
    >>> parse_headcount_question("How many people live in Corran?")
    """
    text = " ".join(text.split())
    match = next(filter(None, (pattern.match(text) for pattern in _QUESTIONS)), None)
    return None if match is None else HeadcountQuestion(match["whose"], match["year"] or "")


def find_headcount(
    question: HeadcountQuestion, documents: Collection[str], snapshot: Snapshot
) -> Headcount | None:
    """Return the largest number of people that documents (keys) say of those whom they are about, in the year that is
    asked or else the latest; None where they say none."""
    counts = [
        headcount
        for node in nodes_with_words(_WORDS, documents, snapshot, _MAX_NODES)
        if node.kind == PASSAGE
        for headcount in _read_headcounts(node, question.year)
    ]
    latest = max((headcount.year for headcount in counts), default="")
    current = [headcount for headcount in counts if headcount.year in {latest, ""}]
    return max(current, key=lambda headcount: parse_number(headcount.text) or 0.0, default=None)


def _read_headcounts(node: Node, year: str) -> Iterator[Headcount]:
    for start, end in sentence_spans(node.text):
        sentence = node.text[start:end]
        years = re.findall(rf"\b{_YEAR}\b", sentence)
        if year and years and year not in years:
            continue
        for match in _STATEMENT.finditer(sentence):
            group = "number" if match["number"] else "total"
            first, last = match.span(group)
            yield Headcount(match[group], node, start + first, start + last, max(years, default=""))
