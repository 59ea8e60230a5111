"""The line items of a document: every row of its tables that has values by period, wherever the table stands.

A question over several years, and one for a ratio, needs the rows of statements that search need not have returned:
the income statement for one operand, the balance sheet for the other. All tables of the document are read (a filing
of 250 pages has about a hundred, in a tenth of a second), and their rows compared with words or with known names.
Documents whose names differ in years and numbers alone are editions of one: the values of a later one hold.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Literal

import numpy as np

from clew.core.protocols import Snapshot
from clew.core.text import fold_name, query_terms
from clew.core.types import KINDS, TABLE, Hit
from clew.methods.readers.calculation import Operand, find_periods, item_words
from clew.parse.data_tables import DataTable, series_name, table_from_node

#: Longer tables are lists of records, and a document with more tables is a collection of data.
_MAX_ROWS, _MAX_TABLES = 300, 1_200
#: At most so many editions of a document are read together.
_MAX_EDITIONS = 12
_STATEMENT = re.compile(r"\bstatements? of\b|\bbalance sheets?\b", re.IGNORECASE)
_PART = re.compile(
    r"\bsegments?\b|\bpro forma\b|\bparent company\b|\bobligor\b|\bguarant\w+|\bcondensed\b|\bdisposed\b"
    r"|\bdiscontinued\b|\bdeed of\b",
    re.IGNORECASE,
)
#: Columns that have another meaning than the value of a year.
_NO_VALUE = re.compile(
    r"%|\b(?:change|variance|increase|decrease|vs|versus|percent\w*|quarters?|(?:three|six|nine) months)\b",
    re.IGNORECASE,
)
_NOTE = re.compile(r"\s*\((?:\w{1,2}|note \w+)\)|\(\d\)(?:\(\d\))*$", re.IGNORECASE)
#: Words that make another line item of a label, though they are no words of a search.
_OTHERS = frozenset("other before after non less excluding except not all".split())
_REST = frozenset(query_terms("total net of and consolidated attributable"))


#: A question for the value of a line item, and what it says that belongs to no label.
_ASKS_VALUE = re.compile(
    r"^(?:by )?(?:what|how (?:much|large|high|big))\b|^how did .* change\b", re.IGNORECASE
)
_SIZE = re.compile(r"^how (?:large|high|big)\b", re.IGNORECASE)
_REPORTING = frozenset(
    query_terms(
        "report reported spend spent hold held have had has pay paid earn earned make made generate generated record"
        " recorded incur incurred end company value amount worth much change grow grew growth rise rose fall fell"
        " decline declined drop dropped gain gained"
    )
)
_EARNINGS = frozenset(query_terms("earnings"))
#: A label is the one that a question names from this score on; another is as good within the second.
_SURE, _AS_GOOD = 0.95, 0.04
#: A label of the company's own statements may say a little more than a question does, with such words alone.
_LIKELY = 0.75
_GENERAL = frozenset(
    query_terms("total net of and consolidated attributable expense expenses cost costs inc plc corp")
)


Statement = Literal["income", "balance", "cash"]
#: The lines that a statement of a company has, as patterns of folded labels.
_NEEDED_LINES: dict[Statement, tuple[re.Pattern[str], ...]] = {
    "income": (
        re.compile(r"(?:total )?(?:net )?(?:operating )?(?:revenues?|sales)\b.*|sales to customers"),
        re.compile(r"net (?:income|earnings|loss|profit)\b.*|(?:profit|loss) for the (?:year|period)"),
        re.compile(r".*\b(?:tax|taxes)\b.*"),
    ),
    "balance": (
        re.compile(r"total assets"),
        re.compile(r"total (?:current )?liabilities.*|total .*equity.*"),
    ),
    "cash": (
        re.compile(r".*\boperating activities\b.*|.*\bcash .*operations\b.*"),
        re.compile(r".*\binvesting activities\b.*"),
    ),
}


@dataclass(frozen=True, slots=True)
class LineItem:
    """A row with values by year.

    ``name`` is its label without marks of notes, folded, ``full_name`` the label after its innermost group. ``words``
    are the stems of the label, ``around`` those of its groups and of the table's caption. ``columns`` are the columns
    of the years. ``is_part``: the table is about a part of the company; ``is_statement``: it is a statement of it.
    """

    table: DataTable
    row: int
    name: str
    full_name: str
    words: frozenset[str]
    around: frozenset[str]
    columns: Mapping[str, int]
    is_part: bool
    is_statement: bool

    @property
    def label(self) -> str:
        """The label as it is printed."""
        return self.table.rows[self.row].label

    def operand(self, year: str) -> Operand | None:
        """Return the cell of a year, None where it has no number."""
        column = self.columns.get(year)
        if column is None:
            return None
        row = self.table.rows[self.row]
        value = self.table.cell(row, column)
        number = 0.0 if value.kind == "empty" and value.text else value.number
        return None if number is None else Operand(row, column, value.text, number)

    def unit(self, year: str) -> tuple[str, float]:
        """Return unit and scale of the cell of a year."""
        value = self.table.cell(self.table.rows[self.row], self.columns[year])
        if value.kind == "empty":
            head = self.table.table.columns[self.columns[year]]
            return head.unit, head.scale
        return value.unit, 1.0 if value.unit == "%" else value.scale


class LineItems:
    """The line items of a document and its other editions, the latest edition first: of ``tables``, each with the
    heading that it stands under. ``names`` are those of the documents."""

    def __init__(self, tables: Iterable[tuple[DataTable, str]], names: Sequence[str]) -> None:
        placed = list(tables)
        self.tables = tuple(table for table, _ in placed)
        self.items = [item for table, heading in placed for item in _read_items(table, heading)]
        self._names = " " + re.sub(r"[^a-z]+", " ", " ".join(names).casefold())

    @cached_property
    def _weights(self) -> dict[str, float]:
        counts = Counter(word for item in self.items for word in item.words)
        return {word: math.log(1 + len(self.items) / count) for word, count in counts.items()}

    def find(
        self, words: Collection[str], text: str, years: Sequence[str] = ()
    ) -> list[tuple[float, LineItem]]:
        """Return the items whose labels fit words (stems) of a question, best first, with a score from 0 to 1: the
        harmonic mean of how much of the label the question's ``text`` has, and how much of the words the label has.

        Words that only groups or the caption have count half, those of the document's name not at all. Items that
        lack a number for one of ``years`` are left out.
        """
        asked = frozenset(word for word in words if not self._is_name(word))
        if not asked & frozenset(self._weights):
            return []
        rarest = math.log(1 + len(self.items))
        weight = {word: self._weights.get(word, rarest) for word in asked}
        mentioned, folded = frozenset(query_terms(text)) | asked, f" {fold_name(text)} "
        scored = []
        for item in self.items:
            own = asked & item.words
            if not own or any(item.operand(year) is None for year in years):
                continue
            label = sum(self._weights[word] * (0.3 if word in _REST else 1.0) for word in item.words)
            shared = sum(
                self._weights[word] * (0.3 if word in _REST else 1.0) for word in item.words & mentioned
            )
            around = (asked & item.around) - own
            share = sum(weight[word] for word in own) + 0.5 * sum(weight[word] for word in around)
            precision, recall = shared / label, share / sum(weight.values())
            score = 2 * precision * recall / (precision + recall)
            is_whole = f" {item.name} " in folded
            unsaid = not is_whole and any(
                f" {word} " not in folded for word in item.name.split() if word in _OTHERS
            )
            score += 0.02 * is_whole - 0.15 * unsaid - 0.1 * item.is_part + 0.01 * item.is_statement
            scored.append((score, item))
        return sorted(scored, key=lambda pair: -round(pair[0], 6))

    def _is_name(self, word: str) -> bool:
        """Return whether a word of a question is part of the document's name, which may run words together."""
        return (len(word) > 3 and word in self._names) or (len(word) > 1 and f" {word}" in self._names)

    def asked_words(self, question: str) -> frozenset[str]:
        """Return the words (stems) of a question that may name a line item."""
        words = frozenset(word for word in item_words(_SIZE.sub("what", question)) if not word.isdigit())
        # "Earnings" are asked for, revenue is earned.
        is_asked = "earnings" in question.casefold()
        return self.unknown(words - (_REPORTING - _EARNINGS if is_asked else _REPORTING))

    def choose(self, question: str, years: Sequence[str]) -> tuple[LineItem, bool] | None:
        """Return the line item that a question names in full, with a number for each of ``years``, and whether it is
        certain: it stands in one of the company's own statements, or most tables that have it agree, or no other
        label is like it. None where no label has all words of the question, or several do that disagree."""
        words = self.asked_words(question)
        fitting = self.find(words, question, years)
        if not fitting:
            return None
        own = {
            self._by_table[number][0].table.id for numbers in self._statements.values() for number in numbers
        }
        mentioned = frozenset(query_terms(question)) | _GENERAL
        for score, item in fitting:
            is_named = words <= item.words and self.unknown(item.words - mentioned) == frozenset()
            if item.table.id in own and score >= _LIKELY and is_named:
                return item, True
        best = [item for score, item in fitting if score >= max(_SURE, fitting[0][0] - _AS_GOOD)]
        if not best:
            return None
        counts = Counter(_amounts(item, years) for item in best)
        (amounts, count), *others = counts.most_common(2)
        if others and count == others[0][1]:
            return None
        # Where a label has all words, one without some of them is another item: "Tax effect" is no tax rate.
        is_whole = any(words <= item.words for item in best)
        rivals = [
            item for score, item in fitting if score >= _LIKELY and (words <= item.words or not is_whole)
        ]
        agrees = all(_amounts(item, years) == amounts for item in rivals)
        return next(item for item in best if _amounts(item, years) == amounts), count > 1 or agrees

    def find_line(self, statement: Statement, patterns: Sequence[str], year: str) -> LineItem | None:
        """Return the line of a statement with a number for a year whose folded label, alone or after its group, the
        first of several patterns matches whole; None where the statement has none."""
        for number in self._statements[statement]:
            items = [item for item in self._by_table[number] if item.operand(year) is not None]
            for pattern in patterns:
                form = re.compile(pattern)
                for item in items:
                    if form.fullmatch(item.name) or form.fullmatch(item.full_name):
                        return item
        return None

    @cached_property
    def _by_table(self) -> list[list[LineItem]]:
        groups: dict[str, list[LineItem]] = {}
        for item in self.items:
            groups.setdefault(item.table.id, []).append(item)
        return list(groups.values())

    @cached_property
    def _statements(self) -> dict[Statement, list[int]]:
        """The tables that are the company's own statements: at most one for each set of years, that with most lines.

        A statement is known by the lines that it must have. Of several, a summary of the year and one of a subsidiary
        are shorter; those whose captions name a part are none.
        """
        chosen: dict[Statement, list[int]] = {}
        for statement, needed in _NEEDED_LINES.items():
            candidates = [
                number
                for number, items in enumerate(self._by_table)
                if not items[0].is_part
                and all(any(form.fullmatch(item.name) for item in items) for form in needed)
            ]
            candidates.sort(key=lambda n: (-self._by_table[n][0].is_statement, -len(self._by_table[n])))
            documents: set[str] = set()
            chosen[statement] = []
            for number in candidates:
                document = self._by_table[number][0].table.document
                if document not in documents:
                    documents.add(document)
                    chosen[statement].append(number)
        return chosen

    def unknown(self, words: Iterable[str]) -> frozenset[str]:
        """Return the words that are not part of the document's name."""
        return frozenset(word for word in words if not self._is_name(word))

    def latest_years(self) -> list[str]:
        """Return the years that items have numbers for, the latest first; without those of few items, which are
        maturities and forecasts."""
        counts = Counter(year for item in self.items for year in item.columns)
        most = max(counts.values(), default=0)
        return sorted((year for year, count in counts.items() if count >= 0.3 * most), reverse=True)

    def years(self, item: LineItem) -> list[str]:
        """Return the years of an item, and of the same item in other editions, ascending."""
        return sorted({year for other in self.same(item) for year in other.columns if other.operand(year)})

    def same(self, item: LineItem) -> list[LineItem]:
        """Return an item and the items of the same label in other documents, this one's first."""
        others = [
            other
            for other in self.items
            if other.table.document != item.table.document
            and other.name == item.name
            and other.table.rows[other.row].place.groups == item.table.rows[item.row].place.groups
        ]
        return [item, *others]


def asks_value(question: str) -> bool:
    """Return whether a question may ask for the value of a line item or its change: "what was the revenue"."""
    return _ASKS_VALUE.match(question) is not None


def _amounts(item: LineItem, years: Sequence[str]) -> tuple[float, ...]:
    """Return the numbers of an item without their signs, for the same item in several tables: an expense is printed
    in parentheses in some."""
    operands = (item.operand(year) for year in years)
    return tuple(abs(operand.number or 0.0) for operand in operands if operand is not None)


def document_lines(
    hits: Sequence[Hit], snapshot: Snapshot, subjects: Mapping[str, frozenset[str]] = MappingProxyType({})
) -> LineItems | None:
    """Return the line items of the document that most of the hits are in, and of its editions; None where the hits
    are in several documents that are no editions, or in one without tables.

    Of a question about ``subjects``, the names in it with the documents (keys) about each, only hits in these count;
    the documents themselves do where there are none.
    """
    about = frozenset().union(*subjects.values())
    counts = Counter(
        hit.node.document
        for hit in hits
        if hit.node.kind in KINDS and (not about or hit.node.document in about)
    ) or Counter(sorted(about))
    if not counts:
        return None
    documents = {document.key: document for document in snapshot.documents()}
    best = counts.most_common(1)[0][0]
    if best not in documents:
        return None
    series = series_name(documents[best].name)
    editions = [
        key
        for key in counts
        if key == best or (series and key in documents and series_name(documents[key].name) == series)
    ]
    if sum(counts[key] for key in editions) < 0.6 * sum(counts.values()):
        return None
    editions = sorted(editions, key=lambda key: documents[key].name, reverse=True)[:_MAX_EDITIONS]
    tables = [table for key in editions for table in open_tables(key, snapshot)]
    names = [documents[key].name for key in editions] + [documents[key].title for key in editions]
    key = "line-items/" + "/".join(editions)
    items: LineItems = snapshot.memoize(key, lambda: LineItems(tables, names), documents_only=True)
    return items if items.items else None


def open_tables(document: str, snapshot: Snapshot) -> list[tuple[DataTable, str]]:
    """Return the tables of a document, each with the heading that it stands under; none of a document that is a
    collection of data."""
    first, end = snapshot.document_rows(document)
    kinds = snapshot.column("kind")[first:end]
    rows = first + np.flatnonzero(kinds == KINDS.index(TABLE))
    if not 0 < len(rows) <= _MAX_TABLES:
        return []
    return [
        (
            snapshot.memoize(f"table/{node.id}", partial(table_from_node, node), documents_only=True),
            node.headings[-1] if node.headings else "",
        )
        for node in snapshot.nodes(rows)
    ]


def _read_items(table: DataTable, heading: str) -> list[LineItem]:
    if table.table.headers_uncertain or len(table.rows) > _MAX_ROWS:
        return []
    columns: dict[str, list[int]] = {}
    for number, column in enumerate(table.columns):
        years = {period[-4:] for period in find_periods(column.header)}
        if number and len(years) == 1 and not _NO_VALUE.search(column.header):
            columns.setdefault(years.pop(), []).append(number)
    if not columns:
        return _read_dated_items(table)
    about = f"{table.table.caption} {heading}"
    around = frozenset(query_terms(about))
    is_part, is_statement = bool(_PART.search(about)), bool(_STATEMENT.search(about))
    items = []
    for number, row in enumerate(table.rows):
        filled = {
            year: [place for place in places if row.cells[place].strip()] for year, places in columns.items()
        }
        own = {year: places[0] for year, places in filled.items() if len(places) == 1}
        name = fold_name(_NOTE.sub(" ", row.label))
        if own and any(map(str.isalpha, name)):
            # A remark in parentheses ("including capitalized software") is no part of the name.
            short = re.sub(r"\([^)]*\)", " ", row.label)
            words = frozenset(query_terms(short if any(map(str.isalpha, short)) else row.label))
            groups = around | frozenset(query_terms(" ".join((*row.place.groups, row.label))))
            full_name = " ".join((*map(fold_name, row.place.groups[-1:]), name))
            items.append(LineItem(table, number, name, full_name, words, groups, own, is_part, is_statement))
    return items


def _read_dated_items(table: DataTable) -> list[LineItem]:
    """Return the rows of a table without years in its header as values of the year in its document's name, where it
    has one column of numbers."""
    years = set(re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", table.document_name))
    numbers = [n for n, column in enumerate(table.columns) if n and column.type == "number"]
    if len(years) != 1 or len(numbers) != 1:
        return []
    (year,), (column,) = years, numbers
    return [
        LineItem(
            table, number, fold_name(row.label), fold_name(row.label), frozenset(query_terms(row.label)),
            frozenset(query_terms(table.table.caption)), {year: column}, False, False,
        )
        for number, row in enumerate(table.rows)
        if any(map(str.isalpha, row.label))
    ]  # fmt: skip
