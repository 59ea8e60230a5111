"""What a document's outline can be asked: queries over its pages, sections, tables, cells and figures, enumerated.

Numbers and labels are taken from the question, names from the headings, captions, rows and columns that are most like
it; every place that they lead to is an option, and so is "no structure is asked for". Which of the options the
question means is learned (:mod:`clew.questions.outline_reading`); this module knows no English.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import normalise
from clew.core.types import DOCUMENT, PAGE, PASSAGE, ROW, SECTION, TABLE, Node
from clew.questions.slots import encode_labels
from clew.questions.text import QuestionText, stem_words
from clew.retrieve.structure.outline import LABEL_WORDS, Outline, heading_label, normalise_label, read_cells
from clew.retrieve.structure.query import FIGURE, Operation, Query, Selector, parse_roman
from clew.retrieve.structure.resolver import ordered_name_terms

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Document

#: So many headings, captions, pairs of a row and a column are considered.
MOST_SECTIONS, MOST_TABLES, MOST_CELLS = 8, 4, 8
#: Rows of a table that may be named.
MOST_ROWS = 200
#: A range of more places than this is none.
LONGEST_RANGE = 12
#: The words of a locating query have at most so many words, and at least so many letters.
MOST_WORDS, LEAST_LETTERS = 5, 4
#: The key of "no structure is asked for".
CONTENT = ("content",)

#: Places inside which structures are counted.
_INSIDE = frozenset(
    f"show {place}"
    for place in (
        *("section name", "section label", "page number", "page label"),
        *("table label", "table name", "table nth", "table only"),
    )
)
#: Places that are compared with a place of another document.
_SIDE_BY_SIDE = frozenset(
    f"show {place}"
    for place in (
        *("page number", "page label", "table label", "table nth"),
        *("figure label", "section label", "section name"),
    )
)
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?P<ordinal>\d{1,9})(?:st|nd|rd|th)|(?P<label>[a-z]?[.-]?\d{1,9}[a-z]?(?:[.-]\d{1,9})*)"
    r"|(?P<roman>[ivx]+)|(?-i:(?P<letter>[A-Z])))(?![\w]|[.]\d)",
    re.IGNORECASE,
)
#: "p9", "tbl3": a short word and its number in one.
_GLUED = re.compile(r"(?<![\w.-])(?P<word>[a-z]{1,4})\.?(?P<number>\d{1,4})(?![\w]|[.-]\d)")
_MIXED = re.compile(r"\w[\w&-]*")
_RANGE = re.compile(r"(\d{1,9})[-](\d{1,9})")


@dataclass(frozen=True, slots=True)
class Number:
    """A number or label that a question gives: its ``value``, None for "6-15" and "b"; its ``label`` as printed
    labels are compared; whether it is an ordinal; its place in characters; the ``text`` as it is written, in lower
    case."""

    value: int | None
    label: str
    is_ordinal: bool
    start: int
    end: int
    text: str

    @property
    def is_label(self) -> bool:
        """Whether it is written as labels alone are: "iv", "6-15", "b"."""
        return self.value is None or parse_roman(self.text) is not None


def name_spans(text: str, names: frozenset[str]) -> list[tuple[int, int]]:
    """Return the places of words of letters and digits that are among the terms of a document's ``names``: "10-K"."""
    return [
        match.span()
        for match in _MIXED.finditer(text)
        if re.search(r"\d", match[0])
        and re.search(r"[^\W\d_]", match[0])
        and names.intersection(ordered_name_terms(match[0]))
    ]


def find_numbers(question: QuestionText, names: frozenset[str] = frozenset()) -> list[Number]:
    """Return the numbers and labels of a question in order; a number in a word of a document's ``names`` is none.

    >>> [(each.value, each.label) for each in find_numbers(QuestionText("the 9th page, p. iv, or page 6-15"))]
    [(9, '9'), (4, '4'), (None, '6.15'), (6, '6'), (15, '15')]
    """
    numbers = []
    for match in _NUMBER.finditer(question.text):
        text = match["ordinal"] or match[0]
        roman = parse_roman(text) if match["roman"] else None
        if match["roman"] and (roman is None or text == "I"):
            continue
        value = int(text) if text.isdigit() else roman
        label = normalise_label(text)
        numbers.append(
            Number(value, label, bool(match["ordinal"]), match.start(), match.end(), text.casefold())
        )
        if span := _RANGE.fullmatch(match[0]):
            # "pages 15-17" are two numbers, page 6-15 is one label: both are offered.
            for group in (1, 2):
                start = match.start() + span.start(group)
                numbers.append(
                    Number(int(span[group]), span[group], False, start, start + len(span[group]), span[group])
                )
    for match in _GLUED.finditer(question.text):
        start, end = match.span("number")
        numbers = [number for number in numbers if not (number.start < end and match.start() < number.end)]
        numbers.append(Number(int(match["number"]), match["number"], False, start, end, match["number"]))
    for each in question.values:
        if each.is_date or any(number.start < each.end and each.start < number.end for number in numbers):
            continue
        if len(each.texts) == 1 and each.texts[0].isdigit() and int(each.texts[0]) > 0:
            written = question.text[each.start : each.end].casefold()
            is_ordinal = written[-2:] in {"st", "nd", "rd", "th"}
            digits = each.texts[0]
            numbers.append(Number(int(digits), digits, is_ordinal, each.start, each.end, digits))
    named = name_spans(question.text, names)
    numbers = [each for each in numbers if not any(start <= each.start < end for start, end in named)]
    return sorted(numbers, key=lambda number: number.start)


@dataclass(frozen=True, slots=True)
class Named:
    """A heading, caption, row or column beside a question: the ``share`` of its words that the question has, whether
    it ``stands`` in the question as it is, how ``like`` the question its vector is, its ``rank`` among the others,
    and the places of the words of the question that it covers."""

    node: Node
    name: str
    share: float
    stands: bool
    like: float
    rank: int
    words: frozenset[int]

    @property
    def weight(self) -> float:
        """What names are ordered by before anything is learned."""
        return self.share + self.stands + self.like


@dataclass(frozen=True, slots=True)
class OutlineOption:
    """A query that a question may mean. ``shape`` is its kind; ``key`` is equal for queries that mean the same;
    ``numbers`` says what each number of the question is taken for ("page"), "" for one that is not used; ``names``
    are the names it uses; ``exists`` is false where the document has no such place."""

    query: Query
    shape: str
    key: tuple[object, ...]
    numbers: tuple[str, ...] = ()
    names: tuple[Named, ...] = ()
    exists: bool = True


class OutlineCatalogue:
    """The outline of one document, with what names and labels it has."""

    def __init__(self, snapshot: Snapshot, document: Document) -> None:
        self.snapshot = snapshot
        self.document = document
        self.outline = Outline(snapshot, document)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words before the labels of headings ("article", "note"), those of at least two headings."""
        words = [heading_label(node.name)[0] for node in self.outline.sections]
        return tuple(sorted({word for word in words if word and words.count(word) > 1}))

    @cached_property
    def labels(self) -> dict[str, list[tuple[str, Node]]]:
        """The sections with each printed label, with the word before it."""
        labels: dict[str, list[tuple[str, Node]]] = {}
        for node in self.outline.sections:
            word, label = heading_label(node.name)
            if label:
                labels.setdefault(normalise_label(label), []).append((word, node))
        return labels

    @cached_property
    def frequencies(self) -> dict[str, int]:
        """In how many headings and captions each stem stands."""
        counts: dict[str, int] = {}
        for node in [*self.outline.sections, *self.outline.tables]:
            for stem in set(stem_words(node.name)):
                counts[stem] = counts.get(stem, 0) + 1
        return counts

    @cached_property
    def rows(self) -> list[tuple[str, Node, Node]]:
        """The named rows of all tables, at most :data:`MOST_ROWS` of each, with their tables."""
        rows = []
        for table in self.outline.tables:
            named = [(name, row) for name, row in self.outline.named_rows(table)[:MOST_ROWS] if name]
            nodes = self.snapshot.nodes(np.array([row for _, row in named], dtype=np.int64))
            rows += [(name, node, table) for (name, _), node in zip(named, nodes, strict=True)]
        return rows

    @cached_property
    def full_text(self) -> str:
        """The text of the passages and rows, normalised."""
        nodes = self.snapshot.nodes(np.arange(self.outline.start, self.outline.end))
        return "\n".join(normalise(node.text) for node in nodes if node.kind in {PASSAGE, ROW})

    def columns(self, table: Node) -> list[str]:
        """The headers of a table."""
        return (read_cells(table) or [[]])[0]

    def match_names(
        self,
        question: QuestionText,
        nodes: Sequence[Node],
        names: Sequence[str],
        vectors: Encoder | None,
        query: Floats | None,
    ) -> list[Named]:
        """Return how well each name fits a question, the best first."""
        likes = np.zeros(len(names))
        if vectors is not None and query is not None and len(names):
            likes = encode_labels(vectors, tuple(name[:200] or "-" for name in names)) @ query
        text = normalise(question.text)
        matches = []
        for node, name, like in zip(nodes, names, likes.tolist(), strict=True):
            stems = dict.fromkeys(stem_words(name))
            weights = {stem: 1 / np.sqrt(self.frequencies.get(stem, 1)) for stem in stems}
            covered = frozenset(
                place for place, word in enumerate(question.words) if word.stem in stems and word.is_content
            )
            shared = {question.words[place].stem for place in covered}
            total = sum(weights.values())
            share = sum(weights[stem] for stem in shared) / total if total else 0.0
            bare = normalise(name)
            stands = (
                len(bare) >= LEAST_LETTERS and re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", text) is not None
            )
            matches.append(Named(node, name, share, stands, like, 0, covered))
        order = sorted(range(len(matches)), key=lambda place: (-matches[place].weight, place))
        return [replace(matches[place], rank=rank) for rank, place in enumerate(order)]


def bare_heading(name: str) -> str:
    """Return a heading or caption without its label."""
    _, label = heading_label(name)
    return (
        re.sub(r"^\W*(?:[^\W\d_]+\s+)?" + re.escape(label) + r"[\s.:)–—-]*", "", name, count=1, flags=re.I)
        or name
        if label
        else name
    )


class OutlinePlans:
    """The options of one question over one document."""

    def __init__(
        self,
        question: QuestionText,
        numbers: Sequence[Number],
        catalogue: OutlineCatalogue,
        encoder: Encoder,
        vector: Floats,
    ) -> None:
        self.question = question
        self.catalogue = catalogue
        self.outline = outline = catalogue.outline
        self.numbers = numbers
        self._known: dict[str, Node] = {}
        sections, tables = outline.sections, outline.tables
        self.sections = catalogue.match_names(
            question, sections, [bare_heading(node.name) for node in sections], encoder, vector
        )[:MOST_SECTIONS]
        self.words = [*catalogue.words, *self._find_words()]
        captioned = [node for node in tables if node.name or node.headings]
        self.tables = catalogue.match_names(
            question,
            captioned,
            [bare_heading(node.name or node.headings[-1]) for node in captioned],
            encoder,
            vector,
        )[:MOST_TABLES]

    def _find_words(self) -> list[str]:
        """Return words of the question for what is numbered below a heading: "note" where "Notes to the accounts" has
        sections with numbers alone. Such a word stands before a number, or is one that is made for numbering."""
        words = self.question.words
        asked = {
            words[place - 1].text
            for place in range(1, len(words))
            if any(number.start <= words[place].start < number.end for number in self.numbers)
        }
        singular = {word.removesuffix("s") for word in asked}
        singular |= LABEL_WORDS & {word.text.removesuffix("s") for word in words}
        return [
            word
            for word in sorted(singular - set(self.catalogue.words) - {"section"})
            if len(word) >= LEAST_LETTERS and self.outline.sections_with_word(word)
        ]

    @cached_property
    def places(self) -> list[OutlineOption]:
        """The options that show one place, or the places of a kind."""
        return [*self._places()]

    def options(self) -> list[OutlineOption]:
        """Return the options, each meaning once for each shape."""
        options: dict[tuple[str, tuple[object, ...]], OutlineOption] = {}
        for option in self._all():
            options.setdefault((option.shape, option.key), option)
        return list(options.values())

    def _all(self) -> Iterator[OutlineOption]:
        places = self.places
        yield from places
        for place in places:
            if len(place.query.selectors) == 1 and place.shape.split()[1] in {"section", "table", "figure"}:
                yield from self._about(place)
            if place.shape.startswith("show table") and place.query.selectors[0].node:
                yield from self._rows_by_place(place)
        yield from self._beside([place for place in places if place.exists])
        yield from self._several(places)
        yield from self._counted([place for place in places if place.exists])
        yield from self._located()

    def place_of(self, option: OutlineOption) -> int:
        """Return where in the question, in characters, what an option takes its place from begins."""
        used = [number.start for number, role in zip(self.numbers, option.numbers, strict=True) if role]
        words = [self.question.words[place].start for name in option.names for place in name.words]
        return min([*used, *words], default=0)

    # Places

    def _option(
        self,
        selector: Selector,
        how: str,
        nodes: Sequence[Node],
        used: dict[int, str] | None = None,
        names: Sequence[Named] = (),
    ) -> OutlineOption:
        document = self.catalogue.document.key
        if len(nodes) == 1:
            selector = replace(selector, node=nodes[0].id)
            self._known[nodes[0].id] = nodes[0]
        roles = tuple((used or {}).get(place, "") for place in range(len(self.numbers)))
        selector = replace(selector, document=document)
        return OutlineOption(
            Query("show", (selector,)),
            f"show {selector.kind} {how}",
            place_key(selector, nodes),
            roles,
            tuple(names),
            bool(nodes),
        )

    def _places(self) -> Iterator[OutlineOption]:
        outline = self.outline
        yield self._option(Selector(DOCUMENT), "whole", [self._root()])
        ends = ((1, "first"), (-1, "last"))
        for kind, (end, how) in itertools.product((PAGE, TABLE, FIGURE, SECTION), ends):
            if nodes := self._nth(kind, end):
                yield self._option(Selector(kind, end), how, nodes)
        for word, (end, how) in itertools.product(self.words, ends):
            if nodes := outline.nth_section(end, word):
                yield self._option(Selector(SECTION, end, word=word), how, nodes)
        for place, number in enumerate(self.numbers):
            yield from self._numbered(place, number)
        for named in self.sections:
            selector = Selector(SECTION, name=named.node.name)
            yield self._option(selector, "name", [named.node], None, [named])
            yield from self._in_section(replace(selector, node=named.node.id), named)
        for named in self.tables:
            yield self._option(Selector(TABLE, name=named.name), "name", [named.node], None, [named])
        for kind in (TABLE, FIGURE):
            if nodes := outline.within(kind, None):
                yield self._option(Selector(kind), "only", nodes)
        yield from self._cells()

    def _in_section(self, section: Selector, named: Named) -> Iterator[OutlineOption]:
        """Yield the tables and figures of a section that is named: all, the first, the last."""
        for kind in (TABLE, FIGURE):
            own = self.outline.within(kind, [named.node])
            yield self._option(Selector(kind, within=section), "in section", own, None, [named])
            for number, how in ((1, "first"), (-1, "last")) if own else ():
                nodes = own[:1] if number == 1 else own[-1:]
                yield self._option(
                    Selector(kind, number, within=section), f"{how} in section", nodes, None, [named]
                )

    def _root(self) -> Node:
        return self.catalogue.snapshot.nodes(np.array([self.outline.start]))[0]

    def _nth(self, kind: str, number: int) -> list[Node]:
        if kind == PAGE:
            return self.outline.find_pages(number)
        if kind == SECTION:
            return self.outline.nth_section(number)
        nodes = self.outline.within(kind, None)
        index = number if number < 0 else number - 1
        return nodes[index:][:1] if -len(nodes) <= index < len(nodes) else []

    def _numbered(self, place: int, number: Number) -> Iterator[OutlineOption]:
        outline = self.outline
        if number.value is not None:
            page = outline.find_pages(number.value) if number.value else []
            yield self._option(Selector(PAGE, number.value), "number", page, {place: PAGE})
            yield from self._on_page(Selector(PAGE, number.value), page, place)
        labelled = outline.find_pages(None, number.text)
        if labelled and (number.is_label or labelled[0].page != number.value):
            selector = Selector(PAGE, label=number.text)
            yield self._option(selector, "label", labelled, {place: PAGE})
            yield from self._on_page(selector, labelled, place)
        for kind in (TABLE, FIGURE):
            nodes = outline.within(kind, None)
            own = [node for node in nodes if outline.label_of(node) == normalise_label(number.label)]
            nth = self._nth(kind, number.value) if number.value else []
            if any(outline.label_of(node) for node in nodes):
                yield self._option(Selector(kind, label=number.label), "label", own, {place: kind})
            elif number.value:
                yield self._option(Selector(kind, number.value, number.label), "label", nth, {place: kind})
            if nth:
                yield self._option(Selector(kind, number.value), "nth", nth, {place: kind})
        words = {"section", *self.words}
        for word in sorted(words):
            selector = Selector(SECTION, number.value, number.label, word)
            own = outline.sections_with_label(word, number.label)
            if own or word != "section" or self.catalogue.labels:
                yield self._option(selector, "label", own[:1], {place: SECTION})
                for kind in (TABLE, FIGURE) if own else ():
                    inner, within = outline.within(kind, own[:1]), replace(selector, node=own[0].id)
                    yield self._option(Selector(kind, within=within), "in section", inner, {place: SECTION})
            if number.value:
                nth = outline.nth_section(number.value, word)
                if nth:
                    yield self._option(
                        Selector(SECTION, number.value, word=word), "nth", nth, {place: SECTION}
                    )

    def _on_page(self, page: Selector, nodes: Sequence[Node], place: int) -> Iterator[OutlineOption]:
        """Yield the tables and figures on a page: all, or the one with another number of the question."""
        page = replace(page, node=nodes[0].id) if nodes else page
        for kind in (TABLE, FIGURE):
            own = self.outline.within(kind, nodes) if nodes else []
            yield self._option(Selector(kind, within=page), "in page", own, {place: PAGE})
            if len(own) > 1:
                yield self._option(Selector(kind, 1, within=page), "first in page", own[:1], {place: PAGE})
                yield self._option(Selector(kind, -1, within=page), "last in page", own[-1:], {place: PAGE})
            for other, number in enumerate(self.numbers):
                if other != place and number.value and own:
                    labelled = [node for node in own if self.outline.label_of(node) == number.label]
                    chosen = labelled or own[number.value - 1 :][:1]
                    selector = Selector(kind, number.value, number.label, within=page)
                    if chosen:
                        yield self._option(selector, "nth in page", chosen, {place: PAGE, other: kind})

    def _cells(self) -> Iterator[OutlineOption]:
        """Yield the rows whose names are most like the question, and of each the two likeliest cells."""
        rows = self.catalogue.rows
        named = self.catalogue.match_names(
            self.question, [row for _, row, _ in rows], [name for name, _, _ in rows], None, None
        )
        tables = {row.id: table for _, row, table in rows}
        labels = {number.label: place for place, number in enumerate(self.numbers)}
        for row in [each for each in named if each.share or each.stands][:MOST_CELLS]:
            table = tables[row.node.id]
            headers = [header for header in self.catalogue.columns(table)[1:] if header]
            columns = self.catalogue.match_names(self.question, [table] * len(headers), headers, None, None)
            how, used, names = "only", {}, [row]
            label = self.outline.label_of(table)
            if label in labels:
                how, used = "label", {labels[label]: TABLE}
            elif own := [each for each in self.tables if each.node.id == table.id]:
                how, names = "name", [row, *own]
            within = Selector(TABLE, node=table.id)
            for column in columns[:2]:
                selector = Selector(ROW, name=row.name, column=column.name, within=within)
                yield self._option(selector, f"cell {how}", [row.node], used, [*names, column])
            yield self._option(Selector(ROW, name=row.name), f"row {how}", [row.node], used, names)

    def _rows_by_place(self, table: OutlineOption) -> Iterator[OutlineOption]:
        """Yield the rows of a table that are counted: the numbered ones, the first, the last."""
        (selector,) = table.query.selectors
        if any(name.rank > 1 for name in table.names):
            return
        own, how = self.outline.rows_of_table(self._known[selector.node]), table.shape.split(" ", 2)[2]
        free = [place for place, role in enumerate(table.numbers) if not role]
        ways = [(self.numbers[place].value or 0, "nth", {place: ROW}) for place in free]
        for number, which, role in (*ways, (1, "first", {}), (-1, "last", {})):
            index = number if number < 0 else number - 1
            if number and -len(own) <= index < len(own):
                (row,) = self.catalogue.snapshot.nodes(own[index:][:1])
                used = {place: each for place, each in enumerate(table.numbers) if each} | role
                counted = Selector(ROW, number, within=selector)
                yield self._option(counted, f"{which} of {how}", [row], used, table.names)

    # Queries about places

    def _about(self, place: OutlineOption) -> Iterator[OutlineOption]:
        """Yield the questions where a place stands, and whether there is one."""
        how = place.shape.removeprefix("show ")
        operations: tuple[Operation, ...] = ("locate", "exists")
        for operation in operations:
            if operation == "exists" or place.exists:
                query = replace(place.query, operation=operation)
                yield replace(place, query=query, shape=f"{operation} {how}", key=(operation, *place.key))

    def _beside(self, places: Sequence[OutlineOption]) -> Iterator[OutlineOption]:
        for place in places:
            (anchor,) = place.query.selectors
            nodes = self._nodes(anchor)
            if anchor.kind == DOCUMENT or anchor.within is not None or not nodes or anchor.kind == ROW:
                continue
            for relation in ("after", "before"):
                for kind in dict.fromkeys((anchor.kind, PAGE, TABLE)):
                    if beside := self.outline.find_neighbour(kind, nodes, relation, anchor.word):
                        selector = Selector(kind, relation=relation, anchor=anchor)
                        option = self._option(selector, f"{relation} {anchor.kind}", beside)
                        yield replace(option, numbers=place.numbers, names=place.names)

    def _nodes(self, selector: Selector) -> list[Node]:
        """Return the node that a selector of an option names, where it is one."""
        return [self._known[selector.node]] if selector.node else []

    def _several(self, places: Sequence[OutlineOption]) -> Iterator[OutlineOption]:
        """Yield two places side by side, and ranges between two numbers."""
        single = [
            place
            for place in places
            if place.exists and place.shape.split()[1:] in ([PAGE, "number"], [PAGE, "label"], [TABLE, "label"],
                                                            [FIGURE, "label"], [SECTION, "label"], [SECTION, "name"])
        ]  # fmt: skip
        for first, second in itertools.combinations(single, 2):
            same_kind = first.shape == second.shape
            if not same_kind or first.key == second.key or _overlap(first, second):
                continue
            if first.shape.endswith("name") and not _both_named(first.names[0], second.names[0]):
                continue
            numbers = tuple(a or b for a, b in zip(first.numbers, second.numbers, strict=True))
            names, (_, kind, how) = (*first.names, *second.names), first.shape.split()
            selectors = (*first.query.selectors, *second.query.selectors)
            yield OutlineOption(
                Query("show", selectors),
                f"several {kind} both {how}",
                ("show", frozenset(s.node for s in selectors)),
                numbers,
                names,
            )
            low, high = first.query.selectors[0], second.query.selectors[0]
            if low.number and high.number and 1 < high.number - low.number < LONGEST_RANGE:
                middle = [
                    self._at(replace(low, node=""), number) for number in range(low.number + 1, high.number)
                ]
                if all(middle):
                    whole = (low, *[each for each in middle if each], high)
                    key = ("show", frozenset(selector.node for selector in whole))
                    yield OutlineOption(
                        Query("show", whole), f"several {kind} range {how}", key, numbers, names
                    )
        for kind in (PAGE, SECTION, TABLE):
            for place, number in enumerate(self.numbers):
                if number.value and 1 < number.value < LONGEST_RANGE:
                    for sign, how in ((1, "first"), (-1, "last")):
                        nodes = [self._nth(kind, sign * each) for each in range(1, number.value + 1)]
                        if all(nodes):
                            selectors = tuple(
                                Selector(kind, sign * each, node=own[0].id)
                                for each, own in enumerate(nodes, 1)
                            )[::sign]
                            # Of "the first three" both are used.
                            is_led = sign > 0 and place > 0 and self.numbers[place - 1].value == 1
                            leading = place - 1 if is_led else place
                            roles = tuple(
                                kind if other in {place, leading} else ""
                                for other in range(len(self.numbers))
                            )
                            key = ("show", frozenset(selector.node for selector in selectors))
                            yield OutlineOption(Query("show", selectors), f"several {kind} {how}", key, roles)

    def _at(self, selector: Selector, number: int) -> Selector | None:
        """Return the selector of the same kind with another number, where there is such a place."""
        if selector.kind == PAGE:
            nodes = self.outline.find_pages(number)
        elif selector.kind == SECTION:
            nodes = self.outline.sections_with_label(selector.word, str(number))[:1]
        else:
            own = self.outline.within(selector.kind, None)
            nodes = [node for node in own if self.outline.label_of(node) == str(number)][:1]
        return replace(selector, number=number, label=str(number), node=nodes[0].id) if nodes else None

    def _counted(self, places: Sequence[OutlineOption]) -> Iterator[OutlineOption]:
        """Yield how many structures of a kind there are, and which: in the document, and inside each place."""
        kinds = [(PAGE, PAGE), (TABLE, TABLE), (FIGURE, FIGURE), (ROW, ROW), (SECTION, "section")]
        kinds += [(SECTION, word) for word in self.words if word != "section"]
        if self.outline.sheets:
            kinds.append((TABLE, "sheet"))
        own = self.catalogue.document
        document = Selector(DOCUMENT, document=own.key, node=self._root().id, words=own.name)
        inside = [place for place in places if place.shape in _INSIDE and place.query.selectors[0].node]
        operations: tuple[Operation, ...] = ("count", "list")
        for operation, (kind, word) in itertools.product(operations, kinds):
            if operation == "list" and kind == PAGE:
                continue
            name = word if word in {PAGE, TABLE, FIGURE, ROW, "section", "sheet"} else "word"
            for labelled in (False, True) if kind == word == TABLE else (False,):
                query = Query(operation, (document,), kind, word, document=own.key, labelled=labelled)
                shape = f"{operation} {'labelled ' * labelled}{name}"
                yield OutlineOption(query, shape, (operation, kind, word, labelled, document.node))
            for place in inside:
                (selector,) = place.query.selectors
                fitting = {TABLE: (ROW,), PAGE: (TABLE, FIGURE)}.get(selector.kind, (TABLE, FIGURE, SECTION))
                if kind in fitting and word != "sheet":
                    query = Query(operation, (selector,), kind, word, document=own.key)
                    shape = f"{operation} {name} in {selector.kind}"
                    key = (operation, kind, word, False, selector.node)
                    yield OutlineOption(query, shape, key, place.numbers, place.names)

    def _located(self) -> Iterator[OutlineOption]:
        """Yield the search for runs of the question's words that stand in the document as they are."""
        words = self.question.words
        runs: list[tuple[int, int]] = []
        for length in range(MOST_WORDS, 0, -1):
            for first in range(len(words) - length + 1):
                last = first + length
                if any(a <= first and last <= b for a, b in runs):
                    continue
                if not (words[first].is_content and words[last - 1].is_content):
                    continue
                text = self.question.text[words[first].start : words[last - 1].end]
                if len(text) >= LEAST_LETTERS and self._occurs(text):
                    runs.append((first, last))
                    query = Query("locate", (), PAGE, PAGE, text, self.catalogue.document.key)
                    named = Named(
                        self._root(), text, 1.0, True, 0.0, len(runs), frozenset(range(first, last))
                    )
                    yield OutlineOption(
                        query, "locate text", ("locate", "text", normalise(text)), (), (named,)
                    )

    def _occurs(self, text: str) -> bool:
        return normalise(text) in self.catalogue.full_text


def pair_documents(first: OutlinePlans, second: OutlinePlans) -> Iterator[OutlineOption]:
    """Yield places of two documents side by side, and what changed between them; a question has the documents in this
    order, and so the places: "page 3 of the lease and page 5 of the deed"."""
    keys = [plans.catalogue.document.key for plans in (first, second)]
    whole = tuple(Selector(DOCUMENT, document=key) for key in keys)
    yield OutlineOption(Query("changes", whole), "changes document both", ("changes", frozenset(keys)))
    own, other = (
        [place for place in plans.places if place.exists and place.shape in _SIDE_BY_SIDE]
        for plans in (first, second)
    )
    for left, right in itertools.product(own, other):
        near = all(name.rank < MOST_TABLES for name in (*left.names, *right.names))
        if left.shape == right.shape and near and first.place_of(left) <= second.place_of(right):
            selectors = (*left.query.selectors, *right.query.selectors)
            numbers = tuple(a or b for a, b in zip(left.numbers, right.numbers, strict=True))
            shape = left.shape.replace("show", "across")
            key = ("show", frozenset(selector.node for selector in selectors))
            yield OutlineOption(Query("show", selectors), shape, key, numbers, (*left.names, *right.names))


def _overlap(first: OutlineOption, second: OutlineOption) -> bool:
    """Return whether two options use the same number."""
    return any(a and b for a, b in zip(first.numbers, second.numbers, strict=True))


def _both_named(first: Named, second: Named) -> bool:
    """Return whether a question can name both of two headings: each with words that the other has not, or as it
    stands."""
    return bool(first.words - second.words and second.words - first.words) or (first.stands and second.stands)


def place_key(selector: Selector, nodes: Sequence[Node]) -> tuple[object, ...]:
    """Return what a place is known by: its nodes, the column of a cell; what is looked for, where there is none."""
    if nodes:
        column = (normalise(selector.column),) if selector.column else ()
        return ("show", frozenset(node.id for node in nodes), *column)
    inside = selector.within
    within = "" if inside is None else inside.node or inside.label or str(inside.number or "")
    return (
        "missing",
        selector.kind,
        selector.label or str(selector.number or normalise(selector.name)),
        within,
    )
