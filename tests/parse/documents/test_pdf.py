"""PDFs made for one thing each: what a page shows must come out as a person reads it."""

from __future__ import annotations

import io
from collections.abc import Callable

import pypdfium2
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from clew.core.errors import UnreadableFile
from clew.core.types import PASSAGE, ROW, SECTION, TABLE, ParsedDocument
from parse_trees import read as read_file

WIDTH, HEIGHT = A4
BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=10, leading=12)
HEAD = ParagraphStyle("head", fontName="Helvetica-Bold", fontSize=14, leading=18)
PROSE = (
    "The ferry crossed the river twice a day while the water allowed it and the keeper of the gauge "
    "wrote down what he saw. Nobody asked him to do so, and nobody read it for thirty years."
)


def read(data: bytes) -> ParsedDocument:
    return read_file(data, "made.pdf")


def draw_report(*pages: Callable[[Canvas], None]) -> bytes:
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=A4)
    for page in pages:
        page(canvas)
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


def draw_columns(*parts) -> bytes:
    stream = io.BytesIO()
    SimpleDocTemplate(stream, pagesize=A4).build(list(parts))
    return stream.getvalue()


def lines(canvas: Canvas, texts, x: float, y: float, size: float = 10, font: str = "Times-Roman") -> None:
    canvas.setFont(font, size)
    for number, text in enumerate(texts):
        canvas.drawString(x, y - number * 1.2 * size, text)


def texts(document: ParsedDocument, kind: str) -> list[str]:
    return [node.text for node in document.nodes if node.kind == kind]


def path(document: ParsedDocument, node) -> list[str]:
    names = []
    while (node := document.nodes[node.parent]).parent is not None:
        names.insert(0, node.name)
    return names


def draw_paragraph(canvas: Canvas, text: str, x: float, y: float, width: float) -> None:
    paragraph = Paragraph(text, BODY)
    _, height = paragraph.wrap(width, 800)
    paragraph.drawOn(canvas, x, y - height)


def test_two_columns_are_read_one_after_the_other():
    def page(canvas):
        for number in range(3):
            draw_paragraph(canvas, f"Left {number}. {PROSE}", 60, 780 - 130 * number, 210)
            draw_paragraph(canvas, f"Right {number}. {PROSE}", 320, 780 - 130 * number, 210)

    passages = texts(read(draw_report(page)), PASSAGE)
    assert [text.split(".")[0] for text in passages] == [
        f"{s} {n}" for s in ("Left", "Right") for n in range(3)
    ]
    assert all(text.endswith("for thirty years.") for text in passages)


def test_lines_of_two_columns_that_stand_almost_side_by_side_are_not_mixed():
    def page(canvas):
        for number in range(4):
            draw_paragraph(canvas, f"Left {number}. {PROSE}", 60, 780 - 130 * number, 210)
            draw_paragraph(canvas, f"Right {number}. {PROSE}", 320, 778.5 - 130 * number, 210)
        lines(canvas, ["Figure 1. Depth of the bar."], 60, 225, 8)
        lines(canvas, ["2 Results of it"], 320, 227, 14, "Helvetica-Bold")
        draw_paragraph(canvas, PROSE, 320, 220, 210)

    document = read(draw_report(page))
    assert "Figure 1. Depth of the bar." in texts(document, PASSAGE)
    assert texts(document, SECTION) == ["2 Results of it"]


def test_the_number_beside_a_running_title_is_the_label():
    def page(number):
        def draw(canvas):
            lines(canvas, [f"Movement of the Bank {number + 112}"], 60, HEIGHT - 40, 8)
            draw_paragraph(canvas, f"On page {number}: {PROSE}", 60, 700, 400)

        return draw

    document = read(draw_report(*(page(number) for number in range(1, 4))))
    assert [node.name for node in document.nodes if node.kind == "page"] == ["113", "114", "115"]


def test_running_headers_are_kept_once_and_the_number_of_the_page_is_its_label():
    def page(number):
        def draw(canvas):
            lines(canvas, ["Report of the Ferry Company"], 60, HEIGHT - 40, 8)
            draw_paragraph(canvas, f"On page {number}: {PROSE}", 60, 700, 400)
            lines(canvas, [str(number + 10)], 290, 30, 8)

        return draw

    document = read(draw_report(*(page(number) for number in range(1, 6))))
    header, *passages = texts(document, PASSAGE)
    assert header == "Report of the Ferry Company"
    assert passages == [f"On page {n}: {PROSE}" for n in range(1, 6)]
    assert document.left_out[0] == ("headers and footers", "11", 1)
    assert ("headers and footers", header, 4) in document.left_out
    assert [node.name for node in document.nodes if node.kind == "page"] == ["11", "12", "13", "14", "15"]


def test_a_footer_that_follows_the_text_of_short_pages_is_kept_once_and_a_total_always():
    def page(number):
        def draw(canvas):
            draw_paragraph(canvas, f"On page {number}: {PROSE}", 60, 700, 400)
            # Half-way down the page, right below the text; the totals do not count along with the pages.
            total = [f"The fares came to {(number * 37) % 50 + 60} crowns."]
            lines(canvas, total, 60, 540)
            if number != 4:
                lines(canvas, [f"Report of the Ferry Company {number + 10}"], 200, 510, 8)

        return draw

    document = read(draw_report(*(page(number) for number in range(1, 7))))
    passages = texts(document, PASSAGE)
    assert [passage for passage in passages if "Ferry Company" in passage] == ["Report of the Ferry Company"]
    assert sum("The fares came to" in passage for passage in passages) == 6
    names = [node.name for node in document.nodes if node.kind == "page"]
    assert names == ["11", "12", "13", "", "15", "16"]


def test_a_word_divided_at_the_end_of_a_line_or_a_page_is_put_together():
    def first(canvas):
        lines(canvas, ["The inquiry heard that the steam-", "boat had no lamp and that its mas-"], 60, 60)

    def second(canvas):
        lines(canvas, ["ter was ashore. A well-known fact."], 60, 780)

    assert texts(read(draw_report(first, second)), PASSAGE) == [
        "The inquiry heard that the steamboat had no lamp and that its master was ashore. A well-known fact."
    ]


def test_a_ruled_table_keeps_wrapped_and_merged_cells_together():
    cell = ParagraphStyle("cell", fontName="Helvetica", fontSize=9, leading=11)
    table = Table(
        [
            ["Vessel", "Dimensions", ""],
            ["", "Length", "Beam"],
            [Paragraph("Heron Maid, the paddle steamer that was lost on the bank", cell), "31.5 m", "5.2 m"],
            [Paragraph("Bittern", cell), "22 m", Paragraph("4.4 m, as built and before the refit", cell)],
        ],
        colWidths=[110, 80, 90],
        style=TableStyle(
            [("GRID", (0, 0), (-1, -1), 0.5, "black"), ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))]
        ),
    )
    document = read(
        draw_columns(Paragraph(PROSE, BODY), Spacer(1, 30), table, Spacer(1, 30), Paragraph("End.", BODY))
    )
    (markdown,) = texts(document, TABLE)
    rows = texts(document, ROW)
    assert "| Vessel | Dimensions Length | Dimensions Beam |" in markdown
    assert [row.split(". ")[-1] for row in rows] == [
        "Heron Maid, the paddle steamer that was lost on the bank: "
        "Dimensions Length: 31.5 m; Dimensions Beam: 5.2 m",
        "Bittern: Dimensions Length: 22 m; Dimensions Beam: 4.4 m, as built and before the refit",
    ]
    assert texts(document, PASSAGE) == [PROSE, "End."]


def test_a_framed_paragraph_and_the_grid_of_a_chart_are_no_tables():
    def page(canvas):
        canvas.rect(50, 600, 420, 60)
        draw_paragraph(canvas, PROSE, 60, 650, 400)
        for step in range(6):
            canvas.line(100, 300 + 30 * step, 400, 300 + 30 * step)
            canvas.line(100 + 60 * step, 300, 100 + 60 * step, 450)
            lines(canvas, [str(step)], 95 + 60 * step, 285, 8)

    assert texts(read(draw_report(page)), TABLE) == []


def test_a_table_without_rules_is_found_by_its_columns():
    rows = [
        ("", "1930", "1931"),
        ("Passengers", "12,404", "11,870"),
        ("Cattle and horses", "318", "(42)"),
        ("Fares taken", "$1,204", "$1,187"),
    ]

    def page(canvas):
        draw_paragraph(canvas, PROSE, 60, 760, 400)
        lines(canvas, ["Traffic by year"], 60, 690, 10, "Helvetica-Bold")
        canvas.setFont("Times-Roman", 10)
        for number, (label, left, right) in enumerate(rows):
            canvas.drawString(60, 670 - 14 * number, label)
            canvas.drawRightString(330, 670 - 14 * number, left)
            canvas.drawRightString(430, 670 - 14 * number, right)

    table_rows = [row.removeprefix("Traffic by year. ") for row in texts(read(draw_report(page)), ROW)]
    assert table_rows == [
        "Passengers: 1930: 12,404; 1931: 11,870",
        "Cattle and horses: 1930: 318; 1931: (42)",
        "Fares taken: 1930: $1,204; 1931: $1,187",
    ]


def test_a_header_centred_over_columns_is_in_each_of_them():
    def page(canvas):
        canvas.setFont("Times-Roman", 10)
        canvas.drawCentredString(270, 700, "Crossings")
        canvas.drawCentredString(445, 700, "Fares")
        for y, label, values in (
            (686, "", ("1930", "1931", "1930", "1931")),
            (672, "Spring", ("110", "120", "1,000", "1,100")),
            (658, "Autumn", ("90", "95", "800", "850")),
        ):
            canvas.drawString(60, y, label)
            for x, value in zip((240, 330, 415, 505), values, strict=True):
                canvas.drawRightString(x, y, value)

    table_rows = texts(read(draw_report(page)), ROW)
    assert table_rows[0].endswith(
        "Spring: Crossings 1930: 110; Crossings 1931: 120; Fares 1930: 1,000; Fares 1931: 1,100"
    )


@pytest.mark.parametrize("repeat", [1, 0])
def test_a_table_that_runs_over_pages_is_one_table(repeat):
    data = [["Station", "Height"], *([f"Fenner {n}", f"{n}.5 m"] for n in range(1, 91))]
    table = Table(
        data,
        colWidths=[120, 80],
        repeatRows=repeat,
        style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, "black")]),
    )
    document = read(draw_columns(table))
    (node,) = [node for node in document.nodes if node.kind == TABLE]
    rows = [node for node in document.nodes if node.kind == ROW]
    assert [row.text.split(". ")[-1] for row in rows] == [
        f"Fenner {n}: Height: {n}.5 m" for n in range(1, 91)
    ]
    assert rows[0].page == 1 and rows[-1].page > 1
    assert {box.page for box in node.boxes} == {row.page for row in rows}


def test_headings_make_sections_and_figure_text_does_not():
    def page(canvas):
        lines(canvas, ["1 Soundings"], 60, 790, 14, "Helvetica-Bold")
        draw_paragraph(canvas, PROSE, 60, 770, 400)
        lines(canvas, ["1.1 Method"], 60, 700, 12, "Helvetica-Bold")
        draw_paragraph(canvas, PROSE, 60, 680, 400)
        canvas.rect(100, 400, 300, 150)
        lines(canvas, ["0.2"], 105, 500, 7)
        lines(canvas, ["depth, m"], 200, 410, 7)
        lines(canvas, ["Figure 1. Depth of the bar."], 100, 380, 9)
        lines(canvas, ["2 Results"], 60, 340, 14, "Helvetica-Bold")
        draw_paragraph(canvas, PROSE, 60, 320, 400)

    document = read(draw_report(page))
    assert texts(document, SECTION) == ["1 Soundings", "1.1 Method", "2 Results"]
    paths = [path(document, node) for node in document.nodes if node.kind == PASSAGE and node.text == PROSE]
    assert paths == [["1 Soundings"], ["1 Soundings", "1.1 Method"], ["2 Results"]]


def test_a_crop_box_moves_what_is_shown_and_its_boxes_with_it():
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=A4, cropBox=(50, 100, 550, 800))
    draw_paragraph(canvas, PROSE, 60, 700, 400)
    canvas.save()
    (node,) = [node for node in read(stream.getvalue()).nodes if node.kind == PASSAGE]
    (box,) = node.boxes
    assert abs(box.x0 - 10) < 2 and abs(box.y0 - 100) < 4


def test_boxes_surround_the_words_of_their_passage():
    data = draw_columns(Paragraph("The Heading", HEAD), *(Paragraph(PROSE, BODY) for _ in range(3)))
    passages = [node for node in read(data).nodes if node.kind == PASSAGE]
    assert passages
    page = pypdfium2.PdfDocument(data)[0]
    textpage = page.get_textpage()
    for node in passages:
        (box,) = node.boxes
        inside = textpage.get_text_bounded(box.x0, HEIGHT - box.y1, box.x1, HEIGHT - box.y0)
        assert " ".join(inside.split()) == node.text


def test_raised_digits_do_not_join_the_number_before_them():
    """The number of litres was once read as 3×106."""
    style = ParagraphStyle("body", fontSize=11, leading=16)
    stream = io.BytesIO()
    text = "It holds 3×10<super>6</super> litres, Sales<super>1</super> 1,234<super>12</super>, 17."
    small = 'A <font size="8">small 12</font> and H<sub>2</sub>O.'
    SimpleDocTemplate(stream).build([Paragraph(part, style) for part in (text, small)])
    words = " ".join(texts(read(stream.getvalue()), PASSAGE))
    assert "3×10⁶ litres, Sales¹ 1,234¹², 17." in words and "A small 12 and" in words


def test_a_rotated_page_is_read_as_it_is_shown():
    def page(canvas):
        canvas.setPageRotation(90)
        canvas.translate(WIDTH, 0)
        canvas.rotate(90)
        draw_paragraph(canvas, PROSE, 60, 500, 400)

    assert texts(read(draw_report(page)), PASSAGE) == [PROSE]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (draw_report(lambda canvas: canvas.rect(50, 50, 100, 100)), "no text"),
        (draw_report(lambda canvas: lines(canvas, [PROSE], 60, 700))[:400], "damaged|truncated"),
        (b"%PDF-1.7\n", "damaged|truncated"),
    ],
    ids=["drawing only", "truncated", "nothing after the first line"],
)
def test_what_cannot_be_read_is_refused_with_the_reason(data, reason):
    with pytest.raises(UnreadableFile, match=reason):
        read(data)


def test_an_encrypted_file_is_refused_with_the_reason():
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=A4, encrypt="secret")
    lines(canvas, [PROSE], 60, 700)
    canvas.save()
    with pytest.raises(UnreadableFile, match="encrypted"):
        read(stream.getvalue())


@pytest.mark.slow
def test_a_page_of_very_many_objects_is_read_in_bounded_work():
    def page(canvas):
        lines(canvas, [PROSE[:60]], 60, 800)
        for number in range(30_000):
            canvas.rect(number % 500, number // 500, 0.3, 0.3, stroke=0, fill=1)

    assert texts(read(draw_report(page)), PASSAGE) == [PROSE[:60].strip()]
