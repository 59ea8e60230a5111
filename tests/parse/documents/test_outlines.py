"""The sections of PDFs against headings that were listed by hand; see tests/data/outlines/README.md.

How the parser does on the filings is measured by benchmarks/outlines.py.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from clew.core.types import SECTION
from clew.parse.documents.reader import parse

ROOT = Path(__file__).parents[3]
LISTS = sorted((ROOT / "tests" / "data" / "outlines").glob("*.tsv"))


def read(path):
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    ranges = [tuple(map(int, part.split("-"))) for part in first.removeprefix("pages:").split(",")]
    fields = [line.split("\t") for line in lines]
    return ranges, [(int(page), int(level), text) for page, level, text in fields]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_the_lists_are_whole(path):
    ranges, headings = read(path)
    pages = [page for page, _, _ in headings]
    assert pages == sorted(pages) and headings[0][1] == 1
    assert all(any(first <= page <= last for first, last in ranges) for page in pages)
    # An inner heading stands directly inside an outer node.
    levels = [level for _, level, _ in headings]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(text == " ".join(text.split()) and text for _, _, text in headings)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quillstone-bank-paper", "lighter-hire-contract"])
def test_sections_of_the_samples_are_those_of_the_list(name):
    (file,) = ROOT.glob(f"samples/**/{name}.pdf")
    _, headings = read(next(path for path in LISTS if path.stem == name))
    nodes = parse(file.read_bytes(), file.name).nodes
    assert [(node.page, node.level, node.name) for node in nodes if node.kind == SECTION] == headings


@pytest.mark.slow
def test_sections_of_a_report_whose_title_has_two_lines():
    name = "oskell-passage-annual-report-1931"
    (file,) = ROOT.glob(f"samples/**/{name}.pdf")
    _, headings = read(next(path for path in LISTS if path.stem == name))
    sections = [
        (node.page, node.level, node.name)
        for node in parse(file.read_bytes(), file.name).nodes
        if node.kind == SECTION
    ]
    # Its lines are two headings to the parser, of node level; all else is the same.
    assert [name for _, _, name in sections[:2]] == ["Oskell Passage Company", "Annual Report and Accounts"]
    assert sections[2:] == headings[1:]
