"""Plain text: what its lines mean, and in which encoding."""

from __future__ import annotations

import codecs

import pytest

from clew.core.errors import UnreadableFile
from clew.parse.documents.encoding import decode_text, is_binary
from parse_trees import read, read_outline

WRAPPED = (
    "The river rises in the hills above the village and runs for ninety\n"
    "miles through meadows that are flooded every winter, until it joins\n"
    "the sea.\n"
)


def plain(text: str) -> list[str]:
    return read_outline(text, "notes.txt")


def test_wrapped_lines_are_joined_and_others_kept() -> None:
    assert plain(WRAPPED) == [WRAPPED.replace("\n", " ").strip()]
    assert plain("Roses are red,\nviolets are blue.\n\n12 Mill Lane\nOskell") == [
        "Roses are red,\nviolets are blue.",
        "12 Mill Lane\nOskell",
    ]


def test_a_line_that_nobody_wrapped_is_a_paragraph() -> None:
    line = "A sentence that goes on. " * 10
    assert plain(f"{line}\n{line}\nEnd") == [line.strip(), line.strip(), "End"]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Title\n=====", "# Title"),
        ("=====\nTitle\n=====", "# Title"),
        ("Part two\n--------", "## Part two"),
        ("Part three\n~~~~~~~~~~", "### Part three"),
        ("THE RIVER OSKELL\n", "# THE RIVER OSKELL"),
        ("1. Introduction\n", "# 1. Introduction"),
        ("2.3 Methods\n", "## 2.3 Methods"),
        ("2.3.1. Water levels\n", "### 2.3.1. Water levels"),
        ("Chapter IV\n", "# Chapter IV"),
        ("Appendix B: Tables\n", "# Appendix B: Tables"),
        ("Article 5. Tolls\n", "# Article 5. Tolls"),
        ("Thursday 14 March 1929\n", "## Thursday 14 March 1929"),
        ("March 3, 1871\n", "## March 3, 1871"),
        ("2024-03-01\n", "## 2024-03-01"),
    ],
)
def test_headings(heading: str, expected: str) -> None:
    text = f"First words of it.\n\n{heading}\n{WRAPPED}"
    assert plain(text)[:2] == ["First words of it.", expected]


@pytest.mark.parametrize(
    "line",
    [
        "A short line",
        "It ends in a full stop.",
        "NO!",
        "NASA",
        "AB-12 / 34 / 5678",
        "3 apples were eaten",
        "Article of faith",
        "Section by section it grew",
        "IT SHOUTS, AND THEN,",
        "MARCH on, march on",
        "2024-03-01 12:00 started",
        "Title\n---------------------------------------------",
    ],
)
def test_what_is_no_heading(line: str) -> None:
    assert not any(text.startswith("#") for text in plain(f"First words of it.\n\n{line}\n\n{WRAPPED}"))


def test_the_last_line_and_a_numbered_list_are_no_headings() -> None:
    assert plain("Some words.\n\nTHE END") == ["Some words.", "THE END"]
    assert plain("1. Buy milk\n\n2. Buy eggs\n\n3. Go home") == ["1. Buy milk", "2. Buy eggs", "3. Go home"]


def test_a_text_in_capitals_has_no_headings() -> None:
    text = "\n\n".join(f"LINE {number} IS SHOUTED" for number in range(8))
    assert plain(text) == text.split("\n\n")


def test_lists() -> None:
    assert plain("We need:\n- milk\n- eggs and\n  bread\n  - brown\n\n* one\n* two") == [
        "We need:\n- milk\n- eggs and bread\n  - brown",
        "* one\n* two",
    ]
    assert plain("Steps:\n1. Go\n2. Return\n") == ["Steps:\n1. Go\n2. Return"]


def test_line_ends_form_feeds_and_escapes() -> None:
    assert plain("one\r\n\r\ntwo\rthree\fpage two\n\n\x1b[1mbold\x1b[0m") == [
        "one",
        "two\nthree",
        "page two",
        "bold",
    ]


WORDS = "Größe, café, naïve: “fünf” Häuser – für die Mühle am Fluß."


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (WORDS.encode(), WORDS),
        (codecs.BOM_UTF8 + WORDS.encode(), WORDS),
        (codecs.BOM_UTF16_LE + WORDS.encode("utf-16-le"), WORDS),
        (codecs.BOM_UTF16_BE + WORDS.encode("utf-16-be"), WORDS),
        (codecs.BOM_UTF32_LE + WORDS.encode("utf-32-le"), WORDS),
        (codecs.BOM_UTF32_BE + WORDS.encode("utf-32-be"), WORDS),
        (b"Plain words in two bytes each".decode().encode("utf-16-le"), "Plain words in two bytes each"),
        (WORDS.encode("utf-16-be"), WORDS),
        (WORDS.encode("cp1252"), WORDS),
        ("Größe und Fülle der Mühlen".encode("latin-1"), "Größe und Fülle der Mühlen"),
        ("don’t – l’été…".encode("cp1252"), "don’t – l’été…"),
        (
            ("Rzeka płynie przez łąki i pola, a źródło jest żółte. " * 4).strip().encode("iso-8859-2"),
            ("Rzeka płynie przez łąki i pola, a źródło jest żółte. " * 4).strip(),
        ),
        (
            ("日本の川は山から海へ流れる。村の人々は橋を渡る。" * 4).encode("shift_jis"),
            "日本の川は山から海へ流れる。村の人々は橋を渡る。" * 4,
        ),
        (
            ("Великая река Волга течёт через многие города и впадает в море. " * 4).strip().encode("cp1251"),
            ("Великая река Волга течёт через многие города и впадает в море. " * 4).strip(),
        ),
    ],
)
def test_encodings(data: bytes, expected: str) -> None:
    assert not is_binary(data)
    assert decode_text(data) == (expected, ())


def test_damaged_utf8_is_read_around_the_damage_and_said() -> None:
    document = read(WORDS.encode()[:3] + b"\xff" + WORDS.encode()[3:], "a.txt")
    assert document.text.replace("\ufffd", "") in {WORDS, WORDS[:2] + WORDS[3:]}
    assert document.notes[0].endswith("are not UTF-8 and were replaced")
    # A replacement character that was there before is no damage.
    assert decode_text("a \ufffd b".encode()) == ("a \ufffd b", ())


def test_a_few_control_characters_are_left_out_and_said() -> None:
    document = read(b"Some words\0 and a\x07 bell. " * 2, "a.txt")
    assert document.text == "Some words and a bell. Some words and a bell."
    assert document.notes == ("4 control characters were left out",)
    with pytest.raises(UnreadableFile, match="binary data"):
        read(b"Some words" + bytes(range(8)), "a.txt")


def test_words_in_utf16_that_end_in_half_a_character_are_read() -> None:
    assert decode_text("Words of two bytes".encode("utf-16-le")[:-1])[0].startswith("Words of two byte")


def test_nothing_but_a_mark_is_white_space() -> None:
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        with pytest.raises(UnreadableFile, match="white space"):
            read(mark, "a.txt")
