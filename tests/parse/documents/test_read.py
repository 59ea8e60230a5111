"""The front door: what it loads, and what it promises of every format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import clew.parse.documents
from bad_files import good_docx, good_pdf, good_xlsx
from clew.parse.documents import is_supported
from clew.parse.documents.reader import parse, read_file

GOOD = (
    (good_pdf(), "a.pdf"),
    (good_docx(), "a.docx"),
    (good_xlsx(), "a.xlsx"),
    (b"<html><p>One is. Two is.", "a.html"),
    (b"# One\n\nTwo.", "a.md"),
    (b"One.\n\nTwo.", "a.txt"),
    (b"a,b\n1,2\n", "a.csv"),
    (b"a\tb\n1\t2\n", "a.tsv"),
)


@pytest.mark.parametrize(("data", "name"), GOOD, ids=[name for _, name in GOOD])
def test_a_document_is_a_function_of_bytes_parser_and_unit(data: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    document = read_file(path)
    assert document == parse(data, name) == read_file(path)
    assert document.parser.endswith("/1(passages=paragraph)")
    by_sentence = read_file(path, unit="sentence")
    assert by_sentence.parser.endswith("/1(passages=sentence)")
    assert by_sentence.key != document.key
    assert is_supported(path)


def test_a_key_depends_on_what_the_bytes_are_read_as() -> None:
    assert parse(b"One.", "a.txt").key == parse(b"One.", "b.text").key
    assert parse(b"One.", "a.txt").key != parse(b"One.", "a.md").key
    assert parse(b"One.", "a.txt").key != parse(b"Two.", "a.txt").key


def test_only_the_parser_that_is_needed_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Words.")
    program = (
        "import sys; from pathlib import Path; from clew.parse.documents.reader import read_file, is_supported\n"
        "read_file(Path(sys.argv[1]))\n"
        "heavy = 'lxml numpy pypdfium2 markdown_it charset_normalizer'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(callable(getattr(clew.parse.documents, name)) for name in clew.parse.documents.__all__)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = clew.parse.documents.absent
