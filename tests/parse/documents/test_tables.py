"""Workbooks and delimited text: written by openpyxl or by hand, read by us."""

from __future__ import annotations

import io
import random
import re
from datetime import date, datetime, time
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import BarChart
from openpyxl.styles import PatternFill
from openpyxl.worksheet.table import Table

from bad_files import changed_zip, good_xlsx
from clew.core.errors import UnreadableFile
from clew.core.types import count_left_out
from clew.parse.documents.csv import parse as parse_delimited
from clew.parse.documents.limits import Limits
from clew.parse.documents.xlsx import parse
from parse_trees import check, outline, read, read_outline, tables

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def save(book: openpyxl.Workbook) -> bytes:
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def book_of(rows: list[list[Any]], name: str = "Sheet1") -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    book.active.title = name
    for row in rows:
        book.active.append(row)
    return book


def sheet(rows: list[list[Any]], name: str = "Sheet1") -> list[str]:
    return read_outline(save(book_of(rows, name)), "book.xlsx")


def test_each_sheet_is_a_section_with_its_table() -> None:
    book = book_of([["Mill", "Wheels"], ["Garrow", 3]], "Mills")
    second = book.create_sheet("Weirs & locks")
    second.append(["Weir", "Height (m)"])
    second.append(["Long Weir", 2.5])
    book.create_sheet("Empty")
    hidden = book.create_sheet("Hidden")
    hidden.append(["secret", "secret"])
    hidden.sheet_state = "hidden"
    document = read(save(book), "The river.xlsx")
    assert document.title == "The river"
    assert outline(document) == [
        "# Mills",
        "| Mills. Garrow: Wheels: 3",
        "# Weirs & locks",
        "| Weirs & locks. Long Weir: Height (m): 2.5",
    ]


def test_a_name_that_the_program_gave_is_no_caption_and_the_properties_title_counts() -> None:
    book = book_of([["a", "b"], [1, 2]])
    book.properties.title = "Counts of the year"
    document = read(save(book), "x.xlsx")
    assert document.title == "Counts of the year"
    assert outline(document) == ["# Sheet1", "| 1: b: 2"]


def test_values_are_as_shown() -> None:
    book = book_of([["Kind", "Value"]])
    cells = [
        ("money", 1234.5, '"$"#,##0.00'),
        ("share", 0.256, "0.0%"),
        ("loss", -12, "#,##0;(#,##0)"),
        ("day", date(2024, 3, 5), "yyyy-mm-dd"),
        ("moment", datetime(2024, 3, 5, 14, 30), "d mmm yyyy h:mm"),
        ("time", time(6, 45), "h:mm AM/PM"),
        ("truth", True, "General"),
        ("text of digits", "00123", "@"),
        ("error", "#DIV/0!", "General"),
        ("hidden by its format", 42, ";;;"),
    ]
    for kind, value, form in cells:
        book.active.append([kind, value])
        book.active.cell(book.active.max_row, 2).number_format = form
    assert [text.split(": ", 2)[2] for text in read_outline(save(book), "b.xlsx")[1:]] == [
        "$1,234.50", "25.6%", "(12)", "2024-03-05", "5 Mar 2024 14:30", "6:45 AM", "TRUE", "00123", "#DIV/0!", "42",
    ]  # fmt: skip


def test_titles_above_and_remarks_below_a_table() -> None:
    remark = "All figures are in thousands and have been rounded to the nearest whole number."
    assert sheet(
        [["Sales of the mill"], ["in thousands"], [], ["Year", "Flour", "Bran"], [2020, 5, 6], [], [remark]]
    ) == [
        "# Sheet1",
        "| Sales of the mill – in thousands. 2020: Flour: 5; Bran: 6",
        remark,
    ]


def test_blank_rows_space_out_or_separate() -> None:
    spaced = [["Item", "2023", "2022"], ["Sales", 5, 6], [], ["Costs", 3, 4]]
    assert sheet(spaced)[1:] == ["| Sales: 2023: 5; 2022: 6", "| Costs: 2023: 3; 2022: 4"]
    apart = [["Mill", "Wheels"], ["Garrow", 3], [], ["Weirs"], ["Weir", "Height"], ["Long", 2]]
    assert sheet(apart)[1:] == ["| Garrow: Wheels: 3", "| Weirs. Long: Height: 2"]


def test_a_sheet_of_text_is_paragraphs() -> None:
    assert sheet([["Read me"], ["These are notes."], [None], ["More of them."]]) == [
        "# Sheet1",
        "Read me",
        "These are notes.",
        "More of them.",
    ]


def test_merged_cells_in_header_and_side() -> None:
    book = book_of(
        [
            ["Region", "2023", None, "2022", None],
            [None, "Low", "High", "Low", "High"],
            ["North", 1, 2, 3, 4],
            [None, 5, 6, 7, 8],
        ]
    )
    for cells in ("A1:A2", "B1:C1", "D1:E1", "A3:A4"):
        book.active.merge_cells(cells)
    assert read_outline(save(book), "b.xlsx")[1:] == [
        "| North: 2023 Low: 1; 2023 High: 2; 2022 Low: 3; 2022 High: 4",
        "| North: 2023 Low: 5; 2023 High: 6; 2022 Low: 7; 2022 High: 8",
    ]


def test_a_row_merged_over_all_columns_is_a_group() -> None:
    book = book_of([["Item", "Tons"], ["By water", None], ["Coal", 5]])
    book.active.merge_cells("A2:B2")
    assert read_outline(save(book), "b.xlsx")[1:] == ["| By water", "| By water: Coal: Tons: 5"]


def test_formulas_show_their_stored_result_and_missing_ones_are_said() -> None:
    data = save(book_of([["Item", "Sum"], ["Mill", "=1+2"]]))
    document = read(data, "b.xlsx")
    assert "1 formulas have no stored result" in document.notes[0]
    assert "=1+2" not in document.text
    with_result = xlsx(
        '<row><c t="inlineStr"><is><t>Item</t></is></c><c t="inlineStr"><is><t>Sum</t></is></c></row>'
        '<row><c t="inlineStr"><is><t>Mill</t></is></c><c><f>1+2</f><v>3</v></c></row>'
        '<row><c t="str"><f>"W"&amp;"eir"</f><v>Weir</v></c><c t="e"><f>1/0</f><v>#DIV/0!</v></c></row>'
    )
    assert read_outline(with_result, "b.xlsx")[1:] == ["| Mill: Sum: 3", "| Weir: Sum: #DIV/0!"]


def xlsx(rows: str, before: str = "", after: str = "", **parts: str) -> bytes:
    """Return a workbook whose sheet has exactly this XML."""
    content = f'<worksheet xmlns="{MAIN}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'
    changes = {"xl/worksheets/sheet1.xml": content.encode()}
    changes |= {name.replace("__", "/") + ".xml": text.encode() for name, text in parts.items()}
    return changed_zip(good_xlsx(), changes)


def test_shared_strings_with_runs_and_readings() -> None:
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Type="http://x/worksheet" Target="/xl/worksheets/sheet1.xml"/>'
        '<Relationship Id="rId9" Type="http://x/sharedStrings" Target="strings.xml"/></Relationships>'
    )
    strings = (
        f'<sst xmlns="{MAIN}"><si><t>Name</t></si><si><r><t>Bri</t></r><r><rPr/><t>dge</t></r></si>'
        "<si><t>川</t><rPh><t>かわ</t></rPh></si><si/></sst>"
    )
    data = changed_zip(
        xlsx(
            '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>'
            '<row><c t="s"><v>2</v></c><c><v>5</v></c></row><row><c t="s"><v>99</v></c><c t="s"><v>x</v></c></row>'
        ),
        {"xl/_rels/workbook.xml.rels": relations.encode(), "xl/strings.xml": strings.encode()},
    )
    assert read_outline(data, "b.xlsx")[1:] == ["| 川: Bridge: 5"]


def test_claimed_dimensions_are_not_believed() -> None:
    rows = (
        '<row r="1"><c r="A1" t="str"><v>Item</v></c><c r="XFD1" t="str"><v>Price</v></c></row>'
        '<row r="1048576"><c r="A1048576" t="str"><v>Mill</v></c><c r="XFD1048576"><v>7</v></c></row>'
        '<row r="9999999"><c r="ZZZ1" t="str"><v>outside</v></c></row>'
    )
    data = xlsx(rows, '<dimension ref="A1:XFD1048576"/><cols><col min="1" max="16384" style="1"/></cols>',
                '<mergeCells><mergeCell ref="A1:XFD1048576"/><mergeCell ref="nonsense"/></mergeCells>')  # fmt: skip
    assert read_outline(data, "b.xlsx")[1:] == ["| Mill: Price: 7"]


@pytest.mark.slow
def test_cells_that_are_only_formatted_count_for_nothing() -> None:
    book = book_of([["a", "b"], [1, 2]])
    fill = PatternFill("solid", start_color="FFFF00")
    for row in range(1, 300):
        for column in range(1, 60):
            book.active.cell(row, column).fill = fill
    assert read_outline(save(book), "b.xlsx")[1:] == ["| 1: b: 2"]


def test_more_cells_than_allowed_are_refused() -> None:
    data = save(book_of([[1, 2, 3]] * 10))
    assert parse(data, unit="paragraph", name="b.xlsx", limits=Limits(cells=30))
    with pytest.raises(UnreadableFile, match="tables too large"):
        parse(data, unit="paragraph", name="b.xlsx", limits=Limits(cells=29))


def test_charts_and_their_sheets_are_passed_over() -> None:
    book = book_of([["a", "b"], [1, 2]])
    book.create_chartsheet("Chart").add_chart(BarChart())
    assert read_outline(save(book), "b.xlsx") == ["# Sheet1", "| 1: b: 2"]


@pytest.mark.slow
def test_random_grids_keep_every_cell() -> None:
    chance = random.Random(9)
    for _ in range(20):
        width, height = chance.randint(2, 6), chance.randint(2, 8)
        rows: list[list[Any]] = [[f"name{column}" for column in range(width)]]
        rows += [[f"r{row}", *(chance.randint(0, 999) for _ in range(width - 1))] for row in range(height)]
        document = read(save(book_of(rows)), "b.xlsx")
        (table,) = tables(document)
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")]
        assert [cells[0], *cells[2:]] == [[str(cell) for cell in row] for row in rows]


def csv(text: str, name: str = "rows.csv") -> list[str]:
    return read_outline(text, name)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = delimiter.join(["Name", "Tons, net", "Place"]) if delimiter != "," else 'Name,"Tons, net",Place'
    text += (
        "\n" + delimiter.join(["Heron", "5", "Oskell"]) + "\n" + delimiter.join(["Gull", "7", "Mouth; north"])
    )
    assert csv(text) == [
        "| Heron: Tons, net: 5; Place: Oskell",
        "| Gull: Tons, net: 7; Place: Mouth; north",
    ]


def test_quoted_cells_hold_delimiters_quotes_and_line_breaks() -> None:
    document = read('Name,Said\nAmes,"He said ""no"",\nand left"\n', "rows.csv")
    assert tables(document) == ['| Name | Said |\n| --- | --- |\n| Ames | He said "no", and left |']
    assert document.title == "rows"


def test_uneven_rows_title_lines_and_blank_ones() -> None:
    assert csv("Sales by year\n\nYear,Flour,Bran\n2020,5\n\n2021,6,7,8\n") == [
        "| Sales by year. 2020: Flour: 5",
        "| Sales by year. 2021: Flour: 6; Bran: 7; 8",
    ]
    assert csv("sep=;\na;b\n1;2\n") == ["| 1: b: 2"]
    assert csv("1,2\n3,4\n") == ["| 1: 2", "| 3: 4"]
    assert csv("just a line\nand another\n") == ["just a line", "and another"]


def test_a_table_with_nothing_but_its_header_is_one() -> None:
    assert tables(read("a,b,c\n", "x.csv")) == ["| a | b | c |\n| --- | --- | --- |"]


@pytest.mark.slow
def test_a_quotation_mark_that_is_never_closed_swallows_nothing() -> None:
    rows = "".join(f"row{number},{number}\n" for number in range(2_000))
    document = read(f'Name,Count\n"broken,1\n{rows}', "rows.csv")
    assert "never closed" in document.notes[0]
    assert sum(node.kind == "row" for node in document.nodes) == 2_001
    long = "x" * 200_000
    assert csv(f'a,b\n"{long}",2\n')[0].endswith("b: 2")


@pytest.mark.slow
def test_a_large_table_is_read_whole_or_refused() -> None:
    text = "Name,Count\n" + "".join(f"row{number},{number}\n" for number in range(20_000))
    document = parse_delimited(text.encode(), unit="paragraph", name="rows.csv")
    check(document)
    assert document.nodes[-1].text == "row19999: Count: 19999"
    with pytest.raises(UnreadableFile, match="tables too large"):
        parse_delimited(text.encode(), unit="paragraph", name="rows.csv", limits=Limits(cells=40_000))
    with pytest.raises(UnreadableFile, match="too many passages"):
        parse_delimited(text.encode(), unit="paragraph", name="rows.csv", limits=Limits(nodes=1_000))


def test_runs_of_rows_of_several_lengths() -> None:
    """A row of one cell below a blank line was once looked into as if it had as many as the header."""
    for text in ("a,b,c\n1,2,3\n\nx\n5\n6,7\n", "a,b\n1,2\n\n2020\nx\n", "a,b\n\n1\n2,3\n"):
        words = read(text, "a.csv").text
        assert all(cell in words for cell in re.findall(r"\w+", text))


def test_what_an_export_states_above_its_table_is_another_table() -> None:
    account, table = (
        "IBAN;DE02 1203\nPeriod;January 2024\n",
        "02.01.2024;Rent;-900,00\n05.01.2024;Pay;2.500,00\n",
    )
    text = f"Statement\n{account}\nDate;Payee;Amount\n{table}"
    assert read_outline(text, "a.csv") == [
        "| Statement. IBAN: DE02 1203",
        "| Statement. Period: January 2024",
        "| 02.01.2024: Payee: Rent; Amount: -900,00",
        "| 05.01.2024: Payee: Pay; Amount: 2.500,00",
    ]


def test_hidden_rows_and_columns_are_left_out_and_counted() -> None:
    book = book_of([["Ship", "Cargo", "Rate", "Port"], ["Tern", "salt", 4, "Ardle"], ["Ghost", "lead", 9, "Vey"],
                    ["Plover", "tar", 3, "Brenn"], ["Shade", "ash", 8, "Corsa"]])  # fmt: skip
    book.active.row_dimensions[3].hidden = True
    book.active.row_dimensions[5].hidden = True
    book.active.column_dimensions["C"].hidden = True
    document = read(save(book), "b.xlsx")
    # A row that is hidden in its middle does not divide a table.
    assert outline(document)[1:] == ["| Tern: Cargo: salt; Port: Ardle", "| Plover: Cargo: tar; Port: Brenn"]
    assert count_left_out(document.left_out) == {"hidden": 11}


def test_columns_are_hidden_in_runs_and_rows_by_filters_and_outlines() -> None:
    rows = (
        '<row r="1"><c r="A1" t="str"><v>Item</v></c><c r="B1" t="str"><v>Cost</v></c>'
        '<c r="C1" t="str"><v>Cut</v></c><c r="D1" t="str"><v>Price</v></c></row>'
        '<row r="2"><c r="A2" t="str"><v>Rope</v></c><c r="B2"><v>1</v></c>'
        '<c r="C2"><v>2</v></c><c r="D2"><v>7</v></c></row>'
        '<row r="3" hidden="true" outlineLevel="1"><c r="A3" t="str"><v>Tar</v></c><c r="D3"><v>8</v></c></row>'
        '<row r="4"><c r="A4" t="str"><v>Hemp</v></c><c r="D4"><v>9</v></c></row>'
    )
    columns = '<cols><col min="1" max="1" hidden="0"/><col min="2" max="3" hidden="1" collapsed="1"/></cols>'
    document = read(xlsx(rows, columns, '<autoFilter ref="A1:D4"/>'), "b.xlsx")
    assert outline(document)[1:] == ["| Rope: Price: 7", "| Hemp: Price: 9"]
    assert count_left_out(document.left_out) == {"hidden": 6}
    everything = '<cols><col min="1" max="16384" hidden="1"/></cols>'
    both = book_of([["Item", "Price"], ["Rope", 4]], "Open")
    shut = both.create_sheet("Shut")
    shut.append(["Item", "Price"])
    shut.column_dimensions.group("A", "Z", hidden=True)
    assert read_outline(save(both), "b.xlsx") == ["# Open", "| Open. Rope: Price: 4"]
    with pytest.raises(UnreadableFile):
        read(xlsx(rows, everything), "b.xlsx")


def test_a_formula_without_a_stored_result_is_told_from_an_empty_cell() -> None:
    rows = (
        '<row><c t="str"><v>Item</v></c><c t="str"><v>Price</v></c><c t="str"><v>Total</v></c></row>'
        '<row><c t="str"><v>Rope</v></c><c><v>4</v></c><c><f>B2*10</f></c></row>'
        '<row><c t="str"><v>Tar</v></c><c><v>3</v></c><c><f t="shared" si="0"/><v></v></c></row>'
        '<row><c t="str"><v>Hemp</v></c><c><v>2</v></c><c/></row>'
        '<row><c t="str"><v>Pitch</v></c><c><v>1</v></c><c t="str"><f>""</f></c></row>'
    )
    document = read(xlsx(rows), "b.xlsx")
    assert outline(document)[1:] == [
        "| Rope: Price: 4; Total: (formula without stored result)",
        "| Tar: Price: 3; Total: (formula without stored result)",
        "| Hemp: Price: 2",
        "| Pitch: Price: 1",
    ]
    assert document.notes[0].startswith("sheet 'Sheet': 2 formulas have no stored result")


def test_the_header_that_a_workbook_declares() -> None:
    pairs = [["Ship", "Captain"], ["Tern", "Ada Holm"], ["Plover", "Bo Strand"], ["Dunlin", "Jory Penn"]]
    assert sheet(pairs)[1] == "| Ship: Captain"  # names and values, or a header: the cells do not say
    named, filtered = book_of(pairs), book_of([["Fleet"], *pairs])
    named.active.add_table(Table(displayName="Captains", ref="A1:B4"))
    filtered.active.auto_filter.ref = "A2:B5"
    headless = book_of(pairs)
    headless.active.add_table(Table(displayName="Captains", ref="A1:B4", headerRowCount=0))
    assert read_outline(save(named), "b.xlsx")[1:3] == [
        "| Tern: Captain: Ada Holm",
        "| Plover: Captain: Bo Strand",
    ]
    assert read_outline(save(filtered), "b.xlsx")[1] == "| Fleet. Tern: Captain: Ada Holm"
    assert "| Ship: Captain" in read_outline(save(headless), "b.xlsx")


def test_long_whole_numbers_keep_all_digits() -> None:
    digits = "12345678901234567890", "9007199254740993", "4929123412341234"
    rows = "".join(
        f'<row><c t="str"><v>r{n}</v></c><c><v>{text}</v></c></row>' for n, text in enumerate(digits)
    )
    data = xlsx('<row><c t="str"><v>Holder</v></c><c t="str"><v>Account</v></c></row>' + rows)
    assert read_outline(data, "b.xlsx")[1:] == [f"| r{n}: Account: {text}" for n, text in enumerate(digits)]
