"""What a text names and refers to: names, defined terms, references, anchors and row labels.

Each is posted in the field ``mention`` under a 64-bit key, its kind in the highest four bits and the hash of its
label in the others (:func:`mention_key`), so that a graph can join passages without reading a text again. Pure
functions of one node and the name of its parent; what a key leads to is decided where the graph is built.

A bare number and a date are never names: on real documents they would join most passages by chance.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter

from clew.core.text import STOPWORDS, candidate_names, hash_term, normalise_name, strip_qualifier, title_names
from clew.core.types import DOCUMENT, PAGE, PASSAGE, RETRIEVED_KINDS, SECTION, TABLE, ParsedNode

#: The kinds of keys. An ``INITIAL`` name is one whose capital may only be that of a sentence, a heading or a date: it
#: counts where the base has the same words as a ``NAME`` or as a title. ``HEADING`` and ``ANCHOR`` are what a section
#: or table is called, by words and by number ("note 5"); ``FOOTNOTE`` and ``NOTED`` belong together within a page.
#: A ``CELL`` of a row counts where a document has its words as a title.
NAME, INITIAL, DEFINED, REFERENCE, ANCHOR, LABEL, HEADING, FOOTNOTE, NOTED, CELL = range(10)
_KIND_BITS = 60
LABEL_MASK = (1 << _KIND_BITS) - 1


def mention_key(kind: int, label: str) -> int:
    """Return the key under which a label of a kind is posted; its lowest 60 bits are the same for every kind."""
    return kind << _KIND_BITS | hash_term(label) & LABEL_MASK


def count_mentions(node: ParsedNode, parent_name: str = "") -> Counter[int] | None:
    """Return the keys of a node, each with 1; None for a kind that has none."""
    if node.kind == DOCUMENT:
        return Counter({mention_key(NAME, name): 1 for name in title_names(node.name)})
    if node.kind == PAGE:
        return Counter({mention_key(ANCHOR, f"page {node.name.casefold() or node.page}"): 1})
    if node.kind in {SECTION, TABLE}:
        return Counter({mention_key(kind, label): 1 for kind, label in heading_labels(node.name)})
    if node.kind in RETRIEVED_KINDS:
        return Counter({mention_key(kind, label): 1 for kind, label, _ in mentions(node, parent_name)})
    return None


#: Characters of a passage or row in which names are looked for. A longer one is no prose, and mentions everything.
_NAMED_CHARACTERS = 100_000


def mentions(node: ParsedNode, parent_name: str = "") -> Iterator[tuple[int, str, str]]:
    """Yield what a passage or table row mentions: kind, label, and the words of the text."""
    text = node.text[:_NAMED_CHARACTERS]
    certain: set[str] = set()
    doubtful: dict[str, str] = {}
    for name, start, end, initial in linking_names(text):
        if not initial and name not in certain:
            certain.add(name)
            yield NAME, name, text[start:end]
        elif initial:
            doubtful.setdefault(name, text[start:end])
    yield from ((INITIAL, name, form) for name, form in doubtful.items() if name not in certain)
    yield from ((DEFINED, label, form) for label, form in defined_terms(text))
    yield from ((REFERENCE, label, form) for label, form in references(text))
    if node.kind == PASSAGE:
        yield from ((kind, label, label) for kind, label in heading_labels(text[:80]) if kind == ANCHOR)
        if note := _NOTE_START.match(text):
            yield FOOTNOTE, note[1], note[0].strip()
    else:
        label, notes = row_label(text, parent_name)
        if label:
            yield LABEL, label, label
        yield from ((NOTED, note, f"({note})") for note in notes)
        yield from (
            (CELL, name, form)
            for name, form in cell_names(text, parent_name)
            if name not in certain and name not in doubtful
        )


# Names

_SENTENCE_START = re.compile(r"(?:^|[.!?:;•|\n]|[.!?][\"”’)\]])\s*[\"“‘'(\[]*$")
_DATE_WORDS = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday
    q1 q2 q3 q4 h1 h2 fy cy""".split()
)
_NUMBER_WORD = re.compile(r"^(?:[\d.,]+(?:st|nd|rd|th)?|fy\d+|cy\d+|q[1-4]\d*|h[12]\d*)$")
_REFERENCE_WORDS = frozenset(
    """note exhibit section item table figure fig page part appendix schedule article annex clause chapter paragraph
    footnote""".split()
)
#: A sentence with more than this share of capitalised words is set like a heading: its capitals say nothing.
_HEADING_SHARE = 0.7
_SENTENCE = re.compile(r"[^.!?;:\n]+")
_PLAIN_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"[“\"]([^“”\"]{2,80})[”\"]")


def linking_names(text: str) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the names by which passages may be joined: normalised name, start, end, and whether its capital may be
    that of a sentence or heading alone.

    These are the candidates of :func:`clew.core.text.candidate_names` without numbers, dates and references, and what
    stands in quotation marks.
    """
    headings = [
        match.span()
        for match in _SENTENCE.finditer(text)
        if not (sentence := match.group()).islower()
        and len(words := _PLAIN_WORD.findall(sentence)) > 2
        and sum(word[0].isupper() for word in words) > _HEADING_SHARE * len(words)
    ]
    for name, start, end in candidate_names(text):
        doubtful = _name_doubt(name) if len(name) < _SHORT_NAME else _name_doubt.__wrapped__(name)
        if doubtful is None:
            continue
        first = name.partition(" ")[0]
        if first == name or first in STOPWORDS:
            doubtful = doubtful or bool(_SENTENCE_START.search(text[max(0, start - 8) : start]))
            heading = bisect.bisect_right(headings, start, key=itemgetter(0)) - 1
            doubtful = doubtful or (heading >= 0 and start < headings[heading][1])
        yield name, start, end, doubtful
    for quoted in _QUOTED.finditer(text):
        name = normalise_name(quoted[1])
        if quoted[1][0].isupper() and name and not _NUMBER_WORD.match(name):
            yield name, quoted.start(1), quoted.end(1), False


#: Characters of a name that is remembered.
_SHORT_NAME = 60


@lru_cache(maxsize=1 << 16)
def _name_doubt(name: str) -> bool | None:
    """Return whether a normalised name may be none but for its place in a sentence; None for what joins nothing."""
    words = name.split()
    numbers = [bool(_NUMBER_WORD.match(word)) for word in words]
    dated = [number or word in _DATE_WORDS for word, number in zip(words, numbers, strict=True)]
    if all(number or word in STOPWORDS for word, number in zip(words, numbers, strict=True)) or (
        any(numbers) and all(dated)
    ):
        return None
    if words[0].rstrip("s") in _REFERENCE_WORDS and (len(words) == 1 or _is_ordinal(words[1])):
        return None
    # "2021 Boeing", "Lane 7 on 31" and "May" are names only where something is called so.
    return numbers[0] or all(dated) or (numbers[-1] and (dated[-2] or words[-2] in STOPWORDS))


#: A cell of more words is a text, not a name.
_CELL_WORDS = 8
#: What divides the items of a list in a cell.
_CELL_PARTS = re.compile(r"[,/•|]\s|\sand\s")


def cell_names(text: str, caption: str) -> Iterator[tuple[str, str]]:
    """Yield the whole label and the whole cells of a table row that may be names, normalised and as written: a cell
    names a document although its words are written small or have numbers among them. So do the items of a list, and
    what stands before a bracket.

    >>> list(cell_names("Races. 12.8: Athlete: Zhu Li (ROC); Team: 1. FC Halle", "Races"))
    [('zhu li roc', 'Zhu Li (ROC)'), ('zhu li', 'Zhu Li (ROC)'), ('1 fc halle', '1. FC Halle')]
    """
    body = text.removeprefix(f"{caption}. ") if caption else text
    label, _, rest = body.partition(": ")
    cells = [label, *(cell.partition(": ")[2] for cell in rest.split("; "))]
    for cell in dict.fromkeys(cells):
        parts = (cell, *_CELL_PARTS.split(cell))
        for form in dict.fromkeys((*parts, *map(strip_qualifier, parts))):
            name = normalise_name(form)
            words = name.split()
            is_name = 0 < len(words) <= _CELL_WORDS and name not in STOPWORDS and any(map(str.isalpha, name))
            if is_name and not all(_NUMBER_WORD.match(word) or word in _DATE_WORDS for word in words):
                yield name, cell


def _is_ordinal(word: str) -> bool:
    return word[0].isdigit() or len(word) == 1 or all(letter in "ivxlc" for letter in word)


# Defined terms

_BRACKETS = re.compile(r"\(([^()]{2,120})\)")
_MEANING = re.compile(
    r"[“\"]([^“”\"]{2,60})[”\"],?\s+(?:means|refers to|is defined as|shall mean|has the meaning|is the)\b"
)
_ABBREVIATION = re.compile(r"^[A-Z][\w&.-]{1,11}$")


def defined_terms(text: str) -> Iterator[tuple[str, str]]:
    """Yield the terms that a text defines, normalised and as written.

    A definition is a quoted term in brackets (``Quay Street Lighters (the "Owner")``), a quoted term that "means"
    something, and an abbreviation or short name in brackets after what it stands for (``net operating loss (NOL)``).
    """
    terms: dict[str, str] = {}
    for bracket in _BRACKETS.finditer(text):
        for term in _QUOTED.findall(bracket[1]):
            terms.setdefault(normalise_name(term), term)
        if _ABBREVIATION.match(bracket[1]) and _stands_for(bracket[1], text[: bracket.start()]):
            terms.setdefault(normalise_name(bracket[1]), bracket[1])
    for meaning in _MEANING.finditer(text):
        terms.setdefault(normalise_name(meaning[1]), meaning[1])
    yield from ((label, form) for label, form in terms.items() if label and label not in STOPWORDS)


def _stands_for(short: str, before: str) -> bool:
    """Return whether a short form is a word of the words before it, or their initials."""
    words = re.findall(r"[^\W_]+", before)[-10:]
    letters = [letter.casefold() for letter in short if letter.isalnum() and not letter.isdigit()]
    if short.casefold() in (word.casefold() for word in words):
        return True
    if short.endswith("s") and short[:-1].isupper():
        letters.pop()
    initials = iter([word[0].casefold() for word in words if word])
    last = words[-1][0].casefold() if words else ""
    return len(letters) > 1 and bool(last) and all(letter in initials for letter in letters)


# References and what they refer to

_LABELS = (
    r"notes?|exhibits?|sections?|items?|tables?|figures?|figs?\.?|pages?|pp?\.|parts?|appendix|appendices|schedules?"
    r"|articles?|annex(?:es)?|clauses?|chapters?|paragraphs?"
)
_ORDINAL = r"(?:\d+[A-Za-z]?(?:\.\d+)*[A-Za-z]?|[IVXLC]{1,6}|[A-H])(?:\(\w{1,4}\))*(?![\w%])"
_REFERENCE = re.compile(
    rf"(?<![\w$])(?P<label>{_LABELS})\s+(?P<first>{_ORDINAL})(?P<more>(?:(?:,|\s+and|\s+or|,\s+and|\s*[-–])\s+{_ORDINAL})*)",
    re.IGNORECASE,
)
_ORDINALS = re.compile(_ORDINAL)
_HEADING_LABEL = re.compile(
    rf"^\W*(?P<label>{_LABELS})\s+(?P<number>{_ORDINAL})(?=\W|$)[\s.:–—-]*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERED = re.compile(r"^\W*(?P<number>\d{1,2}(?:\.\d+)*)[.)]?\s+(?P<rest>[^\W\d].*)", re.DOTALL)
_CITATION = re.compile(r"\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\]")
_ENTRY = re.compile(r"^\s*\[(\d{1,3})\]\s+\S")
_NOTE_START = re.compile(r"^\s*\(([a-z]|\d{1,2})\)\s+(?=\S)")
_PLURALS = {"appendices": "appendix", "annexes": "annex", "fig": "figure", "p": "page", "pp": "page"}
#: Labels of numbered parts that many documents leave out of the heading itself ("2. Acquisitions" is note 2).
_PLAIN_NUMBERS = frozenset({"note", "section", "clause", "paragraph", "article", "chapter"})
_NUMBER_LABEL = "#"


def number_keys(number: int) -> tuple[int, list[int]]:
    """Return the key of a plain number (``#5``), and the keys of the labels that it may mean (``note 5``, ``section
    5``)."""
    labels = [f"{word} {number}" for word in sorted(_PLAIN_NUMBERS)]
    plain, *full = [hash_term(label) & LABEL_MASK for label in (f"{_NUMBER_LABEL}{number}", *labels)]
    return plain, full


def references(text: str) -> Iterator[tuple[str, str]]:
    """Yield the references of a text, as labels and as written: ``note 5``, ``section 7(b)``, ``[12]``.

    A part of a section also refers to the section, and a numbered note or section to the number alone (``#5``), for
    headings that do not say what they are.
    """
    labels: dict[str, str] = {}
    for match in _REFERENCE.finditer(text):
        word = _singular(match["label"])
        if word in {"part", "article", "appendix", "schedule", "annex"} and not match["label"][0].isupper():
            continue
        for ordinal in _ORDINALS.findall(match["first"] + match["more"]):
            if ordinal.isalpha() and not ordinal.isupper():
                continue
            form = f"{match['label']} {ordinal}"
            whole = ordinal.casefold()
            plain = whole.partition("(")[0]
            for number in dict.fromkeys((whole, plain)):
                labels.setdefault(f"{word} {number}", form)
            if word in _PLAIN_NUMBERS and plain[0].isdigit():
                labels.setdefault(_NUMBER_LABEL + plain, form)
    for match in _CITATION.finditer(text):
        if match.start():
            for number in re.findall(r"\d+", match[1]):
                labels.setdefault(f"[{number}]", f"[{number}]")
    own = {label for kind, label in heading_labels(text[:80]) if kind == ANCHOR}
    yield from ((label, form) for label, form in labels.items() if label not in own)


def _singular(word: str) -> str:
    word = word.casefold().rstrip(".")
    if word in _PLURALS:
        return _PLURALS[word]
    return word.removesuffix("s")


def heading_labels(name: str) -> Iterator[tuple[int, str]]:
    """Yield what a heading, a caption or the start of a passage can be referred to by: ``ANCHOR`` labels as
    :func:`references` has them, and the words of the heading (``HEADING``)."""
    if match := _HEADING_LABEL.match(name):
        yield ANCHOR, f"{_singular(match['label'])} {match['number'].casefold()}"
    elif match := _NUMBERED.match(name):
        yield ANCHOR, _NUMBER_LABEL + match["number"]
    elif entry := _ENTRY.match(name):
        yield ANCHOR, f"[{entry[1]}]"
    words = normalise_name(match["rest"] if match else name)
    if len(words) > 2 and words not in STOPWORDS and not _NUMBER_WORD.match(words):
        yield HEADING, words


# Rows

_LABEL_NOTES = re.compile(r"\((\d{1,2}|[a-z])\)")


def row_label(text: str, caption: str) -> tuple[str, list[str]]:
    """Return what a table row is called, normalised, and the marks of footnotes at its name.

    >>> row_label("Sales by product. Pharmacy (1): 2022: 76.9%; 2021: 76.0%", "Sales by product")
    ('pharmacy', ['1'])
    """
    head = text.removeprefix(f"{caption}. ") if caption else text
    head = head.partition(":")[0]
    notes = _LABEL_NOTES.findall(head)
    label = normalise_name(_LABEL_NOTES.sub(" ", head))
    is_label = any(letter.isalpha() for letter in label) and len(label) <= 80
    words = label.split()
    dated = all(word in _DATE_WORDS or _NUMBER_WORD.match(word) for word in words)
    return (label if is_label and not dated and label not in {"total", "totals"} else ""), notes
