"""Cells of tables picked by eye from pages of PDFs: does each come back with its row, column, unit and scale?

A list (``data/table_cells*.jsonl``: file, page from 1, words of the row, words of the column, value as printed; also
the unit, the scale, and words of groups that the row is not part of) was written from rendered pages. A cell is
recovered if a row of a table on its page has the words of its row label in its own label and groups, and none of the
words that do not belong there; if the path of its column has all words of the column's label and no other year; and
if its value is the printed one. Where the headers of a table are uncertain, none of its cells is recovered, none
wrong; a cell whose value stands in that row under another column is *wrong*.

    python benchmarks/table_cells.py                                   # thirty cells of the filings
    python benchmarks/table_cells.py --boxes        # every cell of the filings: is its text what stands in its box?
    python benchmarks/table_cells.py --cells data/table_cells_sample.jsonl --folder PDFS --folder MORE_PDFS
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium

from clew.core.cell_values import cell_value
from clew.core.types import ROW, ParsedDocument, Table
from clew.parse.documents.pdf.words import PageView
from clew.parse.documents.reader import read_file
from clew.store.documents import pack_cells

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "shared" / "data" / "financebench" / "pdfs"


@dataclass(frozen=True)
class Cell:
    """A cell as a person reads it on the page. ``without`` are words of groups that its row is not part of."""

    file: str
    page: int
    row: str
    column: str
    value: str
    without: str = ""
    unit: str | None = None
    scale: float | None = None


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+|[$%]", text.casefold()))


def years(text: str) -> set[str]:
    return set(re.findall(r"\b(?:19|20)\d\d\b", text))


def value(text: str) -> str:
    """Return a number without currency sign, percent sign and spaces; parentheses and signs stay."""
    return re.sub(r"[\s$%]", "", text)


def is_row(table: Table, number: int, cell: Cell) -> bool:
    label = words(" ".join((*table.row_places[number].groups, table.rows[number][0])))
    on_page = not table.row_pages or table.row_pages[number] == cell.page
    return on_page and words(cell.row) <= label and not words(cell.without) & label


def is_column(table: Table, number: int, cell: Cell) -> bool:
    path = " ".join(table.columns[number].path)
    own_years = years(cell.column)
    return words(cell.column) <= words(path) and (not own_years or years(path) <= own_years)


def judge(document: ParsedDocument, cell: Cell) -> tuple[str, bool, bool]:
    """Return "right", "wrong", "uncertain" or "missing", and whether unit and scale are right too."""
    outcome = "missing"
    tables = [node.table for node in document.nodes if node.table is not None]
    for table in tables:
        for row in range(len(table.rows)):
            if not is_row(table, row, cell):
                continue
            places = [n for n, text in enumerate(table.rows[row]) if n and value(text) == value(cell.value)]
            if places and table.headers_uncertain:
                outcome = "uncertain"
            elif any(is_column(table, n, cell) for n in places):
                column = next(n for n in places if is_column(table, n, cell))
                read = cell_value(table, row, column)
                return "right", cell.unit in {None, read.unit}, cell.scale in {None, read.scale}
            elif places and outcome == "missing":
                outcome = "wrong"
    return outcome, False, False


def compare_boxes(paths: Sequence[Path]) -> None:
    """Print how many cells' boxes have the cell's text in them on the page, and at most three characters besides."""
    counts: Counter[str] = Counter()
    for path in paths:
        pdf = pdfium.PdfDocument(str(path))

        @cache
        def open_page(number: int, pdf: Any = pdf) -> tuple[Any, PageView]:
            page = pdf[number - 1]
            return page.get_textpage(), PageView.from_page(page)

        document = read_file(path)
        for position, node in enumerate(document.nodes):
            if node.kind != ROW or node.page is None or node.parent is None:
                continue
            table = document.nodes[node.parent].table
            counts["bytes"] += len(pack_cells(node.cells) or "")
            counts.update({"rows": 1, "rows without boxes": not node.cells})
            text, view = open_page(node.page)
            row = table.rows[position - node.parent - 1] if table else ()
            for box, cell in list(zip(node.cells, row, strict=False))[1:]:
                if box is None:
                    continue
                printed = text.get_text_bounded(
                    left=box.x0 - 0.5 - view.e, right=box.x1 + 0.5 - view.e,
                    bottom=view.f - box.y1 + 1, top=view.f - box.y0,
                )  # fmt: skip
                own, others = (re.sub(r"[\W_]+", "", part).casefold() for part in (cell, printed))
                counts["same" if own in others and len(others) < len(own) + 4 else "other"] += 1
        pdf.close()
    cells = counts["same"] + counts["other"]
    print(
        f"{counts['same']:,} of {cells:,} cells have their text in their box; {counts['rows']:,} rows, "
        f"{counts['rows without boxes']} without boxes; {counts['bytes'] / 1e6:.2f} MB stored"
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--folder", type=Path, action="append", help="a folder of PDFs (default: the filings)"
    )
    options.add_argument("--cells", type=Path, default=HERE / "data" / "table_cells.jsonl")
    options.add_argument(
        "--boxes", action="store_true", help="compare the boxes of all cells with their pages"
    )
    given = options.parse_args()
    folders = given.folder or [FOLDER]
    if given.boxes:
        compare_boxes([path for folder in folders for path in sorted(folder.glob("*.pdf"))])
        return
    cells = [Cell(**json.loads(line)) for line in given.cells.read_text(encoding="utf-8").splitlines()]
    paths = {path.name: path for folder in folders for path in sorted(folder.glob("*.pdf"))}
    if absent := sorted({cell.file for cell in cells} - paths.keys()):
        raise SystemExit(
            f"not in {', '.join(map(str, folders))}: {', '.join(absent)}; name folders with --folder"
        )
    started = time.process_time()
    documents = {file: read_file(paths[file]) for file in sorted({cell.file for cell in cells})}
    seconds = time.process_time() - started
    outcomes: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    typed: Counter[str] = Counter()
    for cell in cells:
        outcome, unit, scale = judge(documents[cell.file], cell)
        outcomes[outcome] += 1
        asked.update({"unit": cell.unit is not None, "scale": cell.scale is not None})
        typed.update({"unit": unit and cell.unit is not None, "scale": scale and cell.scale is not None})
        note = "" if outcome != "right" or (unit and scale) else f" [unit {unit}, scale {scale}]"
        print(f"{outcome:9}  {cell.file} p. {cell.page}: {cell.row} | {cell.column} = {cell.value}{note}")
    print(
        f"{outcomes['right']} of {len(cells)} cells recovered with their row and column; {outcomes['wrong']} wrong, "
        f"{outcomes['uncertain']} in tables with uncertain headers, {outcomes['missing']} missing"
    )
    if asked["unit"]:
        print(f"of all: unit {typed['unit']} of {asked['unit']}, scale {typed['scale']} of {asked['scale']}")
    print(f"{seconds:.1f} CPU seconds to parse {len(documents)} files")


if __name__ == "__main__":
    main()
