"""A grammar of questions about the structure of documents, read by recursive descent without a model.

A question is parsed into a :class:`Query`: an operation over :class:`Selector` values, each of which names a kind of
structure by number, label or name, within another structure, after or before one, in a document::

    question  = count | list | locate | exists | neighbour | changes | show
    count     = "how many" NOUNS there? inside* END | "how long is" inside END
    list      = ("which" | "what" | "list") NOUNS there? inside* END
              | ("which" | "what") DOCUMENTS have ("no")? selection END
    locate    = ("which" | "what") "page" inside? (holds | "is") words | ... | "where in" document "is" words
    exists    = ("is" | "are") "there" a selection END | ("does" | "do") document have a selection END
    neighbour = ("which" | "what") NOUN? ("comes")? ("after" | "before") selection END
    changes   = "what changed between" document "and" document | ...
    show      = (selection | any other word)*

    selection = "the"? (numbers | ordinals | relations | bare) (IN selection | IN document)?
    numbers   = NOUN ("no.")? LABEL ((","|"and"|"to") NOUN? LABEL)*      "pages 2 to 4", "Item 1A", "p3"
    ordinals  = ORDINAL NUMBER? NOUN                                     "the last two tables"
    relations = NOUN ("after" | "before") selection                      "the page after page 3"

Only *show* skips words: the other productions must account for the whole question, so that "How many pages did Ames
fill?" counts nothing. Whatever is parsed must still exist in a document (:mod:`clew.retrieve.structure.resolver`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from clew.core.text import is_stop_term
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE

Operation = Literal["show", "count", "list", "locate", "exists", "neighbour", "changes", "longest"]


@dataclass(frozen=True, slots=True)
class Selector:
    """What a question says of a structure; ``start`` and ``end`` are the range of its words in the question.

    ``number`` counts pages, tables, rows or sections of a document (or of ``within``), negative from the end.
    ``label`` is a printed label in lower case ("2", "iv", "3.2", "1a"), and ``word`` the word before it ("section",
    "item"). ``name`` are words that contain the name: at their start, at their end (``at_end``), or as a whole
    (``whole``; ``word`` is ``part`` for a structure that is called by its name alone). ``anchor`` is the structure
    ``relation`` (``after`` or ``before``) which this one stands. ``document`` has the words that name the document,
    ``owned`` where they follow "of". ``words`` are the selector's words where a model read the question.
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
    within: Selector | None = None
    relation: Literal["", "after", "before"] = ""
    anchor: Selector | None = None
    document: str = ""
    owned: bool = False
    words: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it is no more than "the table"."""
        return self.kind in {TABLE, ROW} and not (
            self.label or self.name or self.number or self.within or self.anchor
        )


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question.

    ``selectors`` are what it points at: the places that *count* and *list* look into, the structure that *locate* and
    *exists* look for. ``kind`` and ``word`` are the kind of structure that is counted or listed, and the word for it
    ("chapter"). ``text`` is what *locate* looks for, in words, and ``document`` the words for the document.
    ``negated``: documents without it are listed. ``is_pure``: a *show* says nothing beside its selectors.
    """

    operation: Operation
    selectors: tuple[Selector, ...] = ()
    kind: str = ""
    word: str = ""
    text: str = ""
    document: str = ""
    negated: bool = False
    is_pure: bool = False


#: What a question that names no structure is parsed as.
ABOUT_CONTENT = Query("show")


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its range in the question: ``quote``, ``file``, ``number``, ``word``, ``possessive`` or
    ``mark``."""

    sort: str
    text: str
    start: int
    end: int

    @property
    def lowercase(self) -> str:
        """The text in lower case."""
        return self.text.casefold()


#: A file name, as a pattern. None begins within another name or its suffixes: there it was tried from the start.
FILE_NAME = (
    r"(?<!\w[.&-])\w[\w&-]*(?:\.[\w-]+)*"
    r"\.(?:pdf|docx?|xlsx?|csv|tsv|md|txt|html?|json|xml|rtf|odt|epub|pptx?)\b"
)
_TOKEN = re.compile(
    r"(?P<quote>[“\"][^”\"]{2,80}[”\"]|(?<!\w)[‘'][^’']{2,80}[’'](?!\w))"
    rf"|(?P<file>{FILE_NAME})"
    r"|(?P<ordinal>\d{1,9}(?:st|nd|rd|th)\b)"
    r"|(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)*(?:[a-z](?![a-z\d]))?)"
    r"|(?P<possessive>['’]s?(?!\w))"
    r"|(?P<word>[^\W\d_]+(?:&[^\W\d_]+)*)"
    r"|(?P<mark>\S)",
    re.IGNORECASE,
)


#: A longer number is none of a page or a section.
_MAX_DIGITS = 9


def tokenize(question: str) -> list[Token]:
    """Return the tokens of a question. A file name and a quotation are one token each."""
    return [Token(match.lastgroup or "", match[0], *match.span()) for match in _TOKEN.finditer(question)]


# The lexicon

_SECTION_WORDS = frozenset(
    "section chapter item part article appendix annex clause exhibit schedule note attachment paragraph".split()
)
_NOUNS = {
    **dict.fromkeys(("page", "p", "pp", "pg", "pgs"), PAGE),
    **dict.fromkeys(("table", "sheet", "worksheet", "spreadsheet"), TABLE),
    "row": ROW,
    **dict.fromkeys((*_SECTION_WORDS, "sec", "subsection", "heading"), SECTION),
}
_DOCUMENT_NOUNS = frozenset("document file report filing paper pdf".split())
#: Documents by their sort, whose length is a number of pages.
_LONG_NOUNS = _DOCUMENT_NOUNS | frozenset(
    "contract agreement lease charter book manual article minute letter memo memorandum thesis study release "
    "statement catalogue catalog spreadsheet workbook presentation policy licence license act chapter section "
    "appendix annex 10k".split()
)
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
) | {"last": -1, "final": -1, "closing": -1, "penultimate": -2, "opening": 1, "cover": 1, "title": 1}
_ROMAN = re.compile(r"(?:x{0,3}(?:ix|iv|v?i{1,3}|v)|x{1,3})", re.IGNORECASE)
_DETERMINERS = ("the", "this", "that", "a", "an", "any", "its", "their", "all", "each", "every")
_INSIDE = ("in", "of", "from", "within", "inside", "on", "under", "for", "below", "beneath")
#: Words that end the name of a document.
_ENDS_NAME = frozenset(
    "say says show shows list lists tell tells describe describes mention mentions state states cover covers contain "
    "contains give gives discuss discusses about regarding concerning do does did what how which who when where why "
    "is are was were has have had compare summarise summarize differ differs with to from against than that for on "
    "by versus vs please start starts begin begins appear appears together altogether exist and holds hold includes "
    "include deals talks talk reports".split()
)
#: What ends the name of a document behind that of a part of it: a name may have these words.
_ENDS_OWNER = _ENDS_NAME - frozenset("for on by and with to that about".split())
_AFTER = ("after", "following", "follows", "behind")
_BEFORE = ("before", "preceding", "precedes")
#: What a question begins with that asks for a number, a time, a person, a place, a reason, or yes or no.
_ASKS_CONTENT = frozenset(
    "how when who whom whose where why is are was were does do did must may can could shall should will would has "
    "have had".split()
)
_SEATS = frozenset("at around under beneath on onto to from".split())
_HOLDS = (
    "holds|hold|has|have|contains|contain|shows|show|gives|give|lists|list|mentions|mention|covers|cover|discusses|"
    "discuss|describes|describe|talks about|talk about|deals with|states|state|says|say|reports|report|includes"
)
_NEVER_IN_PLACE = frozenset(
    "did does do was were is are will would can could may to what which how where who when why between".split()
)
#: "where does Item 7 start", "on which page does it appear".
_PLACING_VERBS = frozenset("start starts begin begins appear appears stand stands".split())
_PLACING_WORDS = _PLACING_VERBS | {"on", "printed", "shown"}
#: What a table is not, and a page is not.
_NOT_TABLES = frozenset("tennis talk talks top tops cloth leg legs wine".split())
_NOT_PAGES = frozenset("boy boys girl girls turner turners".split())
_NOT_BEFORE_PAGE = frozenset("was became as his her their web home".split())
#: "Room 2", "Regulation 17" may start a heading; these words never do.
_NEVER_LABELLED = frozenset(
    "number through until about over than least most line column figure january february march april may june july "
    "august september october november december until and from quarter fiscal year form type phase level".split()
)


def singular(word: str) -> str:
    """Return a noun of the lexicon in the singular: "appendices" and "pages" as "appendix" and "page"."""
    folded = word.casefold()
    irregular = {
        "appendices": "appendix",
        "appendixes": "appendix",
        "annexes": "annex",
        "pp": "page",
        "p": "page",
    }
    if folded in irregular:
        return irregular[folded]
    return {"pg": "page", "pgs": "page", "sec": "section"}.get(folded) or (
        folded[:-1] if folded.endswith("s") and folded not in _NOUNS else folded
    )


def noun_kind(word: str) -> str:
    """Return the kind of structure that a word stands for, "" for another word."""
    folded = word.casefold()
    return _NOUNS.get(folded) or _NOUNS.get(singular(folded), "")


#: Words that a question about content hardly uses, unlike "part", "note" and "item" ...
_STRUCTURE_WORDS = frozenset(
    "page table row section subsection chapter appendix annex heading worksheet spreadsheet footnote document pdf "
    "pages tables rows sections subsections chapters appendices annexes headings worksheets spreadsheets footnotes "
    "documents pdfs".split()
)
#: Words for places in documents in other languages than English, of which the grammar reads none.
_FOREIGN_PLACE = re.compile(
    r"\b(?:seiten?|tabellen?|abschnitt\w*|kapitel\w*|anhang\w*|tableaux?|chapitres?|p[áa]gin\w+|tablas?|tabul\w+"
    r"|secci[óo]n\w*|cap[íi]tulo\w*|anexos?|sezion\w*|capitol[oi]|allegat[oi]|tabela\w*|sekcj\w*|stron[aęyi]\w*"
    r"|bladzijde\w*|страниц\w*|таблиц\w*|раздел\w*|глав\w*)\b|[页頁表節章节]|ページ|페이지",
    re.IGNORECASE,
)


def may_ask_structure(question: str) -> bool:
    """Return whether a question that the grammar does not read may be about structure all the same: it has a word for
    a structure, or another such word with a number ("note 5").

    >>> may_ask_structure("What stands at the foot of the page with the tolls?")
    True
    >>> may_ask_structure("Who invented the periodic table?"), may_ask_structure("Who wrote a note to Ames?")
    (False, False)
    """
    if _FOREIGN_PLACE.search(question):
        return True
    tokens = tokenize(question)
    for place, token in enumerate(tokens):
        before = tokens[place - 1].lowercase if place else ""
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        following = after.lowercase if after else ""
        if token.lowercase in _STRUCTURE_WORDS:
            kind = noun_kind(token.text)
            odd = {PAGE: _NOT_PAGES, TABLE: _NOT_TABLES}.get(kind, frozenset())
            if following not in odd and before not in {"periodic", "title", "home", "web"}:
                return True
        elif token.sort == "word" and len(token.text) > 2 and noun_kind(token.text) and after is not None:
            is_label = after.sort == "number" or (_ROMAN.fullmatch(after.text) and after.text.isupper())
            if is_label:
                return True
    return False


def parse_question(question: str) -> tuple[Query, ...]:
    """Return the parts of a question that are about structure; none for a question about content.

    "Which tables are there in A, and what is in section 2 of B?" is two questions where the first is no ``show``.
    """
    query = _Parser(question).parse()
    if query.operation == "show" and (joint := _JOINT.search(question)):
        first = _Parser(question[: joint.start()]).parse()
        if first.operation != "show":
            offset = " " * joint.end("joint")
            return first, *parse_question(offset + question[joint.end("joint") :])
    return () if query == ABOUT_CONTENT else (query,)


_JOINT = re.compile(r"(?P<joint>,?\s+and\s+)(?=(?:what|which|how|where|on\s+w|is|are|does)\b)", re.IGNORECASE)


class _Parser:
    """The parser of one question. A production returns None, and takes nothing, where it does not apply."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.tokens = [token for token in tokenize(question) if token.text not in {"?", "!"}]
        self.position = 0

    def parse(self) -> Query:
        for production in (
            self.count,
            self.list_structures,
            self.list_documents,
            self.neighbour,
            self.locate,
            self.exists,
            self.changes,
            self.longest,
        ):
            self.position = 0
            self.take("please")
            if (query := production()) is not None:
                return query
        self.position = 0
        selectors = tuple(self.show())
        return Query("show", selectors, is_pure=self.is_pure(selectors))

    def is_pure(self, selectors: Sequence[Selector]) -> bool:
        spans = [(selector.start, selector.end) for selector in selectors if selector.kind == PAGE]
        return bool(spans) and all(
            token.sort in {"mark", "possessive"}
            or token.lowercase in _ENDS_NAME
            or token.lowercase in _SHOW_VERBS.split("|")
            or is_stop_term(token.lowercase)
            or any(start <= token.start < end for start, end in spans)
            for token in self.tokens
        )

    # Terminals

    @property
    def token(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def take(self, alternatives: str) -> str:
        """Take the first of the alternatives, each one or more words, that comes next; "" if none does."""
        for alternative in alternatives.split("|"):
            words = alternative.split()
            following = self.tokens[self.position : self.position + len(words)]
            if [token.lowercase for token in following] == words:
                self.position += len(words)
                return alternative
        return ""

    def take_noun(self, kinds: Sequence[str] = (PAGE, TABLE, ROW, SECTION)) -> Token | None:
        token = self.token
        if token is None or token.sort != "word" or noun_kind(token.text) not in kinds:
            return None
        self.position += 1
        return token

    def at_end(self) -> bool:
        self.take("please")
        return all(
            token.text in ".,;:" or token.lowercase == "please" for token in self.tokens[self.position :]
        )

    def text_between(self, first: int, last: int) -> str:
        """Return the question's words from token ``first`` to before token ``last``."""
        if first >= last:
            return ""
        return self.question[self.tokens[first].start : self.tokens[last - 1].end]

    def number(self) -> int | None:
        token = self.token
        if token is None:
            return None
        value = _NUMBERS.get(token.lowercase)
        digits = token.text.replace(",", "")
        if value is None and token.sort == "number" and digits.isdigit() and len(digits) <= _MAX_DIGITS:
            value = int(digits)
        if value is not None and not self.is_form_name():
            self.position += 1
            return value
        return None

    def is_form_name(self) -> bool:
        """Return whether the number that comes next belongs to a word such as "10-K"."""
        here, following = self.tokens[self.position], self.tokens[self.position + 1 : self.position + 3]
        return (
            [token.sort for token in following] == ["mark", "word"]
            and following[0].text in "-–"
            and here.end == following[0].start
            and following[0].end == following[1].start
        )

    def label(self, letters: bool) -> tuple[int | None, str] | None:
        """Take a printed label: its number, None if it is none, and its form. ``letters``: a lone capital is one."""
        start = self.position
        if (value := self.number()) is not None:
            return value, str(value)
        token = self.token
        if token is None or (token.sort == "number" and self.is_form_name()):
            return None
        self.position += 1
        if token.sort == "number":
            return None, token.lowercase
        after = self.token
        if (
            token.sort == "word"
            and _ROMAN.fullmatch(token.text)
            and (token.text.isupper() or token.text != "i")
        ):
            return parse_roman(token.text), token.lowercase
        if token.sort == "word" and len(token.text) == 1 and letters:
            # "A.1", "A1", or "Appendix B".
            dot = after is not None and after.text in {".", "-"} and after.start == token.end
            digits = self.tokens[self.position + dot] if self.position + dot < len(self.tokens) else None
            if digits is not None and digits.sort == "number" and digits.start == token.end + dot:
                self.position += 1 + dot
                return None, f"{token.lowercase}{'.' * dot}{digits.lowercase}"
            if (
                token.text.isupper()
                and token.text not in {"I"}
                and not (after and after.sort == "possessive")
            ):
                return None, token.lowercase
        self.position = start
        return None

    def labels(self, noun: Token, kind: str) -> list[tuple[int | None, str]]:
        """Take a list of labels such as "3, 5-7 and ix"."""
        self.take("number|no|nr|#")
        if ((token := self.token) is not None and token.text == "." and kind in {PAGE, SECTION}) or (
            token is not None
            and token.text == "."
            and self.tokens[self.position - 1].lowercase in {"no", "nr"}
        ):
            self.position += 1
        items: list[tuple[int | None, str]] = []
        while (item := self.label(kind in {SECTION, TABLE})) is not None:
            items.append(item)
            start = self.position
            if self.take("-|–|—|to|through|until"):
                dash = self.tokens[start].text in "-–—"
                plural = kind in {PAGE, ROW} or not dash or noun.lowercase.endswith("s")
                upper = self.label(False)
                if upper and upper[0] and item[0] and plural and 0 < upper[0] - item[0] < 50:
                    items += [(value, str(value)) for value in range(item[0] + 1, upper[0] + 1)]
                elif upper and dash and not plural:
                    items[-1] = (None, f"{item[1]}-{upper[1]}")
                else:
                    self.position = start
                    break
            start = self.position
            if not self.take(", and|,|and|&|or"):
                break
            self.take("on")
            repeated = self.token
            if (
                repeated is not None
                and noun_kind(repeated.text) == kind
                and (kind != SECTION or singular(repeated.text) == singular(noun.text))
            ):
                self.position += 1
                if self.token is not None and self.token.text == ".":
                    self.position += 1
            mark = self.position
            if self.label(kind == SECTION) is None or self.next_is_other_noun():
                self.position = start
                break
            self.position = mark
        return items

    def next_is_other_noun(self) -> bool:
        token = self.token
        return token is not None and bool(noun_kind(token.text))

    def ordinal(self) -> int | None:
        if self.take("second - to - last|second to last"):
            return -2
        token = self.token
        if token is None:
            return None
        value = int(token.text[:-2]) if token.sort == "ordinal" else _ORDINALS.get(token.lowercase)
        if value is not None:
            self.position += 1
        return value

    # Selections

    def selection(self) -> list[Selector] | None:
        """Take a selection with what it stands in; several selectors for a list of labels."""
        start = self.position
        for production in (self.relations, self.numbers, self.ordinals, self.bare):
            self.position = start
            selectors = production(start)
            if selectors:
                return self.with_place(selectors)
        self.position = start
        return None

    def determiner(self) -> str:
        return self.take("|".join(_DETERMINERS))

    def numbers(self, start: int) -> list[Selector] | None:
        self.determiner()
        if (token := self.token) is not None and token.text == "§":
            self.position += 1
            noun, kind, word = token, SECTION, "section"
        else:
            noun_or_none = self.take_noun() or self.take_labelled_word()
            if noun_or_none is None:
                return None
            noun = noun_or_none
            kind, word = noun_kind(noun.text) or SECTION, singular(noun.text)
        abbreviated = noun.lowercase in {"p", "pp", "pg", "pgs"}
        if abbreviated and noun.lowercase != "pg" and noun.text.isupper():
            return None
        if kind == TABLE and self.is_seated(start):
            return None
        first = self.position
        items = self.labels(noun, kind)
        if not items:
            return None
        if kind == SECTION and not noun_kind(noun.text) and noun.text != "§":
            # Any other word before a label must be followed by digits or capitals: "Room 2", "Book IV".
            text = self.tokens[first].text
            if not (text[0].isdigit() or set(text) <= set("IVX")) or len(items) > 1 or len(text) > 3:
                return None
        if (
            word in {"part", "item", "note"}
            and noun.text.islower()
            and not self.is_heading(start, items[0][1])
        ):
            return None
        if kind == TABLE and items[0][1] in {"i", "v", "x"} and not noun.text[0].isupper():
            return None
        if kind == TABLE and word != "table":
            word = "sheet"
        end = self.tokens[self.position - 1].end
        span = (self.tokens[start].start, end)
        selectors = []
        for number, label in items:
            # "page iv" is the printed label; "page 4" is the fourth page, whatever is printed on it.
            printed = kind == PAGE and number is not None and str(number) != label
            selectors.append(Selector(kind, *span, None if printed else number, label, word))
        return selectors

    def is_heading(self, start: int, label: str) -> bool:
        """Return whether "note 5", in lower case, is the heading of a document that is named behind it, or all that
        is said. "A note 5 pages long" is none."""
        behind = self.position
        placed = self.with_place_of_document([Selector(SECTION, 0, 0)])[0].document
        self.position = behind
        alone = not start and behind == len(self.tokens)
        return bool(placed or alone) and not label.isalpha()

    def take_labelled_word(self) -> Token | None:
        token = self.token
        if token is None or token.sort != "word" or len(token.text) < 3:
            return None
        following = self.tokens[self.position + 1 : self.position + 2]
        if is_stop_term(token.lowercase) or token.lowercase in _NEVER_LABELLED or not following:
            return None
        self.position += 1
        return token

    def is_seated(self, start: int) -> bool:
        """Return whether the table at token ``start`` is one that people sit at."""
        before = self.tokens[start - 1].lowercase if start else ""
        verb = self.tokens[start - 2].lowercase if start > 1 else ""
        return (
            before in _SEATS
            and not (before == "on" and verb in {"based", "is", "whats"})
            and before != "from"
        )

    def ordinals(self, start: int) -> list[Selector] | None:
        self.determiner()
        named = self.tokens[self.position].lowercase if self.position < len(self.tokens) else ""
        first = self.ordinal()
        if first is None:
            return None
        count = self.number() or 1
        noun = self.take_noun()
        if noun is None:
            return None
        kind, word = noun_kind(noun.text), singular(noun.text)
        following = self.token.lowercase if self.token else ""
        before = self.tokens[start - 1].lowercase if start else ""
        if named in {"cover", "title"} and kind != PAGE:
            return None
        if kind == PAGE and (
            following in _NOT_PAGES
            or following == "at"
            or before in _NOT_BEFORE_PAGE
            or noun.lowercase == "p"
        ):
            return None
        if kind == TABLE and (following in _NOT_TABLES or following == "at" or self.is_seated(start)):
            return None
        if kind == SECTION and word not in {"section", "chapter"}:
            return None
        if kind == ROW and following not in _INSIDE:
            return None
        span = (self.tokens[start].start, noun.end)
        if kind == TABLE and word != "table":
            word = "sheet"
        numbers = range(first, first + count) if first > 0 else range(first - count + 1, first + 1)
        selector = Selector(kind, *span, word=word)
        behind = self.position
        if count == 1 and (relation := self.relation()) and (anchor := self.anchor()):
            # "the first table after page 3"
            end = self.tokens[self.position - 1].end
            return [replace(selector, number=first, relation=relation, anchor=anchor, end=end)]
        self.position = behind
        return [replace(selector, number=number) for number in numbers]

    def relation(self) -> Literal["", "after", "before"]:
        self.take("right|just|immediately|directly|that comes|which comes|that")
        if self.take("|".join(_AFTER)):
            return "after"
        if self.take("|".join(_BEFORE)):
            return "before"
        return ""

    def anchor(self) -> Selector | None:
        """Take what something stands after or before: a selection, or a name up to the name of the document."""
        first = self.position
        self.take("the")
        chosen = self.numbers(self.position) or None
        if chosen is None:
            self.position = first
            self.take("the")
            chosen = self.ordinals(self.position)
        if chosen and len(chosen) == 1:
            # "Item 2. Properties in the Verizon 10-K": the heading goes on after its label.
            while (token := self.token) is not None and token.lowercase not in {"in", "of", "from", ","}:
                if noun_kind(token.text) or token.lowercase in _ENDS_NAME:
                    break
                self.position += 1
            return chosen[0]
        self.position = first
        name = self.name()
        if not name:
            return None
        span = (self.tokens[first].start, self.tokens[self.position - 1].end)
        return Selector(SECTION, *span, name=name, word="part", whole=True)

    def name(self) -> str:
        """Take words up to the name of a document or the end, less a noun at their end ("the Family section")."""
        self.determiner()
        first = self.position
        while (token := self.token) is not None:
            inside = token.lowercase in {"in", "of", "from", "within"} and self.position > first
            if token.lowercase in _ENDS_NAME or (inside and self.names_document_after(self.position + 1)):
                break
            if token.text in ".,;:":
                break
            self.position += 1
        text = self.text_between(first, self.position)
        words = text.split()
        return " ".join(words[:-1]) if len(words) > 1 and noun_kind(words[-1]) == SECTION else text

    def names_document_after(self, position: int) -> bool:
        """Return whether the words from a token to the end may name a document: no other "in" or "of" follows."""
        rest = [token.lowercase for token in self.tokens[position:]]
        return bool(rest) and not any(word in {"in", "from", "within", "of"} for word in rest)

    def relations(self, start: int) -> list[Selector] | None:
        """Take "the page after page 3"."""
        self.determiner()
        self.take("next|previous|very next")
        noun = self.take_noun((PAGE, TABLE, SECTION, ROW))
        if noun is None or not (relation := self.relation()):
            return None
        anchor = self.anchor()
        if anchor is None:
            return None
        kind, word = noun_kind(noun.text), singular(noun.text)
        span = (self.tokens[start].start, self.tokens[self.position - 1].end)
        return [Selector(kind, *span, word=word, relation=relation, anchor=anchor)]

    def bare(self, start: int) -> list[Selector] | None:
        """Take "the table" where it stands in something, or something is said to be in it."""
        determiner = self.determiner()
        if not determiner and start and self.tokens[start - 1].sort == "possessive":
            determiner = "the"
        noun = self.take_noun((TABLE,))
        if noun is None or singular(noun.text) != "table" or noun.text.isupper():
            return None
        following = self.token.lowercase if self.token else ""
        seated = self.is_seated(start)
        says = following in _ENDS_NAME and following not in {
            "with",
            "to",
            "from",
            "for",
            "by",
            "that",
            "about",
            "on",
        }
        page = self.on_page()
        span = (self.tokens[start].start, noun.end)
        selector = Selector(TABLE, *span, word="table")
        before = [token.sort for token in self.tokens[max(start - 2, 0) : start]]
        if page or before == ["number", "possessive"]:
            return [selector]
        if seated or not determiner or following in _NOT_TABLES:
            return None
        if (says and following not in {"was", "were", "did", "had", "who", "when", "and"}) or (
            following in {"in", "of"} and self.file_follows()
        ):
            return [selector]
        return None

    def on_page(self) -> bool:
        """Return whether "on page 4" comes next; takes nothing."""
        start = self.position
        self.take("on|in|from|at|of|(")
        self.determiner()
        first = self.position
        follows = bool(self.numbers(first))
        if not follows:
            self.position = first
            follows = bool(self.ordinals(first))
        named = noun_kind(self.tokens[first].text) if first < len(self.tokens) else ""
        self.position = start
        return follows and (
            named == PAGE or any(noun_kind(token.text) == PAGE for token in self.tokens[first:][:3])
        )

    def file_follows(self) -> bool:
        return any(token.sort == "file" for token in self.tokens[self.position : self.position + 3])

    def with_place(self, selectors: list[Selector]) -> list[Selector]:
        """Take "on page 4" and "of the lease" behind a selection; each may come once."""
        start = self.position
        if selectors[-1].kind in {TABLE, ROW} and (page := self.page_behind()):
            selectors = [replace(selector, within=page, end=page.end) for selector in selectors]
            return self.with_place_of_document(selectors)
        self.position = start
        preposition = self.take("|".join(_INSIDE))
        if preposition and selectors[-1].kind != PAGE:
            inner = self.selection()
            if inner and len(inner) == 1 and inner[0].kind in {TABLE, SECTION, PAGE}:
                outer = inner[0]
                return [
                    replace(selector, within=outer, end=outer.end, document=outer.document, owned=outer.owned)
                    for selector in selectors
                ]
        self.position = start
        return self.with_place_of_document(selectors)

    def page_behind(self) -> Selector | None:
        """Take "on page 4", "(page 4)" or "on the last page" behind a table."""
        self.take(",")
        self.take("(")
        self.take("which is|that is")
        self.take("at the top|at the bottom|at the end|near the top|towards the end")
        self.take("on|in|from|at|of")
        self.determiner()
        start = self.position
        page = self.numbers(start)
        if page is None:
            self.position = start
            page = self.ordinals(start)
        return page[0] if page and len(page) == 1 and page[0].kind == PAGE else None

    def with_place_of_document(self, selectors: list[Selector]) -> list[Selector]:
        start = self.position
        self.take(",")
        preposition = self.take("in|of|from|within|inside|for|on")
        words = self.document_words() if preposition else ""
        if not words:
            self.position = start
            return selectors
        return [replace(selector, document=words, owned=preposition == "of") for selector in selectors]

    def document_words(self) -> str:
        """Take the words that name a document, up to a verb, a preposition or the next selection."""
        first = self.position
        self.take("the")
        while (token := self.token) is not None:
            if token.text in ",;:()" or (
                token.lowercase in _ENDS_NAME and token.lowercase not in {"for", "and", "by"}
            ):
                break
            if token.text == "." and self.position + 1 == len(self.tokens):
                break
            if token.lowercase in {"and", "by", "for"} and (token.lowercase != "and" or self.ends_at_and()):
                break
            if token.lowercase in {"in", "on", "under"} and self.position > first + 1:
                break
            self.position += 1
            if token.sort == "file":
                break
        return self.text_between(first, self.position)

    def ends_at_and(self) -> bool:
        """Return whether another selection, a number or a verb follows the "and" that comes next."""
        start = self.position
        self.position += 1
        follows = self.number() is not None or self.selection() is not None
        self.position = start
        following = self.tokens[start + 1].lowercase if start + 1 < len(self.tokens) else ""
        return follows or following in _ENDS_NAME or following in {"page", "table"}

    # Questions

    def there(self) -> bool:
        return bool(
            self.take(
                "are there|is there|exist|do you see|there are|do i have|do we have|have i got|i have|are"
            )
        )

    def noun_phrase(self, kinds: Sequence[str]) -> tuple[str, str] | None:
        """Take "pages", "of my documents", "the chapters": a kind and the word for it."""
        self.take("of my|of these|of the|of all|my|all the|all|the|different")
        token = self.token
        if token is None or token.sort != "word":
            return None
        if DOCUMENT in kinds and singular(token.text) in _DOCUMENT_NOUNS and token.lowercase.endswith("s"):
            self.position += 1
            return DOCUMENT, "document"
        noun = self.take_noun(kinds)
        return None if noun is None else (noun_kind(noun.text), singular(noun.text))

    def places(self) -> tuple[Selector, ...] | None:
        """Take everything up to the end as places: "in table 2 of the report", "does the lease have"; () for none."""
        if self.at_end():
            return ()
        if self.take("does|do|is|are"):
            if self.take("all my documents have|my documents have|all documents have|they all have"):
                self.take("together|altogether|in total|in all")
                return () if self.at_end() else None
            first = self.position
            while self.token is not None and not self.take(
                "have|contain|hold|include|list|comprise|consist of"
            ):
                self.position += 1
            if self.tokens[self.position - 1].lowercase not in {
                "have",
                "contain",
                "hold",
                "include",
                "list",
                "comprise",
                "of",
            } and not (first and self.tokens[first - 1].lowercase in {"is", "are"}):
                return None
            held = self.tokens[self.position - 1].lowercase in {
                "have",
                "contain",
                "hold",
                "include",
                "list",
                "comprise",
            }
            last = self.position - 1 if held else self.position
            behind = self.position
            self.take("together|altogether|in total|in all")
            if not self.at_end():
                return None
            self.position = behind
            return self.place_of(first, last)
        if not self.take("in|of|on|under|within|inside|from|below|has"):
            return None
        first = self.position
        self.position = len(self.tokens)
        last = len(self.tokens)
        while last > first and self.tokens[last - 1].text in ".,":
            last -= 1
        return self.place_of(first, last)

    def place_of(self, first: int, last: int) -> tuple[Selector, ...] | None:
        """Return what the tokens from ``first`` to before ``last`` name: a selection in a document, or a document,
        perhaps with the name of a section before it. None for words that are no name."""
        if first >= last:
            return None
        whole, position = self.tokens, self.position
        self.tokens, self.position = whole[:last], first
        try:
            selectors = self.selection()
            if selectors and self.at_end():
                return tuple(selectors)
            self.position = first
            words = self.text_between(first, last)
            folded = [token.lowercase for token in self.tokens[first:last]]
            verbs = _NEVER_IN_PLACE
            if verbs & set(folded):
                return None
            span = (self.tokens[first].start, self.tokens[last - 1].end)
            if self.tokens[last - 1].sort == "word" and noun_kind(self.tokens[last - 1].text) == TABLE:
                # "the museum catalogue's table"
                owner = re.sub(r"['’]s?$", "", self.text_between(first, last - 1).strip())
                return (Selector(TABLE, *span, word="table", document=owner),)
            return (Selector(DOCUMENT, *span, name=words, document=words),)
        finally:
            self.tokens, self.position = whole, position

    def count(self) -> Query | None:
        """Parse "how many tables are there in the lease" and "how long is the lease"."""
        if self.take("how long is|how long are"):
            first = self.position
            if not any(
                token.sort == "file" or token.text == "K" or singular(token.text) in _LONG_NOUNS  # a 10-K
                for token in self.tokens[first:]
            ):
                return None  # "How long is the Bittern?" is about a ship
            places = self.place_of(first, self.last_word())
            self.position = len(self.tokens)
            return Query("count", places, PAGE, "page") if places else None
        self.take("what is the|whats the|tell me the|give me the")
        if not self.take("how many|number of|total number of"):
            return None
        noun = self.noun_phrase((PAGE, TABLE, ROW, SECTION, DOCUMENT))
        if noun is None:
            return None
        self.take("long")
        there = self.there()
        self.take("there")
        if there and self.at_end():
            return Query("count", (), *noun)
        if not there and noun[0] == DOCUMENT:
            return None
        if (
            there
            and self.token is not None
            and self.token.lowercase not in _INSIDE
            and self.tokens[self.position - 1].lowercase == "are"
        ):
            return None
        places = self.places_or_document()
        return None if places is None else Query("count", places, *noun)

    def places_or_document(self) -> tuple[Selector, ...] | None:
        start = self.position
        if self.take("is|are") and self.token is not None and self.token.lowercase not in _INSIDE:
            # "how many pages is the lease"
            places = self.place_of(self.position, self.last_word())
            self.position = len(self.tokens)
            return places
        self.position = start
        return self.places()

    def last_word(self) -> int:
        last = len(self.tokens)
        while last and self.tokens[last - 1].text in ".,":
            last -= 1
        return last

    def list_structures(self) -> Query | None:
        """Parse "which tables are there in the lease", "list the tables on page 5 of the lease"."""
        listed = self.take("list|name|enumerate|show me a list of|give me a list of|what are|which are")
        if not listed and not self.take("which|what"):
            return None
        noun = self.noun_phrase((PAGE, TABLE, ROW, SECTION))
        plural = noun is not None and self.tokens[self.position - 1].lowercase.endswith("s")
        if noun is None or not plural:
            return None
        if noun[0] == PAGE and not listed:
            return self.pages_with(noun)
        self.there()
        places = self.places()
        return None if places is None or (not places and noun[0] == ROW) else Query("list", places, *noun)

    def pages_with(self, noun: tuple[str, str]) -> Query | None:
        """Parse "which pages of the release have tables"."""
        self.take("in|of|from")
        first = self.position
        while self.token is not None and self.token.lowercase not in {
            "have",
            "contain",
            "hold",
            "show",
            "has",
        }:
            self.position += 1
        document = self.text_between(first, self.position)
        if not document or not self.take("have|contain|hold|show|has"):
            return None
        held = self.noun_phrase((TABLE,))
        if held is None or not self.at_end():
            return None
        return Query("list", (), *noun, text=held[1], document=document)

    def list_documents(self) -> Query | None:
        """Parse "which documents have no tables"."""
        if not self.take("which|what|list|show me"):
            return None
        noun = self.noun_phrase((DOCUMENT,))
        if noun is None:
            return None
        self.take("that|which|do i have|do we have|have i|do|are there|are here|exist")
        if self.at_end():
            return Query("list", (), *noun)
        negated = False
        if not self.take("have|contain|include|has|hold"):
            if not self.take("do not have|don ' t have|dont have|lack|without"):
                return None
            negated = True
        negated = bool(self.take("no")) or negated
        held = self.selection_or_kind()
        if held is None or not self.at_end():
            return None
        return Query("list", held, *noun, negated=negated)

    def selection_or_kind(self) -> tuple[Selector, ...] | None:
        """Take "a table", "any tables", "an Exhibit 32.2", "a schedule of equipment"."""
        self.take("a|an|any|the|some")
        start = self.position
        if chosen := self.numbers(start):
            return tuple(self.with_place(chosen))
        self.position = start
        noun = self.take_noun()
        if noun is None:
            return None
        span = (noun.start, noun.end)
        kind = noun_kind(noun.text)
        if self.take("of|on|about|titled|called|named"):
            first = self.position
            self.position = self.last_word()
            name = f"{noun.text} of {self.text_between(first, self.position)}"
            return (Selector(kind, *span, word="part", name=name, whole=True),)
        return (Selector(kind, *span, word=singular(noun.text)),)

    def longest(self) -> Query | None:
        """Parse "which of my documents is the longest"."""
        if not self.take("which|what"):
            return None
        self.take("of my|of the|of these|is the")
        size = self.take("longest|shortest")
        token = self.token
        if token is None or singular(token.text) not in _DOCUMENT_NOUNS:
            return None
        self.position += 1
        self.take("do i have|is the|has the")
        size = size or self.take("longest|shortest|most pages|fewest pages")
        self.take("do i have")
        if not size or not self.at_end():
            return None
        return Query("longest", kind=DOCUMENT, word="document", negated=size in {"shortest", "fewest pages"})

    def neighbour(self) -> Query | None:
        """Parse "which section comes after Traffic in the annual report"."""
        if not self.take("which|what"):
            return None
        noun = self.take_noun((PAGE, TABLE, SECTION))
        self.take("is it that|is|does|comes|stands|goes|is there")
        relation = self.relation()
        if not relation:
            return None
        first = self.position
        anchor = self.anchor()
        if anchor is None:
            return None
        kind = noun_kind(noun.text) if noun else anchor.kind
        word = singular(noun.text) if noun else anchor.word if anchor.word != "part" else "section"
        span = (self.tokens[0].start, self.tokens[self.position - 1].end)
        selector = Selector(kind, *span, word=word, relation=relation, anchor=anchor)
        (selector,) = self.with_place_of_document([selector])
        if not self.at_end() or (noun is None and not selector.document):
            self.position = first
            return None
        return Query("neighbour", (selector,), kind, word)

    def locate(self) -> Query | None:
        """Parse "on which page of the report is the balance sheet", "which page has Note 5", "where in X is Y"."""
        if self.take("where in|where within|whereabouts in"):
            document = self.document_words()
            if not document or not self.take(
                "is|are|can i find|do i find|does it say|do i see|can i see|will i find|could i find"
            ):
                return None
            return self.location(document)
        if self.take("where is|where are|where can i find|where do i find"):
            return self.location("", needs_document=True)
        if self.take("where does|where do"):
            # "Where does Item 7 start in the lease?" asks for a page, "Where does Ada Pell live?" for content.
            rest = {token.lowercase for token in self.tokens[self.position :]}
            return self.location("", needs_document=True) if rest & _PLACING_VERBS else None
        self.take("on")
        if not self.take("which page|what page|which pages|what pages|whats the page"):
            return None
        document = ""
        if self.take("of|in|from"):
            document = self.document_words()
        if self.take(_HOLDS):
            return self.location(document)
        if not self.take("is|are|does|do|can i find|do i find|will i find"):
            return None
        return self.location(document)

    def location(self, document: str, needs_document: bool = False) -> Query | None:
        """Take what is looked for, up to the end, less "in the report" and "start on" where these stand."""
        first, last = self.position, self.last_word()
        if first >= last:
            return None
        # "Item 7 start on in the Verizon 10-K": the verb goes, the document is what follows the last "in".
        text_end, position = last, last
        # "Where are the offices of Amcor?" asks for a place, "where are the risks in the 10-K" for a page.
        links = {"in", "within"} if needs_document else {"in", "of", "from"}
        if not document:
            for index in range(last - 1, first, -1):
                if self.tokens[index].lowercase in links:
                    text_end, position = index, index + 1
                    break
            document = self.text_between(position, last) if position < last else ""
            if not document:
                text_end = last
        while text_end > first and self.tokens[text_end - 1].lowercase in _PLACING_WORDS:
            text_end -= 1
        text = self.text_between(first, text_end)
        if not text or (needs_document and not document):
            return None
        whole, self.tokens = self.tokens, self.tokens[:text_end]
        self.position = first
        chosen = self.selection()
        complete = bool(chosen) and self.at_end()
        self.tokens, self.position = whole, last
        selectors = tuple(chosen) if chosen and complete else ()
        return Query("locate", selectors, PAGE, "page", text, document)

    def exists(self) -> Query | None:
        """Parse "is there a table on page 5 of the lease" and "does the lease have a schedule"."""
        if self.take("is there|are there"):
            held = self.selection_or_kind_in_place()
            return Query("exists", held) if held and self.at_end() else None
        if not self.take("does|do|has"):
            return None
        first = self.position
        while self.token is not None and self.token.lowercase not in {"have", "contain", "include", "hold"}:
            self.position += 1
        document = self.text_between(first, self.position)
        if not document or not self.take("have|contain|include|hold"):
            return None
        held = self.selection_or_kind()
        if held is None or not self.at_end():
            return None
        return Query("exists", tuple(replace(selector, document=document) for selector in held))

    def selection_or_kind_in_place(self) -> tuple[Selector, ...] | None:
        self.take("a|an|any|the|some")
        start = self.position
        if chosen := self.numbers(start):
            return tuple(self.with_place(chosen))
        self.position = start
        noun = self.take_noun()
        if noun is None:
            return None
        selector = Selector(noun_kind(noun.text), noun.start, noun.end, word=singular(noun.text))
        placed = self.with_place([selector])
        return tuple(placed) if placed[0].within or placed[0].document else None

    def changes(self) -> Query | None:
        """Parse "what changed between A and B"."""
        if not self.take(
            "what changed|what has changed|what is different|whats different|what are the differences|what differs|"
            "what is the difference|what are the changes|how do"
        ):
            return None
        self.take("between|in|from")
        first, last = self.position, self.last_word()
        for index in range(first + 1, last - 1):
            separators = {"and", "to", "from", "with"}
            compared = self.tokens[index].lowercase in {"compared", "versus", "vs", "against"}
            if self.tokens[index].lowercase in separators or compared:
                behind = index + 1
                if compared and self.tokens[behind].lowercase in {"to", "with"}:
                    behind += 1
                sides = (self.document_selector(first, index), self.document_selector(behind, last))
                if all(sides):
                    return Query("changes", tuple(side for side in sides if side))
        return None

    def document_selector(self, first: int, last: int) -> Selector | None:
        if first >= last:
            return None
        name = self.text_between(first, last)
        return Selector(
            DOCUMENT, self.tokens[first].start, self.tokens[last - 1].end, name=name, document=name
        )

    # Show: selections anywhere in the question, then structures that are called by names

    def show(self) -> list[Selector]:
        definite: list[Selector] = []
        while self.position < len(self.tokens):
            start = self.position
            selectors = self.selection()
            if selectors:
                definite += selectors
                definite += self.same_again(selectors[-1])
            else:
                self.position = start + 1
        definite = [
            self.on_page_before(selector, definite) if selector.is_bare else selector for selector in definite
        ]
        used = {selector.within for selector in definite}
        definite = [selector for selector in definite if selector not in used]
        covered = [(selector.start, selector.end) for selector in definite if not selector.is_bare]
        named = [
            selector
            for selector in self.named_structures()
            if not any(selector.start < end and start < selector.end for start, end in covered)
        ]
        selectors = [*definite, *named, *self.whole_documents()]
        return sorted(selectors, key=lambda selector: (selector.start, selector.end))

    def same_again(self, selector: Selector) -> list[Selector]:
        """Take "and 59 of the Pfizer 10-K" behind "pages 53 of the Adobe 10-K"."""
        again: list[Selector] = []
        while selector.document:
            start = self.position
            self.take("and|with|to|,")
            first = self.position
            number = self.number()
            if number is None or not (preposition := self.take("of|in|from")):
                self.position = start
                break
            words = self.document_words()
            if not words:
                self.position = start
                break
            span = (self.tokens[first].start, self.tokens[first].end)
            again.append(
                Selector(
                    selector.kind,
                    *span,
                    number,
                    str(number),
                    selector.word,
                    document=words,
                    owned=preposition == "of",
                )
            )
        return again

    def on_page_before(self, table: Selector, others: Sequence[Selector]) -> Selector:
        """Return "the table" within the page that stands right before it: "page 4's table"."""
        for page in others:
            between = self.question[page.end : table.start]
            if (
                page.kind == PAGE
                and page.end <= table.start
                and re.fullmatch(r"['’]?s?,?\s*(?:the\s+)?", between)
            ):
                return replace(table, within=page, start=page.start)
        return table

    def named_structures(self) -> Iterator[Selector]:
        """Yield tables and sections that are named by words before or after, and parts that are only named."""
        for index, token in enumerate(self.tokens):
            kind = noun_kind(token.text) if token.sort == "word" else ""
            if (kind in {SECTION, TABLE} and singular(token.text) in _NAMED_NOUNS) or token.lowercase in {
                "tab",
                "heading",
                "headings",
            }:
                yield from self.around_noun(index, token, kind or SECTION)
            if token.text in {"under", "beneath", "below"} or (not index and token.text == "Under"):
                yield from self.under(index)
            yield from self.known_part(index)
            yield from self.part_to_show(index)

    @cached_property
    def owner_places(self) -> list[int | None]:
        """The last preposition from each token on, before a word that ends the name of a document."""
        places: list[int | None] = [None]
        for index, token in reversed([*enumerate(self.tokens)]):
            is_preposition = token.lowercase in {"in", "of", "from", "within"}
            place = places[-1] if places[-1] is not None else index if is_preposition else None
            places.append(None if token.lowercase in _ENDS_OWNER else place)
        return places[::-1]

    def with_owner(self, selector: Selector, first: int) -> Selector:
        """Return a selector with the document that the words from token ``first`` on name, if they do."""
        start, place = self.position, self.owner_places[first]
        words = ""
        if place is not None:
            self.position = place + 1
            words = self.document_words()
        self.position = start
        owned = bool(words) and place == first and self.tokens[first].lowercase == "of"
        return replace(selector, document=words, owned=owned)

    def around_noun(self, index: int, token: Token, kind: str) -> Iterator[Selector]:
        word = singular(token.text) if kind == TABLE else ""
        word = "sheet" if word not in {"table", ""} else word
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if following and following.sort == "quote":
            quoted = following.text.strip("\"“”'‘’")
            selector = Selector(kind, token.start, following.end, word="heading", name=quoted)
            yield self.with_owner(selector, index + 2)
        behind = index + 1
        if kind == SECTION and following and following.lowercase in {"of", "in"}:
            # "the section of the report on tolls"
            behind = next(
                (
                    place
                    for place in range(index + 2, min(index + 12, len(self.tokens)))
                    if self.tokens[place].lowercase in _NAMING
                ),
                behind,
            )
        if behind < len(self.tokens) and (
            self.tokens[behind].lowercase in _NAMING
            or (kind == TABLE and self.tokens[behind].lowercase == "of")
        ):
            name = self.words_from(behind + 1)
            if name and token.lowercase not in {"heading", "headings"}:
                end = self.tokens[behind + 1].start if kind == SECTION else token.end
                yield self.with_owner(Selector(kind, token.start, end, word=word, name=name), index + 1)
        first = max(0, index - 8)
        name = self.text_between(first, index)
        singular_only = kind == TABLE and word == "sheet" and token.lowercase.endswith("s")
        if name and token.lowercase not in {"heading", "headings"} and not singular_only:
            yield self.with_owner(
                Selector(kind, token.start, token.end, word=word, name=name, at_end=True), index + 1
            )

    def words_from(self, index: int) -> str:
        """Return the words from a token on, up to a semicolon."""
        while index < len(self.tokens) and self.tokens[index].lowercase in {"the", "all"}:
            index += 1
        last = next(
            (place for place in range(index, len(self.tokens)) if self.tokens[place].text == ";"),
            len(self.tokens),
        )
        return self.text_between(index, last)

    def under(self, index: int) -> Iterator[Selector]:
        """Yield what "under Risk Factors" or "under the heading 'Dues'" names.

        In a question for a number, a time, a person or a yes, only a heading that is called one is meant: "how often
        must it meet under Jersey law" asks about content.
        """
        behind = index + 1
        words = [token.lowercase for token in self.tokens[behind : behind + 3]]
        behind += bool(words) and words[0] == "the"
        heading = behind < len(self.tokens) and self.tokens[behind].lowercase in {
            "heading",
            "headings",
            "headline",
            "title",
            "caption",
        }
        behind += heading
        behind += heading and behind < len(self.tokens) and self.tokens[behind].lowercase == "of"
        by_name = index == 0 or self.tokens[0].lowercase not in _ASKS_CONTENT
        if behind < len(self.tokens) and (
            heading
            or (by_name and self.tokens[behind].text[0].isupper())
            or self.tokens[behind].sort == "quote"
        ):
            name = self.words_from(behind)
            if self.tokens[behind].sort == "quote":
                name = self.tokens[behind].text.strip("\"“”'‘’") + " " + self.words_from(behind + 1)
            span = (self.tokens[index].start, self.tokens[behind].start)
            yield self.with_owner(Selector(SECTION, *span, word="heading", name=name), behind + 1)

    def known_part(self, index: int) -> Iterator[Selector]:
        """Yield "the abstract" and other parts that documents often have."""
        if self.tokens[index].lowercase not in {"the", "its", "their"}:
            return
        start, self.position = self.position, index + 1
        if self.take(_KNOWN_PARTS):
            token = self.token
            ends = token is None or token.lowercase in {"of", "in", "to", "from", "say", "with", "and"}
            if ends or (token is not None and token.text in ".,;"):
                span = (self.tokens[index + 1].start, self.tokens[self.position - 1].end)
                name = self.text_between(index + 1, self.position)
                selector = Selector(SECTION, *span, word="part", name=name, whole=True)
                yield self.with_owner(selector, self.position)
        self.position = start

    def part_to_show(self, index: int) -> Iterator[Selector]:
        """Yield "the risk factors" in "show me the risk factors of the report"."""
        start, self.position = self.position, index
        if self.take(_SHOW_VERBS):
            self.take("me")
            self.take("out")
            if self.take("the") and self.token is not None:
                name = self.words_from(self.position)
                if name:
                    span = (self.tokens[self.position].start, self.tokens[-1].end)
                    for kind in (SECTION, TABLE):
                        selector = Selector(kind, *span, word="part", name=name, whole=True)
                        yield self.with_owner(selector, self.position)
        self.position = start

    def whole_documents(self) -> Iterator[Selector]:
        """Yield the document of "summarise the lease", "what is the lease about", "compare A with B"."""
        for index in range(len(self.tokens)):
            self.position = index
            if self.take(_WHOLE_VERBS) or self.take(_OPEN_VERBS):
                self.take("me")
                yield from self.whole(self.position, len(self.tokens))
                break
        self.position = 0
        if self.take("what is|what are|what ' s|what ’ s|whats") or self.take_contracted():
            first, last = self.position, self.last_word()
            if last > first + 1 and self.tokens[last - 1].lowercase == "about":
                last -= 1
                last -= self.tokens[last - 1].lowercase == "all"
                yield from self.whole(first, last)
            self.take("written")
            if self.take("in|inside"):
                yield from self.whole(self.position, self.last_word())
        self.position = 0
        if self.take("what does|what do"):
            first, last = self.position, self.last_word()
            while last > first and self.tokens[last - 1].lowercase in {
                "overall",
                "in",
                "general",
                "total",
                "full",
            }:
                last -= 1
            if last > first + 1 and self.tokens[last - 1].lowercase in {
                "say",
                "cover",
                "contain",
                "discuss",
                "describe",
            }:
                yield from self.whole(first, last - 1)
        for index, token in enumerate(self.tokens[:-1]):
            if token.lowercase in {"whole", "entire", "full", "complete"} and self.tokens[
                index + 1
            ].lowercase in {
                "text",
                "document",
                "file",
                "report",
                "paper",
                "contract",
                "book",
            }:
                yield from self.whole(index + 1, index + 2)
        self.position = len(self.tokens)

    def take_contracted(self) -> bool:
        words = [token.lowercase for token in self.tokens[:2]]
        if words[:1] == ["what"] and len(words) > 1 and self.tokens[1].sort == "possessive":
            self.position = 2
            return True
        return False

    def whole(self, first: int, last: int) -> Iterator[Selector]:
        for place in range(first, last):
            token = self.tokens[place]
            manner = token.lowercase in {"briefly", "shortly", "please"} or (
                token.lowercase in {"in", "using", "with", "for"}
                and any(
                    other.lowercase.rstrip("s")
                    in {"word", "sentence", "point", "bullet", "paragraph", "line", "detail", "me"}
                    for other in self.tokens[place + 1 : place + 6]
                )
            )
            if token.text in ".;" or manner:
                last = place
                break
        name = self.text_between(first, last)
        if name:
            span = (self.tokens[first].start, self.tokens[last - 1].end)
            yield Selector(DOCUMENT, *span, name=name, whole=True)


_NAMED_NOUNS = frozenset("section subsection chapter table sheet worksheet".split())
_NAMING = frozenset(
    "on about titled entitled called named headed covering describing discussing for under that which labelled "
    "labeled captioned showing listing with comparing summarising summarizing giving reporting".split()
)
_SHOW_VERBS = (
    "read|show|give|print|quote|reproduce|display|summarise|summarize|outline|explain|describe|compare|recap"
)
_WHOLE_VERBS = "|".join(
    [
        "summarise|summarize|sum up|outline|recap|condense|skim|compare",
        *(f"{noun} of" for noun in ("summary", "overview", "synopsis", "gist", "outline", "recap")),
        *(
            f"{size} {noun} {preposition}"
            for size in ("key", "main", "major")
            for noun in ("points", "takeaways", "messages", "ideas", "findings")
            for preposition in ("of", "in", "from")
        ),
        "tl ; dr|tldr|tl dr",
    ]
)
_OPEN_VERBS = "tell me about|read|open|show"
_KNOWN_PARTS = (
    "introduction|abstract|conclusions|conclusion|executive summary|summary|preface|foreword|bibliography|references|"
    "acknowledgements|acknowledgments|appendix|glossary|table of contents|background|methods|methodology|results|"
    "discussion|limitations|related work|preamble|schedule|prologue|epilogue|postscript|recommendations|findings|"
    "future work|index"
)


def parse_roman(text: str) -> int | None:
    """Return the value of a Roman numeral up to 39, else None.

    >>> parse_roman("xiv"), parse_roman("six")
    (14, None)
    """
    if not text or not _ROMAN.fullmatch(text):
        return None
    values = [{"i": 1, "v": 5, "x": 10}[letter] for letter in text.casefold()]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))
