"""Answers from the tables of the documents that search returned, without a language model.

Which table to compute with (:mod:`clew.methods.readers.calculation`) is found in three ways, tried in this order. The
line items of a document, over all its tables, answer questions over several years and for named ratios. A line item
that a question names in full is read wherever in its document it stands. Else the tables among the hits are tried,
and the one whose labels fit the question's words best answers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from clew.core.protocols import Snapshot, Trail
from clew.core.trail import CalculateStep
from clew.core.types import PASSAGE, ROW, TABLE, Hit, Quote
from clew.core.values import remove_names
from clew.methods.readers.answer_kinds import expected_kind, is_impossible, repeats_question
from clew.methods.readers.calculation import (
    MAX_ROWS,
    PART_OF_YEAR,
    Calculation,
    TableCalculator,
    find_operation,
    find_periods,
)
from clew.methods.readers.line_items import asks_value, document_lines
from clew.methods.readers.mentions import asked_part, is_about, mentions_event
from clew.methods.readers.named_ratios import answer_ratio, find_common_line, parse_ratio_question
from clew.methods.readers.passages import find_hit
from clew.methods.readers.quotes import quote_cell
from clew.methods.readers.year_series import answer_series, parse_series_question
from clew.parse.data_tables import DataTable, table_from_node
from clew.retrieve.document_fields import named_subjects

#: A question is answered from the cells of a table from this fit of its words on. The words around a looked-up cell
#: have to fit better; which periods a table has hardly depends on them.
_MIN_FIT, _NEEDED_FIT = 0.35, {"lookup": 0.5, "direction": 0.5, "periods": 0.2}
#: From this fit on all words of a question fit.
_WHOLE_FIT = 0.99
#: At most so many tables are tried; the fit of each after the first is lowered by so much more.
_MAX_TABLES, _RANK_LOSS = 5, 0.05
#: Of tables that fit nearly as well, a consolidated one is preferred to others by this factor.
_CONSOLIDATED, _PART_WORTH = re.compile(r"\bconsolidated\b", re.IGNORECASE), 0.85
#: "Earnings per share" is a line item; its "per" asks for no ratio.
_PER_SHARE = re.compile(r"\bper (?:\w+ )?share\b", re.IGNORECASE)
#: The lines of a table above its first row: caption and header.
_MAX_HEADER_LINES = 50
#: At most so many cells of a formula are quoted.
_MAX_OPERANDS = 12


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """An answer that the cells of a table give, and these cells as quotes, each with its hit."""

    calculation: Calculation
    cells: tuple[tuple[Hit, Quote], ...]


def answer_from_hits(
    question: str, hits: Sequence[Hit], snapshot: Snapshot, trail: Trail, is_alone: bool = False
) -> TableAnswer | None:
    """Return the answer of the tables of the documents of ``hits``; None where no table fits well enough, which the
    trail says. ``is_alone``: one document alone is asked."""
    started = time.perf_counter()
    calculation, is_over_years = _calculate_from_lines(question, hits, snapshot)
    if calculation is None and not is_over_years:
        calculation = _calculate_from_tables(question, hits, snapshot, is_alone)
    if calculation is None:
        return None
    fits = _may_answer(calculation, question)
    operands = dict.fromkeys(
        (operand.row.id, operand.text, operand.column) for operand in calculation.operands
    )
    chosen = list(operands)[:_MAX_OPERANDS] if fits else []
    nodes = snapshot.nodes(snapshot.rows([id for id, _, _ in chosen])) if chosen else []
    subjects = named_subjects(question, snapshot) if fits else {}
    fits = fits and all(mentions_event(question, node, subjects) for node in nodes)
    cells = tuple(
        (find_hit(node, hits), quote_cell(node, text, column))
        for node, (_, text, column) in zip(nodes if fits else (), chosen if fits else (), strict=True)
    )
    trail.add(
        CalculateStep(
            calculation.operation,
            calculation.table.id,
            calculation.text,
            calculation.formula,
            round(calculation.confidence, 3),
            "answered" if fits else "not sure enough",
            hits=tuple(hit for hit, _ in cells[:1]),
            seconds=time.perf_counter() - started,
        )
    )
    return TableAnswer(calculation, cells) if fits else None


def _may_answer(calculation: Calculation, question: str) -> bool:
    """Return whether a calculation fits the words of a question well enough, and gives what the question asks for."""
    return (
        calculation.confidence >= _NEEDED_FIT.get(calculation.operation, _MIN_FIT)
        and not calculation.table.table.headers_uncertain
        # "How many" asks for a number: the cell that fits its words may hold the name of a country.
        and (expected_kind(question) != "amount" or any(map(str.isdigit, calculation.text)))
        and not is_impossible(question, calculation.text)
        and not (calculation.operation == "lookup" and repeats_question(calculation.text, question))
    )


def estimate_probability(calculation: Calculation) -> float:
    """Return how often an answer of such a fit was right on TAT-QA's seen contexts (benchmarks/tables.py): 85 % where
    all words fit, about half of the looked-up cells and two thirds of the computed ones elsewhere."""
    fit = calculation.confidence
    if fit >= _WHOLE_FIT:
        return 0.85
    return 0.2 + 0.3 * fit if calculation.operation == "lookup" else 0.5 + 0.2 * fit


def _calculate_from_lines(
    question: str, hits: Sequence[Hit], snapshot: Snapshot
) -> tuple[Calculation | None, bool]:
    """Return the answer that the line items of the document give to a question over several years or for a named
    ratio, and whether no single cell can answer the question."""
    ratio = parse_ratio_question(question)
    series = parse_series_question(question) if ratio is None else None
    # The lines are those of the whole company.
    if (ratio is None and series is None) or asked_part(question):
        return None, False
    lines = document_lines(hits, snapshot, named_subjects(question, snapshot))
    answer = None
    if lines is not None and ratio is not None:
        answer = answer_ratio(ratio, lines)
    elif lines is not None and series is not None:
        own = {table.document for table in lines.tables}
        passages = (hit.node for hit in hits if hit.node.kind == PASSAGE and hit.node.document in own)
        answer = answer_series(series, lines, " ".join(node.text for node in passages))
    return answer, series is not None and series.kind not in {"highest", "average", "sum", "count"}


def _calculate_from_tables(
    question: str, hits: Sequence[Hit], snapshot: Snapshot, is_alone: bool
) -> Calculation | None:
    """Return the best answer of the tables that are among ``hits`` or have rows among them, a better hit's first.

    Tables of documents about somebody else than the question names are left out; in those about them, their name says
    nothing about rows and columns. Of tables that fit nearly as well, consolidated ones come first, unless a part of
    the company is asked about.
    """
    subjects = named_subjects(question, snapshot)
    line = _named_line(question, hits, snapshot, subjects, is_alone)
    if line is not None:
        return line
    # A removed name leaves a blank: of "Pfizer's sales" there is " 's sales" left.
    unnamed = re.sub(r"\s['’]s?(?!\w)", " ", remove_names(list(subjects), question)) if subjects else question
    ids = dict.fromkeys(
        hit.node.id if hit.node.kind == TABLE else hit.node.parent or ""
        for hit in hits
        if hit.node.kind in {TABLE, ROW} and is_about(subjects, hit.node)
    )
    asks_part = bool(asked_part(question))
    best: tuple[float, Calculation] | None = None
    for place, id in enumerate([id for id in ids if id][:_MAX_TABLES]):
        calculator = open_calculator(id, hits, snapshot)
        answer = None if calculator is None else calculator.answer(unnamed)
        if answer is None:
            continue
        answer = replace(answer, confidence=answer.confidence * (1 - _RANK_LOSS * place))
        is_whole = asks_part or _CONSOLIDATED.search(answer.table.table.caption)
        worth = answer.confidence * (1.0 if is_whole else _PART_WORTH)
        if best is None or worth > best[0]:
            best = worth, answer
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class _ValueQuestion:
    """A question for the value of a line item in one year or several, or for its change between two. Without
    ``years`` it asks for the latest."""

    years: tuple[str, ...]
    is_change: bool
    in_percent: bool

    @property
    def years_needed(self) -> int:
        return 2 if self.is_change else max(len(self.years), 1)


def _parse_value_question(question: str) -> _ValueQuestion | None:
    """Return what a question asks of a line item; None for another question, or one about part of a year."""
    years = tuple(dict.fromkeys(find_periods(question)))
    operation = find_operation(_PER_SHARE.sub(" ", question))
    says_change = question.lower().startswith(("by how", "how did"))
    is_change = says_change or operation in {"change", "percent change"}
    asked = _ValueQuestion(
        tuple(sorted(years)) if is_change else years, is_change, operation == "percent change"
    )
    if not asks_value(question) or PART_OF_YEAR.search(question) or any(len(year) != 4 for year in years):
        return None
    if len(years) > asked.years_needed or not (is_change or operation in {"lookup", "periods"}):
        return None
    return asked


def _named_line(
    question: str,
    hits: Sequence[Hit],
    snapshot: Snapshot,
    subjects: Mapping[str, frozenset[str]],
    is_alone: bool,
) -> Calculation | None:
    """Return the value of the line item that a question names in full, or its change, wherever in the document its
    table stands: the hits are often tables about a part of the company. None for other questions."""
    asked = _parse_value_question(question)
    lines = None if asked is None else document_lines(hits, snapshot, subjects)
    if asked is None or lines is None:
        return None
    years = asked.years or tuple(sorted(lines.latest_years()[: asked.years_needed]))
    if len(years) != asked.years_needed:
        return None
    common = find_common_line(lines.asked_words(question), lines, years)
    chosen = (common, True) if common is not None else lines.choose(question, years)
    if chosen is None:
        return None
    item, is_certain = chosen
    # Where there is one document, or one is asked alone, a question need not name whom it is about.
    is_asked = any(item.table.document in documents for documents in subjects.values()) or (
        not subjects and (is_alone or len(snapshot.documents()) == 1)
    )
    calculator = open_calculator(item.table.id, hits, snapshot)
    if calculator is None or (subjects and not is_asked):
        return None
    places = [(item.row, item.columns[year]) for year in years]
    fit = 1.0 if is_certain and is_asked else 0.95
    if asked.is_change:
        return calculator.subtract_cells(places[1], places[0], asked.in_percent, fit)
    return calculator.read_cells(places, fit)


def open_table(id: str, snapshot: Snapshot) -> DataTable | None:
    """Return the table of a table node as data; None for a table of more than :data:`MAX_ROWS` rows, which is left to
    SQL, and not read to count them: each row is a line."""
    node = snapshot.nodes(snapshot.rows([id]))[0]
    if node.text.count("\n") > MAX_ROWS + _MAX_HEADER_LINES:
        return None
    table: DataTable = snapshot.memoize(f"table/{id}", partial(table_from_node, node), documents_only=True)
    return table if len(table.rows) <= MAX_ROWS else None


def open_calculator(id: str, hits: Sequence[Hit], snapshot: Snapshot) -> TableCalculator | None:
    """Return the calculator of a table node, with the passages of its document among ``hits`` around it; None for a
    table of more than :data:`MAX_ROWS` rows."""
    table = open_table(id, snapshot)
    if table is None:
        return None
    node = snapshot.nodes(snapshot.rows([id]))[0]
    own = [hit.node.text for hit in hits if hit.node.document == node.document and hit.node.kind == PASSAGE]
    around = " ".join((node.document_name.replace("_", " "), *node.headings))
    return TableCalculator(table, " ".join(own), around)
