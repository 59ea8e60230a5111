"""Thirty table cells picked by eye from the filings: how many come back with their row and their column?

The list (``data/table_cells.jsonl``: file, page from 1, row label, column label, value as printed) was written
from the rendered pages before any parser was measured on it. A cell is recovered if one row of a table on its page
holds it: the words of its row label stand before it, its own column header has all words of its column label
(where headers have several lines, all of them), and its value is the printed one.

    python benchmarks/table_cells.py                # one line for each cell, then the count
    python benchmarks/table_cells.py --folder PDFS
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

from clew.core.types import ROW, ParsedDocument
from clew.parse.documents.reader import read_file

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "shared" / "data" / "financebench" / "pdfs"


@dataclass(frozen=True)
class Cell:
    """A cell as a person reads it on the page."""

    file: str
    page: int
    row: str
    column: str
    value: str


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+|[$%]", text.casefold()))


def value(text: str) -> str:
    """Return a number without currency sign, percent sign and spaces; parentheses and signs stay."""
    return re.sub(r"[\s$%]", "", text)


def found_in(row: str, cell: Cell) -> bool:
    """Return whether a row's text ``caption. label: header: value; header: value`` holds the cell."""
    parts = row.split("; ")
    for number, part in enumerate(parts):
        before, _, last = part.rpartition(": ")
        # The first part also holds caption and label; the others are one header and one value.
        label = parts[0].rpartition(": ")[0]
        header = before if number else label.rpartition(": ")[2]
        if value(last) == value(cell.value) and words(cell.row) <= words(label):
            return words(cell.column) <= words(header)
    return False


def recovered(document: ParsedDocument, cell: Cell) -> bool:
    rows = [node.text for node in document.nodes if node.kind == ROW and node.page == cell.page]
    return any(found_in(row, cell) for row in rows)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--folder", type=Path, default=FOLDER)
    options.add_argument("--cells", type=Path, default=HERE / "data" / "table_cells.jsonl")
    given = options.parse_args()
    if not given.folder.is_dir():
        raise SystemExit(f"no filings in {given.folder}; name their folder with --folder")
    cells = [Cell(**json.loads(line)) for line in given.cells.read_text(encoding="utf-8").splitlines()]
    documents = {file: read_file(given.folder / file) for file in sorted({cell.file for cell in cells})}
    count = 0
    for cell in cells:
        good = recovered(documents[cell.file], cell)
        count += good
        print(
            f"{'yes' if good else 'NO ':3}  {cell.file} p. {cell.page}: {cell.row} | {cell.column} = {cell.value}"
        )
    print(f"{count} of {len(cells)} cells recovered with their row and column")


if __name__ == "__main__":
    main()
