"""Does what clew would show as evidence stand on the page that it names, in that row, under that year? Over filings.

Cells of numbers and passages are drawn at random from what the reader makes of PDFs, and looked for among the
characters of the page with their positions. This shares only PDFium's characters with the reader: words are runs of
characters, lines are words of a height. Of a cell is judged

- *value*: whether it stands on the page;
- *row*: whether at least half of the words of the row's label stand on its line or up to two lines from it;
- *year*: if its column names a single year, whether that is the year nearest to the value's left or right edge in the
  nearest line above that has two years or more, one of them over the value. Where there is no such line (years in
  running text stand elsewhere) the year is not judged.

A cell for which several places would do is right if any of them is. A passage is *verbatim* if its letters and digits
stand on its page or across it and the next in that order, and *scattered* if nine tenths of its runs of twenty
letters do: PDFium gives the lines of some pages in another order. Else it is not there. ``--show`` prints what was
judged wrong, for a person to look at: the figures are upper bounds.

    python benchmarks/false_attributions.py [--cells 400] [--passages 400] [--seed 24] [--show]
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pypdfium2

from clew.core.types import PASSAGE
from clew.parse.documents.reader import read_file

FOLDER = Path(__file__).parent.parent.parent / "shared" / "data" / "financebench" / "pdfs"
_YEAR = re.compile(r"(?:19|20)\d\d")
#: A cell of a range ("3% - 7%") is several words on the page, and is not judged.
_ONE_NUMBER = re.compile(r"[^A-Za-z\d]*\d[\d.,]*[^A-Za-z\d]*")
#: Letters of a run of a passage.
_RUN = 20
#: Lines beside the value's in which words of the label may stand.
_NEAR = 2
#: Points between an edge of a value and that of the year over it, at most.
_ABOVE = 40.0


@dataclass(frozen=True)
class Word:
    """A word on a page; ``x0``, ``x1`` and ``y`` (its middle) in points."""

    text: str
    x0: float
    x1: float
    y: float
    height: float


@dataclass(frozen=True)
class Cell:
    """A cell as clew reads it."""

    file: Path
    page: int
    label: str
    column: str
    value: str


def page_words(file: Path, page: int) -> Iterator[Word]:
    """Yield the words of a page (from 1) as runs of characters without a gap."""
    document = pypdfium2.PdfDocument(file)
    text = document[page - 1].get_textpage()
    run: list[tuple[str, tuple[float, float, float, float]]] = []

    def word() -> Word:
        boxes = [box for _, box in run]
        low, high = min(box[1] for box in boxes), max(box[3] for box in boxes)
        letters = "".join(character for character, _ in run)
        return Word(letters, boxes[0][0], boxes[-1][2], (low + high) / 2, high - low)

    for number in range(text.count_chars()):
        character, box = text.get_text_range(number, 1), text.get_charbox(number, loose=True)
        gap = bool(run) and (box[0] - run[-1][1][2] > 2.0 or abs(box[1] - run[-1][1][1]) > 3.0)
        if run and (gap or not character.strip()):
            yield word()
            run = []
        if character.strip():
            run.append((character, box))
    if run:
        yield word()
    document.close()


@lru_cache(maxsize=64)
def page_lines(file: Path, page: int) -> tuple[tuple[Word, ...], ...]:
    """Return the lines of a page from top to bottom, each from left to right."""
    lines: list[list[Word]] = []
    for word in sorted(page_words(file, page), key=lambda word: -word.y):
        if lines and abs(lines[-1][0].y - word.y) < max(3.0, word.height / 2):
            lines[-1].append(word)
        else:
            lines.append([word])
    return tuple(tuple(sorted(line, key=lambda word: word.x0)) for line in lines)


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text).casefold()


def number_text(text: str) -> str:
    """Return a number without what may stand apart from it: currency, percent sign, parentheses, spaces."""
    return re.sub(r"[^\d.,]", "", text).strip(".,")


def label_words(text: str) -> set[str]:
    """Return the words of a label; the mark of a footnote is one of its own, with or without a space before it."""
    return {letters(word) for word in re.findall(r"[^\W_]+", text)}


def judge_cell(cell: Cell) -> str:
    """Return "right", "value", "row", "year" (what is false), or "right, year not judged"."""
    lines = page_lines(cell.file, cell.page)
    wanted, label = number_text(cell.value), label_words(cell.label)
    verdicts = {"value"}
    for number, line in enumerate(lines):
        for word in line:
            if number_text(word.text) != wanted:
                continue
            near = lines[max(0, number - _NEAR) : number + _NEAR + 1]
            beside = {part for row in near for other in row for part in label_words(other.text)}
            if label and len(label & beside) * 2 < len(label):
                verdicts.add("row")
            else:
                verdicts.add(judge_year(cell, word, lines[:number]))
    return next(v for v in ("right", "right, year not judged", "year", "row", "value") if v in verdicts)


def judge_year(cell: Cell, value: Word, above: tuple[tuple[Word, ...], ...]) -> str:
    claimed = set(_YEAR.findall(cell.column))
    if len(claimed) != 1:
        return "right, year not judged"
    for line in reversed(above):
        years = [word for word in line if _YEAR.fullmatch(word.text.strip("()*,."))]
        if len(years) > 1:
            distances = [min(abs(word.x1 - value.x1), abs(word.x0 - value.x0)) for word in years]
            if min(distances) <= _ABOVE:
                nearest = years[distances.index(min(distances))]
                return "right" if nearest.text.strip("()*,.") in claimed else "year"
    return "right, year not judged"


def judge_passage(file: Path, page: int, text: str) -> str:
    """Return "verbatim", "scattered" or "absent"."""
    document = pypdfium2.PdfDocument(file)
    pages = range(page, min(len(document), page + 1) + 1)
    whole = "".join(letters(document[number - 1].get_textpage().get_text_range()) for number in pages)
    document.close()
    wanted = letters(text)
    if wanted in whole:
        return "verbatim"
    runs = [wanted[start : start + _RUN] for start in range(max(1, len(wanted) - _RUN + 1))]
    return "scattered" if sum(run in whole for run in runs) >= 0.9 * len(runs) else "absent"


def read_evidence(folder: Path) -> tuple[list[Cell], list[tuple[Path, int, str]]]:
    """Return all cells of numbers under certain headers, and all passages with their pages."""
    cells: list[Cell] = []
    passages: list[tuple[Path, int, str]] = []
    for file in sorted(folder.glob("*.pdf")):
        for node in read_file(file).nodes:
            if node.kind == PASSAGE and node.page is not None and len(node.text) > 40:
                passages.append((file, node.page, node.text))
            table = node.table
            if table is None or table.headers_uncertain:
                continue
            for number, row in enumerate(table.rows):
                page = table.row_pages[number] if table.row_pages else node.page
                for place, text in enumerate(row):
                    is_number = len(number_text(text)) > 1 and _ONE_NUMBER.fullmatch(text)
                    if place and page is not None and is_number:
                        path = " ".join(table.columns[place].path)
                        cells.append(Cell(file, page, row[0], path, text))
    return cells, passages


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of PDFs")
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--passages", type=int, default=400)
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    cells, passages = read_evidence(given.folder)
    rng = random.Random(given.seed)
    print(f"{len(cells):,} cells with numbers and {len(passages):,} passages; seed {given.seed}")
    drawn = rng.sample(cells, min(given.cells, len(cells)))
    verdicts: Counter[str] = Counter()
    for cell in drawn:
        verdict = judge_cell(cell)
        verdicts[verdict] += 1
        if given.show and not verdict.startswith("right"):
            print(
                f"  {verdict}: {cell.file.name} p{cell.page} {cell.label!r} | {cell.column!r} | {cell.value!r}"
            )
    false = sum(verdicts[what] for what in ("value", "row", "year"))
    print(f"cells: {len(drawn)}; not as on the page: {false} ({100 * false / len(drawn):.1f} %): ", end="")
    print(", ".join(f"{what} {verdicts[what]}" for what in ("value", "row", "year")), end="; ")
    print(f"year judged for {verdicts['right'] + verdicts['year']}")
    quotes = rng.sample(passages, min(given.passages, len(passages)))
    outcomes: Counter[str] = Counter()
    for file, page, text in quotes:
        outcome = judge_passage(file, page, text)
        outcomes[outcome] += 1
        if given.show and outcome == "absent":
            print(f"  {outcome}: {file.name} p{page} {text[:100]!r}")
    print(f"passages: {len(quotes)}: ", end="")
    print(", ".join(f"{what} {outcomes[what]}" for what in ("verbatim", "scattered", "absent")))


if __name__ == "__main__":
    main()
