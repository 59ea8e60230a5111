"""The tables of a base as data: listed, read, queried by SQL, exported."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import MissingExtra, NotFound, UsageError, unknown_name_error
from clew.core.sources import Source, expand_path
from clew.core.text import clean_text, escape_formula, fold_name
from clew.parse.data_tables import DataTable, name_tables, series_name, table_from_node

if TYPE_CHECKING:
    from clew.core.types import Box, Node
    from clew.methods.tables.sql_engine import SqlResult
    from clew.methods.tables.sql_process import QueryLimits
    from clew.store.store import Store


class KnowledgeTables:
    """The tables of all documents, as views with stable names: ``base.tables``.

    A table is read from the text of its node when it is needed, so it is there as long as its document is.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self) -> dict[str, tuple[int, Node]]:
        """Return the views by name, each with its number in its document and its node, in order of documents."""
        return {name: (number, node) for name, number, node in name_tables(self._store.table_nodes())}

    def list(self, document: Source | None = None) -> list[DataTable]:
        """Return the tables, of one document if it is given. Raises NotFound."""
        key = None if document is None else self._store.document(document).key
        return [
            table_from_node(node, name, number)
            for name, (number, node) in self.names().items()
            if key is None or node.document == key
        ]

    def get(self, name: str) -> DataTable:
        """Return a table by the name of its view, in any case. Raises UsageError."""
        return _find(name, self.names())

    def editions(self, name: str) -> tuple[DataTable, ...]:
        """Return the same table in the editions of its document: of each other document whose name differs in its
        years and numbers alone, the table with the same rows. Raises UsageError.

        Two tables are the same if at least half of the labels that either has are in both, years and notes aside.
        """
        table, names = self.get(name), self.names()
        series, labels = series_name(table.document_name), _labels(table)
        if not series:
            return ()
        by_document: dict[str, tuple[float, DataTable]] = {}
        for other, (number, node) in names.items():
            if node.document == table.document or series_name(node.document_name) != series:
                continue
            candidate = table_from_node(node, other, number)
            others = _labels(candidate)
            shared = labels & others
            overlap = len(shared) / max(len(labels | others), 1)
            known = by_document.get(node.document_name)
            if overlap >= _SAME_LABELS and len(shared) > 1 and (known is None or overlap > known[0]):
                by_document[node.document_name] = overlap, candidate
        return tuple(edition for _, (_, edition) in sorted(by_document.items()))

    def query(self, text: str, limits: QueryLimits | None = None) -> SqlResult:
        """Run one SELECT over the tables (:mod:`clew.methods.tables.sql_engine`). Raises UsageError, MissingExtra."""
        from clew.methods.tables.sql_engine import run_query

        names = self.names()
        result = run_query(
            text, {name.lower(): name for name in names}, lambda name: _find(name, names), limits
        )
        return replace(result, boxes=self._cell_boxes(result, names))

    def _cell_boxes(
        self, result: SqlResult, names: dict[str, tuple[int, Node]]
    ) -> dict[tuple[str, str], Box]:
        """Return the boxes of the source cells of a result, as far as their documents have pages."""
        paged = [name for name in result.tables if names[name][1].boxes]
        if not paged:
            return {}
        columns = {
            (names[name][1].id, column.name): number
            for name in paged
            for number, column in enumerate(_find(name, names).columns)
        }
        keys = {names[name][1].document for name in paged}
        cells = [cell for cell in result.all_source_cells() if cell[0].rpartition(":")[0] in keys]
        ids = list(dict.fromkeys(id for id, _ in cells))
        nodes = dict(zip(ids, self._store.nodes(ids), strict=True))
        boxes = {}
        for id, column in cells:
            node = nodes[id]
            number = columns.get((node.parent or "", column))
            box = node.cells[number] if number is not None and number < len(node.cells) else None
            if box is not None:
                boxes[id, column] = box
        return boxes

    def export(self, name: str, path: Source) -> DataTable:
        """Write a table to a file: ``.csv`` and ``.xlsx`` as printed, ``.parquet`` as typed columns.

        Raises UsageError for another ending, MissingExtra without openpyxl or pyarrow.
        """
        path = expand_path(path)
        table = self.get(name)
        suffix = path.suffix.lower()
        if suffix == ".csv":
            with path.open("w", encoding="utf-8", newline="") as stream:
                rows = [_headers(table), *(row.cells for row in table.rows)]
                csv.writer(stream).writerows(map(escape_formula, row) for row in rows)
        elif suffix == ".xlsx":
            _write_workbook(table, path)
        elif suffix == ".parquet":
            _write_parquet(table, path)
        else:
            raise UsageError(f"cannot export to '{path.name}'", "Known endings: .csv, .xlsx, .parquet")
        return table


#: Of the labels of two tables that are the same in two years, so many are in both.
_SAME_LABELS = 0.5


def _labels(table: DataTable) -> frozenset[str]:
    """Return the labels of the rows, without numbers, which may be years, and without marks of notes."""
    labels = (fold_name(re.sub(r"\(\w{1,2}\)", " ", row.label)) for row in table.rows)
    return frozenset(label for label in labels if any(map(str.isalpha, label)))


def _find(name: str, names: dict[str, tuple[int, Node]]) -> DataTable:
    if not names:
        raise NotFound("this knowledge base has no tables", "Add documents: clew add FOLDER")
    match = next((known for known in names if known.lower() == name.lower()), None)
    if match is None:
        raise unknown_name_error("table", name, names)
    number, node = names[match]
    return table_from_node(node, match, number)


def _headers(table: DataTable) -> list[str]:
    return [column.header for column in table.columns]


def _write_workbook(table: DataTable, path: Path) -> None:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtra("openpyxl, which writes XLSX files,", "tables") from error
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("table")

    def put(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        cell = WriteOnlyCell(sheet, clean_text(value))
        cell.data_type = "s"  # never a formula
        return cell

    sheet.append([put(header) for header in _headers(table)])
    columns = [table.values(place) for place in range(len(table.columns))]
    for number, row in enumerate(table.rows):
        # A cell that its column's type does not fit stays as printed.
        sheet.append([put(values[number]) if values[number] is not None else put(cell or None)
                      for values, cell in zip(columns, row.cells, strict=True)])  # fmt: skip
    book.save(path)


def _write_parquet(table: DataTable, path: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow, which writes Parquet files,", "tables") from error
    types = {"number": pa.float64(), "date": pa.date32(), "text": pa.string()}
    arrays = {
        column.name: pa.array(table.values(place), types[column.type])
        for place, column in enumerate(table.columns)
    }
    arrays["_row"] = pa.array([row.id for row in table.rows], pa.string())
    arrays["_group"] = pa.array([row.group or None for row in table.rows], pa.string())
    arrays["_total"] = pa.array([row.is_total for row in table.rows], pa.bool_())
    parquet.write_table(pa.table(arrays), path)
