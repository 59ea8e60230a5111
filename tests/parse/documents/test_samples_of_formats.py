"""The same text in every format, written by pandoc, LibreOffice and Python's own mail: read alike."""

from __future__ import annotations

import io
import zipfile

import pytest

from bad_files import good_msg, sample
from clew.core.types import PAGE, SECTION, TABLE, ParsedDocument
from clew.parse.documents.formats import document_formats, format_of_suffix
from clew.parse.documents.reader import parse
from clew.testing import check_format
from parse_trees import check, outline

TEXTS = ("docx", "odt", "rtf", "epub", "ipynb", "tex", "html", "eml", "mbox", "pptx", "odp")
TABLES = ("xlsx", "ods", "csv")
ALL = (*TEXTS, *TABLES, "json", "jsonl", "zip")
ROWS = [
    "| Herring: 1910: 14; 1920: 31; 1930: 22",
    "| Pilchard: 1910: 9; 1920: 18; 1930: 12",
    "| Turbot: 1910: 63; 1920: 140; 1930: 118",
]


def read_sample(suffix: str) -> ParsedDocument:
    document = parse(sample(suffix), f"brannick.{suffix}")
    check(document)
    return document


@pytest.mark.slow
@pytest.mark.parametrize("suffix", TEXTS)
def test_headings_paragraphs_lists_and_tables_are_the_same_in_every_format(suffix: str) -> None:
    document = read_sample(suffix)
    lines = outline(document)
    names = [node.text for node in document.nodes if node.kind == SECTION]
    order = ["The harbour", "The lighthouse", "The fish market", "The railway", "The people", "The lifeboat"]
    assert [name for name in names if name in order] == order
    assert document.title == (
        "brannick" if suffix == "mbox" else "The harbour" if suffix == "ipynb" else "The Harbour of Brannick"
    )
    assert [line for line in lines if line.startswith("| ")] == ROWS
    assert "Electric light replaced the oil lamp on 9 October 1926." in lines
    rules = [line for line in lines if "bell is rung" in line]
    if suffix != "odp":  # LibreOffice writes the items of a slide's second list as paragraphs
        assert rules == [
            "Rules of the market:\n- Selling begins when the bell is rung at half past five.\n- Mackerel is sold by "
            "the long hundred of one hundred and twenty.\n- A bidder who does not pay by noon loses his stall for "
            "a month."
        ]
    (table,) = [node.table for node in document.nodes if node.kind == TABLE]
    assert table is not None and table.header == ("Fish", "1910", "1920", "1930")
    assert table.rows[2] == ("Turbot", "63", "140", "118")


@pytest.mark.parametrize("suffix", ["pptx", "odp"])
def test_slides_are_pages(suffix: str) -> None:
    document = read_sample(suffix)
    assert document.pages == 7
    assert [node.page for node in document.nodes if node.kind == PAGE] == [1, 2, 3, 4, 5, 6, 7]
    assert {node.page for node in document.nodes if "Persephone" in node.text} == {5}


@pytest.mark.parametrize("suffix", TABLES)
def test_spreadsheets_have_the_tables(suffix: str) -> None:
    lines = [line.replace("brannick. ", "") for line in outline(read_sample(suffix))]
    assert "| The people: Fact: Brannick had 2,314 inhabitants in the census of 1901." in lines
    assert suffix == "csv" or [line for line in lines if line in ROWS] == ROWS


def test_json_has_sections_lists_and_tables() -> None:
    lines = outline(read_sample("json"))
    assert lines[:3] == ["# sections", "## The harbour", lines[2]]
    assert lines[2].startswith("facts:\n- The harbour of Brannick was dug by convicts")
    assert [line.replace("prices. ", "") for line in lines if line.startswith("| ")] == ROWS


def good_file(suffix: str) -> bytes:
    if suffix == "msg":
        return good_msg()
    if suffix in {"txt", "md", "tsv"}:
        return b"# Prices\n\nWords that say something. Others, too.\n" if suffix != "tsv" else b"a\tb\n1\t2\n"
    if suffix == "srt":
        return b"1\n00:00:01,000 --> 00:00:04,000\nWords that say something.\nOthers, too.\n"
    if suffix == "pdf":
        from bad_files import good_pdf

        return good_pdf()
    return sample(suffix)


def test_every_format_conforms() -> None:
    checked = set()
    for suffix in (*ALL, "msg", "txt", "md", "pdf", "srt"):
        form = format_of_suffix(f".{suffix}")
        assert form is not None
        check_format(form, good_file(suffix), f"a.{suffix}")
        checked.add(form.media_type)
    missing = {form.media_type for form in document_formats()} - checked
    assert not {media_type for media_type in missing if not media_type.startswith("image/")}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pptx", "odt", "ods", "odp", "epub", "rtf", "msg", "zip"])
def test_a_format_is_recognised_under_another_name(suffix: str) -> None:
    form = format_of_suffix(f".{suffix}")
    assert form is not None
    for name in ("report", "report.txt") if suffix != "zip" else ("report",):
        assert parse(good_file(suffix), name).media_type == form.media_type


@pytest.mark.parametrize("suffix", ["eml", "mbox", "tex"])
def test_a_text_format_is_recognised_without_a_suffix(suffix: str) -> None:
    form = format_of_suffix(f".{suffix}")
    assert form is not None and parse(sample(suffix), "report").media_type == form.media_type


def test_macros_are_neither_run_nor_read() -> None:
    stream = io.BytesIO(sample("pptx"))
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("ppt/vbaProject.bin", b'Sub AutoOpen() Shell "format c:"')
    document = parse(stream.getvalue(), "talk.pptm")
    assert "AutoOpen" not in document.text and "Tamsin Rowse" in document.text
