"""Pages that are laid out in ways that a reader sees through: columns, hyphens, notes, initials, watermarks."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from clew.core.types import PASSAGE, SECTION, TABLE, ParsedDocument, count_left_out
from clew.parse.documents.pdf.reader import parse

SIZE = 10.0
Draw = Callable[[Canvas], None]


def read(*pages: Draw, size: tuple[float, float] = A4) -> ParsedDocument:
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=size)
    for page in pages:
        page(canvas)
        canvas.showPage()
    canvas.save()
    return parse(stream.getvalue(), name="made")


def write(
    canvas: Canvas, x: float, y: float, *texts: str, size: float = SIZE, font: str = "Helvetica"
) -> None:
    canvas.setFont(font, size)
    for number, text in enumerate(texts):
        canvas.drawString(x, y - 1.2 * number * size, text)


def texts(document: ParsedDocument, *kinds: str) -> list[str]:
    return [node.text for node in document.nodes if node.kind in kinds]


def passages(*pages: Draw) -> list[str]:
    document = read(*pages)
    assert not texts(document, TABLE)
    return texts(document, PASSAGE)


FERRY = [
    "The ferry was laid up after the",
    "flood. Her owner, a widow from",
    "Hallin, sold the engine and let",
    "the hull to two brothers who kept",
    "hens on it. They left in spring.",
]
SIGNAL = [
    "The signal box stood beside the",
    "river until a barge knocked over",
    "one of its legs. Anton Varga, who",
    "was on duty, climbed down with a",
    "lamp and stopped the night mail.",
]
COLUMNS = {
    "five lines": (FERRY, SIGNAL),
    "two lines that go on in the next column": (
        ["The weir was opened by a miller", "who had three sons and who gave"],
        ["each of them a wheel of oak, but", "the youngest asked for the sluice."],
    ),
    "one column shorter": (FERRY, SIGNAL[:3]),
    "nouns in capitals": (
        ["Die Schleuse wurde im Mai von der", "Gemeinde an einen Wirt verkauft,", "der dort mit der Tochter wohnte."],
        ["Sein Boot lag im Winter unter dem", "Vordach. Nach dem Hochwasser war", "nur noch der Anker zu finden."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize(("size", "x", "shift"), [(10, 310, 0), (8.5, 270, 0), (12, 330, 0), (10, 310, 5)])
def test_a_few_lines_in_two_columns_are_read_one_column_after_the_other(columns, size, x, shift):
    def page(canvas):
        write(canvas, 60, 780, "A note on the river", size=size + 4, font="Helvetica-Bold")
        write(canvas, 60, 750, *columns[0], size=size)
        write(canvas, x, 750 - shift, *columns[1], size=size)
        write(
            canvas,
            60,
            600,
            "Both were gone before the bridge was built, and nobody has a plan of them.",
        )

    text = " ".join(passages(page))
    assert text == " ".join(columns[0]) + " " + " ".join(columns[1]) + (
        " Both were gone before the bridge was built, and nobody has a plan of them."
    )


def test_three_columns_of_few_lines_are_read_one_after_the_other():
    third = [
        "The mail was late an hour, and",
        "the company wrote to the brothers",
        "to ask for the price of a leg.",
    ]

    def page(canvas):
        write(canvas, 40, 750, *FERRY, size=9)
        write(canvas, 215, 750, *SIGNAL, size=9)
        write(canvas, 390, 750, *third, size=9)

    assert " ".join(passages(page)) == " ".join(FERRY + SIGNAL + third)


TABLES = {
    "names": [("Anton Varga", "signalman"), ("Edda Norling", "pilot of the port"), ("Milo Prather", "diver")],
    "sentences": [
        ("What the hirer pays for", "What the owner pays for"),
        ("Coal and oil, by the day.", "Repairs of the hull."),
        ("Fines of the port, if any.", "The wages of the crew."),
        ("Damage to the quay.", "Painting, once a year."),
    ],
    "wrapped cells": [
        ("The crane is not tested every", "Test the crane in spring and"),
        ("year, and nobody keeps a log.", "write the result into a log."),
        ("The lamps of the quay are dark", "Let the watchman light the lamps"),
        ("in two places at night.", "before he begins his round."),
    ],
    "in lower case": [
        ("rope of hemp from the yard", "six coils"),
        ("tar in barrels", "one for the hull of the barge"),
        ("lamp oil", "none is left in the store"),
    ],
    "with numbers": [
        ("Wages of the crew in the year", "4,200"),
        ("Coal for the boiler and stove", "1,310"),
        ("Rent of the quay at midsummer", "980"),
    ],
}


@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES)
def test_a_table_of_words_stays_a_table(rows):
    def page(canvas):
        for number, (left, right) in enumerate(rows):
            write(canvas, 60, 750 - 13 * number, left)
            write(canvas, 310, 750 - 13 * number, right)

    assert len(texts(read(page), TABLE)) == 1


def test_lines_ruled_from_each_other_stay_a_table():
    def page(canvas):
        for number, (left, right) in enumerate(zip(FERRY, SIGNAL, strict=True)):
            write(canvas, 60, 750 - 18 * number, left)
            write(canvas, 310, 750 - 18 * number, right)
            canvas.line(60, 745 - 18 * number, 540, 745 - 18 * number)

    assert len(texts(read(page), TABLE)) == 1


@pytest.mark.parametrize(
    ("before", "after", "elsewhere", "joined"),
    [
        ("a short-", "lived council", "A short-lived peace.", "a short-lived council"),
        ("the break-", "water of stone", "The breakwater fell.", "the breakwater of stone"),
        ("the quar-", "ter of the fishers", "", "the quarter of the fishers"),
        ("an out-of-", "the-way inlet", "It lies out of the way.", "an out-of-the-way inlet"),
        ("a rat-infes-", "ted hull", "", "a rat-infested hull"),
        ("the Franco-", "Swiss line", "", "the Franco-Swiss line"),
        ("an e-", "mail to him", "", "an e-mail to him"),
        ("after COVID-", "19 had passed", "", "after COVID-19 had passed"),
        ("a harbour-", "owned crane", "The harbour is owned by all.", "a harbour-owned crane"),
        ("both pre-", "and post-war boats", "Sloops and yawls.", "both pre- and post-war boats"),
        ("THE HAR-", "BOUR ACT", "The harbour is old.", "THE HARBOUR ACT"),
    ],
)
def test_a_hyphen_at_a_lines_end_is_kept_where_it_belongs_to_the_word(before, after, elsewhere, joined):
    def page(canvas):
        write(canvas, 60, 750, f"They told the clerk about {before}", f"{after}. {elsewhere}")

    assert passages(page) == [f"They told the clerk about {joined}. {elsewhere}".strip()]


def test_a_text_that_divides_no_words_keeps_its_hyphens():
    words = ["tide-borne", "rain-fed", "wind-blown", "flood-prone"]
    lines = [
        part
        for word in words
        for part in (f"The {word} silt is {word.split('-')[0]}-", f"{word.split('-')[1]}.")
    ]

    def page(canvas):
        write(canvas, 60, 750, *lines, "It is ice-", "bound.")

    assert passages(page)[-1] == "It is ice-bound."


def test_the_words_of_a_cell_are_divided_alike():
    def page(canvas):
        for y in (760, 730, 700):
            canvas.line(50, y, 350, y)
        for x in (50, 200, 350):
            canvas.line(x, 700, x, 760)
        write(canvas, 55, 748, "Kind")
        write(canvas, 205, 748, "Long-lived boats")
        write(canvas, 55, 718, "Long-", "lived")
        write(canvas, 205, 718, "Sturdy hull")

    assert "| Long-lived | Sturdy hull |" in texts(read(page), TABLE)[0]


def foot(canvas: Canvas, *notes: str, ruled: bool = False, size: float = 7.5) -> None:
    if ruled:
        canvas.line(60, 105, 160, 105)
    write(canvas, 60, 92, *notes, size=size)


NOTES = {
    "one": ("1 The sluice was sold to a brewer.",),
    "two": ("1 The sluice was sold to a brewer.", "2 See the deed of the mill."),
    "starred": ("* The sluice was sold to a brewer in the", "same year, and the weir with it."),
    "in brackets": ("[3] The sluice was sold to a brewer.",),
}


@pytest.mark.parametrize("notes", NOTES.values(), ids=NOTES)
@pytest.mark.parametrize("ruled", [False, True])
def test_a_sentence_goes_on_over_the_footnotes_of_a_page(notes, ruled):
    def first(canvas):
        write(
            canvas,
            60,
            780,
            "The miller kept his books in the loft.",
            "In the year of the flood they were saved by",
        )
        foot(canvas, *notes, ruled=ruled)

    def second(canvas):
        write(canvas, 60, 780, "Greta Olm, the cook of the inn, and dried on the stove.")

    whole = (
        "In the year of the flood they were saved by Greta Olm, the cook of the inn, and dried on the stove."
    )
    result = passages(first, second)
    assert result[0].endswith(whole)
    assert " ".join(result[1:]) == " ".join(notes)


def test_a_sentence_goes_on_over_the_footnote_of_a_column_and_below_a_running_header():
    def first(canvas):
        write(canvas, 60, 815, "The mill on the Sorr", size=8)
        write(
            canvas,
            60,
            780,
            "The miller kept his books in the loft, and",
            "in the year of the flood they were saved,",
        )
        foot(canvas, "1 The sluice was sold.")

    def second(canvas):
        write(canvas, 60, 815, "The mill on the Sorr", size=8)
        write(canvas, 60, 780, "like the sacks, by the cook of the inn. They are kept in the hall.")

    assert any("they were saved, like the sacks, by the cook" in text for text in passages(first, second))


def test_what_begins_anew_below_a_page_with_footnotes_is_a_paragraph_of_its_own():
    def first(canvas):
        write(canvas, 60, 780, "The miller kept his books in the loft.")
        foot(canvas, "1 The sluice was sold.")

    def second(canvas):
        write(canvas, 60, 780, "The cook kept hers in the oven.")

    assert passages(first, second) == [
        "The miller kept his books in the loft.", "1 The sluice was sold.", "The cook kept hers in the oven."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("initial", "rest", "first"),
    [
        ("W", "hen the sluice was opened for the", "When the sluice"),
        ("A", "mill was built of stone beside the", "A mill was"),
        ("M", "ILLERS AND THEIR SONS LIVED BY the", "MILLERS AND"),
        ("É", "mile kept the sluice open for the", "Émile kept"),
    ],
)
@pytest.mark.parametrize(("count", "size"), [(2, 30), (3, 44)])
def test_a_drop_cap_belongs_to_the_first_word(initial, rest, first, count, size):
    lines = [
        rest,
        "barges of the company, which came",
        "down from the hills in the autumn",
        "with apples. The mill is gone.",
    ]

    def page(canvas):
        write(canvas, 60, 780, "The river", size=14, font="Helvetica-Bold")
        write(canvas, 60, 740 - 12 * (count - 1), initial, size=size)
        indent = 62 + canvas.stringWidth(initial, "Helvetica", size)
        write(canvas, indent, 740, *lines[:count])
        write(canvas, 60, 740 - 12 * count, *lines[count:])

    document = read(page)
    assert len(texts(document, PASSAGE)) == 1
    assert texts(document, PASSAGE)[0].startswith(first)
    assert texts(document, PASSAGE)[0].endswith(" ".join(lines[1:]))
    assert texts(document, SECTION) == ["The river"]


def test_a_big_letter_beside_no_prose_stays_as_it_is():
    def page(canvas):
        write(canvas, 60, 700, "B", size=40)
        write(canvas, 120, 728, "Berths")
        write(canvas, 60, 600, "The berths are let by the year to whoever asks for them first.")

    assert "Berths" in " ".join(texts(read(page), PASSAGE, SECTION)).split()


MILL = [
    f"The mill ground {n} sacks of oats for the garrison in that week, as the clerk wrote." for n in range(20)
]


@pytest.mark.parametrize("angle", [-50, -30, 30, 45, 60])
@pytest.mark.parametrize("text", ["SAMPLE", "DO NOT COPY"])
def test_large_letters_across_a_page_are_a_watermark(angle, text):
    def page(canvas):
        canvas.saveState()
        canvas.translate(300, 620)
        canvas.rotate(angle)
        canvas.setFont("Helvetica-Bold", 60)
        canvas.drawCentredString(0, 0, text)
        canvas.restoreState()
        write(canvas, 60, 780, *MILL)

    document = read(page)
    assert texts(document, PASSAGE) == [" ".join(MILL)]
    assert not texts(document, TABLE, SECTION)
    count = len(text.split())
    assert count_left_out(document.left_out) == {"watermark": count}


def test_large_light_letters_behind_the_text_are_a_watermark():
    def page(canvas):
        canvas.saveState()
        canvas.setFillGray(0.85)
        write(canvas, 120, 700, "SPECIMEN", size=70)
        canvas.restoreState()
        write(canvas, 60, 780, *MILL)

    document = read(page)
    assert texts(document, PASSAGE) == [" ".join(MILL)]
    assert count_left_out(document.left_out) == {"watermark": 1}


def test_letters_that_show_what_is_below_them_are_a_watermark():
    def page(canvas):
        write(canvas, 60, 780, *MILL)
        canvas.setFillAlpha(0.2)
        write(canvas, 120, 700, "SPECIMEN", size=70)

    assert texts(read(page), PASSAGE) == [" ".join(MILL)]


def test_a_large_light_title_with_nothing_below_it_and_a_slanted_label_are_text():
    def page(canvas):
        canvas.setFillGray(0.8)
        write(canvas, 60, 700, "Annual report", size=40)
        canvas.setFillGray(0)
        write(canvas, 60, 600, *MILL[:4])
        canvas.translate(60, 300)
        canvas.rotate(40)
        write(canvas, 0, 0, "Ardle", size=9)

    document = read(page)
    assert texts(document, SECTION) == ["Annual report"]
    assert "Ardle" in " ".join(texts(document, PASSAGE))
    assert not document.left_out
