"""Numbers and dates as a spreadsheet shows them; expected values as Excel writes them."""

from __future__ import annotations

import random
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.parse.documents.xlsx import (
    BUILT_IN_FORMATS,
    format_general,
    format_number,
    is_date_format,
)


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (1234.5, "General", "1234.5"),
        (3.0, "General", "3"),
        (0.1 + 0.2, "General", "0.3"),
        (1e20, "General", "1e+20"),
        (-0.0, "General", "0"),
        (1234.567, "0", "1235"),
        (2.5, "0", "3"),
        (-2.5, "0", "-3"),
        (1.005, "0.00", "1.01"),
        (5, "000", "005"),
        (0.5, "#.00", ".50"),
        (0.5, "0.00", "0.50"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (999, "#,##0", "999"),
        (0, "#,##0", "0"),
        (-1234, "#,##0;(#,##0)", "(1,234)"),
        (1234, "#,##0_);(#,##0)", "1,234"),
        (-1234.5, "$#,##0.00", "-$1,234.50"),
        (1234.5, '"€ "#,##0.00', "€ 1,234.50"),
        (1234.5, "#,##0.00 [$€-407]", "1,234.50 €"),
        (1234.5, "[$$-409]#,##0.00", "$1,234.50"),
        (-5, "0;[Red]-0", "-5"),
        (0, '0;-0;"none"', "none"),
        (0, "#,##0;(#,##0);-", "-"),
        (0.256, "0%", "26%"),
        (0.2564, "0.0%", "25.6%"),
        (0.25, '0.00" %"', "0.25 %"),
        (1234567, "#,##0,", "1,235"),
        (1234567, '0.0,,"M"', "1.2M"),
        (12345, "0.00E+00", "1.23E+04"),
        (1.5, "0.0##", "1.5"),
        (1.0, "0.0##", "1.0"),
        (1.2345, "0.###", "1.235"),
        (12, '"No. "0', "No. 12"),
        (12, '0 "of 7 mills"', "12 of 7 mills"),
        (7, "[>100]0.0;0.00", "7.0"),
        (-0.001, "0.00", "0.00"),
        (0, ";;;", ""),
        (1.5, "0." + 30 * "0", "1.5" + 29 * "0"),  # as many decimals as Excel offers
        (4e19, "0.000000000", "4" + 19 * "0" + ".000000000"),
        (2.5, "0." + 253 * "#", "2.5"),
        (2.5, "0" + 255 * "%", "2.5"),  # longer than Excel takes
    ],
)
def test_numbers(value: float, code: str, expected: str) -> None:
    assert format_number(value, code) == expected


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (45356, "yyyy-mm-dd", "2024-03-05"),
        (45356.75, "yyyy-mm-dd hh:mm", "2024-03-05 18:00"),
        (45356.75, "h:mm AM/PM", "6:00 PM"),
        (45356.0, "h:mm AM/PM", "12:00 AM"),
        (45356.529, "hh:mm:ss", "12:41:46"),
        (45356, "d mmmm yyyy", "5 March 2024"),
        (45356, "dddd, mmm d, yy", "Tuesday, Mar 5, 24"),
        (45356, 'd"th of "mmmm', "5th of March"),
        (45356, "mm/dd/yyyy;@", "03/05/2024"),
        (45356, "[$-409]d\\-mmm\\-yy", "5-Mar-24"),
        (45356, BUILT_IN_FORMATS[14], "2024-03-05"),
        (1.5, "[h]:mm", "36:00"),
        (0.0416666667, "mm:ss", "00:00"),
        (0.00143, "mm:ss", "02:04"),
        (0.000015, "ss.0", "01.3"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-5, "yyyy-mm-dd", "1899-12-26"),
        (1e10, "yyyy-mm-dd", "10000000000"),
    ],
)
def test_dates(value: float, code: str, expected: str) -> None:
    assert format_number(value, code) == expected


_PIECES = (
    '# ? , % E+0 0.0 #,##0 [h] [$€-407] [>1] General ; "a" \\x _) *- y mmm mmmmm d dddd h s s.000 AM/PM A/P [Red] [ "'
).split(" ")


@settings(max_examples=500, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(
        st.sampled_from(_PIECES)
        | st.integers(0, 40).map(lambda places: "0" * places)
        | st.integers(0, 40).map(lambda places: "." + "0" * places),
        max_size=8,
    ),
    st.booleans(),
)
def test_any_format_shows_a_number_in_a_short_text(value: float, pieces: list[str], epoch_1904: bool) -> None:
    assert len(format_number(value, "".join(pieces), epoch_1904)) < 2_000


@pytest.mark.slow
def test_every_day_of_a_century_is_itself() -> None:
    first = date(1950, 1, 1)
    serial = 18_264  # what Excel says for that day
    for offset in range(0, 36_525, 7):
        day = date.fromordinal(first.toordinal() + offset)
        assert format_number(serial + offset, "yyyy-mm-dd") == day.isoformat()
        assert format_number(serial + offset - 1_462, "yyyy-mm-dd", epoch_1904=True) == day.isoformat()


@pytest.mark.parametrize(
    "code", ["0.00", "#,##0", '"days" 0', "[Red]0", "General", "0.0%", "[$-409]#,##0", '0 "h"']
)
def test_formats_of_numbers_are_not_of_dates(code: str) -> None:
    assert not is_date_format(code)


@pytest.mark.parametrize("code", ["d/m/yy", "hh:mm", "[h]:mm", "mmm", "mm:ss.0", "[$-F800]dddd", "[mm]:ss"])
def test_formats_of_dates(code: str) -> None:
    assert is_date_format(code)


@pytest.mark.slow
def test_no_number_breaks_any_format() -> None:
    chance = random.Random(3)
    pieces = [
        "0",
        "#",
        "?",
        ",",
        ".",
        "%",
        ";",
        '"',
        "\\",
        "[",
        "]",
        "_",
        "*",
        "E+",
        "d",
        "m",
        "y",
        "h",
        "s",
        "@",
        " ",
    ]
    for _ in range(3_000):
        code = "".join(chance.choices(pieces, k=chance.randint(1, 8)))
        for value in (0, -1, 0.5, 1e300, -1e-300, 44_000.25):
            assert isinstance(format_number(value, code), str), code


def test_a_general_number_reads_back_as_itself() -> None:
    chance = random.Random(4)
    for _ in range(1_000):
        value = round(chance.uniform(-1e6, 1e6), chance.randint(0, 6))
        assert float(format_general(value)) == value
