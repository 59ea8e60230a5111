"""Questions over tables, answered by rule: cells looked up by row and column, and computed with.

A question is taken apart into an operation (a change, a percent change, a sum, an average, a ratio, a count, the
largest, a lookup), the periods that it names, and the words of the line items. Rows are matched by their labels with
the headings above them, columns by their headers; either may hold the periods. What is computed keeps its operands:
every number in a formula is a cell. TagOp (Zhu et al., ACL 2021) trains a tagger and a classifier for the same
operations; here both are rules.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from clew.core.cell_values import read_cell, read_scale
from clew.core.text import fold_name, query_terms
from clew.core.types import Column, Table
from clew.core.values import LEAST_AMOUNT, POLAR, find_direction, settle_direction
from clew.methods.readers.mentions import asked_part
from clew.parse.data_tables import SCALE_NAMES, DataRow, DataTable, build_data_table

Operation = Literal[
    "lookup",
    "change",
    "percent change",
    "sum",
    "average",
    "ratio",
    "percentage",
    "count",
    "extreme",
    "periods",
    "direction",
    "series",
]


#: A longer table is a list of records, for SQL: its rows are not compared with a question one by one.
MAX_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class Operand:
    """A cell that an answer rests on: its row, its column, its text, and the number in it."""

    row: DataRow
    column: int
    text: str
    number: float | None


@dataclass(frozen=True, slots=True)
class Calculation:
    """An answer from a table. ``values`` are its parts as text (one, except where several were asked for), ``scale``
    is the scale of its numbers (1e6 for millions), ``unit`` "%", a currency or "". ``formula`` shows how it was
    computed from the ``operands``, "" for cells that were looked up. ``confidence``, from 0 to 1, is how well the
    words of the question fit rows and columns; it is no probability."""

    operation: Operation
    table: DataTable
    values: tuple[str, ...]
    operands: tuple[Operand, ...]
    formula: str = ""
    unit: str = ""
    scale: float = 1.0
    confidence: float = 0.0

    @property
    def text(self) -> str:
        """The answer with its scale in words."""
        word = SCALE_NAMES.get(self.scale, "")
        return "; ".join(
            f"{value} {word}"
            if word and read_cell(value).kind == "number" and not value.endswith("%")
            else value
            for value in self.values
        )


_YEAR = r"(?:19|20)\d\d"
_PERIOD = re.compile(
    rf"\b(?:(?P<quarter>Q[1-4]|(?:first|second|third|fourth)[ -]quarter)\s*(?:of|,|in)?\s*)?"
    rf"(?:(?:fiscal|financial|calendar)?\s*(?:years?)?\s*|FY\s?)?(?P<year>{_YEAR})\b|\bF(?:Y\s?)?(?P<short>\d\d)\b",
    re.IGNORECASE,
)
#: A header that is printed with spaces between its letters: "2 0 1 8".
_SPACED_YEAR = re.compile(r"\b([12]) ([09]) (\d) (\d)\b")
_RANGE = re.compile(
    rf"(?:from|between)?\s*(?P<first>{_YEAR})\s*(?:-|–|to|through|till|until)\s*"
    rf"(?:(?:fiscal|financial|calendar) (?:year )?|FY ?)?(?P<last>{_YEAR})\b",
    re.IGNORECASE,
)
_OPERATION_WORDS: tuple[tuple[Operation, str], ...] = (
    (
        "periods",
        r"\b(?:wh(?:ich|at)|for which)\b.*\b(?:years?|periods?|dates?|quarters?)\b.*\b(?:provid\w+"
        r"|includ\w+|"
        r"reported|calculated|presented|data|information|shown|recorded|covered|comput\w+|given"
        r"|determined)\b",
    ),
    (
        "count",
        r"\bhow many (?:\w+ ){0,6}?(?:years|quarters|segments?|types|categories|components|items|regions"
        r"|countries|months|expenses?|periods)\b|\bin how many\b|\b(?:number|count) of years\b",
    ),
    (
        "percent change",
        r"(?:\b(?:percent(?:age)?|proportional|relative)|%) (?:of )?(?:change|increase|decrease|growth"
        r"|decline|difference|reduction)|\b(?:change|increase|decrease|grow\w*|decline)d? (?:in"
        r"|by) (?:percent\w*|%)"
        r"|\bby what percent|\bgrowth rate|\brate of (?:change|growth|increase|decrease)"
        r"|\b(?:change|increase|decrease|growth|decline)\b.*\b(?:as a|in) percent(?:age)?\b"
        r"|\byear[- ]on[- ]year (?:percentage )?(?:change|growth)|\bpercent(?:age)?\b.*\b(?:change"
        r"|growth)\b",
    ),
    (
        "percentage",
        r"\b(?:percent(?:age)?s?|proportions?|share|portion|%)\b.*\b(?:of|over|to|in|among|out of|against"
        r"|made up|constitut\w+|compos\w+|account\w*|represent\w*)\b|\bas a (?:percent|proportion"
        r"|fraction)"
        r"|\bwhat percent",
    ),
    (
        "ratio",
        r"\bratio (?:of|between)\b|\bas a ratio\b|\bratio\b.*\bto\b|\btimes (?:as|larger|greater"
        r"|more)\b|\bdivided by\b",
    ),
    ("average", r"\baverage\b|\bmean\b"),
    (
        "extreme",
        r"\b(?:which|what|who)\b.*\b(?:(?:larg|high|great|low|small|bigg?)e(?:r|st)|least|most|fewest"
        r"|max(?:imum)?|min(?:imum)?)\b"
        r"|\b(?:which|what) (?:fiscal |financial )?(?:years?|fy|quarters?|periods?)\b.*\b(?:less"
        r"|more|greater|larger"
        r"|exceed\w*|above|below|under|over|negative|positive|higher|lower|fewer)\b",
    ),
    (
        "change",
        r"\b(?:change|differen\w+|increase|decrease|growth|decline|improvement|fluctuation|movement|drop"
        r"|reduction)\b.*\b(?:in|of|from|between|for)\b|\bhow much (?:more|less|higher|lower)\b"
        r"|\bhow many (?:more|less|fewer)\b|\bby how much\b"
        r"|\bhow (?:much|far) (?:has|have|did|had)\b.*"
        r"\b(?:chang|gr[eo]w|increas|decreas|declin|f[ae]ll|r[io]s[ei]|drop|mov|travel|shift)\w*",
    ),
    (
        "sum",
        r"\b(?:sum|combined|aggregate|altogether)\b|\btotals? (?:amount |value |number |cost )?of\b"
        r"|\btotal\b.*\b(?:across|over|between|for (?:both|all)|from|and|in both|within|during)\b",
    ),
)
_OPERATIONS = tuple(
    (operation, re.compile(pattern, re.IGNORECASE)) for operation, pattern in _OPERATION_WORDS
)
#: Words of operations, not of line items.
_NOISE = frozenset(
    query_terms(
        "what which who how many much year years fiscal financial quarter ended period amount value change"
        " percentage percent difference increase decrease growth average mean sum total ratio proportion"
        " respectively respective company group table larger largest higher highest lower lowest smaller"
        " smallest greater greatest exceed more less than thousand million billion december september june"
        " march january between across expressed level year on both end ending ended number fy fys nominal"
    )
)
_KEEP = frozenset(query_terms("total average number amount value growth change ending"))
_THRESHOLD = re.compile(
    r"\b(?:exceed\w*|more than|greater than|larger than|higher than|above|over|at least|less than"
    r"|lower than|below|under"
    r"|fewer than|smaller than)\s*(?P<number>[$€£]?\s*\d[\d,]*(?:\.\d+)?)\s*(?P<unit>%|percent)?\s*"
    r"(?P<scale>thousands?|millions?|billions?)?",
    re.IGNORECASE,
)
_SIGN = re.compile(r"\b(?P<sign>negative|positive)\b", re.IGNORECASE)
_RANK = re.compile(r"\b(?P<rank>second|third|fourth)[ -](?:high|low|larg|small|great)\w*", re.IGNORECASE)
_RANKS = {"second": 2, "third": 3, "fourth": 4}
_RESPECTIVE = re.compile(r"\brespectively\b|\brespective\b", re.IGNORECASE)
_SPLIT_RATIO: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:percent(?:age)?|proportion|share|portion|ratio) (?:\([^)]*\) )?of (?P<whole>.+?) (?:is|are"
        r"|was|were|does|do|did)"
        r" (?:made up (?:of|by)|attribut\w+ to|from|comprised of|composed of|represented by)?\s*(?P<part>.+)",
        r"(?P<part>.+?),? (?:expressed )?as (?:a |the )?(?:percent(?:age)?|proportion|fraction|ratio"
        r"|share|%) (?:of|to|over)"
        r" (?P<whole>.+)",
        r"(?:percent(?:age)?|proportion|share|portion|ratio|constitution)"
        r" (?:\([^)]*\) )?(?:constitution )?(?:of|between|for)"
        r" (?P<part>.+?) (?:over|to|out of|in|among|amongst|against|and|divided by|of|on|relative to"
        r"|from|within|under) (?P<whole>(?:the )?"
        r"(?:total|sum|all|overall|[A-Za-z]).+)",
        r"(?P<part>.+?) (?:divided by|over|to) (?P<whole>.+)",
    )
)


#: Questions for reasons, definitions and manners, which no cell answers.
_NO_CELL = re.compile(
    r"^(?:why|where|when)\b|\breasons?\b|\bcauses?d?\b|^how (?:is|are|was|were|does|do|did|can|has) |\bdue to\b"
    r"|\bled to\b"
    r"|\bmean\?$|\bdefin(?!ed[ -](?:benefit|contribution))\w+|\bdescri\w+|\battributed to\b"
    r"|\battributable to\s*\?|\bdriven by\b|\bwhat (?:does|do) ",
    re.IGNORECASE,
)
#: Captions of tables about a part of a company, and how much less such a table fits a question about the whole, or
#: any other table one about a part: "the goodwill of the Business segment".
_PART = re.compile(
    r"\bsegments?\b|\bpro forma\b|\bguarant(?:ors?|ees?)\b|\bobligors?\b|\bparent company\b", re.IGNORECASE
)
_PART_HEADING = re.compile(r"\b[A-Z]\w+ [Ss]egment$")
#: A name of several words, as a part of a company has it: "Digital Media".
_PART_NAME = re.compile(r"\b[A-Z][\w&-]*[a-z](?: (?:and |& )?[A-Z][\w&-]*[a-z])+\b")
_PART_LOSS = 0.45
#: What a question about a rate asks with, and questions for a number of things, which are no money.
_RATE = re.compile(
    r"\b(?:rates?|per\s?cent\w*|shares? of|ratio|margin|yield|proportion|interest|growth|return|portion)\b|%",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow many\b|\bnumber of\b", re.IGNORECASE)
_CURRENCIES = frozenset("$€£¥₹")
_OUTFLOW = re.compile(r"\b(?:loss|losses|deficit|expenses?|costs?|used)\b", re.IGNORECASE)
#: What is taken off: printed in parentheses, and asked for as an amount.
_DEDUCTION = re.compile(
    r"\b(?:expenses?|costs?|losses|allowances?|depreciation|amorti[sz]ation|impairments?|provisions?)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\W*(?:did|does|has|have|had|is|are|was|were)\b", re.IGNORECASE)
_ANNOUNCED_SCALE = re.compile(
    r"\bin (?:[$€£]|US|dollars|euros| )*(?:thousand|million|billion)s\b", re.IGNORECASE
)
_BRACKETED_SCALE = re.compile(r"\(\s*in\s*(?:thousand|million|billion)s\b[^)]*\)", re.IGNORECASE)
_ASKED = re.compile(r"\b(?:what|how much) (?:is|was|were|are|percent\w* is)\s+(?:the )?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row or a column: the words of its label, the words around it (groups), and its periods, if any."""

    words: frozenset[str]
    around: frozenset[str]
    periods: frozenset[str]
    label: str
    is_total: bool = False


class TableCalculator:
    """Answers questions from one table. Cells are addressed by row and column; both may be chosen by words and by
    periods."""

    def __init__(
        self, table: DataTable, context: str = "", name: str = "", names_parts: bool = False
    ) -> None:
        self.table = table
        #: Each label names a part of the company besides the line item.
        self._names_parts = names_parts
        self._context, self._name = context, name
        around = (name, table.table.caption, table.document_name)
        #: Whether the caption or the heading says that the table is about a part of the company.
        self._company_part = _PART.search(table.table.caption) or _PART_HEADING.search(name)
        self._known = frozenset(word for text in around for word in query_terms(text))
        headers = " ".join(column.header for column in table.columns)
        bracketed = _BRACKETED_SCALE.search(headers)
        #: A scale in brackets, centred over the columns, stands in the header of one of them.
        self._scale = announced_scale(context) if bracketed is None else read_scale(bracketed[0]) or 1.0
        self._rows = [_line_of_row(row) for row in table.rows]
        self._columns = [
            _line(column.header, "") if place else _line("", "") for place, column in enumerate(table.columns)
        ]
        counts = Counter(word for line in (*self._rows, *self._columns) for word in line.words | line.around)
        size = max(len(self._rows) + len(self._columns), 2)
        self._weights = {word: math.log(1 + size / count) for word, count in counts.items()}
        #: Periods head the columns, or, in a table that lists years, the rows.
        #: A long label that mentions a year is no period.
        dated = sum(bool(line.periods) and len(line.label.split()) < 7 for line in self._rows)
        self._in_rows = dated > sum(bool(line.periods) for line in self._columns)

    def answer(self, question: str) -> Calculation | None:
        """Return the answer that the table gives, None where its rows or columns do not fit the question."""
        question = " ".join(question.split())
        pivot, is_over_periods = self._pivot, find_operation(question) in _OVER_PERIODS
        if pivot is not None and (is_over_periods or find_periods(question)):
            result = TableCalculator(pivot.table, self._context, self._name, pivot.names_parts)._answer(
                question
            )
            if result is not None and not (is_over_periods and result.operation == "lookup"):
                operands = tuple(pivot.find_source(operand) for operand in result.operands)
                return replace(result, table=self.table, operands=operands)
            if find_periods(question):
                return None  # no row below says of which period it is
        return self._answer(question)

    @cached_property
    def _pivot(self) -> _PeriodPivot | None:
        return None if any(line.periods for line in self._columns) else pivot_periods(self.table)

    def _answer(self, question: str) -> Calculation | None:
        if _NO_CELL.search(question) or self._has_other_quarter(question):
            return None
        if POLAR.search(question):
            return self._answer_direction(question)
        operation = find_operation(question)
        periods = find_periods(question)
        solvers: dict[Operation, Callable[[str, list[str]], Calculation | None]] = {
            "percent change": self._change,
            "change": self._change,
            "average": self._aggregate,
            "sum": self._aggregate,
            "ratio": self._ratio,
            "percentage": self._ratio,
            "extreme": self._extreme,
            "count": self._count,
            "periods": self._list_periods,
            "lookup": self._lookup,
        }
        result = solvers[operation](question, periods)
        is_choice = operation == "extreme" and len(periods) > 2
        if result is None and operation in {"sum", "change", "percentage", "extreme"} and not is_choice:
            result = self._lookup(question, periods)
            if result is not None and operation == "percentage" and result.unit != "%":
                result = None
        if result is None:
            return None
        fit = min(result.confidence, 1.0) * (0.5 + 0.5 * self._coverage(question))
        if result.operation == "lookup" and not all(
            self._fits_unit(operand, question) for operand in result.operands
        ):
            return None
        is_about = self._is_about_part(question) or self._is_named_whole(result, question)
        return replace(result, confidence=fit * (1.0 if is_about else _PART_LOSS))

    def _is_about_part(self, question: str) -> bool:
        """Return whether the table is about the part of a company that is asked about: the whole, where none is."""
        # A figure of a segment is not that of the company.
        if self._company_part and self._company_part[0].lower().rstrip("s") not in question.lower():
            return False
        words = frozenset(query_terms(asked_part(question)))
        return words <= self._known | self._weights.keys()

    def _is_named_whole(self, result: Calculation, question: str) -> bool:
        """Return whether a question names the part that the cells of a result are about: it has every word of labels
        that name it besides a line item, or a label or the caption has the name as the question does."""
        words = frozenset(query_terms(question))
        labels = [operand.row.label for operand in result.operands]
        if self._names_parts:
            return all(_line(label, "").words <= words for label in labels)
        names = [name[0] for name in _PART_NAME.finditer(f"{self.table.table.caption}. {'. '.join(labels)}.")]
        return any(f" {name} " in f" {question} " for name in names)

    def _has_other_quarter(self, question: str) -> bool:
        """Return whether the caption is of one quarter, and the question names another quarter of a year."""
        own = {period for period in find_periods(self.table.table.caption) if period.startswith("q")}
        asked = {period for period in find_periods(question) if period.startswith("q")}
        return bool(own and asked) and own.isdisjoint(asked)

    def _fits_unit(self, operand: Operand, question: str) -> bool:
        """Return whether a cell may answer by its unit: a rate where one is asked for, no money for "how many"."""
        unit, _ = self._unit_of([operand])
        if unit == "%":
            return bool(_RATE.search(question))
        return unit not in _CURRENCIES or not _HOW_MANY.search(question)

    def _answer_direction(self, question: str) -> Calculation | None:
        """Return yes or no to whether a line item grew or fell between two periods, by its two cells."""
        match = find_direction(question)
        periods = sorted(dict.fromkeys(find_periods(question)))
        if match is None or len(periods) > 2:
            return None
        asked = question[: match.start()] + question[match.end() :]
        change = self._change(_LEAD.sub(" ", asked), periods if len(periods) == 2 else [])
        if change is None or change.operation != "change":
            return None
        new, old = (operand.number or 0.0 for operand in change.operands[:2])
        if min(new, old) < 0:
            # A loss of (20) after one of (30) fell. Of other negative numbers it is not clear what grew.
            if max(new, old) > 0 or not _OUTFLOW.search(change.operands[0].row.label):
                return None
            new, old = -new, -old
        if "than" in question.lower() and find_periods(question) == periods and len(periods) == 2:
            new, old = old, new  # "lower in 2018 than in 2019": the earlier one is asked about
        fit = min(change.confidence, 1.0) * (0.5 + 0.5 * self._coverage(asked))
        return replace(
            change,
            values=("Yes" if settle_direction(question, old, new) else "No",),
            unit="",
            scale=1.0,
            confidence=fit,
            operation="direction",
        )

    def _coverage(self, question: str) -> float:
        """Return the share of the question's words for line items that are somewhere in the table or its caption."""
        words = item_words(question) - _KEEP
        known = sum(word in self._known or word in self._weights for word in words)
        return known / len(words) if words else 1.0

    def scale_word(self, row_id: str, text: str) -> str:
        """Return the scale of the cell of a row that has this text, with a space before it; "" for none."""
        for number, row in enumerate(self.table.rows):
            if row.id == row_id:
                cells = [
                    place for place, cell in enumerate(row.cells) if place and cell.strip() == text.strip()
                ]
                _, scale = self._unit_of([self._operand((number, place)) for place in cells[:1]])
                return f" {word}" if (word := SCALE_NAMES.get(scale, "")) else ""
        return ""

    # Choosing lines

    def _score(self, words: frozenset[str], line: _Line) -> float:
        """Return how well words fit a line, from 0 to 1: the harmonic mean of how much of its label is asked for, and
        how much of what is asked for (of the table's words) it has."""
        shared = words & (line.words | line.around)
        own = words & line.words
        if not own:
            return 0.0
        weight = self._weights
        label = sum(weight[word] for word in line.words)
        precision = sum(weight[word] for word in own) / label
        asked = sum(weight.get(word, 0.0) for word in words)
        recall = sum(weight[word] for word in shared) / asked if asked else 0.0
        return 2 * precision * recall / (precision + recall)

    def _rank(
        self, text: str, lines: Sequence[_Line], usable: Callable[[int], bool]
    ) -> list[tuple[float, int]]:
        words = item_words(text)
        wants_total = "total" in text.lower()
        folded = f" {fold_name(text)} "
        scores = []
        for number, line in enumerate(lines):
            score = self._score(words, line)
            name = fold_name(line.label)
            if name and f" {name} " in folded and not line.periods:
                # The label as it is printed; "Other" has no word that counts, so only this finds it.
                score = max(score + 0.1, 0.6) if line.words or f" {line.label} " in f" {text} " else score
            if score and usable(number):
                bonus = 0.02 if line.is_total == wants_total else 0.0
                scores.append((score + bonus, number))
        return sorted(scores, key=lambda pair: (-round(pair[0], 6), pair[1]))

    def _best_item(self, text: str) -> tuple[float, int] | None:
        """Return the best line item for words: a row, or a column where periods are in rows; with its score."""
        lines, usable = (
            (self._columns, self._has_column_values) if self._in_rows else (self._rows, self._has_row_values)
        )
        ranked = self._rank(text, lines, usable)
        if not ranked and self._in_rows and len(self.table.columns) == 2:
            return 0.3, 1
        return ranked[0] if ranked else None

    def _has_row_values(self, number: int) -> bool:
        return any(
            cell.strip() and (read_cell(cell).kind in {"number", "empty"} or len(self.table.columns) == 2)
            for cell in self.table.rows[number].cells[1:]
        ) or any(cell.strip() for cell in self.table.rows[number].cells[1:])

    def _has_column_values(self, number: int) -> bool:
        return number > 0 and any(row.cells[number].strip() for row in self.table.rows)

    def _places(self, item: int, periods: Sequence[str], question: str) -> list[list[tuple[int, int]]]:
        """Return for each period the cells (row, column) of an item in it; for no period, all cells in one list."""
        lines = self._rows if self._in_rows else self._columns
        numbers = [
            number
            for number in range(len(lines))
            if self._in_rows or (number > 0 and self._text(item, number).strip())
        ]
        if not periods:
            return [[self._cell_place(item, number) for number in numbers]]
        cells_by_period = []
        for period in periods:
            having = [number for number in numbers if period in lines[number].periods]
            # A column "2022 vs. 2021" has the change, that of 2022 alone the value.
            fitting = [number for number in having if lines[number].periods == {period}] or having
            if not fitting and period.startswith("q"):
                fitting = [number for number in numbers if period[-4:] in lines[number].periods]
            if not fitting:  # a fiscal year may end in January
                later = re.compile(rf"\bjan\w*\.? \d+,? {int(period[-4:]) + 1}\b", re.IGNORECASE)
                fitting = [number for number in numbers if later.search(lines[number].label)]
            is_part = period.startswith("q") or PART_OF_YEAR.search(question) is not None
            as_long = [
                number
                for number in fitting
                if (PART_OF_YEAR.search(lines[number].label) is not None) == is_part
            ]
            fitting = as_long or fitting
            of_unit = [
                number
                for number in fitting
                if self._fits_unit(self._operand(self._cell_place(item, number)), question)
            ]
            fitting = of_unit or fitting
            fitting = [number for number in fitting if not _CHANGES.search(lines[number].label)] or fitting
            cells_by_period.append(
                [self._cell_place(item, number) for number in self._narrow(fitting, lines, question)]
            )
        return cells_by_period

    def _narrow(self, numbers: list[int], lines: Sequence[_Line], question: str) -> list[int]:
        """Return the best of several lines of the same period: those with most words of the question."""
        if len(numbers) < 2:
            return numbers
        words = item_words(question) | frozenset(query_terms(question))
        scores = [
            sum(self._weights.get(word, 0) for word in words & lines[number].words)
            - 0.3 * sum(self._weights.get(word, 0) for word in lines[number].words - words)
            for number in numbers
        ]
        best = max(scores)
        return [number for number, score in zip(numbers, scores, strict=True) if score == best]

    def _cell_place(self, item: int, line: int) -> tuple[int, int]:
        return (line, item) if self._in_rows else (item, line)

    def _text(self, item: int, line: int) -> str:
        row, column = self._cell_place(item, line)
        return self.table.rows[row].cells[column]

    def _operand(self, place: tuple[int, int]) -> Operand:
        row = self.table.rows[place[0]]
        value = read_cell(row.cells[place[1]])
        # A dash among numbers is a zero.
        number = 0.0 if value.kind == "empty" and value.text else value.number
        return Operand(row, place[1], value.text, number)

    def _numbers(self, places: Iterable[tuple[int, int]]) -> list[Operand]:
        return [operand for place in places if (operand := self._operand(place)).number is not None]

    def _unit_of(self, operands: Sequence[Operand]) -> tuple[str, float]:
        """Return unit and scale of operands: those that their cells, rows and columns have, else the context's."""
        if not operands:
            return "", 1.0
        values = [self.table.cell(operand.row, operand.column) for operand in operands]
        unit = next((value.unit for value in values if value.unit), "")
        scale = next((value.scale for value in values if value.scale != 1.0), 1.0)
        place = operands[0].row.place
        if scale == 1.0 and unit != "%" and place.scale is None:
            scale = self._scale
        return unit, 1.0 if unit == "%" else scale

    def _result(
        self,
        operation: Operation,
        value: float,
        formula: str,
        operands: Sequence[Operand],
        confidence: float,
        percent: bool = False,
    ) -> Calculation:
        unit, scale = ("%", 1.0) if percent else self._unit_of(operands)
        if operation == "ratio":
            unit, scale = "", 1.0
        text = format_number(value) + ("%" if unit == "%" else "")
        return Calculation(
            operation, self.table, (text,), tuple(operands), f"{formula} = {text}", unit, scale, confidence
        )

    # Operations

    def _lookup(self, question: str, periods: list[str]) -> Calculation | None:
        if (grid := self._lookup_by_words(question, periods)) is not None:
            return grid
        item = self._best_item(question)
        if item is None:
            return None
        score, number = item
        places = self._places(number, periods, question)
        chosen = [place[0] for place in places if place] if periods else places[0][:1]
        if not chosen or (not periods and len(places[0]) > 1):
            score *= 0.6
        if not chosen:
            return None
        if len(chosen) > 1 and not _RESPECTIVE.search(question) and " and " not in question:
            chosen = chosen[:1]
        return self.read_cells(chosen, min(score, 1.0))

    def read_cells(self, places: Sequence[tuple[int, int]], confidence: float) -> Calculation | None:
        """Return cells (row, column) as they are printed, None where one is empty."""
        operands = [self._operand(place) for place in places]
        if not all(operand.text for operand in operands):
            return None
        unit, scale = self._unit_of(operands)
        return Calculation(
            "lookup",
            self.table,
            tuple(operand.text for operand in operands),
            tuple(operands),
            "",
            unit,
            scale if operands[0].number is not None else 1.0,
            confidence,
        )

    def _lookup_by_words(self, question: str, periods: list[str]) -> Calculation | None:
        """Return the cell whose row and column both have words of the question, where columns are no periods.

        A single column with a period, "Output in 1907" beside "Owner" and "Hands", makes the others none.
        """
        of_periods = sum(bool(line.periods) for line in self._columns)
        if self._in_rows or (periods and (of_periods > 1 or of_periods == 1 == len(self._columns) - 1)):
            return None
        rows = self._rank(question, self._rows, self._has_row_values)
        columns = self._rank(question, self._columns, self._has_column_values)
        if not rows or not columns:
            return None
        row = rows[0][1]
        place = (row, columns[0][1])
        if not self.table.rows[row].cells[place[1]].strip():
            return None
        return self.read_cells([place], min(1.0, (rows[0][0] + columns[0][0]) / 2 + 0.2))

    def _change(self, question: str, periods: list[str]) -> Calculation | None:
        operation = find_operation(question)
        periods = list(dict.fromkeys(periods))
        pair = None
        if len(periods) < 2:
            pair = self._two_items(question, periods) or self._two_cells(question, periods)
        confidence = 0.5
        if pair is not None:
            first, second, confidence = pair
        else:
            item = self._best_item(question)
            if item is None:
                return None
            confidence = item[0]
            if len(periods) < 2:
                periods = self._all_periods()[:2]
            if len(periods) < 2:
                return None
            places = self._places(item[1], sorted(periods)[:1] + sorted(periods)[-1:], question)
            cells = [self._numbers(place[:1]) for place in places]
            if len(cells) < 2 or not cells[0] or not cells[-1]:
                return None
            second, first = cells[0][0], cells[-1][0]
        return self._subtract(first, second, operation == "percent change", confidence)

    def subtract_cells(
        self, new: tuple[int, int], old: tuple[int, int], as_percent: bool, confidence: float
    ) -> Calculation | None:
        """Return by how much the number in a cell (row, column) is above that in another, in percent of the other if
        ``as_percent``; None where one has no number."""
        cells = self._numbers([new]), self._numbers([old])
        return self._subtract(cells[0][0], cells[1][0], as_percent, confidence) if all(cells) else None

    def _subtract(
        self, first: Operand, second: Operand, as_percent: bool, confidence: float
    ) -> Calculation | None:
        (first_text, new), (second_text, old) = _terms([first, second])
        difference = f"{first_text} - {second_text}"
        if not as_percent or self._unit_of([first, second])[0] == "%":
            return self._result("change", new - old, difference, [first, second], confidence)
        if not old:
            return None
        percent = 100 * (new - old) / old
        formula = f"({difference}) / {second_text}"
        return self._result("percent change", percent, formula, [first, second], confidence, True)

    def _two_items(self, question: str, periods: list[str]) -> tuple[Operand, Operand, float] | None:
        """Return the operands of "difference between A and B"."""
        match = re.search(
            r"\b(?:between|of|from)\s+(?P<first>.+?)\s+(?:and|to|from)\s+(?P<second>.+)",
            question,
            re.IGNORECASE,
        )
        if match is None:
            return None
        operands = [
            self._part(match["first"], periods, question),
            self._part(match["second"], periods, question),
        ]
        if operands[0] is None or operands[1] is None:
            return None
        first, second = operands[0][0], operands[1][0]
        if _is_same_line(first, second):
            return None
        fit = min(operands[0][1], operands[1][1])
        first, second = _order_of_change(question, first, second)
        return first, second, fit

    def _two_cells(self, question: str, periods: Sequence[str]) -> tuple[Operand, Operand, float] | None:
        """Return the operands of "difference between the high and low price": two columns of one row; or two rows of
        one column, where columns are no periods."""
        match = next((match for form in _TWO_PARTS if (match := form.search(question))), None)
        if match is None or self._in_rows:
            return None
        own = {number for number, line in enumerate(self._columns) if line.periods & set(periods)}

        def best_column(text: str) -> int:
            ranked = self._rank(
                text,
                self._columns,
                lambda number: (not own or number in own) and self._has_column_values(number),
            )
            return ranked[0][1] if ranked else 0

        def best_row(text: str) -> tuple[float, int]:
            return next(iter(self._rank(text, self._rows, self._has_row_values)), (0.0, -1))

        parts = (match["first"], match["second"])
        columns, rows, (fit, row) = [*map(best_column, parts)], [*map(best_row, parts)], best_row(question)
        column = best_column(question)
        if 0 not in columns and columns[0] != columns[1] and fit:
            places = [(row, place) for place in columns]
        elif all(score for score, _ in rows) and rows[0][1] != rows[1][1] and column:
            places, fit = [(place, column) for _, place in rows], min(score for score, _ in rows)
        else:
            return None
        operands = self._numbers(places)
        if len(operands) < 2 or _is_same_line(*operands):
            return None
        return *_order_of_change(question, *operands), min(1.0, fit + 0.2)

    def _part(self, text: str, periods: list[str], question: str) -> tuple[Operand, float] | None:
        """Return the cell that a part of a question names, in its own period, else in the question's."""
        item = self._best_item(text)
        if item is None:
            return None
        own = find_periods(text) or periods
        places = self._places(item[1], own[:1], question)
        numbers = self._numbers(places[0][:1]) if places else []
        return (numbers[0], item[0]) if numbers else None

    def _all_periods(self) -> list[str]:
        lines = self._rows if self._in_rows else self._columns
        years = [min(line.periods, key=len) for line in lines if line.periods]
        return list(dict.fromkeys(years))

    def _aggregate(self, question: str, periods: list[str]) -> Calculation | None:
        operation = find_operation(question)
        operands: list[Operand] = []
        confidence = 0.0
        items = self._several_items(question, periods)
        if items is not None:
            operands, confidence = items
        else:
            item = self._best_item(question)
            if item is None:
                return self._aggregate_column(operation, question)
            confidence = item[0]
            if len(periods) == 1 and operation == "sum":
                return None  # a total in one period is a row of its own
            if not periods:
                periods = self._all_periods()
            if operation == "average" and len(periods) == 1 and _AVERAGE_OF_YEAR.search(question):
                # The average of a year's balance is that of its end and of the end before.
                periods = [periods[0], str(int(periods[0][-4:]) - 1)]
            if not periods or confidence < 0.4:
                return self._aggregate_column(operation, question)
            places = self._places(item[1], periods, question)
            operands = self._numbers(place[0] for place in places if place)
            if len(operands) < len(places) and find_periods(question):
                return None  # an average over fewer years than were asked for is another one
        return self._total(operation, operands, confidence)

    def _aggregate_column(self, operation: Operation, question: str) -> Calculation | None:
        """Return the sum or average of all rows of the column that a question names."""
        columns = self._rank(question, self._columns, self._has_column_values)
        if not columns:
            return None
        rows = [number for number, row in enumerate(self.table.rows) if not row.is_total]
        operands = self._numbers((number, columns[0][1]) for number in rows)
        return self._total(operation, operands, columns[0][0])

    def _total(
        self, operation: Operation, operands: Sequence[Operand], confidence: float
    ) -> Calculation | None:
        units = {self.table.cell(operand.row, operand.column).unit == "%" for operand in operands}
        if len(operands) < 2 or len(units) > 1:
            return None
        terms = _terms(operands)
        total = sum(number for _, number in terms)
        formula = " + ".join(text for text, _ in terms)
        if operation == "average":
            return self._result(
                "average", total / len(operands), f"({formula}) / {len(operands)}", operands, confidence
            )
        return self._result("sum", total, formula, operands, confidence)

    def _several_items(self, question: str, periods: list[str]) -> tuple[list[Operand], float] | None:
        """Return the cells of "the sum of A, B and C in 2019"."""
        match = re.search(
            r"\b(?:sum|average|total|combined|mean)\b(?: (?:amount|value|number|cost)s?)?(?: of| between"
            r"| for)?(?: the)? (?P<items>.+)",
            question,
            re.IGNORECASE,
        )
        text = _PERIOD.sub(" ", match["items"]) if match else ""
        parts = [part for part in re.split(r",| and | & (?=[A-Z])", text) if item_words(part)]
        asked = item_words(text) & self._weights.keys()
        if len(parts) < 2 or any(asked <= line.words for line in (*self._rows, *self._columns)):
            return None  # "Publishing and Advertising" is a name
        operands, scores = [], []
        for part in parts:
            cell = self._part(part, periods, question)
            if cell is None:
                continue
            if cell[0] not in operands:
                operands.append(cell[0])
                scores.append(cell[1])
        if len(operands) < 2 or min(scores) < 0.45:
            return None
        return operands, min(scores)

    def _ratio(self, question: str, periods: list[str]) -> Calculation | None:
        operation = find_operation(question)
        for form in _SPLIT_RATIO:
            match = form.search(_ASKED.sub(" ", question))
            if match is None:
                continue
            part, whole = (
                self._part(match["part"], periods, question),
                self._part(match["whole"], periods, question),
            )
            if part is None or whole is None or part[0] == whole[0] or not whole[0].number:
                continue
            if self._unit_of([whole[0]])[0] == "%" != self._unit_of([part[0]])[0]:
                continue  # no share of a percentage
            ((text, number),) = _terms([part[0]])
            value = number / whole[0].number
            formula = f"{text} / {_show(whole[0])}"
            operands = [part[0], whole[0]]
            confidence = min(part[1], whole[1])
            if operation == "ratio" or (
                "proportion" in question.lower() and "percent" not in question.lower()
            ):
                return self._result("ratio", value, formula, operands, confidence)
            return self._result("percentage", 100 * value, formula, operands, confidence, True)
        return self._share_of_total(question, periods) if operation == "percentage" else None

    def _share_of_total(self, question: str, periods: list[str]) -> Calculation | None:
        """Return the share that a cell has of the total of its column, or of its row: "the percentage of leases due
        after 5 years in the total leases"."""
        if not re.search(r"\b(?:total|overall|all)\b", question, re.IGNORECASE):
            return None
        rows = self._rank(
            question, self._rows, lambda n: self._has_row_values(n) and not self._rows[n].is_total
        )
        columns = self._rank(
            question,
            self._columns,
            lambda n: self._has_column_values(n) and not _TOTAL_NAME.match(self._columns[n].label),
        )
        if not rows or not columns:
            return None
        (row_score, row), (column_score, column) = rows[0], columns[0]
        own = frozenset(find_periods(question))
        if own and not own & (self._columns[column].periods | self._rows[row].periods):
            return None
        names = [n for n, line in enumerate(self._columns) if n and _TOTAL_NAME.match(line.label)]
        totals = [n for n in range(row + 1, len(self._rows)) if self._rows[n].is_total]
        places = [(row, names[0])] if len(names) == 1 else [(totals[0], column)] if totals else []
        operands = self._numbers([(row, column), *places])
        if len(operands) < 2 or not operands[1].number:
            return None
        (text, part), (whole_text, whole) = _terms(operands)
        if not 0 <= part / whole <= 1:
            return None
        formula = f"{text} / {whole_text}"
        confidence = min(1.0, (row_score + column_score) / 2 + 0.2)
        return self._result("percentage", 100 * part / whole, formula, operands, confidence, True)

    def _candidates(
        self, question: str, periods: list[str]
    ) -> tuple[list[tuple[str, Operand]], float] | None:
        """Return the cells among which a question chooses, each with its name: the periods of a line item, or the
        line items in a period."""
        asks_period = re.search(
            r"\b(?:which|what|how many)\s+(?:of the )?(?:fiscal |financial |calendar )?(?:years?"
            r"|quarters?|periods?|fy|months?|dates?)\b",
            question,
            re.IGNORECASE,
        )
        if asks_period:
            item = self._best_item(question)
            if item is None:
                return None
            lines = self._rows if self._in_rows else self._columns
            cells = []
            for number, line in enumerate(lines):
                if not line.periods:
                    continue
                operand = self._operand(self._cell_place(item[1], number))
                if operand.number is not None:
                    cells.append((_period_name(line), operand))
            if len(periods) > 1:
                # Of the years that are named, and of all of them, not of those that the table happens to have.
                cells = [cell for cell in cells if any(period in cell[0] for period in periods)]
                if not all(any(period in name for name, _ in cells) for period in periods):
                    return None
            return (cells, item[0]) if len(cells) > 1 else None
        return self._items_in_period(question, periods)

    def _items_in_period(
        self, question: str, periods: list[str]
    ) -> tuple[list[tuple[str, Operand]], float] | None:
        if self._in_rows:
            return None
        columns = [number for number, line in enumerate(self._columns) if set(periods) & line.periods]
        by_words = self._rank(question, self._columns, self._has_column_values)
        confidence = 0.4
        if not columns and by_words:
            confidence, column = by_words[0]
            columns = [column]
        columns = self._narrow(columns, self._columns, question)
        if not columns:
            columns = list(range(1, len(self._columns)))[:1]
            confidence = 0.2
        if not columns:
            return None
        rows = [number for number, row in enumerate(self.table.rows) if not row.is_total and row.label]
        groups = Counter(self.table.rows[number].place.groups for number in rows)
        words = item_words(question)
        named = [group for group in groups if group and words & frozenset(query_terms(group[-1]))]
        if named:
            rows = [number for number in rows if self.table.rows[number].place.groups == named[0]]
        cells = []
        for number in rows:
            operand = self._operand((number, columns[0]))
            if operand.number is not None and operand.text:
                cells.append((self.table.rows[number].label, operand))
        return (cells, confidence) if len(cells) > 1 else None

    def _extreme(self, question: str, periods: list[str]) -> Calculation | None:
        candidates = self._candidates(question, periods)
        if candidates is None:
            return None
        cells, confidence = candidates
        limit = self._limit(question)
        if limit is not None:
            chosen = [(name, operand) for name, operand in cells if limit(operand)]
        else:
            rank = _RANK.search(question)
            place = _RANKS[rank["rank"].lower()] - 1 if rank else 0
            least = bool(LEAST_AMOUNT.search(question))
            ordered = sorted(cells, key=lambda cell: (cell[1].number or 0.0) * (1 if least else -1))
            chosen = ordered[place : place + 1]
        if not chosen:
            return None
        names = tuple(dict.fromkeys(name for name, _ in chosen))
        order = " > ".join(
            _show(operand) for _, operand in sorted(cells, key=lambda cell: -(cell[1].number or 0.0))[:6]
        )
        operands = (*(operand for _, operand in chosen), *(operand for _, operand in cells))
        return Calculation(
            "extreme", self.table, names, tuple(dict.fromkeys(operands)), order, "", 1.0, confidence
        )

    def _limit(self, question: str) -> Callable[[Operand], bool] | None:
        if number_test(question, 1.0) is None:
            return None

        def fits(operand: Operand) -> bool:
            test = number_test(question, self._unit_of([operand])[1])
            return test is not None and test(operand.number or 0.0)

        return fits

    def _count(self, question: str, periods: list[str]) -> Calculation | None:
        limit = self._limit(question)
        candidates = self._candidates(question, periods)
        if candidates is None or (limit is None and re.search(r"\byears?\b", question) is None):
            return None
        cells, confidence = candidates
        if periods and re.search(r"how many (?:of the )?years", question):
            cells = [cell for cell in cells if any(period in cell[0] for period in periods)] or cells
        chosen = [cell for cell in cells if limit is None or limit(cell[1])]
        formula = "count of " + ", ".join(f"{name}: {_show(operand)}" for name, operand in chosen)
        return Calculation(
            "count",
            self.table,
            (str(len(chosen)),),
            tuple(operand for _, operand in chosen),
            formula,
            "",
            1.0,
            confidence,
        )

    def _list_periods(self, question: str, periods: list[str]) -> Calculation | None:
        lines = self._rows if self._in_rows else self._columns
        names = list(dict.fromkeys(_period_name(line) for line in lines if line.periods))
        item = self._best_item(question)
        if not names or not self.table.rows:
            return None
        row = self.table.rows[0 if item is None or self._in_rows else item[1]]
        operands = tuple(
            Operand(row, number, name, None)
            for number, name in enumerate([line.label for line in self._columns])
            if self._columns[number].periods
        )
        return Calculation(
            "periods", self.table, tuple(names), operands, "", "", 1.0, 0.5 if item is None else item[0]
        )


@dataclass(frozen=True, slots=True)
class _PeriodPivot:
    """A table whose groups of rows are periods, turned so that periods head the columns, and the row and the column
    (as in the table that it was) of each of its cells."""

    table: DataTable
    sources: dict[tuple[int, int], tuple[DataRow, int]]
    #: Its labels are those of a row and of a column.
    names_parts: bool

    def find_source(self, operand: Operand) -> Operand:
        """Return an operand of the turned table as a cell of the table that it was."""
        row, column = self.sources.get((operand.row.number, operand.column), (operand.row, operand.column))
        return replace(operand, row=row, column=column)


def pivot_periods(table: DataTable) -> _PeriodPivot | None:
    """Return a table whose groups of rows are periods, turned so that periods head the columns ("December 31, 2019"
    above rows "Trade" and "Total"); columns for quarters become quarters of the group's year. None for another table,
    and where the columns have different units."""
    dated = {group for row in table.rows if (group := _period_group(row))}
    scales = {(column.unit, column.scale) for column in table.table.columns[1:]}
    if len(dated) < 2 or len(scales) != 1 or len(table.rows) * len(table.columns) > _MAX_PIVOT:
        return None
    headers = [column.header for column in table.columns]
    quarters = [
        f"{match[1]} quarter" if (match := _QUARTER_NAME.fullmatch(header)) else "" for header in headers
    ]
    of_quarters = len(headers) > 2 and all(quarters[1:])
    periods: dict[str, None] = {}
    cells: dict[str, dict[str, tuple[DataRow, int]]] = {}
    for row in table.rows:
        group = _period_group(row)
        if not group:
            continue
        within = [other for other in row.place.groups if other != group]
        name = " ".join((*within, row.label or ("Total" if row.is_total else ""))).strip()
        for column in range(1, len(headers)):
            period = f"{quarters[column]} {find_periods(group)[0]}" if of_quarters else group
            label = name if of_quarters or len(headers) == 2 else f"{name} {headers[column]}".strip()
            if label and row.cells[column].strip():
                periods.setdefault(period)
                cells.setdefault(label, {}).setdefault(period, (row, column))
    sources, rows = {}, []
    for number, (label, by_period) in enumerate(cells.items()):
        values = [by_period.get(period) for period in periods]
        rows.append((label, *(place[0].cells[place[1]] if place else "" for place in values)))
        sources.update({(number, column): place for column, place in enumerate(values, start=1) if place})
    if not rows:
        return None
    unit, scale = scales.pop()
    columns = (Column(), *(Column((period,), unit, scale) for period in periods))
    turned = build_data_table(Table(("", *periods), tuple(rows), table.table.caption, columns=columns))
    names_parts = len(headers) > 2 and not of_quarters
    return _PeriodPivot(replace(turned, document_name=table.document_name), sources, names_parts)


def _period_group(row: DataRow) -> str:
    """Return the innermost heading above a row that names one period, "" for none."""
    return next((group for group in reversed(row.place.groups) if len(find_periods(group)) == 1), "")


def announced_scale(context: str) -> float:
    """Return the scale that the text around a table announces ("expressed in thousands of dollars"), 1 for none."""
    announced = _ANNOUNCED_SCALE.search(context)
    return (read_scale(announced[0]) if announced else None) or 1.0


def number_test(question: str, scale: float) -> Callable[[float], bool] | None:
    """Return the condition on numbers that a question has ("above $7 billion", "negative"), None where it has none.
    The numbers are multiples of ``scale``."""
    if sign := _SIGN.search(question):
        is_negative = sign["sign"].lower() == "negative"
        return lambda number: number < 0 if is_negative else number > 0
    match = _THRESHOLD.search(question)
    if match is None:
        return None
    bound = read_cell(match["number"]).number or 0.0
    asked = {"t": 1e3, "m": 1e6, "b": 1e9}.get((match["scale"] or " ")[0].lower())
    # Both in the table's own scale, unless the question names one.
    factor = scale if asked and scale != 1.0 else 1.0
    limit = bound * asked if asked and scale != 1.0 else bound
    below = bool(LEAST_AMOUNT.search(match[0]))
    return lambda number: number * factor < limit if below else number * factor > limit


def _terms(operands: Sequence[Operand]) -> list[tuple[str, float]]:
    """Return the numbers of operands with their texts, as a formula has them.

    Expenses, losses and allowances that are all printed in parentheses are amounts: how much they changed or were on
    average is asked, not how the statement adds them up.
    """
    texts = [operand.text.replace("$ (", "$(") for operand in operands]
    are_deductions = all(
        text.lstrip("$€£").startswith("(") and _DEDUCTION.search(operand.row.label)
        for text, operand in zip(texts, operands, strict=True)
    )
    if not are_deductions:
        return [(operand.text, operand.number or 0.0) for operand in operands]
    return [
        (text.replace("(", "").replace(")", ""), abs(operand.number or 0.0))
        for text, operand in zip(texts, operands, strict=True)
    ]


def _is_same_line(first: Operand, second: Operand) -> bool:
    """Return whether two operands are one cell, or one line that the table has twice."""
    own, other = ((each.row.label, each.column, each.number) for each in (first, second))
    return own == other


def _order_of_change(question: str, first: Operand, second: Operand) -> tuple[Operand, Operand]:
    """Return the operand to subtract from, and the other: a change goes from the first to the second, a difference is
    of the first less the second."""
    return (second, first) if _CHANGED.search(question) else (first, second)


def _show(operand: Operand) -> str:
    return operand.text


def _line_of_row(row: DataRow) -> _Line:
    """Return the line of a row. A total without a label is that of its group, if this is no date."""
    groups = " ".join(row.place.groups)
    if row.label or not row.is_total:
        return _line(row.label, groups, row.is_total)
    own = "".join(row.place.groups[-1:])
    return replace(_line("Total" if find_periods(own) else f"Total {own}", groups, True), label="")


def _line(label: str, around: str, is_total: bool = False) -> _Line:
    return _Line(
        frozenset(query_terms(re.sub(r"\(\w{1,2}\)$", "", label))) - _BARE,
        frozenset(query_terms(around)) - _BARE,
        frozenset(find_periods(label)),
        label,
        is_total,
    )


_BARE = frozenset({"note"})
#: A column of changes stands beside those of the values; what it has is computed from them.
_CHANGES = re.compile(r"\bchanges?\b|\bvariance\b|\bvs\b|\bincrease\b", re.IGNORECASE)
#: A year alone means the whole year, where a table has that beside its quarters.
PART_OF_YEAR = re.compile(
    r"\b(?:(?:three|six|nine|[369])[ -]months?|(?:thirteen|twenty-six|thirty-nine|13|26|39)[ -]weeks?|quarters?)\b",
    re.IGNORECASE,
)


def _period_name(line: _Line) -> str:
    """Return the year of a header that names one alone, else the header."""
    years = {period[-4:] for period in line.periods}
    is_quarter = any(period.startswith("q") for period in line.periods) or re.search(
        r"quarter", line.label, re.I
    )
    return next(iter(years)) if len(years) == 1 and not is_quarter else line.label


def find_operation(question: str) -> Operation:
    """Return what a question asks to compute; ``lookup`` for nothing.

    >>> find_operation("What is the percent change in sales from 2018 to 2019?"), find_operation("What were sales?")
    ('percent change', 'lookup')
    """
    if _AVERAGE_FIRST.match(question):
        return "average"
    if _CHANGE_OF_AVERAGE.search(question):
        return "change"
    if _RESPECTIVE.search(question):
        return "lookup"
    return next((operation for operation, form in _OPERATIONS if form.search(question)), "lookup")


_TWO_PARTS = tuple(
    re.compile(rf"\b{start} (?P<first>.+?) (?:and|to|versus) (?P<second>.+)", re.IGNORECASE)
    for start in ("(?:between|from)", "(?:differences?|change) (?:in|of)")
)
_CHANGED = re.compile(r"\b(?:change|increase|decrease|growth|decline)\b", re.IGNORECASE)
#: Operations that need two periods, also where the question names none.
_OVER_PERIODS: frozenset[Operation] = frozenset({"change", "percent change", "average"})
#: A table with more cells is not turned.
_MAX_PIVOT = 2_000
_QUARTER_NAME = re.compile(r"(?:the )?(first|second|third|fourth)(?: quarter)?(?: \(\w\))?", re.IGNORECASE)
_TOTAL_NAME = re.compile(r"^\W*(?:grand )?totals?\b(?: \(.*\))?\W*$", re.IGNORECASE)
_AVERAGE_OF_YEAR = re.compile(rf"\b{_YEAR} average\b", re.IGNORECASE)
#: The average is a row of the table.
_CHANGE_OF_AVERAGE = re.compile(
    r"\bwhat (?:is|was) the (?:change|difference|increase|decrease) in (?:the )?average\b", re.I
)
#: "What is the average percentage of ..." asks for an average.
_AVERAGE_FIRST = re.compile(
    r"(?:what|how much) (?:is|was|were|are) the (?:\w+ )?average\b(?!.*\bchange\b)", re.IGNORECASE
)


def find_periods(text: str) -> list[str]:
    """Return the years and quarters that a text names, in its order; a range of years is all its years.

    >>> find_periods("from 2017-2019"), find_periods("Q4 2019 and FY18"), find_periods("fourth quarter of 2020")
    (['2017', '2018', '2019'], ['q4 2019', '2018'], ['q4 2020'])
    """
    periods: list[str] = []
    text = _SPACED_YEAR.sub(r"\1\2\3\4", text)
    ranges = {match.start("first"): match for match in _RANGE.finditer(text)}
    for match in _PERIOD.finditer(text):
        year = match["year"] or f"20{match['short']}"
        start = match.start("year") if match["year"] else -1
        span = ranges.get(start)
        if span is not None and 1 < int(span["last"]) - int(span["first"]) < 12:
            periods += [str(number) for number in range(int(span["first"]), int(span["last"]) + 1)]
            continue
        quarter = (match["quarter"] or "").lower()
        number = (
            quarter[1]
            if quarter.startswith("q")
            else {"fi": "1", "se": "2", "th": "3", "fo": "4"}.get(quarter[:2], "")
        )
        periods.append(f"q{number} {year}" if number else year)
    return list(dict.fromkeys(periods))


#: "How long is it?" asks for the column "Length".
_DIMENSIONS = {
    "long": "length",
    "tall": "height",
    "high": "height",
    "deep": "depth",
    "wide": "width",
    "thick": "thickness",
    "heavy": "weight",
    "old": "age",
    "far": "distance",
    "large": "area",
    "fast": "speed",
}
_HOW = re.compile(rf"\bhow ({'|'.join(_DIMENSIONS)})\b", re.IGNORECASE)


def item_words(text: str) -> frozenset[str]:
    """Return the words of a question that may name a line item: stems, without periods and words of operations."""
    dimension = _HOW.search(text)
    named = f" {_DIMENSIONS[dimension[1].lower()]}" if dimension else ""
    words = frozenset(query_terms(_PERIOD.sub(" ", text) + named))
    return (words - _NOISE) | (words & _KEEP)


def format_number(value: float) -> str:
    """Return a number with at most two decimals, and thousands apart.

    >>> format_number(-12.600000000000001), format_number(1234567.0), format_number(0.0771)
    ('-12.6', '1,234,567', '0.08')
    """
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
