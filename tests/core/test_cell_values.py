"""Cells of tables as numbers, written as filings write them."""

from __future__ import annotations

import pytest

from clew.core.cell_values import cell_value, label_overrides, read_cell, read_scale, read_unit
from clew.core.types import Table
from clew.parse.documents.tables import complete_table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kind", "number", "unit", "scale"),
    [
        ("(3,485)", "number", -3485.0, "", 1.0),
        ("$ (1,234.5)", "number", -1234.5, "$", 1.0),
        ("$(12)", "number", -12.0, "$", 1.0),
        ("(4.1)%", "number", -4.1, "%", 1.0),
        ("(4.1%)", "number", -4.1, "%", 1.0),
        ("−0.5 %", "number", -0.5, "%", 1.0),
        ("1.2 million", "number", 1.2, "", 1e6),
        ("€3bn", "number", 3.0, "€", 1e9),
        ("$5m", "number", 5.0, "$", 1e6),
        ("5 m", "number", 5.0, "m", 1.0),
        ("1 234 567", "number", 1234567.0, "", 1.0),
        ("2.5x", "number", 2.5, "x", 1.0),
        ("686(a)", "number", 686.0, "", 1.0),
        ("1e-3", "number", 0.001, "", 1.0),
        (".75", "number", 0.75, "", 1.0),
        ("—", "empty", None, "", 1.0),
        ("$ —", "empty", None, "", 1.0),
        ("n/a", "empty", None, "", 1.0),
        ("", "empty", None, "", 1.0),
        ("December 31, 2022", "date", None, "", 1.0),
        ("2022-05-01", "date", None, "", 1.0),
        ("12/31/22", "date", None, "", 1.0),
        ("Total", "text", None, "", 1.0),
        ("3 to 5", "text", None, "", 1.0),
        ("1,23", "text", None, "", 1.0),
    ],
)
def test_a_cell_is_read_as_it_is_printed(text, kind, number, unit, scale):
    value = read_cell(text)
    assert (value.kind, value.number, value.unit, value.scale) == (kind, number, unit, scale)


@pytest.mark.parametrize(
    ("text", "scale", "unit"),
    [
        ("(in millions, except per share amounts)", 1e6, ""),
        ("(Dollars in Millions)", 1e6, "$"),
        ("$ in thousands", 1e3, "$"),
        ("($000s)", 1e3, "$"),
        ("30 June 2019 $’000", 1e3, "$"),
        ("(US$ million)", 1e6, "$"),
        ("Thousands of dollars", 1e3, "$"),
        ("$ billions", 1e9, "$"),
        ("Millions of people", None, ""),
        ("Results for 2000", None, ""),
        ("Percent change", None, "%"),
    ],
)
def test_a_title_gives_scale_and_unit(text, scale, unit):
    assert (read_scale(text), read_unit(text)) == (scale, unit)


def test_rows_override_the_scale_of_their_table():
    table = complete_table(
        Table(
            ("(in millions, except per share)", "2022", "% change"),
            (
                ("Net income", "$ 686", "4.1%"),
                ("Diluted earnings per share", "1.43", "(2)"),
                ("Gross margin", "61", "—"),
                ("Shares (in thousands)", "479", ""),
            ),
        )
    )
    assert cell_value(table, 0, 1).amount == 686e6
    assert cell_value(table, 0, 1).unit == "$"
    assert cell_value(table, 0, 2).amount == 4.1
    assert cell_value(table, 1, 1).amount == 1.43
    assert cell_value(table, 1, 2).unit == "%"
    assert (cell_value(table, 2, 1).amount, cell_value(table, 2, 1).unit) == (61.0, "%")
    assert cell_value(table, 3, 1).amount == 479e3


def test_a_label_without_unit_leaves_the_scale_alone():
    assert label_overrides("Interest rate swap contracts") == ("", None)
    assert label_overrides("Effective tax rate") == ("", 1.0)
