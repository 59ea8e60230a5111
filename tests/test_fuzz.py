"""The fuzzer in short (``make fuzz`` at length), and what it met."""

import pytest

from bad_files import good_pdf
from clew.core.errors import UnreadableFile
from clew.parse.documents.reader import parse
from fuzz import TARGETS, Run, cases, format_totals, fuzz, next_case


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_change_is_a_fault(target: str) -> None:
    run, faults = fuzz(target, seconds=2.0, seed=1)
    assert run.cases > 20 and not faults, faults[0]


def test_a_case_depends_on_its_number_alone() -> None:
    first = [data for _, data in zip(range(3), (data for _, data in cases("chain", 5, 7)), strict=False)]
    assert first[1] == next(cases("chain", 5, 8))[1] != next(cases("chain", 6, 8))[1]


def test_runs_of_a_seed_go_on_and_all_are_counted() -> None:
    runs = [Run("html", 1, 0, 40, 30.0, 0), Run("html", 1, 40, 10, 60.0, 1), Run("html", 2, 0, 5, 30.0, 0)]
    assert [next_case(runs, "html", seed) for seed in (1, 2, 3)] == [50, 5, 0]
    assert next_case(runs, "pdf", 1) == 0
    assert "| html | 55 | 2.0 | 1 |\n" in format_totals(runs)


def test_a_page_of_endless_size_is_refused() -> None:
    data = good_pdf().replace(b"841.", b"841" + b"1" * 50 + b".")
    with pytest.raises(UnreadableFile):
        parse(data, "a.pdf")
