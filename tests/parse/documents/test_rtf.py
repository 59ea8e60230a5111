"""RTF: control words, code pages, lists, tables and notes, by hand."""

from __future__ import annotations

from parse_trees import read, read_outline, tables


def rtf(body: str, head: str = "") -> bytes:
    return (r"{\rtf1\ansi\ansicpg1252\deff0" + head + body + "}").encode("latin-1")


def test_characters_in_code_pages_and_unicode() -> None:
    head = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}}"
    body = r"Caf\'e9 \u8211? \f1 \'cc\'ee\'f1\'ea\'e2\'e0\f0  \uc2\u26085 xx\uc1 \u-10179?\u-8704? \{x\}\~y\_z\line end\par"  # noqa: E501
    assert read_outline(rtf(body, head), "a.rtf") == ["Café – Москва 日😀 {x} y-z\nend"]


def test_headings_by_style_and_outline_level_and_the_title() -> None:
    head = (
        r"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s7\outlinelevel1 My chapter;}{\s9 toc 1;}}"
    )
    head += r"{\info{\title The Ferry}{\author Ines}{\creatim\yr2024}}"
    body = r"\pard\s1 Mouth\par\pard\s7 Tides\par\pard\s9 Contents 1\par\pard High.\par\pard\outlinelevel2 Springs\par\pard Wet.\par"  # noqa: E501
    document = read(rtf(body, head), "a.rtf")
    assert document.title == "The Ferry"
    assert read_outline(rtf(body, head), "a.rtf") == ["# Mouth", "## Tides", "High.", "### Springs", "Wet."]


def test_lists_hidden_text_fields_and_notes() -> None:
    body = (
        r"\pard They are:\par{\listtext\pard\plain 1.\tab}\pard\ls1 one\par{\listtext\pard 1.1.\tab}\pard\ls1\ilvl1 two\par"  # noqa: E501
        r"{\pntext\f1\'b7\tab}\pard three\par\pard See {\field{\*\fldinst HYPERLINK x}{\fldrslt the page}}{\v secret}"
        r"{\super\chftn}{\footnote\pard\plain\chftn  At noon.}. {\*\unknown dropped}{\pict\bin4 {{{{}\deleted gone\deleted0\par"  # noqa: E501
    )
    assert read_outline(rtf(body), "a.rtf") == [
        "They are:\n1. one\n  1.1. two\n- three",
        "See the page[1].",
        "[1] At noon.",
    ]


def test_tables_with_merged_cells_and_header_rows() -> None:
    def row(*cells: str, merges: str = "") -> str:
        marks = merges.split("|") if merges else [""] * len(cells)
        definition = "".join(f"{mark}\\cellx{number}" for number, mark in enumerate(marks, 1))
        return (
            rf"\trowd\trhdr{definition}\pard\intbl " + "".join(rf"{cell}\cell " for cell in cells) + r"\row "
        )

    body = (
        row("", "Tolls", "", merges=r"\clvmgf|\clmgf|\clmrg")
        + row("", "1928", "1929", merges=r"\clvmrg||").replace(r"\trhdr", "")
        + row("Coal", r"4\par tons", "5").replace(r"\trhdr", "")
        + r"\pard After.\par"
    )
    document = read(rtf(body), "a.rtf")
    assert tables(document) == [
        "|  | Tolls | Tolls |\n| --- | --- | --- |\n|  | 1928 | 1929 |\n| Coal | 4 tons | 5 |"
    ]
    assert document.nodes[-1].text == "After."


def test_a_file_that_is_cut_off_is_read_and_said_so() -> None:
    document = read(rtf(r"\pard Words that remain.\par {\b and")[:-1], "a.rtf")
    assert "Words that remain." in document.text
    assert document.notes == ("it ends in the middle of a group: the file is probably cut off",)
