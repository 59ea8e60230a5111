"""The algebra of questions about the structure of documents: an operation over selectors of places.

:mod:`clew.questions.outline_reading` reads plain questions as queries, a language model writes them
(:class:`clew.retrieve.structure.lookup.StructureReader`), and :mod:`clew.retrieve.structure.algebra` evaluates them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from clew.core.types import DOCUMENT

Operation = Literal["show", "count", "list", "locate", "exists", "changes", "longest"]

#: What a question may ask for beside the kinds of nodes: a picture, which is known by its caption.
FIGURE = "figure"


@dataclass(frozen=True, slots=True)
class Selector:
    """What is said of a structure.

    ``kind`` is a kind of node or :data:`FIGURE`. ``number`` counts pages, tables, rows, figures or sections of a
    document (or of ``within``), negative from the end. ``label`` is a printed label in lower case ("2", "iv", "3.2",
    "1a"), and ``word`` the word before it ("section", "item"); where ``number`` is given, too, it counts if nothing
    is labelled. ``name`` is the heading, the caption, or the name of a row, whose cell in ``column`` is meant if that
    is given. ``anchor`` is the structure ``relation`` (``after`` or ``before``) which this one stands. ``document``
    has the words that name the document. ``node`` is the id of the structure where that is known already. ``words``
    say the place as a person would.
    """

    kind: str
    number: int | None = None
    label: str = ""
    word: str = ""
    name: str = ""
    column: str = ""
    within: Selector | None = None
    relation: Literal["", "after", "before"] = ""
    anchor: Selector | None = None
    document: str = ""
    node: str = ""
    words: str = ""

    def __str__(self) -> str:
        """In words.

        >>> str(Selector("table", 2, "2", within=Selector("page", 4)))
        'table 2 in page 4'
        """
        if self.words:
            return self.words
        if self.kind == DOCUMENT:
            return self.document or self.name or "the document"
        word = self.word or self.kind
        many = name_many(word)
        if self.label or (self.kind == "page" and self.number and self.number > 0):
            text = f"{word} {self.label or self.number}"
        elif self.name:
            text = f'{word} "{self.name}"' + f', column "{self.column}"' * bool(self.column)
        elif self.number:
            place = "last" if self.number == -1 else "first" if self.number == 1 else f"no. {self.number}"
            text = f"{place} {word}" if self.number in {1, -1} else f"{word} {place}"
        elif self.anchor:
            return f"{word} {self.relation} {self.anchor}"
        else:
            text = many
        return f"{text} in {self.within}" if self.within else text


@dataclass(frozen=True, slots=True)
class Query:
    """A question about structure.

    ``selectors`` are what it points at: the places that *count* and *list* look into, the structure that *locate* and
    *exists* look for. ``kind`` and ``word`` are the kind of structure that is counted or listed, and the word for it
    ("chapter"); ``labelled`` if only those with a printed number are meant, ``without`` if documents are listed that
    have no such place. ``text`` is what *locate* looks for, in words, and ``document`` the words for the document.
    """

    operation: Operation
    selectors: tuple[Selector, ...] = ()
    kind: str = ""
    word: str = ""
    text: str = ""
    document: str = ""
    labelled: bool = False
    without: bool = False

    def __str__(self) -> str:
        """In words.

        >>> str(Query("count", (Selector("page", 4),), "table"))
        'count the tables in page 4'
        """
        places = " and ".join(map(str, self.selectors))
        if self.operation in {"count", "list"}:
            things = f"{'numbered ' * self.labelled}{name_many(self.word or self.kind)}"
            joint = "without" if self.without else "with" if self.kind == DOCUMENT else "in"
            return f"{self.operation} the {things}" + (f" {joint} {places}" if places else "")
        if self.operation == "longest":
            return "the longest document"
        return f"{self.operation} {places or self.text}"


def name_many(word: str) -> str:
    """Return a word for a kind of structure as it names several.

    >>> name_many("table"), name_many("appendix")
    ('tables', 'appendices')
    """
    return "indices" if word == "index" else "appendices" if word == "appendix" else f"{word}s"


#: A file name, as a pattern. None begins within another name or its suffixes: there it was tried from the start.
FILE_NAME = (
    r"(?<!\w[.&-])\w[\w&-]*(?:\.[\w-]+)*"
    r"\.(?:pdf|docx?|xlsx?|csv|tsv|md|txt|html?|json|xml|rtf|odt|epub|pptx?)\b"
)
_ROMAN = re.compile(r"(?:x{0,3}(?:ix|iv|v?i{1,3}|v)|x{1,3})", re.IGNORECASE)


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
