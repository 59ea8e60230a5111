"""The answer of a reader that marks the words that answer: shown first, with its quotation, place and alternatives.

The answers are made by hand, of nodes like those of a filing's table.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from clew.app.answers.citations import cite_answer, cited_answer_to_dict, render_text
from clew.app.answers.view import AnswerView, excerpt, table_cell_at
from clew.app.cli.answer import print_answer
from clew.app.web.api.questions import render_markdown
from clew.app.web.history import QuestionHistory
from clew.app.web.mcp.tools import ToolContext, make_tools
from clew.app.web.openai import reply_parts
from clew.app.web.pages.answer import TableRow, make_answer_page, row_cell_at, whole_table
from clew.app.web.pages.render import render_fragment
from clew.app.web.pages.source import APART, place_numbers, table_rows
from clew.core.trail import SpanReadStep
from clew.core.types import ROW, Alternative, Answer, Box, Hit, Node, Quote
from serve_app import ServedApp

ROW_TEXT = "Warehouses. Total *: 2022: 838; 2021: 815; 2020: 795"
CELLS = (("", "2022", "2021", "2020"), ("Total *", "838", "815", "795"))
PROSE = (
    "It opened 23 warehouses. The company operated 815 of them worldwide at the end of 2021. Canada had 105."
)
ORIGIN = "words of the evidence; no language model wrote them"

ASKING = {"question": "How many?", "chain": "", "recipe": "read", "model": None}
ASKING |= {"documents": None, "graphs": None, "beside": None}


def node(id, text, kind="passage", boxes=()):
    key, _, position = id.partition(":")
    return Node(
        id, kind, text, key, f"{key}.pdf", int(position), None, "", 0, 31, ("Item 7",), (0, len(text)), boxes
    )


def quote(of, answer="", words=""):
    """Quote ``words`` of a node, by default all, with ``answer`` marked in them."""
    start = of.text.index(words)
    end = start + len(words or of.text)
    place = (of.text.index(answer), of.text.index(answer) + len(answer)) if answer else None
    return Quote(of.id, of.text[start:end], (start, end), place)


TOTALS = node("costco:7", ROW_TEXT, ROW, (Box(31, 72.4, 310, 540, 323.6),))
PROSE_NODE = node("costco:9", PROSE)
SENTENCE = "The company operated 815 of them worldwide at the end of 2021."
CANADA = Alternative("105", 0.124, quote(PROSE_NODE, "105", "Canada had 105."))
TRAIL = (SpanReadStep("span", "reader", "How many?", {"815": 0.834, "105": 0.124}, "answered"),)


def answer(*quotes, **more):
    given = {"confidence": 0.834, "alternatives": (CANADA,), "reader": "span", "trail": TRAIL} | more
    return Answer("815", (Hit(TOTALS, 1.0), Hit(PROSE_NODE, 0.5)), quotes, **given)


FROM_ROW = answer(quote(TOTALS, "815"))
FROM_PROSE = answer(quote(PROSE_NODE, "815", SENTENCE))
NONE = answer(abstained=True, confidence=0.124)
NONE = replace(NONE, text="No answer that clew is sure of.")


def view(of):
    return AnswerView.from_answer(of)


def brackets(pieces):
    return "".join(f"[{p.text}]" if p.is_answer else f"<{p.text}>" if p.marked else p.text for p in pieces)


def print_view(capsys, of, **options):
    print_answer(view(of), 5, **options)
    return " ".join(capsys.readouterr().out.split())


# The view


def test_the_answer_is_marked_within_its_quotation() -> None:
    assert brackets(excerpt("one two three", [(0, 7)], answers=[(4, 7)])) == "<one >[two] three"
    # An answer outside a quotation, or across its end, is marked as far as it is quoted.
    assert brackets(excerpt("one two three", [(0, 7)], answers=[(4, 13), (8, 13)])) == "<one >[two] three"
    assert brackets(excerpt("one two", [(0, 7)], answers=[(4, 7), (0, 3)])) == "[one]< >[two]"


@pytest.mark.parametrize("of", [FROM_ROW, FROM_PROSE, NONE])
def test_the_view_of_stored_json_is_that_of_the_answer(of) -> None:
    stored = AnswerView.from_dict(json.loads(json.dumps(of.to_dict())))
    direct = view(of)
    for name in ("text", "confidence", "quotes"):
        assert getattr(stored, name) == getattr(direct, name)
    for support, other in zip(
        [*stored.supports, *(support for item in stored.alternatives for support in item.supports)],
        [*direct.supports, *(support for item in direct.alternatives for support in item.supports)],
        strict=True,
    ):
        assert (support.quote, support.number, support.place, support.pieces) == (
            other.quote,
            other.number,
            other.place,
            other.pieces,
        )


def test_an_answer_that_an_earlier_version_stored_can_be_shown() -> None:
    data = json.loads(json.dumps(replace(FROM_ROW, reader="extractive", confidence=None).to_dict()))
    del data["confidence"], data["alternatives"], data["quotes"][0]["answer"]
    shown = AnswerView.from_dict(data)
    assert not shown.answer_first and shown.alternatives == () and shown.supports[0].quote.answer is None
    assert cited_answer_to_dict(shown)["confidence"] is None


def test_a_support_has_its_place_and_its_verbatim_words() -> None:
    (support,) = view(FROM_ROW).supports
    assert support.place == "costco.pdf, page 31, Item 7" and support.number == 1
    assert brackets(support.pieces) == ROW_TEXT.replace("815", "[815]")
    assert "".join(piece.text for piece in support.pieces) == support.quote.text
    (support,) = view(FROM_PROSE).supports
    assert brackets(support.pieces) == SENTENCE.replace("815", "[815]") and support.number == 2


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        ("815", (1, 2)),
        ("81", (1, 2)),
        ("2021: 815", (1, 2)),
        ("2020", (0, 3)),
        ("Total *", (1, 0)),
        ("Ware", None),
    ],
)
def test_a_range_of_a_rows_text_is_a_cell(words, cell) -> None:
    start = ROW_TEXT.index(words)
    assert row_cell_at(ROW_TEXT, CELLS, start, start + len(words)) == cell


def test_rows_with_groups_empty_cells_or_other_words() -> None:
    text = "Income. Expenses: Rent: (1) 2021: $5; total: $9"
    cells = (("", "(1) 2021", "", "2020", "total"), ("Rent:", "$5", "", "", "$9"))
    for words, cell in (("$5", (1, 1)), ("9", (1, 4)), ("Rent", (1, 0)), ("Expenses", None)):
        assert row_cell_at(text, cells, text.index(words), text.index(words) + len(words)) == cell
    assert row_cell_at("Rent: 5", (("", "a"), ("Rent", "6")), 6, 7) is None
    # The words of the corner stand in the title of a row once, and in the name of every column of the table.
    text = "Years Ended May 31,. Net Income: 2022: $21; 2021: $22"
    header = ("Years Ended May 31,", "Years Ended May 31, 2022", "Years Ended May 31, 2021")
    cells = (header, ("Net Income", "$21", "$22"))
    assert [row_cell_at(text, cells, text.index(w), text.index(w) + 3) for w in ("$21", "$22", "202", "Net")] == [
        (1, 1), (1, 2), (0, 1), (1, 0)
    ]  # fmt: skip


def test_a_range_of_a_tables_text_is_a_cell() -> None:
    table = "Fleet\n\n| boat | year |\n| --- | --- |\n| A \\| B | 1926 |\n| Queen | 1931 |"
    for words, cell in (("1926", (1, 1)), ("B", (1, 0)), ("1931", (2, 1)), ("year", (0, 1)), ("Fleet", None)):
        assert table_cell_at(table, table.index(words), table.index(words) + len(words)) == cell


def test_an_answer_that_stands_in_no_quote_is_not_called_words_of_the_evidence() -> None:
    assert view(FROM_ROW).origin == ORIGIN
    polar = view(replace(answer(quote(PROSE_NODE, "", SENTENCE)), text="yes"))
    assert polar.origin == "read from the evidence; no language model wrote it"
    assert brackets(polar.supports[0].pieces) == SENTENCE


# The terminal


def test_the_terminal_shows_the_answer_its_confidence_quotation_and_place(capsys) -> None:
    shown = print_view(capsys, FROM_ROW)
    start = "Answer 815 confidence 83 % Evidence 1. costco.pdf, page 31, Item 7"
    assert shown.startswith(f"{start} {ROW_TEXT} 1 alternative with --alternatives How: {ORIGIN}; 0.00 s")
    assert "105" not in shown and "Canada" not in shown
    assert "105 12 %" in print_view(capsys, FROM_ROW, trail=True).partition("Trail")[2]


def test_the_terminal_lists_alternatives_on_request(capsys) -> None:
    shown = print_view(capsys, FROM_PROSE, alternatives=True)
    assert "Alternatives 1. 105 12 % costco.pdf, page 31, Item 7 Canada had 105." in shown
    assert SENTENCE in shown and "It opened" not in shown.partition("Trail")[0]


def test_the_terminal_shows_the_nearest_below_the_threshold(capsys) -> None:
    shown = print_view(capsys, NONE)
    assert shown.startswith("Not answered No answer that clew is sure of. Nearest 1. 105 12 %")
    assert "Canada had 105." in shown and "with --alternatives" not in shown


def test_quotes_of_other_readers_are_shown_in_their_passages(capsys) -> None:
    shown = print_view(
        capsys, answer(quote(PROSE_NODE, "", SENTENCE), confidence=None, alternatives=(), reader="gpt")
    )
    assert "It opened 23 warehouses." in shown and "confidence" not in shown


# Programs and files


def test_chat_and_mcp_have_the_answer_with_its_marked_quotation() -> None:
    text = render_text(view(FROM_PROSE))
    assert text == (
        f"815 [1]\n\nSources:\n[1] costco.pdf, page 31, Item 7: “{SENTENCE.replace('815', '**815**')}”"
        f"\n\n({ORIGIN}; confidence 83 %)"
    )
    assert reply_parts(view(FROM_PROSE))[0] == "815 [1]"
    # The row contains a star, so marks would be read as its words: it stays verbatim.
    assert f"“{ROW_TEXT}”" in render_text(view(FROM_ROW))
    nearest = "- 105 (12 %), costco.pdf, page 31, Item 7: “Canada had **105**.”"
    assert render_text(view(NONE)) == f"No answer that clew is sure of.\n\nNearest:\n{nearest}"


def test_the_structured_answer_has_ranges_boxes_and_alternatives_as_its_schema_says() -> None:
    import jsonschema

    schema = make_tools(ToolContext({}, {"default": ""}))[0].output_schema
    for of in (FROM_ROW, FROM_PROSE, NONE, answer(confidence=None, alternatives=())):
        data = cited_answer_to_dict(view(of))
        jsonschema.validate(data, schema)
    data = cited_answer_to_dict(view(FROM_ROW))
    (citation,) = data["citations"]
    start, end = citation["quotes"][0]["answer"]
    assert ROW_TEXT[start:end] == "815" and citation["boxes"] == [[31, 72.4, 310, 540, 323.6]]
    (alternative,) = data["alternatives"]
    assert (data["confidence"], alternative["text"], alternative["confidence"]) == (0.834, "105", 0.124)
    assert PROSE[slice(*alternative["quote"]["answer"])] == "105"
    assert cite_answer(view(NONE)).nearest[1].quotes == (CANADA.quote,)


def test_markdown_has_the_answer_as_a_heading_and_its_quotation_marked() -> None:
    entry = {"question": "How many?", "chain": "", "asked": 0.0, "model": None, "answer": FROM_ROW.to_dict()}
    text = render_markdown(entry)
    assert text.startswith(
        "# How many?\n\n## 815\n\nConfidence: 83 %\n\n"
        "> Warehouses. Total \\*: 2022: 838; 2021: **815**; 2020: 795\n\n"
        "costco.pdf, page 31, Item 7 (1)\n\n"
        "### Alternatives\n\n1. 105 (12 %)\n\n   > Canada had **105**.\n\n"
    )
    text = render_markdown(entry | {"answer": NONE.to_dict()})
    assert text.startswith("# How many?\n\nNo answer that clew is sure of.\n\n### Nearest\n\n1. 105 (12 %)")
    assert "Quoted:" not in text


# Pages


def shown_page(of, rows=None):
    shown = view(of)
    page = make_answer_page(shown, rows or {})
    entry = {
        "id": "q1",
        "question": "How many?",
        "state": "done",
        "asked": 0.0,
        "model": None,
        "problem": None,
    }
    html = render_fragment(
        "part-answer.html",
        base="b",
        entry=entry,
        ended=True,
        view=shown,
        page=page,
        compared="",
        titles={"costco": "Costco: Annual Report"},
        scope="",
        early=False,
    )
    return page, re.sub(r"\s*\n\s*", "", html)


def test_a_page_shows_the_row_with_the_cell_marked() -> None:
    page, html = shown_page(FROM_ROW, {"costco:7": TableRow("Warehouses", CELLS)})
    (support,) = page.supports
    assert (
        support.caption == "Warehouses"
        and support.marked_cells == ((1, 2),)
        and page.evidence[0].marked_cells == ((1, 2),)
    )
    answer_html, evidence_html = html.split('<section class="evidence"')
    assert (
        '<div dir="auto" class="text first"><p dir="auto">815<a class="cite" href="/b/b/q/q1/cite/1"'
        in answer_html
    )
    for part in (answer_html, evidence_html):
        assert (
            '<td dir="auto">838</td><td dir="auto"><mark class="exact">815</mark></td><td dir="auto">795</td>'
            in part
        )
    assert '<p class="sure small high"><b>83 %</b> sure of this</p>' in answer_html
    assert "Quoted from your documents" in evidence_html and "Costco: Annual Report" in answer_html
    assert "Taken word for word from your documents" in evidence_html.split("How this was found")[1]
    rows = {"costco:7": TableRow("Warehouses", CELLS, "Worldwide")}
    assert '<p class="caption">Warehouses: Worldwide</p>' in shown_page(FROM_ROW, rows)[1]
    # A row whose table is not known is shown in its words.
    assert '2021: <mark class="exact">815</mark>; 2020' in shown_page(FROM_ROW)[1]


def test_two_cells_of_a_row_are_marked_in_one_row() -> None:
    computed = answer(quote(TOTALS, "815"), quote(TOTALS, "795"), quote(PROSE_NODE, "815", SENTENCE))
    row, sentence = shown_page(computed, {"costco:7": TableRow("Warehouses", CELLS)})[0].supports
    assert (row.marked_cells, row.support.number) == (((1, 2), (1, 3)), 1)
    assert brackets(sentence.pieces) == SENTENCE.replace("815", "[815]")
    words, _ = shown_page(computed)[0].supports
    assert brackets(words.pieces) == ROW_TEXT.replace("815", "[815]").replace("795", "[795]")


def test_a_page_shows_the_sentence_and_folds_the_alternatives() -> None:
    _, html = shown_page(FROM_PROSE)
    assert 'The company operated <mark class="exact">815</mark> of them worldwide' in html
    assert "<mark>The company operated </mark><mark" in html  # within the whole passage of the evidence
    folded = re.search(r'<details class="alternatives">(.*?)</details>', html)
    assert folded and "<b>105</b>" in folded[1] and "12 %" in folded[1]
    assert 'href="/b/b/q/q1/cite/2?alternative=1"' in folded[1]


def test_a_page_shows_the_nearest_below_the_threshold() -> None:
    page, html = shown_page(NONE)
    assert page.supports == () and page.blocks[0].citations == ()
    assert '<details class="alternatives" open><summary class="small">Nearest</summary>' in html
    assert 'Canada had <mark class="exact">105</mark>' in html and "sure of this" not in html


def test_of_a_long_table_the_rows_around_the_answer_are_shown() -> None:
    lines = [f"| year {n} | {1000 + n} |" for n in range(40)]
    table = node("costco:3", "\n".join(["| when | sum |", "| --- | --- |", *lines]), "table")
    of = replace(answer(quote(table, "1030", "| year 30 | 1030 |")), evidence=(Hit(table, 1.0),), text="1030")
    page, html = shown_page(replace(of, alternatives=()))
    assert page.supports[0].cells == (("when", "sum"), ("year 30", "1030"))
    assert html.count('<mark class="exact">1030</mark>') == 2
    (block,) = page.evidence
    ((row, column),) = block.marked_cells
    assert block.cells[row][column] == "1030" and row <= 12 and block.cells[0] == ("when", "sum")
    assert block.rows == (29, 40, 40) and len(block.cells) == 13 and "Rows 29 to 40 of 40: show all" in html
    cells, marked = whole_table(block.evidence)
    assert len(cells) == 41 and [cells[row][column] for row, column in marked] == ["1030"]


@pytest.mark.slow
def test_a_citation_opens_where_the_cell_is_marked(app, folder) -> None:
    contents = app.get(f"{app.api}/documents")[1]["documents"]
    key = next(content["key"] for content in contents if content["document"].endswith(".csv"))
    base = app.serving.app.state.server.bases[app.base].knowledge_base
    rows = [item for item in base.tree(key) if item.kind == ROW]
    row, other = rows[3], rows[4]
    words, other_words = (item.text.rpartition(": ")[2] for item in (row, other))

    def of_row(of, words):
        start = len(of.text) - len(words)
        return Quote(of.id, of.text, (0, len(of.text)), (start, start + len(words)))

    result = Answer(
        words,
        (Hit(row, 1.0), Hit(other, 0.5)),
        (of_row(row, words),),
        reader="span",
        confidence=0.7,
        alternatives=(Alternative(other_words, 0.2, of_row(other, other_words)),),
    )
    with QuestionHistory(folder) as history:
        history.begin("cell", ASKING)
        history.finish("cell", "done", result.to_dict())
    page = app.request("GET", f"/b/{app.base}/q/cell")[2].decode()
    assert f'<mark class="exact">{words}</mark></td>' in page and '<details class="alternatives">' in page
    for address, text in (("1", words), ("2?alternative=1", other_words), ("2", None)):
        cited = app.request("GET", f"/b/{app.base}/q/cell/cite/{address}")[2].decode()
        (here,) = re.findall(r'<tr class="here".*?</tr>', cited, re.DOTALL)
        assert re.findall(r'<mark class="exact">(.*?)</mark>', here) == ([] if text is None else [text])
        assert cited.count("<mark") == (text is not None)


@pytest.mark.slow
def test_a_row_has_the_heading_of_its_group(tmp_path) -> None:
    lines = ["# Income", "", "| | 2021 | 2020 |", "| --- | --- | --- |", "| Sales | $9 | $8 |"]
    lines += ["| Earnings per share: | | |", "| Basic | 3.25 | 3.01 |", "| Diluted | 3.23 | 2.99 |"]
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        app.upload("income.md", "\n".join(lines).encode())
        base = app.serving.app.state.server.bases[app.base]
        (document,) = base.knowledge_base.documents()
        rows = [item for item in base.knowledge_base.tree(document.key) if item.kind == ROW]
        shown = table_rows(base, [row.id for row in rows])
    groups = {row.cells[1][0]: row.group for row in shown.values()}
    assert groups["Sales"] == "" and groups["Diluted"] == groups["Basic"] == "Earnings per share"
    diluted = next(row for row in rows if "3.23" in row.text)
    place = diluted.text.index("3.23")
    assert row_cell_at(diluted.text, shown[diluted.id].cells, place, place + 4) == (1, 1)


def test_the_numbers_of_two_marks_never_cover_each_other() -> None:
    boxes = [Box(1, 100, top, 300, top + 10) for top in (50, 52, 54, 400)]
    places = place_numbers(boxes)
    assert all(x == 88 for x, _ in places)
    heights = [y for _, y in places]
    assert heights[0] == 56 and heights[3] == 406
    assert all(abs(first - other) >= APART for n, first in enumerate(heights) for other in heights[n + 1 :])
