"""Tables as data: columns and their types, names of views, the Markdown of a table read back."""

from dataclasses import replace
from datetime import date

import pytest

from clew.core.types import Node, Table
from clew.parse.data_tables import build_data_table, identifier, name_tables, parse_day, read_markdown
from clew.parse.documents.tables import table_to_markdown


def test_days():
    assert (
        parse_day("2024-02-29")
        == parse_day("February 29, 2024")
        == parse_day("29 Feb 2024")
        == date(2024, 2, 29)
    )
    assert parse_day("2023-02-29") is None
    assert parse_day("Total 29, 2024") is None


def test_markdown_reads_back():
    table = Table(
        ("Name", "a|b", ""),
        (("x | y", "", "3"), ("", "", ""), ("back\\slash", "2", "| |")),
        caption="First line\nsecond | line",
    )
    again = read_markdown(table_to_markdown(table))
    assert again == table
    assert read_markdown("no table") is None
    uncertain = replace(table, headers_uncertain=True)
    assert read_markdown(table_to_markdown(uncertain)) == uncertain


def test_columns_groups_and_totals():
    table = build_data_table(
        Table(
            ("", "2023", "2022", "Change", "Paid", "Code"),
            (
                ("Debt:", "", "", "", "", ""),
                ("Notes", "$ 1,200", "—", "12 %", "2023-05-01", "007"),
                ("Loans", "(300)", "250", "(3) %", "2023-06-01", "010"),
                ("Total debt", "900", "250", "", "", ""),
                ("Leases", "n/a", "1", "4 %", "2023-07-01", "1"),
            ),
            caption="Obligations (in thousands)",
        ),
        "k:",
        1,
    )
    assert [(column.name, column.type, column.unit, column.scale) for column in table.columns] == [
        ("label", "text", "", 1.0),
        ("2023", "number", "$", 1e3),
        ("2022", "number", "", 1e3),
        ("change", "number", "%", 1.0),
        ("paid", "date", "", 1.0),
        ("code", "text", "", 1.0),
    ]
    assert table.values(1) == [1200, -300, 900, None]
    assert table.values(2) == [None, 250, 250, 1]
    assert table.values(4)[0] == date(2023, 5, 1)
    assert table.values(5)[0] == "007"
    assert [(row.id, row.group, row.is_total) for row in table.rows] == [
        ("k:2", "Debt", False),
        ("k:3", "Debt", False),
        ("k:4", "", True),
        ("k:5", "", False),
    ]
    assert table.cell(table.rows[1], 1).amount == -300_000


@pytest.mark.parametrize("titles", [("", "", "", "SOL", "", "KYS", ""), ("",) * 7])
def test_names_below_the_headings_of_groups_of_columns_are_the_header(titles):
    """Whether the groups stand in the header or, in a file without one, in the first row."""
    rows = (
        *([("", "", "", "SOL", "", "KYS", "")] if not any(titles) else []),
        ("No.", "District", "Cast", "votes", "%", "votes", "%"),
        ("01", "Havnsund", "46 937", "10 833", "23,3", "12 611", "27,1"),
        ("02", "Elvedal", "47 861", "13 851", "29,3", "10 756", "22,7"),
    )
    table = build_data_table(Table(titles, rows))
    names = ["No.", "District", "Cast", "SOL votes", "SOL %", "KYS votes", "KYS %"]
    assert [column.header for column in table.columns] == names
    assert table.values(5) == [12611.0, 10756.0] and len(table.rows) == 2


def test_a_row_of_words_below_a_header_with_a_blank_is_no_header():
    table = build_data_table(Table(("", "Name", "Town"), (("x", "Ada", "Oskell"), ("y", "Bo", "Skerry"))))
    assert [column.header for column in table.columns] == ["", "Name", "Town"] and len(table.rows) == 2


@pytest.mark.parametrize("first", [("G-1", "Albatros", "6,30", "1971"), ("G-1", "Albatros", "hull", "1971")])
def test_a_first_row_with_a_year_is_no_header(first):
    rows = (first, ("G-2", "Antje", "8,80", "1975"))
    assert len(build_data_table(Table(("No.", "Boat", "Length (m)", "Built"), rows), "b:", 1).rows) == 2


def test_a_labelled_row_of_periods_is_one():
    rows = (("Year ended", "2023", "2022"), ("Sales", "6,30", "7,10"))
    table = build_data_table(Table(("Item", "Group", "Company"), rows), "p:", 1)
    assert [column.header for column in table.columns] == ["Item Year ended", "Group 2023", "Company 2022"]


def test_no_header_is_named_where_headers_are_uncertain():
    table = build_data_table(Table(("", "2023"), (("Sales", "3"),), headers_uncertain=True))
    assert [column.name for column in table.columns] == ["label", "column_2"]


def node(document, key, position, caption="", heading=""):
    headings = (heading,) if heading else ()
    return Node(
        f"{key}:{position}", "table", "", key, document, position, None, caption, 0, None, headings, (0, 0)
    )


def test_names_of_tables_come_from_captions_sheets_and_pages():
    nodes = [
        node("Sales 2023.csv", "aaaaaaaa", 1),
        node("10k.pdf", "bbbbbbbb", 5, "Balance sheet"),
        node("10k.pdf", "bbbbbbbb", 9, "Segments"),
        node("10k.pdf", "bbbbbbbb", 20, "Segments"),
        node("10k.pdf", "bbbbbbbb", 30, "A caption that goes on and on, as captions of filings do"),
        node("book.xlsx", "cccccccc", 2, "Sales by region, 2023", "Sales"),
        node("book.xlsx", "cccccccc", 8, "", "Staff"),
        node("same.md", "dddddddd", 1),
        node("same.md", "eeeeeeee", 1),
    ]
    names = {name: node.id for name, _, node in name_tables(nodes)}
    assert names == {
        "sales_2023": "aaaaaaaa:1",
        "t_10k_balance_sheet": "bbbbbbbb:5",
        "t_10k_t2": "bbbbbbbb:9",
        "t_10k_t3": "bbbbbbbb:20",
        "t_10k_t4": "bbbbbbbb:30",
        "book_sales": "cccccccc:2",
        "book_staff": "cccccccc:8",
        "same_dddddd": "dddddddd:1",
        "same_eeeeee": "eeeeeeee:1",
    }
    assert names == {name: node.id for name, _, node in name_tables(reversed(nodes[-2:]))} | {
        name: id for name, id in names.items() if not name.startswith("same")
    }


def test_identifiers_are_cut_between_words():
    assert identifier("a" * 30 + " " + "b" * 30) == "a" * 30
    assert identifier("  --  ") == ""


@pytest.mark.parametrize(
    ("cells", "type", "values"),
    [
        (["27,40", "1.048,90", "-3,5", ""], "number", [27.4, 1048.9, -3.5, None]),
        (["8 412,6 Kč", "1 236,4 Kč"], "number", [8412.6, 1236.4]),
        (["CHF 145.–", "CHF 95.–", "CHF 1'190.50"], "number", [145.0, 95.0, 1190.5]),
        (["1,17,100", "98,500", "(2,08,000)"], "number", [117100.0, 98500.0, -208000.0]),
        (["+4,9 %", "−1,7 %", "–"], "number", [4.9, -1.7, None]),
        (["14/04/2010", "11/07/2009"], "date", [date(2010, 4, 14), date(2009, 7, 11)]),
        (["04/14/2010", "07/11/2009"], "date", [date(2010, 4, 14), date(2009, 7, 11)]),
        (["02-02-1963", "31-08-2024"], "date", [date(1963, 2, 2), date(2024, 8, 31)]),
        (["03.02.2025", "31.02.2025", "05.03.2025", "06.03.2025"], "date",
         [date(2025, 2, 3), None, date(2025, 3, 5), date(2025, 3, 6)]),
        # A class, a code with a zero in front, a room and a time are no numbers.
        (["9A", "10B", "9A"], "text", None),
        (["0274424,5", "0099515"], "text", None),
        (["8:15", "7:50"], "text", None),
        (["12 rooms and a bar", "3 rooms"], "text", None),
    ],
)  # fmt: skip
def test_a_column_votes_for_how_it_is_written(cells, type, values):
    rows = tuple((str(number), cell, "x") for number, cell in enumerate(cells))
    table = build_data_table(Table(("Key", "Column", "Also"), rows), "t:", 1)
    assert table.columns[1].type == type
    if values is not None:
        assert table.values(1) == values
    assert [row.cells[1] for row in table.rows] == cells  # what is shown is the cell


def test_points_before_three_digits_are_read_as_the_columns_beside_them():
    rows = (("Production", "1.046", "4,1 %"), ("Logistics", "506", "(1,6 %)"))
    assert build_data_table(Table(("", "Plan", "in %"), rows), "t:", 1).values(1) == [1046.0, 506.0]
    english = (("Production", "1.046", "4.1 %"), ("Logistics", "506", "(1.6 %)"))
    assert build_data_table(Table(("", "Plan", "in %"), english), "t:", 1).values(1) == [1.046, 506.0]


def build_column(header, *cells):
    """Return a table of names, a, b, and so on, and one other column."""
    return build_data_table(Table(("Name", header), tuple(zip("abcdef", cells, strict=False))))


def test_no_digit_of_a_long_number_is_lost():
    cells = ("9400111899222103082831", "9400111899222103082832", "12")
    table = build_column("Parcel", *cells)
    assert table.columns[1].type == "text" and table.values(1) == list(cells)
    assert build_column("Parcel", "940011189922210", "12").columns[1].type == "number"


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (("20240702", "20231231"), (date(2024, 7, 2), date(2023, 12, 31))),
        (("01.02.24", "13.02.99"), (date(2024, 2, 1), date(1999, 2, 13))),
        (("12/31/24", "01/02/25"), (date(2024, 12, 31), date(2025, 1, 2))),
    ],
)
def test_days_in_digits_and_with_short_years_are_days(cells, days):
    table = build_column("Sent", *cells)
    assert table.columns[1].type == "date" and table.values(1) == list(days)


def test_numbers_that_are_no_days_stay_numbers():
    table = build_column("Sold", "20240702", "20241302")
    assert table.columns[1].type == "number" and table.values(1) == [20240702.0, 20241302.0]


def test_the_mark_of_a_note_is_no_digit_of_a_number():
    rows = (("24,6", "1.000"), ("41,3 1)", "12 *"), ("1.234,5 †", "7"))
    table = build_data_table(Table(("Costs", "Sold"), rows))
    assert table.values(0) == [24.6, 41.3, 1234.5] and table.values(1) == [1000.0, 12.0, 7.0]


def test_a_row_that_adds_up_all_others_is_a_total_whatever_its_name():
    rows = (("Ada", "3", "10.5"), ("Bo", "4", "1"), ("Cy", "5", "2"), ("All", "12", "13.5"))
    table = build_data_table(Table(("Name", "May", "June"), rows))
    assert [row.is_total for row in table.rows] == [False, False, False, True]
    first = build_data_table(Table(("Name", "May", "June"), rows[::-1]))
    assert [row.is_total for row in first.rows] == [True, False, False, False]
    other = build_data_table(Table(("Name", "May", "June"), (*rows[:3], ("Di", "12", "13.4"))))
    assert not any(row.is_total for row in other.rows)


@pytest.mark.parametrize(
    "cells",
    [
        ("20231234", "20235678", "20239999"),  # a series
        ("4711000101", "4711000102", "4711000977", "—"),
        ("20231234", "20235678", "20231234", "20239999"),  # of another table's rows
        ("9783161484100", "9780306406157", "9781861972712"),  # ISBN
        ("4006381333931", "5901234123457", "8711253001202"),  # GTIN, far from each other
        ("378282246310005", "371449635398431", "378734493671000"),  # cards
        ("DE89 3704 0044 0532 0130 00", "DE02 1203 0000 0000 2020 51"),
        ("004712345678", "004787654321"),
        ("+49 351 4456677", "+49 30 1234567"),
        ("12345678901234567890", "12345678901234567891"),
    ],
)
def test_identifiers_are_no_numbers(cells):
    table = build_data_table(Table(("Name", "Code"), tuple((f"n{n}", cell) for n, cell in enumerate(cells))))
    assert table.columns[1].type == "text"
    assert table.values(1) == list(cells)


@pytest.mark.parametrize(
    "cells",
    [
        ("1204350", "3310000", "2987600"),  # of one length, and far from each other
        ("20231234", "20231234", "20239999"),  # too few to tell
        ("10000000", "10050000", "10010000", "10000000"),  # round
        ("20,231,234", "20,235,678", "20,239,999"),
        ("10482", "10485", "10487"),
        ("1990", "1991", "1992"),
        ("2100000000000", "3400000000000", "1900000000000"),
    ],
)
def test_measures_are_no_identifiers(cells):
    table = build_data_table(Table(("Name", "Size"), tuple((f"n{n}", cell) for n, cell in enumerate(cells))))
    assert table.columns[1].type == "number"


def test_a_row_that_fills_no_blank_of_the_header_is_none_of_it():
    ragged = build_data_table(
        Table(
            ("Ship", "Port", "Year", ""),
            (("Tern", "Ardle", "1924", ""), ("Dunlin", "Corsa", "1930", "extra")),
        )
    )
    assert [column.name for column in ragged.columns] == ["ship", "port", "year", "column_4"]
    assert len(ragged.rows) == 2


@pytest.mark.parametrize(
    ("cells", "decimals"),
    [
        (("1.234,56", "75,2"), 2),
        (("£0.10", "£1,250.75"), 2),
        (("CHF 12'500.505", "CHF 8"), 3),
        (("1,17,100.2", "9,80,000"), 1),
        (("1,204", "987"), 0),
        (("0.30000000000000004", "1.1"), 0),
        (("1.5e-7", "2e-7"), 0),
    ],
)
def test_decimals_of_a_column(cells, decimals):
    table = build_data_table(Table(("Name", "Size"), tuple((f"n{n}", cell) for n, cell in enumerate(cells))))
    assert table.count_decimals(1, range(len(cells))) == decimals
