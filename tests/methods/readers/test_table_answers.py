"""Answers from the tables of reports, and what they say."""

from __future__ import annotations

from dataclasses import replace

import openpyxl

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import STATED_FROM, Table
from clew.methods.readers.table_answers import answer_reading, describe_reading, read_reports
from clew.methods.tables.method import open_tables
from clew.models.plan_judge import create_plan_judge
from clew.parse.data_tables import build_data_table
from clew.questions.table_plans import DIFFERENCE, HIGHER, LOWER, RATIO, SHARE, TablePlan
from clew.questions.table_query import Condition, TableArrays, TableQuery
from clew.questions.table_reading import TableReader, TableReading, run_table_plan

REPORT = """# Annual report of the Tarn ferry

All amounts are expressed in thousands of euros.

| | 2023 | 2022 | 2021 |
|---|---|---|---|
| Fares | 410 | 380 | 395 |
| Wages | 205 | 190 | 220 |
| Fuel | 90 | 84 | 77 |
"""


def test_a_table_of_a_report_is_asked_and_its_cells_are_quoted(tmp_path):
    (tmp_path / "ferry.md").write_text(REPORT)
    reader = TableReader(create_plan_judge(), "report")
    with clew.open(tmp_path / "base", create=True) as base:
        base.add([tmp_path / "ferry.md"])
        snapshot, hits = base.store.snapshot(), base.search("wages", k=10)

        def ask(question):
            (first, *_) = read_reports(question, hits, snapshot, reader)
            return answer_reading(question, first, snapshot, TrailRecorder())

        average = ask("What were the average wages from 2021 to 2023?")
        both = ask("What were the average wages of 2021 and 2023?")
    # "From 2021 to 2023" means 2022, too, and each operand is quoted with its cell.
    assert average.text == "€205 thousand" and average.plan is not None and "from ferry" in average.plan.text
    assert (average.confidence or 0.0) >= STATED_FROM
    quoted = [quote.text[slice(*quote.answer)] for quote in average.quotes if quote.answer]
    assert sorted(quoted) == ["190", "205", "220"]
    assert both.text == "€212.5 thousand" and "of 220, 205, from 1 row" in (both.formula or "")


WAITS = """Waiting time for a berth,,,,
Port,Jan 24,Feb 24,ships_num,Due (€)
Alder Quay,18.7,15.6,12,5
Brant Dock,10.7,15.6,30,5
"""


def test_a_number_of_a_file_of_data_says_what_it_is(tmp_path):
    (tmp_path / "waits.csv").write_text(WAITS)
    with clew.open(tmp_path / "base", create=True) as base:
        base.add([tmp_path / "waits.csv"])
        snapshot = base.store.snapshot()
        (table,) = open_tables(snapshot)

        def cell(name, column):
            return TableQuery(table, "values", column, (Condition(0, "=", (name,)),), group=0)

        def say(query, formula="", other=None, question="?"):
            plan = TablePlan(query, formula, other)
            reading = TableReading(plan, plan.say(), 0.9, run_table_plan(TableArrays(table), plan))
            plain = answer_reading(question, reading, snapshot, TrailRecorder()).text
            return plain, answer_reading(question, reading, snapshot, TrailRecorder(), is_data=True).text

        first, other = cell("Alder Quay", 1), cell("Brant Dock", 1)
        what = "Jan 24, Waiting time for a berth"
        assert say(replace(first, group=None)) == ("18.7", "18.7 (Jan 24, Waiting time for a berth)")
        assert say(TableQuery(table, "sum", 3)) == ("42", "42 (ships_num)")
        written = say(TableQuery(table, "sum", 3), question="What is the number for ships?")
        assert written == ("42", "42 (ships number)")
        assert say(TableQuery(table, "count")) == ("2 rows of waits", "2 rows of waits")
        assert say(other, DIFFERENCE, first) == (
            "8.0",
            f"8.0 (Alder Quay 18.7 against Brant Dock 10.7; {what})",
        )
        assert say(first, DIFFERENCE, other) == (
            "-8.0",
            f"8.0 (Alder Quay 18.7 against Brant Dock 10.7; {what})",
        )
        assert say(first, DIFFERENCE, cell("Alder Quay", 2))[1] == (
            "3.1 (Jan 24 18.7 against Feb 24 15.6; Waiting time for a berth)"
        )
        assert say(first, HIGHER, other) == ("Alder Quay", f"Alder Quay, by 8.0 (18.7 against 10.7; {what})")
        assert say(first, LOWER, other)[1] == f"Brant Dock, by 8.0 (10.7 against 18.7; {what})"
        even = cell("Alder Quay", 2), HIGHER, cell("Brant Dock", 2)
        assert say(*even)[1] == ("Alder Quay and Brant Dock (15.6 each; Feb 24, Waiting time for a berth)")
        even = cell("Alder Quay", 4), HIGHER, cell("Brant Dock", 4)
        assert say(*even)[1] == "Alder Quay and Brant Dock (€5 each; Due (€))"
        assert say(first, RATIO, other) == ("1.75", "1.75 times")
        assert say(first, SHARE, other) == ("174.77%", "174.8%")
        assert say(TableQuery(table, "average", 1)) == ("14.7", "14.7 (Jan 24, Waiting time for a berth)")
        busy = TableQuery(table, "values", 0, (Condition(3, ">", (10.0,)),))
        assert say(busy) == ("Alder Quay; Brant Dock", "Alder Quay (ships_num 12); Brant Dock (ships_num 30)")


def test_the_name_of_a_row_stands_beside_its_code():
    rows = (("B08", "Tarn", "1"), ("B09", "Oster", "2"), ("B10", "", "2"))
    table = build_data_table(Table(("No", "Boat", "Berth"), rows), "t:", 1)
    plan = TablePlan(TableQuery(table, "values", 0, (Condition(2, "=", (2.0,)),)))
    reading = TableReading(plan, plan.say(), 0.9, run_table_plan(TableArrays(table), plan))
    assert describe_reading("Which boats lie at berth 2?", reading) == ["B09 (Oster)", "B10"]
    named = TablePlan(TableQuery(table, "values", 1, (Condition(2, "=", (2.0,)),)))
    reading = TableReading(named, named.say(), 0.9, run_table_plan(TableArrays(table), named))
    assert describe_reading("Which boats lie at berth 2?", reading) == ["Oster"]


def test_computed_numbers_have_the_decimals_of_the_cells(tmp_path):
    (tmp_path / "dues.csv").write_text(
        "Quay;Dues (CHF);Weight\nOld;1'250.50;1.125\nNew;2'000.00;2\nFar;0.10;3.5\n"
    )
    with clew.open(tmp_path / "base", create=True) as base:
        base.add([tmp_path / "dues.csv"])
        snapshot = base.store.snapshot()
        (table,) = open_tables(snapshot)

        def say(aggregate, column, *names):
            conditions = (Condition(0, "=", names),) if names else ()
            plan = TablePlan(TableQuery(table, aggregate, column, conditions))
            reading = TableReading(plan, plan.say(), 0.9, run_table_plan(TableArrays(table), plan))
            return answer_reading("?", reading, snapshot, TrailRecorder(), is_data=True).text

        assert (
            say("sum", 1) == "3,250.60 (Dues (CHF))"
            and say("sum", 1, "Old", "New") == "3,250.50 (Dues (CHF))"
        )
        assert say("average", 1) == "1,083.53 (Dues (CHF))"
        assert say("sum", 2) == "6.625 (Weight)" and say("average", 2) == "2.208 (Weight)"


def test_a_formula_without_a_stored_result_is_said(tmp_path):
    book = openpyxl.Workbook()
    for row in (
        ("Item", "Price", "Total"),
        ("Rope", 4, "=B2*10"),
        ("Tar", 3, "=B3*10"),
        ("Hemp", 2, 20),
        ("Oil", 1, None),
    ):
        book.active.append(row)
    book.save(tmp_path / "stock.xlsx")
    with clew.open(tmp_path / "base", create=True) as base:
        base.add([tmp_path / "stock.xlsx"])
        answers = [base.ask(f"What is the total of {item}?") for item in ("Rope", "Tar", "Hemp", "Oil")]
    assert all(answer.text.startswith("Not given: a formula has no stored result") for answer in answers[:2])
    assert answers[2].text.startswith("20") and answers[3].text.startswith("Not given: the cell is empty")
