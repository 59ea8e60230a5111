"""Patterns for the phrases by which a question names a page, a table, a section or a whole document.

A phrase may still name nothing: whether "the string section" is a section of a document or of an orchestra is decided
by looking at the documents (:mod:`clew.retrieve.structure.resolver`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.core.text import is_stop_term
from clew.core.types import DOCUMENT, PAGE, SECTION, TABLE


@dataclass(frozen=True, slots=True)
class Phrase:
    """The words of a question for a structure; ``start`` and ``end`` are their range in the question.

    ``number`` counts pages, or the tables of a document (of ``page``, where given), negative from the end. ``label``
    is a printed label in lower case ("2", "iv", "3.2", "1a"), and ``word`` the word before it ("section", "item").
    ``name`` are words that contain the name: at their start, at their end (``at_end``), or as a whole (``whole``;
    ``word`` is ``part`` for a structure that is called by its name alone). ``document`` (the words that name the
    document) and ``words`` (the whole phrase in words) are set where a model read the question.
    """

    kind: str
    start: int
    end: int
    number: int | None = None
    label: str = ""
    word: str = ""
    name: str = ""
    at_end: bool = False
    whole: bool = False
    page: int | None = None
    document: str = ""
    words: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it is no more than "the table"."""
        return self.kind == TABLE and not (self.label or self.name or self.number or self.page)


_NUMBERS = dict(
    zip(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split(),
        range(1, 21),
        strict=False,
    )
)
_ORDINALS = dict(
    zip(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        range(1, 13),
        strict=False,
    )
) | {"last": -1, "final": -1, "closing": -1, "penultimate": -2, "opening": 1}

_NUMBER = rf"(?:\d{{1,4}}|{'|'.join(_NUMBERS)})"
_ORDINAL = rf"(?:{'|'.join(_ORDINALS)}|second[- ]to[- ]last|\d{{1,3}}(?:st|nd|rd|th))"
_ROMAN = r"(?:x{0,3}(?:ix|iv|v?i{1,3}|v)|x{1,3})"
_TO = r"\s*(?:[-–—]|to|through|until)\s*"
_AND = r"\s*(?:,\s*and|,|and|&|or)\s+(?:on\s+)?(?:pages?\s+|pp?\.\s*)?"
_NUMBER_SIGN = r"(?:\s*(?:number|no\.?|nr\.?|#))?\s*"

_PAGES = re.compile(
    rf"\b(?:pages?|pp\.?|pgs?\.?|p\.)(?!\w){_NUMBER_SIGN}"
    rf"(?P<items>(?:{_NUMBER}|{_ROMAN})\b(?:(?:{_TO}|{_AND}){_NUMBER}\b(?!\s+(?:tables?|sections?)))*)",
    re.IGNORECASE,
)
_ORDINAL_PAGES = re.compile(
    rf"\b(?P<ordinal>{_ORDINAL}|cover|title)\s+(?:(?P<count>{_NUMBER})\s+)?pages?\b(?!\s*(?:boy|girl|turner|at\s|to\s+the))",
    re.IGNORECASE,
)
_NOT_A_PAGE = re.compile(r"\b(?:was|became|as|his|her|their|its web|home|web)\s+(?:the\s+)?$", re.IGNORECASE)

_TABLE_LABEL = rf"(?:[A-Z]{{1,2}}[.-]?\d+|\d{{1,3}}[a-z]?(?:[.-]\d{{1,3}})*|{_ROMAN}|{'|'.join(_NUMBERS)})"
_TABLES = re.compile(
    rf"\b(?P<noun>tables?|tab\.|(?:spread|work)?sheets?){_NUMBER_SIGN}(?P<items>{_TABLE_LABEL}\b"
    rf"(?:\s*(?:,\s*and|,|and|&|or|to|through|–)\s+(?:tables?\s+)?{_TABLE_LABEL}\b)*)",
    re.IGNORECASE,
)
_ORDINAL_TABLE = re.compile(
    rf"\b(?P<ordinal>{_ORDINAL})\s+(?:(?P<noun>tables?|sheets?))\b(?!\s*(?:tennis|talk|top|cloth|leg|at\s))",
    re.IGNORECASE,
)
_TABLE = re.compile(r"\btables?\b", re.IGNORECASE)
_TABLE_SAYS = re.compile(
    r"\btables?\b(?=(?:\s+(?:in|of|from|for)\s+[^?.;]+?)?\s+(?:say|show|list|contain|report|give|tell|state|"
    r"indicate|present|include|look)\b)"
    r"|(?:(?<=which )|(?<=what )|(?<=list all )|(?<=list the )|(?<=how many )|(?<=all the ))tables\b"
    r"(?=\s+(?:are\s+(?:there|in)|does|do|exist|in)\b)"
    r"|(?:(?<=according to the )|(?<=based on the )|(?<=summarise the )|(?<=summarize the )|"
    r"(?<=show me the )|(?<=explain the )|(?<=show the ))tables?\b"
    r"|(?<=in the )tables?\b(?=\s+(?:in|of|from)\b)",
    re.IGNORECASE,
)
_SEATED = re.compile(r"\b(?:at|around|under|beneath|on|onto|to|from)\s+(?:the\s+)?$", re.IGNORECASE)
_NAMED_TABLE = re.compile(
    r"\b(?P<noun>tables?|(?:work)?sheets?|tab)\s+(?:is\s+)?(?:about|of|on|titled|entitled|called|named|labell?ed|captioned|headed|showing|"
    r"listing|with|for|comparing|describing|summari[sz]ing|giving|reporting|(?:that|which)\s+\w+)\s+"
    r"(?:the\s+|all\s+)?(?P<name>[^?!;]+)",
    re.IGNORECASE,
)
_SOME_TABLE = re.compile(
    r"(?P<name>(?:[\w&'’/.%-]+\s+){1,6})(?P<noun>tables?|(?:work)?sheet|tab)\b", re.IGNORECASE
)

_SECTION_WORDS = (
    "section|chapter|item|part|article|appendix|annex|clause|exhibit|schedule|note|attachment|paragraph"
)
_SECTION_LABEL = (
    rf"(?:\d{{1,3}}[a-z]?(?:\.\d{{1,3}})*|[a-z]\.?\d{{1,2}}(?:\.\d+)*|{_ROMAN}|[A-H]|{'|'.join(_NUMBERS)})"
)
_SECTIONS = re.compile(
    rf"(?:\b(?P<word>{_SECTION_WORDS})(?:s|es)?|\bsec\.|§+){_NUMBER_SIGN}(?P<items>{_SECTION_LABEL}\b(?!['’-])"
    rf"(?:\s*(?:,\s*and|,|and|&|or|to|through)\s+(?:(?:{_SECTION_WORDS})\s+)?{_SECTION_LABEL}\b(?!['’-]))*)",
    re.IGNORECASE,
)
_ORDINAL_SECTION = re.compile(rf"\b(?P<ordinal>{_ORDINAL})\s+(?P<word>section|chapter)\b", re.IGNORECASE)
#: "Room 2", "Regulation 17", "Book IV": a heading may well start so.
_ANY_LABEL = re.compile(r"\b(?P<word>[A-Za-z]{3,})\s+(?P<items>\d{1,3}[a-z]?|(?-i:[IVX]+))\b(?![.,]\d)")
_OTHERWISE = re.compile(
    rf"pages?|pgs?|tables?|(?:spread|work)?sheets?|(?:{_SECTION_WORDS})(?:s|es)?|sec|number|through|until|about|"
    r"over|than|least|most|line|row|column|figure|january|february|march|april|may|june|july|august|september|"
    r"october|november|december",
    re.IGNORECASE,
)
_SOME_SECTION = re.compile(
    r"(?P<name>(?:[\w&'’/.,%-]+\s+|[\"“][^\"”]{2,80}[\"”]\s+){1,8}?)(?P<noun>(?:sub)?sections?|chapters?)\b",
    re.IGNORECASE,
)
_NAMED_SECTION = re.compile(
    r"\b(?:(?:sub)?sections?|chapters?)\s+(?:(?:of|in)\s+[^?!;]{3,60}?\s+)?(?:on|about|titled|entitled|called|"
    r"named|headed|covering|describing|discussing|for|under|dealing\s+with|(?:that|which)\s+\w+)\s+"
    r"(?P<name>[^?!;]+)",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\b(?P<noun>(?:sub)?sections?|chapters?|tables?|headings?)[\s,:(]*[\"“'‘](?P<name>[^\"”’]{2,80}?)[\"”'’](?!\w)",
    re.IGNORECASE,
)
_UNDER = re.compile(
    r"\b(?:under|beneath|below)\s+(?:the\s+)?(?:(?P<heading>headings?|headlines?|titles?|captions?)\s+(?:of\s+)?)?"
    r"(?P<name>[^?!;]+)",
    re.IGNORECASE,
)
_KNOWN_SECTION = re.compile(
    r"\b(?:the|its|their)\s+(?P<name>introduction|abstract|conclusions?|executive summary|summary|preface|"
    r"foreword|bibliography|references|acknowledge?ments?|appendix|glossary|table of contents|background|"
    r"methods|methodology|results|discussion|limitations|related work|preamble|schedule|prologue|epilogue|"
    r"postscript|recommendations|findings|future work|index)\b"
    r"(?=\s+(?:of|in|to|from|say|with|and)\s|\s*(?:[?.,;]|$))",
    re.IGNORECASE,
)

_SHOWN = re.compile(
    r"\b(?:read|show|give|print|quote|reproduce|display|summari[sz]e|outline|explain|describe|compare|recap)\s+"
    r"(?:me\s+)?(?:out\s+)?the\s+(?P<name>[^?!;]+)",
    re.IGNORECASE,
)

_WHOLE_VERBS = (
    r"summari[sz]e|sum\s+up|outline|recap|condense|skim|give\s+(?:me\s+)?(?:a|an|the)\s+(?:\w+\s+)?"
    r"(?:summary|overview|outline|synopsis|gist|recap)\s+of|(?:summary|overview|synopsis|gist|outline|recap)\s+of|"
    r"(?:key|main|major)\s+(?:points|takeaways|messages|ideas|findings)\s+(?:of|in|from)|tl;?\s?dr(?:\s+of)?:?"
)
_WHOLE = re.compile(
    rf"\b(?:{_WHOLE_VERBS})\s+(?P<name>[^?!;.]+)"
    r"|\bwhat(?:\s+is|\s+are|['’]s)\s+(?P<about>[^?!;]+?)\s+(?:all\s+)?about\s*\??$"
    r"|\bwhat\s+(?:does|do)\s+(?P<says>[^?!;]+?)\s+(?:say|cover|contain|discuss|describe)"
    r"(?:\s+overall|\s+in\s+(?:general|total|full))?\s*\??$"
    r"|\bwhat(?:\s+is|\s+are|['’]s)\s+(?:written\s+)?(?:in|inside)\s+(?P<inside>the\s+[^?!;]+?)\s*\??$"
    r"|\b(?:tell\s+me\s+about|read|open|show)\s+(?:me\s+)?(?P<opened>[^?!;.]+)"
    r"|\bcompare\s+(?P<compared>[^?!;.]+)"
    r"|\b(?:whole|entire|full|complete)\s+(?P<entire>(?:text|document|file|report|paper|contract|book)\b)",
    re.IGNORECASE,
)


_MANNER = re.compile(
    r"(?:\s*,)?\s+(?:briefly|shortly|for\s+me|please|(?:in|using|with)\s+(?:\S+\s+){0,4}?"
    r"(?:words?|sentences?|points?|bullets?|paragraphs?|lines?|detail|brief|short|general))\b.*$",
    re.IGNORECASE,
)


def find_phrases(question: str) -> list[Phrase]:
    """Return the structures that a question may name, in its order.

    A page, table or section with a number or label hides the less definite readings of the same words. Whole
    documents hide nothing and are not hidden here: whether "compare A with table 2" is about a document depends on
    what the rest of the question names.
    """
    pages = [*_numbered_pages(question), *_ordinal_pages(question)]
    tables = [*_numbered_tables(question), *_ordinal_tables(question)]
    tables += _bare_tables(question, [*tables, *pages])
    phrases = _join_pages(question, tables, pages)
    _add_distinct(phrases, _numbered_sections(question))
    _add_distinct(phrases, _named_structures(question))
    phrases += _whole_documents(question)
    return sorted(phrases, key=lambda phrase: (phrase.start, phrase.end))


def _add_distinct(phrases: list[Phrase], new: Iterator[Phrase]) -> None:
    """Add the new phrases that overlap none of an earlier, more definite pattern."""
    earlier = [phrase for phrase in phrases if not phrase.is_bare]
    phrases += [
        phrase
        for phrase in new
        if not any(phrase.start < other.end and other.start < phrase.end for other in earlier)
    ]


def _numbered_pages(question: str) -> Iterator[Phrase]:
    for match in _PAGES.finditer(question):
        for number, label in _items(match["items"]):
            # "page iv" is the printed label; "page 4" is the fourth page, whatever is printed on it.
            printed = number is not None and str(number) != label
            yield Phrase(PAGE, *match.span(), number=None if printed else number, label=label, word="page")


def _ordinal_pages(question: str) -> Iterator[Phrase]:
    for match in _ORDINAL_PAGES.finditer(question):
        if _NOT_A_PAGE.search(question[: match.start()]):
            continue
        first = _ordinal(match["ordinal"])
        count = _number(match["count"] or "one") or 1
        numbers = range(first, first + count) if first > 0 else range(first - count + 1, first + 1)
        for number in numbers:
            yield Phrase(PAGE, *match.span(), number=number)


def _numbered_tables(question: str) -> Iterator[Phrase]:
    for match in _TABLES.finditer(question):
        lone = match["items"].casefold() in {"i", "v", "x"}
        if _SEATED.search(question[: match.start()]) or (lone and not match["noun"][0].isupper()):
            continue
        word = "sheet" if "sheet" in match["noun"].casefold() else "table"
        ranges = match["noun"].casefold().endswith("s")
        for number, label in _items(match["items"], ranges=ranges):
            yield Phrase(TABLE, *match.span(), number=number, label=label, word=word)


def _ordinal_tables(question: str) -> Iterator[Phrase]:
    for match in _ORDINAL_TABLE.finditer(question):
        if not _SEATED.search(question[: match.start()]):
            word = "sheet" if "sheet" in match["noun"].casefold() else "table"
            yield Phrase(TABLE, *match.span(), number=_ordinal(match["ordinal"]), word=word)


def _bare_tables(question: str, definite: list[Phrase]) -> Iterator[Phrase]:
    """Yield "the table" where it stands beside a page, or where something is said to be in it."""
    says = {match.start() for match in _TABLE_SAYS.finditer(question)}
    pages = [phrase for phrase in definite if phrase.kind == PAGE]
    for match in _TABLE.finditer(question):
        if any(phrase.start <= match.start() < phrase.end for phrase in definite):
            continue
        bare = Phrase(TABLE, *match.span(), word="table")
        before = question[: match.start()]
        shows = match.start() in says and _ARTICLE.search(before)
        if shows or any(_is_beside(question, bare, page) for page in pages):
            yield bare
        elif _OWNED.search(before) and not _SEATED.search(_OWNED.sub("", before)):
            yield replace(bare, word="part")


_ARTICLE = re.compile(r"\b(?:the|this|that|each|every|both|all|which|what|many)\s+$", re.IGNORECASE)
_OWNED = re.compile(r"[\w.-]+['’]s?\s+(?:only\s+)?$")
_ON = re.compile(
    r"^\s*(?:,\s*)?\(?(?:(?:which|that)\s+is\s+)?(?:(?:at|near|towards)\s+the\s+\w+\s+)?"
    r"(?:(?:on|from|in|at|of)\s+)?(?:the\s+)?$",
    re.IGNORECASE,
)
_PAGE_S = re.compile(
    r"^(?:['’]s\s+|,?\s+(?:(?:what\s+(?:does|is\s+in)|summari[sz]e|explain|show)\s+)?(?:the\s+)?)(?:only\s+)?$",
    re.IGNORECASE,
)


def _is_beside(question: str, table: Phrase, page: Phrase) -> bool:
    if table.end <= page.start:
        return bool(_ON.match(question[table.end : page.start]))
    return page.end <= table.start and bool(_PAGE_S.match(question[page.end : table.start]))


def _join_pages(question: str, tables: list[Phrase], pages: list[Phrase]) -> list[Phrase]:
    """Return pages and tables, where a table beside a page becomes one phrase with it."""
    phrases: list[Phrase] = []
    joined: set[int] = set()
    for table in tables:
        beside = [page for page in pages if _is_beside(question, table, page)]
        joined.update(page.start for page in beside)
        start = min([table.start, *(page.start for page in beside)])
        end = max([table.end, *(page.end for page in beside)])
        phrases += [replace(table, start=start, end=end, page=page.number) for page in beside] or [table]
    return phrases + [page for page in pages if page.start not in joined]


def _numbered_sections(question: str) -> Iterator[Phrase]:
    for match in _SECTIONS.finditer(question):
        word = (match["word"] or "section").casefold()
        if match["items"] in {"a", "I", "i"} or (word in {"part", "item", "note"} and match[0].islower()):
            continue
        for number, label in _items(match["items"]):
            yield Phrase(SECTION, *match.span(), number=number, label=label, word=word)
    for match in _ORDINAL_SECTION.finditer(question):
        yield Phrase(SECTION, *match.span(), number=_ordinal(match["ordinal"]), word=match["word"].casefold())
    for match in _ANY_LABEL.finditer(question):
        label = match["items"].casefold()
        if is_stop_term(match["word"].casefold()) or _OTHERWISE.fullmatch(match["word"]):
            continue
        yield Phrase(
            SECTION, *match.span(), number=_number(label), label=label, word=match["word"].casefold()
        )


def _named_structures(question: str) -> Iterator[Phrase]:
    """Yield tables and sections that are named by words before or after."""
    for match in _NAMED_TABLE.finditer(question):
        word = "table" if match["noun"].casefold().startswith("table") else "sheet"
        yield Phrase(TABLE, *match.span("noun"), name=match["name"], word=word)
    for match in _SOME_TABLE.finditer(question):
        word = "table" if match["noun"].casefold().startswith("table") else "sheet"
        yield Phrase(TABLE, match.start("noun"), match.end(), name=match["name"], at_end=True, word=word)
    for match in _NAMED_SECTION.finditer(question):
        yield Phrase(SECTION, match.start(), match.start("name"), name=match["name"])
    for match in _QUOTED.finditer(question):
        kind = TABLE if match["noun"].casefold().startswith("table") else SECTION
        yield Phrase(kind, match.start(), match.end(), name=match["name"], word="heading")
    for match in _SOME_SECTION.finditer(question):
        yield Phrase(SECTION, match.start("noun"), match.end(), name=match["name"], at_end=True)
    for match in _UNDER.finditer(question):
        if match["heading"] or match["name"].lstrip("\"“'‘")[:1].isupper() or match["name"][:1] in "\"“'‘":
            yield Phrase(SECTION, match.start(), match.start("name"), name=match["name"], word="heading")
    for match in _KNOWN_SECTION.finditer(question):
        yield Phrase(SECTION, *match.span("name"), name=match["name"], word="part", whole=True)
    for match in _SHOWN.finditer(question):
        for kind in (SECTION, TABLE):
            yield Phrase(kind, *match.span("name"), name=match["name"], word="part", whole=True)


def _whole_documents(question: str) -> Iterator[Phrase]:
    for match in _WHOLE.finditer(question):
        group = next(name for name in match.groupdict() if match[name] is not None)
        name = _MANNER.sub("", match[group])
        yield Phrase(DOCUMENT, match.start(group), match.start(group) + len(name), name=name, whole=True)


def _items(text: str, ranges: bool = True) -> Iterator[tuple[int | None, str]]:
    """Yield the number and label of each item of a list such as "3, 5-7 and ix"."""
    pieces = re.split(r"\s*(?:,\s*and\b|,|\band\b|&|\bor\b)\s*", text, flags=re.IGNORECASE)
    for piece in pieces:
        piece = re.sub(r"^(?:on\s+)?(?:[a-z]{2,}\.?\s+)(?=\S)", "", piece.strip(), flags=re.IGNORECASE)
        ends = re.split(_TO, piece, flags=re.IGNORECASE) if ranges else [piece]
        first, last = _number(ends[0]), _number(ends[-1])
        if len(ends) == 2 and first is not None and last is not None and 0 < last - first < 50:
            yield from ((number, str(number)) for number in range(first, last + 1))
        else:
            for end in ends:
                folded = end.casefold().strip(" .")
                yield _number(folded), str(_NUMBERS.get(folded, folded))


def _number(text: str) -> int | None:
    """Return the value of digits, a number word or a Roman numeral, else None."""
    folded = text.casefold()
    if folded.isdigit():
        return int(folded)
    if folded in _NUMBERS:
        return _NUMBERS[folded]
    return parse_roman(folded)


def parse_roman(text: str) -> int | None:
    """Return the value of a Roman numeral up to 39, else None.

    >>> parse_roman("xiv"), parse_roman("six")
    (14, None)
    """
    if not text or not re.fullmatch(_ROMAN, text, re.IGNORECASE):
        return None
    values = [{"i": 1, "v": 5, "x": 10}[letter] for letter in text.casefold()]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def _ordinal(text: str) -> int:
    folded = text.casefold()
    if folded in {"cover", "title"}:
        return 1
    if folded.startswith("second") and folded.endswith("last"):
        return -2
    return _ORDINALS.get(folded) or int(re.sub(r"\D", "", folded))
