"""Tables as data: cells as people print them, worked by hand; the Markdown of a table read back."""

from datetime import date

import pytest

from clew.core.tables import (
    build_table,
    find_scale,
    identifier,
    name_tables,
    parse_amount,
    parse_day,
    read_markdown,
)
from clew.core.types import Node
from clew.parse.documents.tables import Table


@pytest.mark.parametrize(
    ("text", "value", "unit", "scale"),
    [
        ("1,452.4", 1452.4, "", ""),
        ("$  1,452.4", 1452.4, "$", ""),
        ("$ (1,452.4)", -1452.4, "$", ""),
        ("($1,452.4)", -1452.4, "$", ""),
        ("(12)%", -12, "%", ""),
        ("(12%)", -12, "%", ""),
        ("−0.35", -0.35, "", ""),
        ("-$3", -3, "$", ""),
        (".5", 0.5, "", ""),
        ("3.2x", 3.2, "x", ""),
        ("US$ 40", 40, "US$", ""),
        ("12 EUR", 12, "eur", ""),
        ("€5.2m", 5.2, "€", "million"),
        ("7 billion", 7, "", "billion"),
        ("1.5 trillion", 1.5, "", "trillion"),
        ("1.234.567,8", 1234567.8, "", ""),
        ("1'234'567", 1234567, "", ""),
        ("1 234 567", 1234567, "", ""),
        ("6.02e23", 6.02e23, "", ""),
        ("1,234 (a)", 1234, "", ""),
        ("57 bps", 57, "bps", ""),
    ],
)
def test_amounts(text, value, unit, scale):
    amount = parse_amount(text)
    assert (amount.value, amount.unit, amount.scale) == (pytest.approx(value), unit, scale)


@pytest.mark.parametrize(
    "text", ["", "-", "—", "n/a", "Q3", "2019-05-01", "12-14", "1,23", "3 apples", "A1", "5/8", "1,2345"]
)
def test_no_amounts(text):
    assert parse_amount(text) is None


def test_days():
    assert (
        parse_day("2024-02-29")
        == parse_day("February 29, 2024")
        == parse_day("29 Feb 2024")
        == date(2024, 2, 29)
    )
    assert parse_day("2023-02-29") is None
    assert parse_day("Total 29, 2024") is None


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("(in millions, except per share data)", "million"),
        ("Dollars in thousands", "thousand"),
        ("US$'000", "thousand"),
        ("$m", "million"),
        ("€ million", "million"),
        ("£bn", "billion"),
        ("Months of the year", ""),
        ("$ mean", ""),
    ],
)
def test_scales_that_captions_announce(text, scale):
    assert find_scale(text) == scale


def test_markdown_reads_back():
    table = Table(
        ("Name", "a|b", ""),
        (("x | y", "", "3"), ("", "", ""), ("back\\slash", "2", "| |")),
        caption="First line\nsecond | line",
    )
    caption, header, rows = read_markdown(table.to_markdown())
    assert caption == table.caption
    assert header == table.header
    assert rows == list(table.rows)
    assert read_markdown("no table") == ("", (), [])


def test_columns_groups_and_totals():
    table = build_table(
        ("", "2023", "2022", "Change", "Paid", "Code"),
        [
            ("Debt:", "", "", "", "", ""),
            ("Notes", "$ 1,200", "—", "12 %", "2023-05-01", "007"),
            ("Loans", "(300)", "250", "(3) %", "2023-06-01", "010"),
            ("Total debt", "900", "250", "", "", ""),
            ("Total", "900", "250", "", "", ""),
            ("Leases", "n/a", "1", "4 %", "2023-07-01", "1"),
        ],
        caption="Obligations (in thousands)",
        ids=[f"k:{number}" for number in range(1, 7)],
    )
    assert [(column.name, column.type, column.unit, column.scale) for column in table.columns] == [
        ("label", "text", "", ""),
        ("2023", "number", "$", "thousand"),
        ("2022", "number", "", "thousand"),
        ("change", "number", "%", ""),
        ("paid", "date", "", ""),
        ("code", "text", "", ""),
    ]
    assert table.values(1) == [1200, -300, 900, 900, None]
    assert table.values(2) == [None, 250, 250, 250, 1]
    assert table.values(4)[0] == date(2023, 5, 1)
    assert table.values(5)[0] == "007"
    assert [(row.id, row.group, row.is_total) for row in table.rows] == [
        ("k:2", "Debt", False),
        ("k:3", "Debt", False),
        ("k:4", "Debt", True),
        ("k:5", "", True),
        ("k:6", "", False),
    ]


def node(document, key, position, caption="", heading=""):
    headings = (heading,) if heading else ()
    return Node(
        f"{key}:{position}", "table", "", key, document, position, None, caption, 0, None, headings, (0, 0)
    )


def test_names_follow_from_what_is_there():
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
