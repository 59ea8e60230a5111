"""Totals and columns of changes, checked by a table's own numbers, against cases worked by hand."""

from dataclasses import replace

import pytest

from clew.core.types import Column, Table
from clew.parse.arithmetic import check_arithmetic
from clew.parse.documents.tables import complete_table


def table_of(header, *rows):
    return complete_table(Table(tuple(header), tuple(tuple(row) for row in rows)))


ASSETS = table_of(
    ("", "2022", "2021", "2020"),
    ("Cash", "10", "20", "30"),
    ("Stocks", "15", "5", "—"),
    ("Total current assets", "25", "25", "30"),
    ("Plant", "100", "90", "80"),
    ("Less: depreciation", "40", "30", "20"),
    ("Total fixed assets", "60", "60", "60"),
    ("Total assets", "85", "85", "90"),
    ("Total employees", "7,001", "6,950", "6,400"),
)


def test_totals_add_up_from_their_parts_and_from_subtotals() -> None:
    totals = check_arithmetic(ASSETS).totals
    assert [(total.row, total.start, total.outcome) for total in totals] == [
        (2, 0, "adds up"),
        (5, 3, "adds up"),
        (6, 0, "adds up"),
        (7, None, "unknown"),
    ]


def test_rounded_parts_add_up_and_other_numbers_do_not() -> None:
    rounded = table_of(
        ("", "2022", "2021"), ("A", "1.4", "2.4"), ("B", "1.4", "2.4"), ("Total", "2.9", "4.9")
    )
    assert check_arithmetic(rounded).totals[0].outcome == "adds up"
    wrong = table_of(("", "2022", "2021"), ("A", "1.4", "2.4"), ("B", "1.4", "2.4"), ("Total", "3.1", "4.6"))
    assert check_arithmetic(wrong).totals[0].outcome == "unknown"


def test_a_total_whose_numbers_stand_a_column_too_far_contradicts_the_headers() -> None:
    rows = list(ASSETS.rows)
    rows[6] = ("Total assets", "85", "90", "85")
    (total,) = [
        check for check in check_arithmetic(replace(ASSETS, rows=tuple(rows))).totals if check.row == 6
    ]
    assert (total.agreeing, total.other, total.misplaced) == ((1,), (2, 3), True)
    rows[6] = ("Total assets", "85", "85", "99")
    checks = check_arithmetic(replace(ASSETS, rows=tuple(rows)))
    assert [check.outcome for check in checks.totals][2] == "partly" and not checks.contradicts_headers


SALES = table_of(
    ("$ in millions", "2023", "2022", "% Change"),
    ("Boats", "300", "200", "50.0"),
    ("Ropes", "150", "200", "(25.0)"),
    ("Sails", "110", "100", "10.0"),
    ("Nets", "60", "40", "50.0"),
)


def test_a_column_of_changes_confirms_its_years_or_shows_that_they_are_swapped() -> None:
    checks = check_arithmetic(SALES)
    (check,) = checks.columns
    assert (
        check.is_confirmed and (check.column, check.sources) == (3, (1, 2)) and not checks.contradicts_headers
    )
    columns = list(SALES.columns)
    columns[1], columns[2] = columns[2], columns[1]
    assert check_arithmetic(replace(SALES, columns=tuple(columns))).contradicts_headers


def test_years_a_column_too_far_to_the_right_are_shown_by_the_change() -> None:
    header = (
        Column(("",)),
        Column(("2024",)),
        Column(("2023",)),
        Column(("2022",)),
        Column(("Change 2023 vs. 2022",)),
    )
    rows = (
        ("Boats", "300", "200", "7", "100"),
        ("Ropes", "150", "200", "8", "(50)"),
        ("Sails", "110", "100", "9", "10"),
    )
    table = complete_table(Table(tuple(" ".join(column.path) for column in header), rows, columns=header))
    (check,) = check_arithmetic(table).columns
    assert (check.agreeing, check.rows, check.shifted) == (0, 3, True)


@pytest.mark.parametrize("parts", [("60", "30", "10"), ("63", "30", "10")])
def test_a_column_of_totals_is_the_sum_of_those_beside_it(parts) -> None:
    rows = [(name, *parts, "100") for name in ("North", "South", "West")]
    (check,) = check_arithmetic(table_of(("", "Boats", "Ropes", "Sails", "Total"), *rows)).columns
    assert check.is_confirmed == (sum(map(int, parts)) == 100)


def test_percentages_rates_and_short_tables_are_not_added() -> None:
    rates = table_of(("", "Average rate"), ("A", "2"), ("B", "3"), ("Total", "5"))
    assert check_arithmetic(rates).totals == ()
    assert check_arithmetic(table_of(("", "2022"), ("Total", "5"))).totals == ()
