"""Answers of readings over tables: what a reading says in words, with its cells as quotes; and the readings over the
tables of documents that search found.

Tables of data files and of reports are read alike (:mod:`clew.questions.table_reading`): the former all at once by
the method ``tables``, of the latter those among the hits, and none of a document about somebody else than the
question names.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from functools import partial

import numpy as np

from clew.core.cell_values import read_scale
from clew.core.protocols import Snapshot, Trail
from clew.core.text import shorten
from clew.core.trail import TableQueryStep
from clew.core.types import KINDS, MAX_POSSIBLE, PASSAGE, ROW, TABLE, Answer, Hit, Node, Plan
from clew.core.values import MONTH_PATTERN, mentions_name
from clew.methods.readers.quotes import quote_cell
from clew.parse.data_tables import (
    DATA_TYPES,
    SCALE_NAMES,
    DataRow,
    DataTable,
    name_tables,
    names_years,
    table_from_node,
    write_year,
)
from clew.questions.catalogue import Label
from clew.questions.slots import write_out
from clew.questions.table_catalogue import TableCatalogue
from clew.questions.table_plans import (
    CHANGE,
    DIFFERENCE,
    EACH,
    HIGHER,
    LOWER,
    MEAN,
    MEAN_DIFFERENCE,
    NAMELESS,
    RATIO,
    SHARE,
    TablePlan,
)
from clew.questions.table_query import BOUNDING, GROUP, ResultRow, TableArrays, TableQuery
from clew.questions.table_reading import TableReader, TableReading
from clew.questions.text import QuestionText
from clew.retrieve.document_fields import named_subjects

#: At most so many tables of reports are read for a question, and a longer one is left to SQL.
_MAX_TABLES, _MAX_LINES = 4, 2_000
_ANNOUNCED_SCALE = re.compile(
    r"\bin (?:[$€£]|US|dollars|euros| )*(?:thousand|million|billion)s\b", re.IGNORECASE
)
#: A value that is a number and no more, or ends in one behind the name of its group.
_BARE_NUMBER = re.compile(r"(?:^|: )-?\d[\d.,]*$")
_MONTH = re.compile(rf"\b{MONTH_PATTERN}\b", re.IGNORECASE)
#: A smaller percentage has more decimals than one.
_SMALL_SHARE = 1.0
#: Characters of a table's title in an answer.
_LONGEST_TITLE = 80
#: Parts of an answer that are printed, and rows that are quoted.
_PRINTED, QUOTED = 50, 5


def read_reports(
    question: str, hits: Sequence[Hit], snapshot: Snapshot, reader: TableReader
) -> tuple[TableReading, ...]:
    """Return how a question reads over the tables of reports that are among ``hits`` or have rows there, the
    likeliest first."""
    subjects = named_subjects(question, snapshot)

    def is_about(node: Node) -> bool:
        return not subjects or any(
            node.document in documents or mentions_name(name, node.text)
            for name, documents in subjects.items()
        )

    data = {document.key for document in snapshot.documents() if document.media_type in DATA_TYPES}
    ids = dict.fromkeys(
        hit.node.id if hit.node.kind == TABLE else hit.node.parent or ""
        for hit in hits
        if hit.node.kind in {TABLE, ROW} and hit.node.document not in data and is_about(hit.node)
    )
    tables = snapshot.nodes(snapshot.rows(list(filter(None, ids))[:_MAX_TABLES]))
    short = [node.id for node in tables if node.text.count("\n") <= _MAX_LINES]
    catalogues = [open_catalogue(id, NAMELESS, snapshot) for id in short]
    known = [catalogue for catalogue in catalogues if catalogue is not None]
    readings = reader.read(question, known, MAX_POSSIBLE) if known else ()
    return tuple(_complete_table(reading, hits, name_views(snapshot)) for reading in readings)


def _complete_table(reading: TableReading, hits: Sequence[Hit], names: Mapping[str, str]) -> TableReading:
    """Return a reading whose table has the name of its view, and where it gives no scale, that which a passage of its
    document among ``hits`` announces."""
    plan = reading.plan
    table = announce_scale(plan.query.table, hits)
    table = replace(table, name=names[table.id])
    other = None if plan.other is None else replace(plan.other, table=table)
    return replace(reading, plan=replace(plan, query=replace(plan.query, table=table), other=other))


def announce_scale(table: DataTable, hits: Sequence[Hit]) -> DataTable:
    """Return a table of which the columns without a scale have the one that another header or a passage of its
    document announces: "expressed in thousands of dollars"."""
    texts = [" ".join((table.table.caption, *(column.header for column in table.columns)))]
    texts += [
        hit.node.text for hit in hits if hit.node.document == table.document and hit.node.kind == PASSAGE
    ]
    announced = next(filter(None, map(_ANNOUNCED_SCALE.search, texts)), None)
    scale = read_scale(announced[0]) if announced else None
    if scale is None:
        return table
    lacking = [
        place
        for place, column in enumerate(table.columns)
        if column.type == "number" and column.scale == 1.0 and column.unit != "%"
    ]
    columns, inner = list(table.columns), list(table.table.columns)
    for place in lacking:
        columns[place] = replace(columns[place], scale=scale)
        inner[place] = replace(inner[place], scale=scale)
    return replace(table, columns=tuple(columns), table=replace(table.table, columns=tuple(inner)))


def name_views(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the names of the views of all tables by the ids of their nodes."""
    names: dict[str, str] = snapshot.memoize(
        "table-names", partial(_name_tables, snapshot), documents_only=True
    )
    return names


def _name_tables(snapshot: Snapshot) -> dict[str, str]:
    nodes = snapshot.nodes(np.flatnonzero(snapshot.column("kind") == KINDS.index(TABLE)))
    nodes.sort(key=lambda node: (node.document, node.position))
    return {node.id: name for name, _, node in name_tables(nodes)}


def open_catalogue(id: str, name: str, snapshot: Snapshot) -> TableCatalogue | None:
    """Return what the table of a table node can be asked, under a name for its view; None where its columns have no
    names."""
    catalogue: TableCatalogue | None = snapshot.memoize(
        f"table-catalogue/{id}/{name}", partial(_build_catalogue, id, name, snapshot), documents_only=True
    )
    return catalogue


def _build_catalogue(id: str, name: str, snapshot: Snapshot) -> TableCatalogue | None:
    table = open_table(id, name, snapshot)
    is_usable = len(table.rows) > 1 and len(table.columns) > 1 and not table.table.headers_uncertain
    return TableCatalogue(TableArrays(table)) if is_usable else None


def open_table(id: str, name: str, snapshot: Snapshot) -> DataTable:
    """Return the table of a table node as data, under a name for its view."""
    node = snapshot.nodes(snapshot.rows([id]))[0]
    table: DataTable = snapshot.memoize(f"table/{id}", partial(table_from_node, node), documents_only=True)
    return replace(table, name=name)


def answer_reading(
    question: str,
    reading: TableReading,
    snapshot: Snapshot,
    trail: Trail,
    recipe: str = "",
    is_data: bool = False,
) -> Answer:
    """Return the answer of a reading, with the rows that it was made of. That of a file of nothing but tables
    (``is_data``) says what its numbers are numbers of, and rounds as people do who keep such files."""
    started = time.perf_counter()
    query, result = reading.plan.query, reading.result
    rows = [row for row in (*result.rows, *result.others) if len(row.rows)]
    values = describe_reading(question, reading, is_data)
    reason = "" if values else _say_why_empty(reading.plan, rows)
    trail.add(
        TableQueryStep(
            reading.plan.sql,
            "clew's parser",
            query.table.name,
            reason or "answered",
            seconds=time.perf_counter() - started,
        )
    )
    cells = list(dict.fromkeys(_cells_of(reading)))
    count = len({place for row in rows for place in row.rows.tolist()})
    source = f"from {count:,} row{'s' * (count != 1)} of the table '{query.table.name}'"
    if reading.plan.formula not in ("", MEAN_DIFFERENCE):
        source = f"of {', '.join(cell for _, cell, _ in cells)}, {source}"
    empty = f"Not given: {reason}. Read as: {reading.sentence}"
    plan = Plan("table", reading.plan.sql, reading.plan.operation)
    printed = _explain(question, reading, values) if values and is_data else values
    return replace(
        quote_rows(printed or [empty], cells, snapshot, "tables", plan, recipe),
        values=tuple(values),
        empty=not values,
        confidence=reading.probability,
        formula=f"Read as: {reading.sentence}. Computed {source}.",
    )


def _say_why_empty(plan: TablePlan, rows: Sequence[ResultRow]) -> str:
    table = plan.query.table
    columns = plan.along or plan.measured
    cells = ((table.rows[place], column) for row in rows for place in row.rows.tolist() for column in columns)
    if any(table.lacks_result(row, column) for row, column in cells):
        return "a formula has no stored result (open and save the file in a spreadsheet program)"
    return "the cell is empty" if rows else "no row fits"


def _cells_of(reading: TableReading) -> Iterator[tuple[str, str, int | None]]:
    """Yield the cells that a reading was made of, as :func:`quote_rows` takes them: each number of a formula."""
    plan, result = reading.plan, reading.result
    columns: list[tuple[Sequence[ResultRow], TableQuery]] = [(result.rows, plan.query)]
    if plan.other is not None:
        columns.append((result.others or result.rows, plan.other))
    elif plan.along:
        columns = [(result.rows[:1], replace(plan.query, column=place)) for place in plan.along]
    for rows, query in columns:
        shown = query.column if query.column is not None else query.group
        for place in [place for row in rows for place in row.rows[:QUOTED].tolist()][:QUOTED]:
            row = query.table.rows[place]
            is_cell = shown is not None and shown != GROUP
            yield row.id, row.cells[shown] if is_cell else "", None if shown == GROUP else shown


def quote_rows(
    values: Sequence[str],
    cells: Sequence[tuple[str, str, int | None]],
    snapshot: Snapshot,
    reader: str,
    plan: Plan,
    recipe: str,
) -> Answer:
    """Return an answer with the rows that it quotes: (id of the row's node, the cell to mark, its column)."""
    printed = "; ".join(values[:_PRINTED])
    more = len(values) - _PRINTED
    nodes = snapshot.nodes(snapshot.rows([id for id, _, _ in cells])) if cells else []
    hits = tuple(Hit(node, 1.0, (node.id,)) for node in dict.fromkeys(nodes))
    quotes = (quote_cell(node, cell, column) for node, (_, cell, column) in zip(nodes, cells, strict=True))
    return Answer(
        f"{printed}; and {more:,} more" if more > 0 else printed,
        hits,
        tuple(dict.fromkeys(quotes)),
        reader=reader,
        values=tuple(values) if len(values) > 1 else (),
        plan=plan,
        context=hits,
        recipe=recipe,
    )


def describe_reading(question: str, reading: TableReading, is_data: bool = False) -> list[str]:
    """Return what a reading answers, each value in words, a bare number with what the question counts; [] where no
    row fits or the cells are empty. In a file of nothing but tables (``is_data``) percents have one decimal, and
    averages those of the cells."""
    values, query = _describe_result(reading, is_data), reading.plan.query
    counted = QuestionText(question).counted_words
    if not counted and reading.plan.operation == "count" and query.group is None:
        counted = f"rows of {query.table.name.replace('_', ' ')}"
    is_bare = counted and all(map(_BARE_NUMBER.search, values))
    return [f"{value} {counted}" for value in values] if is_bare else values


def _explain(question: str, reading: TableReading, values: Sequence[str]) -> list[str]:
    """Return the values of an answer with what they are made of: rows with the numbers that were compared, a
    difference or the higher of two with both, and a bare number with what it is a number of."""
    plan, rows, value = reading.plan, [*reading.result.rows, *reading.result.others], values[-1]
    if plan.operation == "values" and (compared := _list_compared(plan.query)):
        return [
            f"{each} ({', '.join(f'{header} {row.cells[place]}' for place, header in compared)})"
            for each, row in _list_rows(reading)
        ]
    if plan.formula == RATIO and plan.other is not None and plan.other.column == plan.query.column:
        return [f"{value} times"]
    if not plan.measured:
        return list(values)
    what = _say_what(question, plan)
    if plan.other is not None and len(rows) == 2 and plan.formula in (DIFFERENCE, HIGHER, LOWER):
        return [_say_both(plan, rows, value, what)]
    return [*values[:-1], f"{value} ({what})" if _BARE_NUMBER.search(value) else value]


def _list_compared(query: TableQuery) -> list[tuple[int, str]]:
    """Return the columns of numbers that rows have to be above or below a bound in, with their headers."""
    columns = query.table.columns
    bounded = {each.column: None for each in query.conditions if each.operator in BOUNDING}
    return [
        (place, columns[place].header or columns[place].name)
        for place in bounded
        if columns[place].type == "number" and place not in (query.column, query.group)
    ]


def _list_rows(reading: TableReading) -> Iterator[tuple[str, DataRow]]:
    """Yield what a list says of each row that has it, with the row."""
    for row in reading.result.rows:
        for place in row.rows.tolist() if row.value is not None else ():
            own = replace(row, rows=row.rows[row.rows == place])
            (text,) = _describe_results(reading.plan.query, [own])
            yield text, reading.plan.query.table.rows[place]


def _say_what(question: str, plan: TablePlan) -> str:
    """Return what the numbers of a plan are: the header of their column, written out where it abbreviates words of
    the question; where that is a period, with the title of the table. Two columns are named beside their numbers."""
    table, places = plan.query.table, dict.fromkeys(plan.measured)
    words = [word.text for word in QuestionText(question).words]
    header = " and ".join(_write_header(table, place, words) for place in places)
    is_period = any(map(str.isdigit, header)) or bool(_MONTH.search(header))
    title = shorten(table.table.caption or table.name.replace("_", " "), _LONGEST_TITLE) if is_period else ""
    if len(places) > 1 and plan.formula in (DIFFERENCE, HIGHER, LOWER):
        return title
    return ", ".join(filter(None, (header, title)))


def _write_header(table: DataTable, place: int, words: Sequence[str]) -> str:
    header = table.columns[place].header or table.columns[place].name
    written = write_out(label := Label.read(header), words)
    return header if written == label else written.text


def _say_both(plan: TablePlan, rows: Sequence[ResultRow], value: str, what: str) -> str:
    """Return the difference of two numbers, or the name of the higher or lower one, with both and ``what`` they are:
    the higher first, but for the lower one."""
    assert plan.other is not None
    sides, decimals = [], []
    for query, row in zip((plan.query, plan.other), rows, strict=True):
        if query.column is None or not isinstance(row.value, float):
            return value
        column = query.table.columns[query.column]
        name = row.name if plan.query.column == plan.other.column else column.header or column.name
        decimals.append(query.table.count_decimals(query.column, row.rows))
        sides.append((row.value, name, _describe_number(query, row.value, row, decimals[-1])))
    sides.sort(reverse=plan.formula != LOWER)
    (first, name, text), (second, other, other_text) = sides
    what = f"; {what}" if what else ""
    if plan.formula == DIFFERENCE:
        return f"{value.removeprefix('-')} ({name} {text} against {other} {other_text}{what})"
    if first == second:
        return f"{value} ({text} each{what})"
    by = _describe_number(plan.query, abs(first - second), rows[0], max(decimals))
    return f"{value}, by {by} ({text} against {other_text}{what})"


def _describe_result(reading: TableReading, is_data: bool) -> list[str]:
    plan, result = reading.plan, reading.result
    if plan.formula == EACH:
        table, cells = plan.query.table, zip(plan.along, result.rows, strict=True)
        return [_describe_cell(table, row.rows[0], place) for place, row in cells if row.value is not None]
    if not plan.formula:
        return list(_describe_results(plan.query, result.rows, is_data))
    if result.number is None:
        return []
    number = abs(result.number)
    rows = [*result.rows, *result.others]
    if plan.along and plan.formula in (HIGHER, LOWER):
        return [rows[0].name]
    if plan.formula in (HIGHER, LOWER):
        return [" and ".join(row.name for row in rows if row.value == result.number)]
    if plan.formula == RATIO:
        return [format_amount(number, "", 1.0)]
    if plan.formula == SHARE:
        return [_format_percent(number, is_data)]
    column = plan.query.column
    if column is not None and plan.query.table.columns[column].type == "date":
        return [f"{format_amount(round(number, 2), '', 1.0)} day{'s' * (number != 1)}"]
    if plan.formula == CHANGE:
        return [_format_percent(result.number, is_data)]
    is_average = plan.formula == MEAN
    places = [place for row in rows for place in row.rows]
    decimals = max(
        (plan.query.table.count_decimals(column, places) for column in plan.along or plan.measured), default=0
    )
    return [
        _describe_number(
            plan.query, result.number, rows[0], None if is_average and not is_data else decimals, is_average
        )
    ]


def _format_percent(number: float, is_data: bool) -> str:
    return format_amount(
        _round_up(number, 1) if is_data and abs(number) >= _SMALL_SHARE else number, "%", 1.0
    )


def _round_up(number: float, decimals: int) -> float:
    """Return a number rounded to decimals, 5 up, as people and spreadsheets do."""
    return float(Decimal(str(number)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


def _describe_results(
    query: TableQuery, results: Sequence[ResultRow], is_data: bool = False
) -> tuple[str, ...]:
    """Return each row of a result in words; a list of cells has each once, as it is written, with the name of its row
    beside a code."""
    values = []
    lists_cells = query.aggregate == "values" and query.column is not None
    beside = _name_beside(query.table, query.column or 0) if lists_cells else None
    for result in results:
        if result.value is None:
            continue
        if query.aggregate == "values" and query.column is not None:
            text = _describe_cell(query.table, result.rows[0], query.column)
            name = "" if beside is None or result.name else query.table.rows[result.rows[0]].cells[beside]
            text = f"{text} ({name})" if name else text
        elif isinstance(result.value, str):
            text = result.value
        elif query.aggregate == "count":
            text = f"{result.value:,.0f}"
        else:
            is_average = query.aggregate in ("average", "median")
            is_plain = query.column is None or (is_average and not is_data)
            decimals = None if is_plain else query.table.count_decimals(query.column or 0, result.rows)
            text = _describe_number(query, result.value, result, decimals, is_average, is_data)
        values.append(f"{result.name}: {text}" if result.name else text)
    return tuple(dict.fromkeys(values)) if query.aggregate == "values" else tuple(values)


def _describe_cell(table: DataTable, place: int, column: int) -> str:
    """Return a cell as it is written, with its scale where the table or the column says it."""
    row = table.rows[place]
    text = row.cells[column]
    if table.columns[column].type == "date":
        return write_year(text)
    if table.columns[column].type != "number" or (table.columns[column].scale == 1.0 and not row.place.scale):
        return text
    cell = table.cell(row, column)
    word = SCALE_NAMES.get(cell.scale, "") if cell.kind == "number" else ""
    return f"{text} {word}" if word and word not in text.casefold() else text


def _name_beside(table: DataTable, column: int) -> int | None:
    """Return the column of the names of rows beside one of their codes: the first that has other words in each row,
    and no digits; None where ``column`` holds no codes."""

    def are_all(place: int, is_code: bool) -> bool:
        cells = [row.cells[place] for row in table.rows if row.cells[place]]
        has_digit = [any(map(str.isdigit, cell)) for cell in cells]
        return len(set(cells)) == len(cells) > 1 and all(own == is_code for own in has_digit)

    is_text = [own.type == "text" for own in table.columns]
    if not is_text[column] or not are_all(column, True):
        return None
    others = (place for place, own in enumerate(is_text) if own and place != column and are_all(place, False))
    return next(others, None)


def _describe_number(
    query: TableQuery,
    value: float,
    result: ResultRow,
    decimals: int | None,
    is_average: bool = False,
    is_data: bool = False,
) -> str:
    """Return a number that was computed from cells, with the unit and scale of the first of them and their
    ``decimals``, where these are given; an average of whole numbers with up to one."""
    if query.aggregate == "share":
        return _format_percent(value, is_data)
    if query.column is None or query.aggregate in {"count", "distinct"}:
        return f"{value:,.0f}"
    column = query.table.columns[query.column]
    if is_average and decimals == 0:
        value = _round_up(value, 1)
    cell = query.table.cell(query.table.rows[result.rows[0]], query.column) if len(result.rows) else None
    if cell is not None and cell.kind == "number":
        unit, scale = cell.unit, cell.scale
    else:
        unit, scale = column.unit, column.scale
    return format_value(value, column.header or column.name, unit, scale, decimals or 0)


def format_value(value: float, header: str, unit: str, scale: float, decimals: int = 0) -> str:
    """Return a number of a column with its unit and scale, a year as years are written."""
    if not unit and value.is_integer() and names_years(header):
        return f"{value:.0f}"
    return format_amount(value, unit, scale, decimals)


def format_amount(value: float, unit: str, scale: float, decimals: int = 0) -> str:
    """Return a number with its unit and scale, and with so many ``decimals``, if they are given.

    >>> format_amount(-1234.5, "$", 1e6), format_amount(3.14159, "%", 1.0), format_amount(12, "shares", 1.0)
    ('-$1,234.5 million', '3.14%', '12 shares')
    """
    if decimals:
        text = f"{Decimal(repr(_round_up(value, decimals))):,.{decimals}f}"
    else:
        text = format_number(value) if abs(value) >= 0.01 or not value else f"{value:.3g}"
    if unit == "%":
        return f"{text}%"
    word = SCALE_NAMES.get(scale, "")
    if unit and not any(character.isalpha() for character in unit):
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        text, unit = f"{sign}{unit}{digits}", ""
    return " ".join(filter(None, (text, word, unit)))


def format_number(value: float) -> str:
    """Return a number with at most two decimals, and thousands apart.

    >>> format_number(-12.600000000000001), format_number(1234567.0), format_number(0.0771)
    ('-12.6', '1,234,567', '0.08')
    """
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
