"""HTML as a reader of the page sees it."""

from __future__ import annotations

import sys

import pytest

from clew.core.errors import UnreadableFile
from clew.parse.documents.blocks import LeftOut
from clew.parse.documents.html import fragment_blocks, parse
from clew.parse.documents.limits import Limits
from parse_trees import read, read_outline, tables


def body(content: str) -> list[str]:
    return read_outline(f"<html><body>{content}</body></html>", "page.html")


def test_headings_paragraphs_and_inline_markup() -> None:
    assert body(
        "<h1>River</h1>Loose text<p>A <b>bold</b> and <i>thin</i><!-- not seen --> line,<br>broken.</p>"
        "after <a href='x'>a link</a><h2>Mouth</h2><div>In a <span>div</span></div>tail"
    ) == [
        "# River",
        "Loose text",
        "A bold and thin line,\nbroken.",
        "after a link",
        "## Mouth",
        "In a div",
        "tail",
    ]


def test_what_is_not_the_article_is_left_out_and_the_text_after_it_kept() -> None:
    assert body(
        "<header>Site</header><nav>Menu<ul><li>Home</ul></nav>one<script>var a = '<p>x</p>'</script>"
        "<style>p {}</style><aside>Ad</aside>two<p hidden>x</p><p style='display: none'>x</p>"
        "<div role=navigation>x</div><form>Name <input><button>Send</button> given</form>"
        "<div class='nav big'>x</div><b aria-hidden=true>x</b><noscript>x</noscript>"
        "<template><p>x</p></template><svg><text>x</text></svg><footer>x</footer><p>three"
    ) == ["one", "two", "Name given", "three"]


def test_menus_without_elements_of_their_own_are_left_out_and_lists_of_links_are_not() -> None:
    links = "".join(f"<li><a href=/{n}>Page number {n}</a></li>" for n in range(40))
    text = "<h1>Tolls</h1><p>A yacht pays 12 pounds a night from the first of April on.</p>"
    menus = f'<div class="main-menu"><ul>{links}</ul></div><div id="related-posts2">{links}</div>'
    assert body(menus + text) == ["# Tolls", "A yacht pays 12 pounds a night from the first of April on."]
    # A list of links in the text, and one that is all there is.
    assert "Page number 7" in "".join(body(text + f"<ul>{links}</ul>"))
    assert "Page number 7" in "".join(body(f'<div class="menu">{links}</div>'))
    # The menu of an inn.
    dishes = '<div class="menu"><h2>Soup</h2><p>Leek <a href=x>recipe</a></p></div>'
    assert "Leek recipe" in body(text + dishes)


def test_a_page_that_scripts_write_says_so() -> None:
    with pytest.raises(UnreadableFile, match="its scripts write it in a browser"):
        body("<div id=root></div><script>write()</script>")


def test_books_have_notes_and_boxes_as_asides() -> None:
    page = (
        '<header><h1>The Lock</h1></header><p>Built in 1821.</p><aside epub:type="footnote">See the register.</aside>'
        '<div class="sidebar"><p>A box.</p></div><nav>Contents</nav>'
    )
    contents, *blocks = fragment_blocks(page, is_book=True)
    texts = [getattr(block, "text", "") for block in blocks]
    assert texts == ["The Lock", "Built in 1821.", "See the register.", "A box."]
    assert contents == LeftOut("menus and the like", "Contents")
    shown = [block for block in fragment_blocks(page) if not isinstance(block, LeftOut)]
    assert [getattr(block, "text", "") for block in shown] == ["Built in 1821."]


def test_a_header_of_an_article_is_its_headline() -> None:
    assert body("<header>Site</header><article><header><h1>News</h1></header><p>Text.</article>") == [
        "# News",
        "Text.",
    ]


def test_main_is_taken_for_all_only_where_it_holds_a_good_part() -> None:
    words = "word " * 50
    assert body(f"<p>outside</p><main><p>{words}</p></main>") == [words.strip()]
    assert body(f"<main><p>short</p></main><p>{words}</p>") == ["short", words.strip()]


def test_boilerplate_by_name_is_content_where_it_holds_most_of_the_page() -> None:
    assert body(f"<p>One.</p><div class=sidebar>{'word ' * 50}</div>")[1].startswith("word word")
    assert body(f"<p>{'word ' * 50}</p><div class=sidebar>Links.</div>") == [("word " * 50).strip()]


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("Ohio", "Ohio", "Ohio"),
        ("Ohio - My Site", "Ohio", "Ohio"),
        ("My Site | Ohio", "Ohio", "Ohio"),
        ("Ohio in Winter", "Ohio", "Ohio in Winter"),
        ("", "Ohio", "Ohio"),
        ("A &amp; B\n  &ndash; C", "", "A & B – C"),
        ("", "", "page"),
    ],
)
def test_titles(title: str, heading: str, expected: str) -> None:
    text = f"<html><head><title>{title}</title></head><body><h1>{heading}</h1><p>x</body></html>"
    assert read(text, "page.html").title == expected


def test_short_lists_join_their_lead_in_and_nest() -> None:
    assert body(
        "<p>We sell:</p><ul><li>one<li>two<ol start=4><li>a<li>b</ol>more<li><p>three</p><p>on</p></ul>"
    ) == ["We sell:\n- one\n- two\n  4. a\n  5. b\nmore\n- three\non"]
    assert body("<p>Not a lead-in.</p><ul><li>one<li>two</ul>") == ["Not a lead-in.", "- one\n- two"]
    assert body("<dl><dt>Mill<dd>Grinds corn.<dt>Weir<dd>Holds water.<dd>Makes noise.</dl>") == [
        "Mill: Grinds corn.\nWeir: Holds water.\nMakes noise."
    ]


def test_long_items_are_passages() -> None:
    long = "word " * 80
    passages = body(f"<p>Clauses:</p><ol><li>Short.<li>{long}<li>Last.</ol>")
    assert passages == ["Clauses:\n1. Short.", f"2. {long.strip()}", "3. Last."]


def test_preformatted_text_keeps_its_lines_and_spaces() -> None:
    assert body("<pre>\nif a:\n    b  = 1\n</pre><p>after   many\n spaces") == [
        "if a:\n    b  = 1",
        "after many spaces",
    ]


def test_tables_with_spans_header_and_caption() -> None:
    document = read(
        "<p>x<table><caption>Flow <i>by</i> year</caption><thead><tr><th rowspan=2>Year<th colspan=2>Flow"
        "<tr><th>low<th>high<tbody><tr><td>1920<td>1<td>2<tr><td colspan=3>Dry years<tr><td>1921"
        "<td rowspan=2>3<td>4<tr><td>1922<td>5</table>",
        "page.html",
    )
    assert tables(document) == [
        "Flow by year\n\n| Year | Flow low | Flow high |\n| --- | --- | --- |\n| 1920 | 1 | 2 |\n"
        "| Dry years |  |  |\n| 1921 | 3 | 4 |\n| 1922 | 3 | 5 |"
    ]
    assert [node.text for node in document.nodes if node.kind == "row"][2] == (
        "Flow by year. Dry years: 1921: Flow low: 3; Flow high: 4"
    )


def test_rows_named_by_header_cells_have_no_header_above() -> None:
    assert body("<table><tr><th>Born<td>3 May 1871<tr><th>Died<td>1943</table>") == [
        "| Born: 3 May 1871",
        "| Died: 1943",
    ]


def test_a_header_that_is_not_marked_is_found() -> None:
    assert body(
        "<table><tr><td>Item<td>2023<td>2022<tr><td>Mills<td>4<td>$ 5,100<tr><td>Weirs<td>(7)<td>8</table>"
    ) == [
        "| Mills: 2023: 4; 2022: $ 5,100",
        "| Weirs: 2023: (7); 2022: 8",
    ]


def test_a_caption_may_be_a_paragraph_above_or_below() -> None:
    rows = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    assert body(f"<p>Table 3: Counts</p>{rows}") == ["| Table 3: Counts. 1: b: 2"]
    assert body(f"{rows}<p>Table 3. Counts</p><p>End") == ["| Table 3. Counts. 1: b: 2", "End"]
    assert body(f"<p>Table 1: A</p>{rows}<p>Table 2: B</p>{rows}") == [
        "| Table 1: A. 1: b: 2",
        "| Table 2: B. 1: b: 2",
    ]
    assert body("<p>Table 9: alone</p><p>x") == ["Table 9: alone", "x"]


def test_tables_that_lay_out_are_read_as_text() -> None:
    assert body("<table><tr><td>•<td>First point.</table><table><tr><td>•<td><div>Second.</div></table>") == [
        "• First point.",
        "• Second.",
    ]
    inner = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    assert body(f"<table><tr><td><h2>Left</h2>text<td>{inner}<tr><td>x<td>y</table>") == [
        "## Left",
        "text",
        "| 1: b: 2",
        "x y",
    ]


def test_entities_and_invisible_characters() -> None:
    assert body("caf&eacute;&nbsp;&#8364;5 &lt;b&gt; co&shy;operate zero\u200bwidth &unknown; &#xD800;") == [
        "café €5 <b> cooperate zerowidth &unknown; \ufffd"
    ]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<meta charset=iso-8859-2>", "iso-8859-2"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "cp1251"),
        ("<meta charset='Shift_JIS'>", "shift_jis"),
        ('<?xml version="1.0" encoding="iso-8859-15"?>', "iso-8859-15"),
        ("", "utf-8"),
        ("", "utf-16"),
        ("<meta charset=utf-16>", "utf-8"),
        ("<meta charset=no-such-thing>", "utf-8"),
        ("<meta charset=rot13>", "utf-8"),
        ("<meta charset=iso-8859-1>", "cp1252"),
    ],
)
def test_encodings(head: str, encoding: str) -> None:
    words = {
        "iso-8859-2": "Łódź źródło",
        "cp1251": "Волга река",
        "shift_jis": "日本の川",
        "cp1252": "“quoted” – Größe",
    }.get(encoding, "Größe €")
    if head.startswith("<?xml"):
        text = f"{head}<html><body><p>{words}</p></body></html>"
    else:
        text = f"<html><head>{head}</head><body><p>{words}</p></body></html>"
    assert read_outline(text.encode(encoding), "page.html") == [words]


def test_depth_costs_nothing_up_to_the_limit() -> None:
    deep = "<div>" * 900 + "deep" + "</div>" * 900 + "<p>after"
    assert sys.getrecursionlimit() <= 1_000
    assert body(deep) == ["deep", "after"]
    assert body("<ul><li>" * 300 + "x" + "</ul>" * 300 + "<p>after")[-1] == "after"
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        body("<span>" * 5_000 + "x")


@pytest.mark.slow
def test_a_line_of_megabytes_is_divided_between_sentences() -> None:
    line = "Sentences follow. " * 20_000
    passages = body(f"<p>{line}</p>")
    assert "".join(passages).replace(" ", "") == line.replace(" ", "")
    assert max(map(len, passages)) <= 4_000
    assert all(text.endswith("follow.") for text in passages)
    assert body("<p>" + "x" * 3_000_000 + "</p><p>after")[-1] == "after"


def test_spans_count_as_often_as_they_cover() -> None:
    text = "<table>" + "<tr><td rowspan=65000 colspan=100>a<td>b" + "<tr><td>c" * 100 + "</table>"
    assert parse(text.encode(), unit="paragraph", name="a.html").nodes[1].kind == "table"
    with pytest.raises(UnreadableFile, match="tables too large"):
        parse(text.encode(), unit="paragraph", name="a.html", limits=Limits(cells=10_000))


def test_broken_markup_is_read_as_browsers_do() -> None:
    assert body("<p>one<p>two</div></b><h2>three<p>four<td>five") == [
        "one",
        "two",
        "## three",
        "four",
        "five",
    ]
    assert read_outline("<title>T</title>text only", "a.html") == ["text only"]
    assert body("<h2></h2><h3> </h3><p></p><ul><li></ul><table><tr><td></table>x") == ["x"]


def test_sentences_are_passages_on_request() -> None:
    document = read("<html><p>One is. Two is.<ul><li>Three.<li>Four.</ul>", "a.html", "sentence")
    assert [node.text for node in document.nodes[1:]] == ["One is.", "Two is.", "- Three.", "- Four."]
    assert document.parser == "html/4(passages=sentence)"


def test_an_element_of_thousands_of_attributes_is_refused() -> None:
    """To build its tree takes the square of their number: a minute for 100,000."""
    attributes = " ".join(f'a{number}=">"' for number in range(12_000))
    with pytest.raises(UnreadableFile, match="an element has too many attributes: more than 1,000"):
        read(f"<p {attributes}>Text</p>", "page.html")
