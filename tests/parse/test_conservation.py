"""Every word of a file is in its document, or left out for a reason: counted without clew's parsers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clew.core.types import ParsedDocument
from clew.parse.documents.reader import read_file

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from conservation import count_file, cut_words, find_unexplained, read_words, stored_words  # noqa: E402

SUFFIXES = (".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".html", ".md", ".txt")
FILES = [
    path
    for folder in ("samples/documents", "tests/data/field", "tests/data/formats")
    for path in sorted((ROOT / folder).iterdir())
    if path.suffix in SUFFIXES
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_word_of_a_file_is_stored_or_left_out_for_a_reason(path: Path) -> None:
    of_file, stored = count_file(path, read_file(path))
    assert of_file and not find_unexplained(of_file, stored)


def drop_words(document: ParsedDocument, words: str) -> ParsedDocument:
    assert words in document.text
    return replace(document, text=document.text.replace(words, "", 1))


@pytest.mark.parametrize("words", ["Sea Lark", "Owner", "14.2"])
def test_a_word_that_is_lost_is_found_out(words: str) -> None:
    path = ROOT / "tests" / "data" / "field" / "03_form.pdf"
    of_file = read_words(path)
    unexplained = find_unexplained(of_file, stored_words(drop_words(read_file(path), words)))
    assert unexplained == cut_words(words)


def test_words_that_are_joined_or_cut_are_the_same() -> None:
    assert not find_unexplained(cut_words("the wind-\nlass of 20211"), cut_words("the windlass of 2021 ¹"))
    assert find_unexplained(cut_words("one two two"), cut_words("one two")) == cut_words("two")
