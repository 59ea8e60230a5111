"""Markdown as a reader of the rendered page sees it."""

from __future__ import annotations

import pytest

from clew.core.errors import UnreadableFile
from parse_trees import read, read_outline, tables


def markdown(text: str) -> list[str]:
    return read_outline(text, "notes.md")


def test_headings_paragraphs_and_inline_markup() -> None:
    assert markdown(
        "# One *bold* `x` #\nText that\nis wrapped, with [a link](http://example.org) and ![a picture](p.png).\n"
        "Broken  \nhere &amp; \\*there\\*.\n\nTwo\n---\n\n> Quoted **words**.\n\n"
        "### Three\nEnd <b>of</b> it<br>all ~~gone~~"
    ) == [
        "# One bold x",
        "Text that is wrapped, with a link and a picture. Broken\nhere & *there*.",
        "## Two",
        "Quoted words.",
        "### Three",
        "End of it\nall",
    ]


def test_lists_join_their_lead_in_and_nest() -> None:
    assert markdown(
        "Buy:\n\n- milk\n- eggs\n  1. brown\n  2. white\n\n  later\n- bread\n\n5. five\n6. six\n"
    ) == [
        "Buy:\n- milk\n- eggs\n  1. brown\n  2. white\nlater\n- bread",
        "5. five\n6. six",
    ]
    assert markdown("0) zero\n1) one\n") == ["0. zero\n1. one"]


def test_code_keeps_its_lines() -> None:
    assert markdown("```python\ndef f():\n    return 1\n```\n\n    indented\n      more\n") == [
        "def f():\n    return 1",
        "indented\n  more",
    ]


def test_tables_and_their_captions() -> None:
    document = read(
        "Table 1: Ferries\n\n| Name | Built |\n| :--- | ---: |\n| *Heron* | 1912 |\n| a \\| b | |\n\n"
        "| x |\n|---|\n| 1 |\n\nNot a caption.\n",
        "a.md",
    )
    assert tables(document) == [
        "Table 1: Ferries\n\n| Name | Built |\n| --- | --- |\n| Heron | 1912 |\n| a \\| b |  |",
        "| x |\n| --- |\n| 1 |",
    ]
    assert document.nodes[-1].text == "Not a caption."


def test_a_table_below_a_list_does_not_take_it_along() -> None:
    assert markdown("- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n") == ["- one\n- two", "| 1: b: 2"]


def test_html_within_is_read_as_html() -> None:
    assert markdown(
        "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>\n\nx"
    ) == [
        "| 1: b: 2",
        "x",
    ]
    assert markdown("- one\n\n  <p>more</p>\n- two\n") == ["- one\nmore\n- two"]
    assert markdown("<h2>Head</h2>\n\n<!-- " + "<!-- " * 20_000)[0] == "## Head"
    assert markdown("<div align=center>\n<b>Big</b> &amp; small\n</div>\n\n<!-- a remark -->\n\nplain") == [
        "Big & small",
        "plain",
    ]


@pytest.mark.parametrize(
    ("text", "title", "first"),
    [
        ("---\ntitle: 'The Mill'\nauthor: Ann\nlayout: post\n---\n# Head\nx", "The Mill", "author: Ann"),
        ("+++\ntitle = 'The Mill'\ndate = 1999-01-02\n+++\nx", "The Mill", "date: 1999-01-02"),
        ("---\ntags:\n  - a\n---\n# Head\nx", "Head", "# Head"),
        ("## Second\nx\n# First\ny", "First", "## Second"),
        ("x", "notes", "x"),
        ("---\n\nA rule, not front matter.\n\n---\nx", "notes", "A rule, not front matter."),
        ("\ufeff# Marked\nx", "Marked", "# Marked"),
    ],
)
def test_titles_and_front_matter(text: str, title: str, first: str) -> None:
    document = read(text, "notes.md")
    assert document.title == title
    assert read_outline(text, "notes.md")[0] == first


def test_depth_is_read_or_refused_but_never_dropped() -> None:
    assert markdown(">" * 40 + " deep") == ["deep"]
    for text in (">" * 150 + " deep", "- " * 150 + "deep"):
        with pytest.raises(UnreadableFile, match="nested too deeply"):
            markdown(text)


@pytest.mark.slow
def test_brackets_without_end_take_no_time_to_speak_of() -> None:
    assert markdown("[" * 2_000 + "a")[0].endswith("[a")
    assert markdown("*a " * 2_000)


def test_notes_of_obsidian() -> None:
    text = """---
title: Budget
author:
  - Ida Moss
  - name: Bo Ek
tags: [finance, "q1 plan"]
abstract: |
  We buy
  a lock.
---
> [!note] Decision
> We buy [[Penmoor Lock|the lock]] of [[Canal#Wex]].

See[^1] ==now== and a==b, `[[code]]`.

| a | b |
|---|---|
| [[X\\|y]] | 1 |

[^1]: At 5 %.
"""
    document = read(text, "a.md")
    assert document.fields == (
        ("author", "Bo Ek"),
        ("author", "Ida Moss"),
        ("tag", "finance"),
        ("tag", "q1 plan"),
    )
    assert read_outline(text, "a.md") == [
        "author: Ida Moss, Bo Ek\nabstract: We buy a lock.",
        "Note: Decision\nWe buy the lock of Canal > Wex.",
        "See[1] now and a==b, [[code]].",
        "| y: b: 1",
        "[1] At 5 %.",
    ]
