"""What a table can be asked: its columns, the cells that a question may name, and what they are called.

Cells are looked up by their words, by words in common, and, in columns with few different cells, by meaning: "the
finance people" may mean the department "Accounting".
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from clew.core.text import fold_name, is_stop_term
from clew.questions.catalogue import Label
from clew.questions.slots import encode_labels, measure_features, share_root
from clew.questions.table_query import GROUP, TableArrays
from clew.questions.text import QuestionText, Value, stem_words

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder
    from clew.parse.data_tables import DataColumn

#: Words of the longest run that is looked up as a cell, and distinct cells of a column that are indexed.
LONGEST_CELL, MAX_CELLS = 8, 20_000
#: Distinct cells of a column that are compared by meaning; of such a column, how many are tried.
MOST_DESCRIBED, BEST_DESCRIBED = 80, 3
#: Cells with words in common that are tried, and the least share of a cell's words, unless one of these words stands
#: in no more cells than RARE: "metformin" of "METFORMIN 1000MG TBL 60".
BEST_PARTIAL, LEAST_SHARED, RARE = 16, 0.34, 3
#: Characters of the longest code that joins tables, the least share of a column's codes that the other has, and codes
#: of one condition.
LONGEST_CODE, LEAST_JOINED, MOST_CODES = 40, 0.8, 200
#: Cells of a table that are tried as codes in another, the likeliest first.
MOST_CARRIED = 12
#: A column with at most so many different cells is a flag: each of its cells may be meant by naming the column.
FLAG_CELLS = 4

COLUMN_FEATURES = (
    "stem in common",
    "share of the label's stems",
    "spelling in common",
    "nearest word by vector",
    "similarity of the whole, among its kind",
    "rank by similarity",
    "share of the header's numbers that the question has",
    "numbers",
    "days",
    "first column of text",
    "share of different cells",
    "bias",
)
CELL_FEATURES = (
    "the cell's words stand in the question",
    "share of the cell's words",
    "rarity of a word in common",
    "words of the question",
    "similarity by vector",
    "a number of the question",
    "a cell of a flag",
    "column of names",
    "log of rows with the cell",
    "log-odds of the column",
    "bias",
)


_POINTED = re.compile(r"\d{1,3}(?:\.\d{3})+")

#: A column and a cell of it, as spelled.
Cell = tuple[int, str]


@dataclass(frozen=True, slots=True)
class CellMatch:
    """A cell that a question may name: its ``column``, its ``value`` as spelled, the ``words`` of the question that
    name it by their places, and :data:`CELL_FEATURES`. ``more`` are further cells of the column that mean the same:
    the codes of all rows of another table that has what is named, which is its cell ``source``."""

    column: int
    value: str
    words: frozenset[int]
    features: tuple[float, ...]
    more: tuple[str, ...] = ()
    source: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether all its words stand in the question, in a row."""
        return self.features[0] > 0

    @property
    def is_rare(self) -> bool:
        """Whether a word of it that few other cells have stands in the question."""
        return self.features[2] > 0

    @property
    def is_flag(self) -> bool:
        """Whether nothing but its column, which has few different cells, speaks for it."""
        return not any(self.features[:6])


class TableCatalogue:
    """The columns and cells of one table."""

    def __init__(self, arrays: TableArrays) -> None:
        self.arrays, self.table = arrays, arrays.table
        self.labels = [Label.read(column.header or column.name) for column in self.table.columns]
        name = f"{self.table.name} {self.table.table.caption} {self.table.document_name}"
        self.title = Label.read(name.replace(".", " "))
        self._joins: WeakKeyDictionary[TableCatalogue, list[tuple[int, int, frozenset[str], bool]]] = (
            WeakKeyDictionary()
        )

    @cached_property
    def text_columns(self) -> list[int]:
        """The columns of text, and the headings of groups where there are any."""
        columns = [place for place, column in enumerate(self.table.columns) if column.type == "text"]
        return columns + [GROUP] * any(row.group for row in self.table.rows)

    @cached_property
    def numbers(self) -> list[int]:
        """The columns of numbers."""
        return [place for place, column in enumerate(self.table.columns) if column.type == "number"]

    @cached_property
    def days(self) -> list[int]:
        """The columns of days."""
        return [place for place, column in enumerate(self.table.columns) if column.type == "date"]

    @cached_property
    def identifiers(self) -> list[int]:
        """The columns of whole numbers of one length that are all different: numbers of orders, of people, years."""
        columns = []
        for place in self.numbers:
            cells = [row.cells[place] for row in self.table.rows if row.cells[place] and not row.is_total]
            are_alike = all(cell.isdigit() and len(cell) == len(cells[0]) >= 3 for cell in cells)
            if cells and are_alike and len(set(cells)) == len(cells):
                columns.append(place)
        return columns

    @cached_property
    def names(self) -> list[int]:
        """The columns whose cells name rows: of text, nearly all different, or identifiers; the first ones before
        others."""
        count = max(len(self.table.rows), 1)
        texts = [place for place in self.text_columns if place != GROUP]
        columns = [place for place in texts if len(self.distinct(place)) >= 0.6 * count]
        return sorted({*columns, *texts[:1], *self.identifiers})[:5]

    @cached_property
    def cell_sets(self) -> dict[int, frozenset[str]]:
        """The different cells of each column that may hold codes: of text or identifiers, not of long texts."""
        columns = {*self.text_columns, *self.numbers} - {GROUP}
        cells = {place: self.distinct(place) for place in sorted(columns)}
        return {
            place: frozenset(own)
            for place, own in cells.items()
            if 1 < len(own) <= MAX_CELLS and max(map(len, own)) <= LONGEST_CODE
        }

    @cached_property
    def keys(self) -> dict[int, dict[str, int]]:
        """The rows of each column whose cells are all different, by cell."""
        keys = {}
        for place, own in self.cell_sets.items():
            rows = {
                row.cells[place]: number for number, row in enumerate(self.table.rows) if row.cells[place]
            }
            if len(own) == sum(1 for row in self.table.rows if row.cells[place]):
                keys[place] = rows
        return keys

    def join(self, target: TableCatalogue) -> list[tuple[int, int, frozenset[str], bool]]:
        """Return the columns of another table that hold codes of this one, with the column here, the codes that both
        have, and whether they name the rows of one of the two tables. Where they do not, as the code of a company in
        two lists of many rows for each, they are texts."""
        if target not in self._joins:
            joins = []
            for own, codes in self.cell_sets.items():
                for column, others in target.cell_sets.items():
                    few = min(len(codes), len(others))
                    # The rows are named by the table that has the more of them.
                    names_rows = (len(codes) >= len(others) and own in self.keys) or (
                        len(others) >= len(codes) and column in target.keys
                    )
                    is_key = few > 2 and names_rows
                    are_texts = own in self.text_columns and column in target.text_columns
                    if (is_key or are_texts) and len(shared := codes & others) >= LEAST_JOINED * few:
                        joins.append((column, own, shared, is_key))
            self._joins[target] = joins
        return self._joins[target]

    def distinct(self, column: int) -> list[str]:
        """Return the different cells of a column."""
        return self.arrays.texts(column)[0]

    @cached_property
    def _cell_counts(self) -> dict[int, Counter[str]]:
        return {
            place: Counter(row.group if place == GROUP else row.cells[place] for row in self.table.rows)
            for place in [*self.text_columns, *self.numbers, *self.days]
        }

    def count_cells(self, column: int, value: str) -> int:
        """Return how many rows have a cell."""
        return self._cell_counts[column][value]

    @cached_property
    def _by_words(self) -> dict[tuple[str, ...], list[tuple[int, str]]]:
        """The cells by the stems of their words."""
        cells: dict[tuple[str, ...], list[tuple[int, str]]] = defaultdict(list)
        for place in [*self.text_columns, *self.identifiers]:
            for value in self.distinct(place)[:MAX_CELLS]:
                words = stem_words(value[:200])
                if 0 < len(words) <= LONGEST_CELL:
                    cells[words].append((place, value))
        return cells

    @cached_property
    def _by_stem(self) -> dict[str, list[tuple[int, str, int]]]:
        """The cells of text by each stem, with how many words that mean something the cell has."""
        cells: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        for place in self.text_columns:
            for value in self.distinct(place)[:MAX_CELLS]:
                stems = {stem for stem in stem_words(value[:300]) if not is_stop_term(stem)}
                for stem in stems:
                    cells[stem].append((place, value, len(stems)))
        return cells

    @cached_property
    def _starts(self) -> dict[str, list[str]]:
        """The stems of cells by their first four letters."""
        stems: dict[str, list[str]] = defaultdict(list)
        for stem in self._by_stem:
            stems[stem[:4]].append(stem)
        return stems

    def measure_columns(self, question: QuestionText, encoder: Encoder) -> Floats:
        """Return the features of columns, (columns, :data:`COLUMN_FEATURES`)."""
        texts = [label.text for label in self.labels]
        own = measure_features(question, (), self.labels, texts, [0.1] * len(texts), encoder)
        features = np.zeros((len(texts), len(COLUMN_FEATURES)))
        features[:, :6], features[:, -1] = own[:, :6], 1.0
        numbers = {text for value in question.values for text in value.texts}
        numbers |= {word.text for word in question.words if any(map(str.isdigit, word.text))}
        short = {number[-2:] for number in numbers if len(number) == 4 and number.isdigit()}
        first = next((place for place in self.text_columns if place != GROUP), -1)
        count = max(len(self.table.rows), 1)
        for place, column in enumerate(self.table.columns):
            parts = {word.text for word in QuestionText(column.header or column.name).words}
            digits = {"".join(filter(str.isdigit, part)) for part in parts} - {""}
            # Of "Q1 2023" and "Q4 2023" the question may have the year alone.
            given = len(digits & (numbers | short)) / max(len(digits), 1)
            features[place, 6] = max(given, float(bool(parts & numbers - digits)))
            features[place, 7:9] = column.type == "number", column.type == "date"
            features[place, 9] = place == first
            features[place, 10] = len(self.distinct(place)) / count
        return features

    def find_cells(
        self, question: QuestionText, columns: Sequence[float], encoder: Encoder
    ) -> list[CellMatch]:
        """Return the cells that a question may name; ``columns`` are the log-odds of the table's columns."""
        cells: dict[Cell, dict[str, float | frozenset[int]]] = defaultdict(dict)
        for cell, places in self._find_runs(question):
            cells[cell] |= {"exact": 1.0, "share": 1.0, "words": places}
        for cell, share, rarity, places in self._share_words(question):
            cells[cell]["rarity"] = rarity
            if "exact" not in cells[cell]:
                cells[cell] |= {"share": share, "words": places}
        for cell, likeness, place in self._describe(question, encoder):
            cells[cell]["likeness"] = likeness
            cells[cell].setdefault("words", frozenset([place]))
        for cell, places in self._find_numbers(question):
            cells[cell] |= {"number": 1.0, "words": places}
        for column in self.text_columns:
            if column != GROUP and len(self.distinct(column)) <= FLAG_CELLS:
                for text in self.distinct(column):
                    cells[column, text]["flag"] = 1.0
        return [self._match(cell, known, columns) for cell, known in cells.items()]

    def _find_runs(self, question: QuestionText) -> Iterator[tuple[Cell, frozenset[int]]]:
        """Yield the cells whose words stand in a question in a row, the longest run of each last."""
        words = question.words
        for length in range(1, LONGEST_CELL + 1):
            for first in range(len(words) - length + 1):
                run = words[first : first + length]
                if any(
                    word.is_content or word.text.isdigit() or question.text[word.start : word.end].isupper()
                    for word in run
                ):
                    for cell in self._by_words.get(tuple(word.stem for word in run), ())[:8]:
                        yield cell, frozenset(range(first, first + length))

    def _find_numbers(self, question: QuestionText) -> Iterator[tuple[Cell, frozenset[int]]]:
        """Yield the cells of numbers that a question gives."""
        for value, places in zip(question.values, question.value_places, strict=True):
            for column in () if value.is_date else self.numbers:
                numbers = read_numbers(question, value, self.table.columns[column])
                for row in np.flatnonzero(self.arrays.numbers(column) == numbers[0])[:1].tolist():
                    yield (column, self.table.rows[row].cells[column]), places

    def _match(
        self, cell: Cell, known: dict[str, float | frozenset[int]], columns: Sequence[float]
    ) -> CellMatch:
        column, value = cell
        words = known.get("words", frozenset())
        assert isinstance(words, frozenset)
        numbers = {name: own for name, own in known.items() if isinstance(own, float)}
        features = (
            numbers.get("exact", 0.0),
            numbers.get("share", 0.0),
            numbers.get("rarity", 0.0),
            math.log1p(len(words)),
            numbers.get("likeness", 0.0),
            numbers.get("number", 0.0),
            numbers.get("flag", 0.0),
            float(column in self.names),
            math.log1p(self.count_cells(column, value)),
            0.0 if column == GROUP else columns[column],
            1.0,
        )
        return CellMatch(column, value, words, features)

    def _share_words(self, question: QuestionText) -> list[tuple[Cell, float, float, frozenset[int]]]:
        """Return the cells with most words in common with a question, with the share of their words, and how rare the
        rarest of those is: 1 where no other cell has it, 0 where more than :data:`RARE` do."""
        shared: dict[Cell, dict[str, int]] = defaultdict(dict)
        sizes: dict[Cell, int] = {}
        rarities: dict[Cell, float] = defaultdict(float)
        weights: dict[Cell, float] = defaultdict(float)
        for place, word in enumerate(question.words):
            if not word.is_content:
                continue
            for stem in self._starts.get(word.stem[:4], ()):
                if not share_root(word.stem, stem):
                    continue
                holders = self._by_stem[stem]
                rarity = 1 / len(holders) if len(holders) <= RARE else 0.0
                for column, value, size in holders[:200]:
                    rarities[column, value] = max(rarities[column, value], rarity)
                    if stem not in shared[column, value]:
                        weights[column, value] += 1 / (1 + math.log(len(holders)))
                    shared[column, value][stem], sizes[column, value] = place, size
        best = sorted(shared, key=lambda cell: -weights[cell] * len(shared[cell]) / sizes[cell])
        return [
            (cell, len(shared[cell]) / sizes[cell], rarities[cell], frozenset(shared[cell].values()))
            for cell in best[:BEST_PARTIAL]
            if len(shared[cell]) / sizes[cell] >= LEAST_SHARED or len(shared[cell]) > 1 or rarities[cell]
        ]

    def _describe(self, question: QuestionText, encoder: Encoder) -> list[tuple[Cell, float, int]]:
        """Return the cells of columns with few different ones that are nearest to a run of words in meaning."""
        words, runs = question.words, []
        for first in range(len(words)):
            for last in range(first + 1, min(len(words), first + 3) + 1):
                if words[first].is_content and words[last - 1].is_content:
                    runs.append((question.text[words[first].start : words[last - 1].end].casefold(), first))
        if not runs:
            return []
        vectors = encoder.encode([text for text, _ in runs])
        nearest = []
        for column in self.text_columns:
            values = self.distinct(column)
            if 1 < len(values) <= MOST_DESCRIBED and sum(map(len, values)) < 60 * len(values):
                likeness = encode_labels(encoder, tuple(map(fold_name, values))) @ vectors.T
                best = likeness.max(axis=1)
                for place in np.argsort(-best)[:BEST_DESCRIBED]:
                    run = int(likeness[place].argmax())
                    nearest.append(((column, values[place]), float(best[place]), runs[run][1]))
        return nearest


def read_numbers(question: QuestionText, value: Value, column: DataColumn) -> list[float]:
    """Return the numbers of a value of a question, not of a date, as the cells of a column are written: "1.000" is a
    thousand where these have a decimal comma."""
    written = question.text[value.start : value.end]
    if column.notation == "decimal comma" and _POINTED.fullmatch(written):
        return [float(written.replace(".", ""))]
    return [float(text) for text in value.texts]


def carry_cells(
    cells: Sequence[CellMatch], source: TableCatalogue, target: TableCatalogue, columns: Sequence[float]
) -> list[CellMatch]:
    """Return the cells of one table, named exactly or by a rare word, as the codes in another table that lead to
    their rows: a guest as her number in the table of bookings. ``columns`` are the log-odds of the columns of the
    target."""
    carried = []
    named = [cell for cell in cells if (cell.is_exact or cell.is_rare) and cell.column != GROUP]
    for column, own, shared, is_key in source.join(target) if named else ():
        texts, places = source.arrays.texts(own)
        for cell in named[:MOST_CARRIED]:
            rows = source.arrays.rows_with(cell.column, cell.value)
            own_places = np.unique(places[rows] if cell.column != own else places[:0])
            codes = [texts[place] for place in own_places if place >= 0 and texts[place] in shared]
            stands_for = is_key or (
                len(codes) == len(own_places) == 1 and np.count_nonzero(places == own_places[0]) == len(rows)
            )
            if 0 < len(codes) <= MOST_CODES and stands_for:
                features = (*cell.features[:7], 0.0, cell.features[8], columns[column], 1.0)
                more = tuple(codes[1:])
                carried.append(CellMatch(column, codes[0], cell.words, features, more, cell.value))
    return carried
