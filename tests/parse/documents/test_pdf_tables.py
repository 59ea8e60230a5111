"""Tables of PDFs without a grid: which header, group, unit and place a number has. Layouts as in filings."""

from __future__ import annotations

import ctypes
import io
from dataclasses import replace
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw
import pytest
from reportlab.pdfgen.canvas import Canvas

from clew.core.cell_values import cell_value
from clew.core.types import HEADERS_UNCERTAIN, ROW, TABLE, Column, ParsedDocument, Table
from clew.parse.documents.pdf.cells import Cell, Row
from clew.parse.documents.pdf.headers import read_header
from clew.parse.documents.pdf.lines import Line
from clew.parse.documents.pdf.reader import parse
from clew.parse.documents.pdf.tables import is_chart
from clew.parse.documents.pdf.words import Word
from clew.parse.documents.tables import place_rows, row_texts


class Sheet:
    """Draws lines of labels and right-aligned or centred cells, from the top of a page."""

    def __init__(self) -> None:
        self.stream = io.BytesIO()
        self.canvas = Canvas(self.stream, pagesize=(612, 792))
        self.y = 740.0

    def line(self, label: str, *cells: Any, at: float = 60, step: float = 14, bold: bool = False) -> None:
        """Draw a label at ``at`` and cells, each (right edge, text), or (middle, text, "c")."""
        self.canvas.setFont("Helvetica-Bold" if bold else "Helvetica", 9)
        self.canvas.drawString(at, self.y, label)
        for x, text, *centred in cells:
            (self.canvas.drawCentredString if centred else self.canvas.drawRightString)(x, self.y, text)
        self.y -= step

    def rule(self, x0: float, x1: float) -> None:
        """Draw a line a little below the last line of text."""
        self.canvas.line(x0, self.y + 11, x1, self.y + 11)

    def read(self) -> ParsedDocument:
        self.canvas.save()
        return parse(self.stream.getvalue(), name="sheet")


def table_of(document: ParsedDocument) -> Table:
    (table,) = [node.table for node in document.nodes if node.table is not None]
    return table


def rows_of(document: ParsedDocument) -> list[str]:
    return [node.text for node in document.nodes if node.kind == ROW]


def test_a_unit_between_label_and_numbers_does_not_shift_the_years():
    sheet = Sheet()
    sheet.line("Year ended June 30,", (330, "2022"), (430, "2023"))
    for label, values in {"Adjusted EBIT": ("289", "265"), "Adjusted EBITDA": ("410", "398")}.items():
        sheet.line(label, (240, "$ million"), (330, values[0]), (430, values[1]))
    table = table_of(sheet.read())
    (first, _) = table.rows
    places = {cell: " ".join(table.columns[n].path) for n, cell in enumerate(first)}
    assert places["289"].endswith("2022") and places["265"].endswith("2023")
    assert "million" not in places["289"]


def test_headers_over_several_columns_are_told_from_lines_of_a_name():
    # "Weighted" is a line of the name of the middle column; "2022" spans two, as the line below it shows.
    sheet = Sheet()
    sheet.line("", (280, "2022", "c"), (460, "2021", "c"), step=16)
    sheet.rule(215, 345)
    sheet.rule(395, 525)
    sheet.line("", (310, "Weighted", "c"), (490, "Weighted", "c"), step=10)
    sheet.line(
        "(in thousands)", (250, "Shares", "c"), (310, "Price", "c"), (430, "Shares", "c"), (490, "Price", "c")
    )
    for label in ("Granted", "Vested", "Forfeited"):
        sheet.line(label, (260, "1,993"), (325, "101.04"), (440, "1,200"), (505, "88.10"))
    table = table_of(sheet.read())
    assert [column.path for column in table.columns[1:]] == [
        ("2022", "Shares"), ("2022", "Weighted Price"), ("2021", "Shares"), ("2021", "Weighted Price"),
    ]  # fmt: skip
    assert cell_value(table, 0, 1).amount == 1_993_000
    assert not table.headers_uncertain


def test_names_that_repeat_below_divide_the_names_above():
    sheet = Sheet()
    sheet.line("", (245, "Grants"), (395, "Options"), (545, "Units"))
    columns = [200, 250, 300, 350, 400, 450, 500, 550, 600]
    sheet.line("", *zip(columns, ["2022", "2021", "2020"] * 3, strict=True))
    for label in ("Old", "New"):
        sheet.line(label, *((x, str(x)) for x in columns))
    table = table_of(sheet.read())
    assert [column.path for column in table.columns[1:]] == [
        (kind, year) for kind in ("Grants", "Options", "Units") for year in ("2022", "2021", "2020")
    ]


def test_indentation_and_totals_close_groups():
    sheet = Sheet()
    sheet.line("", (400, "2022"), (480, "2021"))
    sheet.line("Long-term debt:")
    sheet.line("Principal", (400, "100"), (480, "90"), at=70)
    sheet.line("Interest", (400, "20"), (480, "10"), at=70)
    sheet.line("Leases", (400, "30"), (480, "25"))
    sheet.line("Total", (400, "150"), (480, "125"))
    assert [text.partition(": 2022")[0] for text in rows_of(sheet.read())] == [
        "Long-term debt:", "Long-term debt: Principal", "Long-term debt: Interest", "Leases", "Total",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "values", "groups"),
    [
        # Without indentation a total that does not say of what is that of the group that adds up to it.
        (
            ["Assets", "Cash", "Land", "Total"],
            ["", "3", "4", "7"],
            [(), ("Assets",), ("Assets",), ("Assets",)],
        ),
        (["Assets", "Cash", "Land", "Total"], ["", "3", "4", "9"], [(), ("Assets",), ("Assets",), ()]),
        (["Assets", "Cash", "Total assets", "Debt"], ["", "3", "3", "1"], [(), ("Assets",), (), ()]),
    ],
)
def test_a_total_stands_in_the_group_that_adds_up_to_it(labels, values, groups):
    rows = list(zip(labels, values, strict=True))
    places = place_rows(rows)
    assert [place.groups for place in places] == groups
    assert [place.kind for place in places].count("total") == 1


def test_a_period_heads_the_headings_below_it():
    labels = ["2022", "Sales", "Salt", "Costs", "Coal", "2021", "Sales", "Salt", "", "Coal"]
    values = ["", "", "3", "", "4", "", "", "5", "5", "6"]
    places = place_rows(list(zip(labels, values, strict=True)))
    groups = [place.groups for place, value in zip(places, values, strict=True) if value]
    assert groups[:3] == [("2022", "Sales"), ("2022", "Costs"), ("2021", "Sales")]
    turned = place_rows(
        list(zip(["Sales", "2022", "Salt", "2021", "Salt"], ["", "", "3", "", "4"], strict=True))
    )
    assert [place.groups for place in turned] == [(), (), ("2022",), (), ("2021",)]


def test_a_row_without_a_label_is_the_total_of_those_above():
    rows = [("Sales", ""), ("Salt", "3"), ("Coal", "4"), ("", "7"), ("Ships", ""), ("Tern", "5"), ("", "6")]
    assert [place.kind for place in place_rows(rows)].count("total") == 1
    assert place_rows(rows)[3].kind == "total"


def test_labels_of_several_lines_are_joined_and_headings_are_not():
    sheet = Sheet()
    sheet.line("", (400, "2022"), (480, "2021"), step=18)
    sheet.line("Adjustment for gains that were reclassified", step=10)
    sheet.line("Instruments", (400, "(1)"), (480, "2"), step=18)
    sheet.line("Operating lease (net of", step=10)
    sheet.line("tax) and Other", (400, "5"), (480, "6"), step=18)
    sheet.line("Financing", step=18)
    sheet.line("Dividends", (400, "7"), (480, "8"), step=18)
    sheet.line("TOTAL", (400, "11"), (480, "16"), step=10)
    sheet.line("CASH", step=18)
    sheet.line("Rate", (400, "3%"), (480, "4%"))
    table = table_of(sheet.read())
    assert [row[0] for row in table.rows] == [
        "Adjustment for gains that were reclassified Instruments", "Operating lease (net of tax) and Other",
        "Financing", "Dividends", "TOTAL CASH", "Rate",
    ]  # fmt: skip
    assert table.row_places[2].kind == "heading" and table.row_places[3].groups == ("Financing",)


def test_headers_that_cannot_be_told_apart_are_said_to_be_uncertain_and_left_out():
    sheet = Sheet()
    for label, values in {"Profit": ("289", "265"), "Loss": ("12", "15"), "Tax": ("7", "6")}.items():
        sheet.line(label, (330, values[0]), (430, values[1]))
    document = sheet.read()
    assert table_of(document).headers_uncertain
    assert rows_of(document)[0] == f"{HEADERS_UNCERTAIN}. Profit: 289; 265"
    named = replace(table_of(document), header=("", "2022", "2023"), headers_uncertain=False, columns=())
    assert next(iter(row_texts(named))) == "Profit: 2022: 289; 2023: 265"


def test_a_second_header_starts_a_table_of_its_own():
    sheet = Sheet()
    for quarter, value in (("First", "10"), ("Second", "20")):
        sheet.line("(in millions)", (400, f"{quarter} 2022"), (500, f"{quarter} 2021"))
        for label in ("Europe", "Asia", "Africa"):
            sheet.line(label, (400, value), (500, value))
    texts = rows_of(sheet.read())
    assert texts[0].endswith("Europe: First 2022: 10; First 2021: 10")
    assert texts[-1].endswith("Africa: Second 2022: 20; Second 2021: 20")
    assert all("(in millions)" in text for text in texts)


def test_the_percent_column_beside_an_amount_has_a_path_of_its_own():
    sheet = Sheet()
    sheet.line("(dollars in millions)", (300, "2022"), (380, "2021"), (460, "Change"))
    sheet.line("Revenue", (300, "$ 50"), (380, "$ 40"), (460, "$ 10"), (540, "25.0 %"))
    sheet.line("Cost", (300, "30"), (380, "20"), (460, "10"), (540, "50.0"))
    table = table_of(sheet.read())
    assert [column.path for column in table.columns[1:]] == [
        ("2022",),
        ("2021",),
        ("Change",),
        ("Change", "%"),
    ]
    assert (cell_value(table, 1, 4).unit, cell_value(table, 1, 4).amount) == ("%", 50.0)
    assert (cell_value(table, 1, 1).unit, cell_value(table, 1, 1).amount) == ("$", 30e6)


def test_a_currency_beside_the_first_number_is_that_of_its_column_but_not_of_counts():
    sheet = Sheet()
    sheet.line("(in millions)", (300, "2022"), (380, "2021"))
    sheet.line("Net income", (300, "$ 50"), (380, "$ 40"))
    sheet.line("Tax", (300, "30"), (380, "20"))
    sheet.line("Weighted-average shares outstanding", (300, "469.5"), (380, "477.3"))
    table = table_of(sheet.read())
    assert [cell_value(table, row, 1).unit for row in range(3)] == ["$", "$", "shares"]
    assert cell_value(table, 2, 2).amount == 477.3e6


def test_the_bars_of_a_chart_are_no_table():
    sheet = Sheet()
    for x, left, right in ((120, "$136", "$133"), (320, "$30", "$32")):
        sheet.canvas.drawCentredString(x, 700, left)
        sheet.canvas.drawCentredString(x + 80, 697, right)
        sheet.canvas.drawCentredString(x, 600, "2022")
        sheet.canvas.drawCentredString(x + 80, 600, "2021")
    document = sheet.read()
    assert [node for node in document.nodes if node.kind == TABLE] == []


def test_a_table_keeps_its_introduction_and_the_box_of_each_cell():
    sheet = Sheet()
    sheet.line(
        "We sell boats, ropes and sails. The orders that we had not filled at the end of each year, by the kind",
        step=11,
    )
    sheet.line(
        "of goods that was ordered and before any discount, were those in the following table:", step=24
    )
    sheet.line("", (400, "2022"), (480, "2021"))
    y = 792 - sheet.y
    sheet.line("Boats", (400, "12"), (480, "9"))
    sheet.line("Ropes", (400, "3"), (480, "4"))
    document = sheet.read()
    table = table_of(document)
    assert table.introduction.startswith("The orders") and table.introduction.endswith("following table:")
    assert "The orders that we had not filled" in rows_of(document)[0]
    label, box, _ = table.cell_boxes[0]
    assert label is not None and label.x0 == pytest.approx(60, abs=2)
    assert box is not None and box.page == 1
    assert box.x1 == pytest.approx(400, abs=1) and box.y0 < y < box.y1 + 1


def test_a_year_at_the_top_of_a_page_is_no_page_number_if_columns_follow():
    sheet = Sheet()
    sheet.line("", (430, "2022", "c"), step=10)
    sheet.line("(in millions)", (380, "Q1"), (480, "Q2"))
    sheet.rule(340, 500)
    for label in ("Sales", "Costs", "Taxes"):
        sheet.line(label, (380, "10"), (480, "12"))
    document = sheet.read()
    assert [column.path for column in table_of(document).columns[1:]] == [("2022", "Q1"), ("2022", "Q2")]


def test_the_first_line_of_a_name_is_not_a_name_over_all_columns():
    # "Accumulated" begins the name of the middle column; the rule closes the name above it, which all columns share.
    sheet = Sheet()
    sheet.line("", (380, "June 30, 2022", "c"), step=14)
    sheet.rule(260, 500)
    sheet.line("", (380, "Accumulated", "c"), step=10)
    sheet.line("", (300, "Gross Carrying", "c"), (380, "Amortization", "c"), step=10)
    sheet.line(
        "($ in millions)", (300, "Amount", "c"), (380, "and Impairment", "c"), (460, "Net Amount", "c")
    )
    for label in ("Software", "Customers", "Other"):
        sheet.line(label, (320, "1,970"), (400, "(529)"), (480, "1,441"))
    paths = [" / ".join(column.path) for column in table_of(sheet.read()).columns[1:]]
    assert paths == [
        "June 30, 2022 / Gross Carrying Amount",
        "June 30, 2022 / Accumulated Amortization and Impairment",
        "June 30, 2022 / Net Amount",
    ]


def test_a_sentence_that_introduces_a_table_ends_the_one_above_it():
    sheet = Sheet()
    sheet.line("In millions", (330, "Cost"), (400, "Value"), (470, "Total"))
    for label in ("Loans", "Bonds", "Shares"):
        sheet.line(label, (330, "7"), (400, "8"), (470, "15"))
    sheet.line("Sources of income for the years were as follows:", step=18)
    sheet.line("In millions", (400, "2022"), (470, "2021"))
    for label in ("Interest", "Rent", "Fees"):
        sheet.line(label, (400, "3"), (470, "4"))
    tables = [node.table for node in sheet.read().nodes if node.table is not None]
    assert [[" ".join(column.path) for column in table.columns[1:]] for table in tables] == [
        ["Cost", "Value", "Total"],
        ["2022", "2021"],
    ]
    # Such a sentence above rows without a header of their own heads a group of them.
    sheet = Sheet()
    sheet.line("In millions", (400, "2022"), (470, "2021"))
    for label in ("Charges", "Costs", "Depreciation recorded as follows:", "Sales", "Research"):
        sheet.line(label, *(() if label.endswith(":") else ((400, "3"), (470, "4"))))
    assert "Depreciation recorded as follows: Sales: 2022: 3; 2021: 4" in rows_of(sheet.read())[-2]


@pytest.mark.parametrize("caption", ["Cash as of December 3, 2021 consisted of the following:", ""])
def test_a_table_with_the_same_columns_on_the_next_page_is_another_if_a_sentence_introduces_it(caption):
    sheet = Sheet()
    sheet.line("Cash as of December 2, 2022 consisted of the following:", step=18)
    for title in ("", caption):
        if sheet.y < 700:
            sheet.canvas.showPage()
            sheet.y = 740
            sheet.line(title, step=18)
        sheet.line("In millions", (330, "Cost"), (400, "Gains"), (470, "Fair value"))
        for label in ("Money market funds", "Time deposits", "Bonds"):
            sheet.line(label, (330, "7"), (400, "8"), (470, "15"))
    rows = rows_of(sheet.read())
    assert len(rows) == 6
    assert sum("December 2, 2022" in row for row in rows) == (3 if caption else 6)
    assert sum("December 3, 2021" in row for row in rows) == (3 if caption else 0)


def test_marks_of_notes_end_labels_and_headings_stand_above_their_groups():
    sheet = Sheet()
    sheet.line("Asset category", (400, "2022"), (470, "2021"), step=12)
    sheet.line("Real estate", (400, "10"), (470, "9"), step=12)
    sheet.line("Other", step=12)
    for label in ("Private equity", "Hedge funds"):
        sheet.line(label, (400, "4"), (470, "3"), at=74, step=12)
    sheet.canvas.setFont("Helvetica", 8)
    sheet.canvas.drawString(150, sheet.y + 5, "(1)")
    sheet.line("Total investments", (400, "18"), (470, "15"), step=12)
    labels = [(place.groups, row[0]) for row, place in zip(*_rows_and_places(sheet.read()), strict=True)]
    assert labels == [
        ((), "Real estate"),
        ((), "Other"),
        (("Other",), "Private equity"),
        (("Other",), "Hedge funds"),
        ((), "Total investments (1)"),
    ]


def _rows_and_places(document: ParsedDocument):
    table = table_of(document)
    return table.rows, table.row_places


def test_a_listing_is_read_by_the_columns_of_its_characters():
    """What a program printed: one space between names, numbers that follow labels closely, commands around it."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(612, 792))
    lines = """
> fit <- lm(weight ~ age + sex + age:sex, data = pupils)
> summary(fit)

Coefficients:
            Estimate Std. Error t value Pr(>|t|)
(Intercept)   6.5667     1.2095   5.429 2.83e-07 ***
age          -2.6866     1.4515  -1.851  0.06654 .
age:sexmale2 14.8100     0.2819   2.873  0.00478 **

Residual standard error: 1.144 on 125 degrees of freedom

> table(pupils$year, pupils$sex)
     female male
2021     14   11
2022     17   12
2023     19   10
""".strip().splitlines()
    for number, line in enumerate(lines):
        canvas.setFont("Courier", 9)
        canvas.drawString(60, 740 - 11 * number, line)
    canvas.save()
    document = parse(stream.getvalue(), name="listing")
    first, second = (node.table for node in document.nodes if node.table is not None)
    assert first.header == ("", "Estimate", "Std. Error", "t value", "Pr(>|t|)", "")
    assert [row[:5] for row in first.rows] == [
        ("(Intercept)", "6.5667", "1.2095", "5.429", "2.83e-07"),
        ("age", "-2.6866", "1.4515", "-1.851", "0.06654"),
        ("age:sexmale2", "14.8100", "0.2819", "2.873", "0.00478"),
    ]
    assert second.header == ("", "female", "male")
    assert second.rows == (("2021", "14", "11"), ("2022", "17", "12"), ("2023", "19", "10"))
    assert not first.headers_uncertain and not second.headers_uncertain


def test_numbers_that_follow_labels_closely_are_cells_and_dates_are_whole():
    sheet = Sheet()
    sheet.line("The lease began on October 17, ", (250, "2018. Subject to"), step=40)
    sheet.line("", (200, "N"), (300, "Mean"))
    sheet.line("treated, relapse", (200, "693"), (300, "4.3"))
    for label, values in {
        "untreated, in remission,": ("739", "5.6"),
        "> 10 years, 2023 - 2042": ("45", "6.1"),
    }.items():
        width = sheet.canvas.stringWidth(label, "Helvetica", 9)
        sheet.line(label, (200, values[0]), (300, values[1]), at=200 - 15 - width - 4)
    table = table_of(sheet.read())
    assert table.rows == (
        ("treated, relapse", "693", "4.3"),
        ("untreated, in remission,", "739", "5.6"),
        ("> 10 years, 2023 - 2042", "45", "6.1"),
    )


def test_a_column_without_width_is_read():
    # The glyphs of some fonts have no width: a column of them may have none either.
    columns = [(200.0, 200.0), (300.0, 320.0)]
    words = [Word("Both", 195, 325, 100, 9, 0)]
    row = Row(Line(1, tuple(words)), (Cell(1, "Both", tuple(words)),))
    header = read_header([row], columns, [(190.0, 102.0, 330.0, 102.5)])
    assert [column.path for column in header.columns[1:]] == [("Both",), ("Both",)]


def test_labels_that_a_row_leaves_out_are_those_of_the_row_above():
    sheet = Sheet()
    sheet.line("Debt of", (330, "2022"), (430, "2021"))
    for outer, inner, values in (
        ("Acme", "5 years", ("10", "20")),
        ("", "10 years", ("30", "40")),
        ("Bolt", "5 years", ("50", "60")),
        ("", "10 years", ("70", "80")),
        ("Total", "", ("160", "200")),
    ):
        sheet.canvas.drawString(150, sheet.y, inner)
        sheet.line(outer, (330, values[0]), (430, values[1]))
    table = table_of(sheet.read())
    assert [(place.groups, row[0]) for place, row in zip(table.row_places, table.rows, strict=True)] == [
        ((), "Acme 5 years"),
        (("Acme",), "10 years"),
        ((), "Bolt 5 years"),
        (("Bolt",), "10 years"),
        ((), "Total"),
    ]


def listing(*lines: str, numbered_from: int = 0) -> ParsedDocument:
    """Return a page of lines in Courier, their numbers in another font where they are numbered."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(612, 792))
    for number, line in enumerate(lines):
        y = 740 - 11 * number
        if numbered_from:
            canvas.setFont("Helvetica", 6)
            canvas.drawRightString(52, y, str(numbered_from + number))
        canvas.setFont("Courier", 9)
        canvas.drawString(60, y, line)
    canvas.save()
    return parse(stream.getvalue(), name="listing")


def tables_of(document: ParsedDocument) -> list[Table]:
    return [node.table for node in document.nodes if node.table is not None]


def test_marks_without_names_in_mostly_empty_columns_are_a_chart():
    marks = Table(("", "", ""), (("a", "", ""), ("b", "5", ""), ("c", "", "")), columns=(Column(),) * 3)
    assert is_chart(marks)
    named = (Column(), Column(("2022",)), Column(("2021",)))
    assert not is_chart(replace(marks, header=("", "2022", "2021"), columns=named))


def test_an_index_in_columns_is_no_table():
    sheet = Sheet()
    for left, pages, right, others in (
        ("ropes", "12, 17, 40", "knots", "3, 9"),
        ("sails . . . . .", "164,", "masts . . . . .", "8"),
        ("", "169, 174", "oars . . . . . .", "21, 22, 25"),
        ("tar . . . . . .", "7", "anchors . . . . .", "11"),
    ):
        sheet.line(left, (260, pages), (520, others))
        sheet.canvas.drawString(330, sheet.y + 14, right)
    assert tables_of(sheet.read()) == []


def test_numbers_of_lines_of_code_make_no_table_but_those_of_printed_rows_do():
    code = ("let items = {}", "items.add(3)", "return items")
    assert tables_of(listing(*code, numbered_from=321)) == []
    printed = listing("  size  name", "1 10.5   Ann", "2 12.5   Ben", "3 11.0  Cleo")
    assert table_of(printed).rows[0][1] == "10.5"


def test_equations_with_their_numbers_are_no_table():
    sheet = Sheet()
    for left, right, number in (("b(t)", "a + t", "(16)"), ("c(t)", "a - t", "(17)"), ("d(t)", "2t", "(18)")):
        sheet.line(left, (220, "="), (300, right), (500, number), at=180)
    assert tables_of(sheet.read()) == []


def test_columns_that_a_program_printed_below_the_others_are_a_table_of_their_own():
    document = listing(
        "           par1   par2   AIC",
        "Null     0.0549 0.1234 340.1",
        "Zipf     0.1620 0.9014 276.5",
        "           BIC",
        "Null     340.1",
        "Zipf     281.4",
    )
    first, second = tables_of(document)
    assert first.header == ("", "par1", "par2", "AIC")
    assert second.header == ("", "BIC") and second.rows == (("Null", "340.1"), ("Zipf", "281.4"))


def test_a_column_without_the_year_that_its_neighbour_of_the_same_name_has_is_uncertain():
    sheet = Sheet()
    sheet.line("", (280, "Rate", "c"))
    sheet.rule(190, 370)
    sheet.line("December 31, 2022", (330, "December 31, 2021", "c"))
    for label, values in {"First quarter": ("3%", "3% - 9%"), "Second quarter": ("4%", "3% - 7%")}.items():
        sheet.line(label, (230, values[0], "c"), (330, values[1], "c"))
    table = table_of(sheet.read())
    assert table.headers_uncertain


def test_commands_of_several_lines_are_no_header():
    document = listing(
        "> with(data, {",
        "+   x <- open(file)[1:100]",
        "+   grid(x)",
        "+ })",
        "  offset size cells",
        "x  79019   40   100",
        "y 143528   40   100",
    )
    table = table_of(document)
    assert table.header == ("", "offset", "size", "cells")
    assert table.rows == (("x", "79019", "40", "100"), ("y", "143528", "40", "100"))


def test_a_row_of_words_heads_no_part_of_a_table_of_words():
    sheet = Sheet()
    sheet.line("key", (200, "type"), (320, "meaning"), (430, "default"), step=17)
    for label, kind, meaning, default in (
        ("debug", "number", "what is shown", "0"),
        ("view", "switch", "shows the same", "none"),
        ("mark", "letter", "sign of powers", "e"),
        ("degrees", "number", "unit of angles", "10"),
        ("mode", "number", "of calculation", "0"),
    ):
        sheet.line(label, (200, kind), (320, meaning), (430, default))
    table = table_of(sheet.read())
    assert table.header == ("key", "type", "meaning", "default")
    assert len(table.rows) == 5


def test_a_caption_is_no_name_of_a_column_and_ends_the_table_above_it():
    sheet = Sheet()
    for number, name in (("1", "Strength"), ("2", "Length")):
        sheet.canvas.setFont("Helvetica", 9)
        sheet.canvas.drawString(150, sheet.y, f"Table {number}.")
        sheet.canvas.drawString(220, sheet.y, name)
        sheet.y -= 14
        sheet.line("Rope", (200, "Mean"), (300, "Most"), at=120)
        sheet.line("Hemp", (200, "4.3"), (300, "6.1"), at=120)
        sheet.line("Flax", (200, "5.6"), (300, "7.2"), at=120)
    tables = tables_of(sheet.read())
    assert [table.header for table in tables] == [("Rope", "Mean", "Most")] * 2
    assert [table.caption for table in tables] == ["Table 1. Strength", "Table 2. Length"]


def ruled(rows: list[tuple[str, ...]], indents: dict[str, float] | None = None) -> Sheet:
    """Return a sheet with a ruled table, whose labels may be indented."""
    sheet = Sheet()
    width, height = 90, 20
    for number, row in enumerate(rows):
        y = 700 - height * number
        for place, text in enumerate(row):
            sheet.canvas.rect(60 + width * place, y, width, height)
            sheet.canvas.setFont("Helvetica", 9)
            sheet.canvas.drawString(64 + width * place + (indents or {}).get(text, 0), y + 6, text)
    return sheet


def test_labels_of_a_ruled_table_that_are_indented_stand_in_the_group_above_them():
    rows = [("Ellipsoid", "Code", "Axis"), ("Airy", "AA", "6377"), ("Bessel", "", ""), ("Asia", "BR", "6378")]
    rows += [("Namibia", "BN", "6379"), ("Clarke", "CC", "6380"), ("Hough", "HO", "6381")]
    table = table_of(ruled(rows, {"Asia": 10, "Namibia": 10}).read())
    groups = {row[0]: place.groups for row, place in zip(table.rows, table.row_places, strict=True)}
    assert groups["Asia"] == groups["Namibia"] == ("Bessel",)
    assert groups["Clarke"] == groups["Hough"] == ()


def test_numbers_beside_an_open_corner_name_the_columns_of_a_ruled_table():
    table = table_of(
        ruled([("", "(1,1)", "(1,2)"), ("A", "4", "5"), ("B", "6", "7"), ("C", "8", "9")]).read()
    )
    assert table.header == ("", "(1,1)", "(1,2)")
    assert not table.headers_uncertain
    unnamed = table_of(ruled([("Rent", "10", "20"), ("Food", "4", "5"), ("Fuel", "6", "7")]).read())
    assert not any(unnamed.header)


def test_numbers_of_lines_in_the_margin_are_left_out():
    sheet = Sheet()
    for number in range(50):
        sheet.canvas.setFont("Helvetica", 6)
        sheet.canvas.drawRightString(40, 740 - 11 * number, str(209 + number))
    sheet.line("Sign", (200, "Mean"), (300, "Most"), at=100, step=12.5)
    for label, values in {"one": ("4.3", "6.1"), "two": ("5.6", "7.2"), "three": ("8.6", "9.2")}.items():
        sheet.line(label, (200, values[0]), (300, values[1]), at=100, step=12.5)
    table = table_of(sheet.read())
    assert table.header == ("Sign", "Mean", "Most")
    assert [row[0] for row in table.rows] == ["one", "two", "three"]


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_table_that_is_turned_on_its_page_is_read_upright(rotation, quarters):
    """Its boxes are those of the page as it is shown."""
    sheet = Sheet()
    sheet.canvas.setPageRotation(rotation)
    sheet.canvas.translate(306, 396)
    sheet.canvas.rotate(90 * quarters)
    sheet.canvas.translate(-306, -396)
    sheet.y = 560
    sheet.line("Sign", (290, "Mean"), (390, "Most"), at=150)
    for label, values in {"one": ("4.3", "6.1"), "two": ("5.6", "7.2"), "three": ("8.6", "9.2")}.items():
        sheet.line(label, (290, values[0]), (390, values[1]), at=150)
    for _ in range(6):
        sheet.line("A sentence that says what the table above it is about, and more.", at=150, step=16)
    table = table_of(sheet.read())
    assert table.header == ("Sign", "Mean", "Most")
    assert [row[1:] for row in table.rows] == [("4.3", "6.1"), ("5.6", "7.2"), ("8.6", "9.2")]
    shown = render_words(sheet)
    box = table.cell_boxes[0][1]
    assert box is not None
    x, y = shown["4.3"]
    assert box.x0 - 2 < x < box.x1 + 2 and box.y0 - 3 < y < box.y1 + 3


def render_words(sheet: Sheet) -> dict[str, tuple[float, float]]:
    """Return the middle of each word of a sheet's first page as pdfium shows it, measured without clew."""
    document = pdfium.PdfDocument(sheet.stream.getvalue())
    page = document[0]
    width, height = page.get_size()
    x, y = ctypes.c_int(), ctypes.c_int()
    text = page.get_textpage()
    words = {}
    for word in ("4.3", "9.2"):
        start = text.get_text_range().index(word)
        left, bottom, right, top = text.get_charbox(start + 1)
        raw.FPDF_PageToDevice(
            page.raw, 0, 0, round(width * 10), round(height * 10), 0, (left + right) / 2, (top + bottom) / 2,
            ctypes.byref(x), ctypes.byref(y),
        )  # fmt: skip
        words[word] = (x.value / 10, y.value / 10)
    return words


@pytest.mark.parametrize("is_ruled_first", [True, False])
def test_a_table_whose_lines_are_missing_on_one_page_is_read_as_one(is_ruled_first):
    """A damaged page lost its lines; a printer may leave them out."""
    header = ("Item", "2021", "2022")
    halves = [
        [("Income", "", ""), ("Tolls", "12", "14")],
        [("Costs", "", ""), ("Tar", "3", "5"), ("Rope", "4", "6")],
    ]
    sheet = Sheet()
    for half, rows in enumerate(halves):
        if half:
            sheet.canvas.showPage()
        for number, row in enumerate([header, *rows, *(("Wages", "7", "8"), ("Oil", "1", "2"))]):
            y = 700 - 20 * number
            for place, text in enumerate(row):
                if (half == 0) == is_ruled_first:
                    sheet.canvas.rect(60 + 90 * place, y, 90, 20)
                sheet.canvas.setFont("Helvetica", 9)
                sheet.canvas.drawString(64 + 90 * place, y + 6, text)
    document = sheet.read()
    table = table_of(document)
    assert table.header == header and len(table.rows) == len(table.row_places) == 9
    assert "Costs: Tar: 2021: 3; 2022: 5" in rows_of(document)


@pytest.mark.parametrize(
    "years", [("2021", "2022"), ("FY 2021", "FY 2022"), ("31.12.2021", "31.12.2022"), ("2021 (1)", "2022")]
)
def test_years_name_the_columns_of_a_ruled_table(years):
    rows = [("In millions", *years), ("Income", "", ""), ("Tolls", "12", "14"), ("Wages", "7", "8")]
    table = table_of(ruled(rows).read())
    assert table.header == rows[0] and not table.headers_uncertain


@pytest.mark.parametrize(
    "first",
    [
        ("Founded", "1999", "1999"),
        ("Founded", "1999", ""),
        ("Tolls", "1999", "12"),
        ("Opened", "1901", "1904"),
    ],
)
def test_years_in_the_first_row_of_a_ruled_table_need_not_name_columns(first):
    rest = [("Closed", "1950", "1960")] if first[0] == "Opened" else [("Wages", "7", "8"), ("Oil", "1", "2")]
    assert not any(table_of(ruled([first, *rest]).read()).header)
