"""Plain questions over a table: what is computed is what DuckDB computes for the SQL that is shown."""

from dataclasses import replace

import pytest

from clew.core.types import Table
from clew.methods.tables.query import TableArrays
from clew.methods.tables.questions import TableVocabulary
from clew.methods.tables.sql_engine import run_query
from clew.methods.tables.sql_process import QueryLimits
from clew.parse.data_tables import build_data_table

pytest.importorskip("duckdb")

VOYAGES = replace(
    build_data_table(
        Table(
            (
                "Voyage",
                "Departed",
                "Vessel",
                "Port",
                "Cargo",
                "Tons",
                "Freight Revenue",
                "Insured",
                "Captain",
            ),
            (
                ("V1", "1928-03-02", "Heron Maid", "Oskell", "Salt", "120", "1,400.50", "yes", "Ada Lund"),
                ("V2", "1928-07-14", "Heron Maid", "Norling", "Coal", "300", "2,100", "no", "Bo Strand"),
                ("V3", "1929-01-05", "Tern", "Oskell", "Coal", "80", "(250)", "yes", "Ada Lund"),
                ("V4", "1929-03-20", "Tern", "Skerry", "Salt fish", "95", "990", "yes", "Cy Moe"),
                ("V5", "1929-11-30", "Gannet", "Norling", "Coal", "410", "3,300", "no", "Ada Lund"),
                ("V6", "1930-02-11", "Gannet", "Oskell", "Timber", "", "1,750", "yes", "Bo Strand"),
            ),
        ),
        "v:",
        1,
    ),
    name="voyages",
)
VOCABULARY = TableVocabulary(TableArrays(VOYAGES))


def read(question):
    return VOCABULARY.read(question)


def answer(question):
    """Return the rows of the result, after DuckDB gave the same for the SQL."""
    reading = read(question)
    assert reading is not None and reading.is_sure, reading and reading.doubts
    results = VOCABULARY.arrays.run(reading.query)
    rows = [(row.name, row.value) if row.name else (row.value,) for row in results]
    expected = run_query(reading.sql, {"voyages": "voyages"}, lambda name: VOYAGES, QueryLimits()).rows
    if reading.query.descending is None:
        expected = sorted(expected, key=str)
        assert sorted(rows, key=str) == [pytest.approx(row) if len(row) == 1 else row for row in expected]
    else:
        assert rows == list(expected)
    return rows


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many voyages went to Oskell?", [(3.0,)]),
        ("How many voyages did the Heron Maid make in 1928?", [(2.0,)]),
        (
            "What is the total freight revenue by port?",
            [("Norling", 5400.0), ("Oskell", 2900.5), ("Skerry", 990.0)],
        ),
        ("What was the average freight revenue of coal?", [(pytest.approx(1716.666666),)]),
        ("Top 2 vessels by revenue", [("Gannet", 5050.0), ("Heron Maid", 3500.5)]),
        ("Which captain has the most voyages?", [("Ada Lund", 3.0)]),
        ("Which port had the fewest voyages?", [("Skerry", 1.0)]),
        ("How many captains are there?", [(3.0,)]),
        ("How many insured voyages departed after 1928?", [(3.0,)]),
        ("How many voyages were not insured?", [(2.0,)]),
        ("How many tons went to Norling?", [(710.0,)]),
        ("How many voyages over 100 tons?", [(3.0,)]),
        ("How many voyages departed between March 1928 and March 1929?", [(4.0,)]),
        ("How many voyages before 1929?", [(2.0,)]),
        ("How many voyages in the first quarter of 1929?", [(2.0,)]),
        ("What is the median number of tons?", [(120.0,)]),
        ("What is the largest freight revenue?", [(3300.0,)]),
        ("What share of voyages went to Oskell?", [(50.0,)]),
        ("What is the cargo of V4?", [("Salt fish",)]),
        ("What percentage of voyages were insured in 1929?", [(pytest.approx(200 / 3),)]),
        ("What share of voyages were insured at Norling?", [(0.0,)]),
        ("Which voyage had the most tons?", [("V5", 410.0)]),
        ("How many voyages to Oskell or Skerry?", [(4.0,)]),
        ("How many voyages except to Norling?", [(4.0,)]),
        ("Number of voyages per vessel", [("Gannet", 2.0), ("Heron Maid", 2.0), ("Tern", 2.0)]),
        ("Total freight revenue in the first quarter of 1929", [(740.0,)]),
        ("What was the total freight revenue since November 1929?", [(5050.0,)]),
        ("total tons until July 1928", [(420.0,)]),
        ("How many voyages departed in March?", [(2.0,)]),
        ("total freight revenue from 1928-07-01 to 1929-01-31", [(1850.0,)]),
        ("What was the total revenue after 1929-03-20?", [(5050.0,)]),
        ("What was the total freight revenue between 1928 and 1929?", [(7540.5,)]),
        ("What share of the freight revenue came from Norling?", [(pytest.approx(58.12389),)]),
        ("bottom 2 vessels by tons", [("Tern", 175.0), ("Gannet", 410.0)]),
        ("average tons per vessel", [("Gannet", 410.0), ("Heron Maid", 210.0), ("Tern", 87.5)]),
        ("Who has the most voyages?", [("Ada Lund", 3.0)]),
        ("Which vessel departed on 5 January 1929?", [("Tern",)]),
        ("Which vessel departed on January 5, 1929?", [("Tern",)]),
        ("Which vessel departed on the 5th of January 1929?", [("Tern",)]),
        ("Which vessel departed on Jan. 5th, 1929?", [("Tern",)]),
        ("How many voyages departed between 14 July 1928 and 20 March 1929?", [(3.0,)]),
        ("How many voyages departed from July 14, 1928 to March 20, 1929?", [(3.0,)]),
        ("How many voyages departed from 2 March to 14 July 1928?", [(2.0,)]),
        ("How many voyages departed after March 20, 1929?", [(2.0,)]),
        ("How many voyages departed on or after 20 March 1929?", [(3.0,)]),
        ("How many voyages departed on or before 5 January 1929?", [(3.0,)]),
        ("How many voyages departed by 5 January 1929?", [(3.0,)]),
        ("How many voyages departed prior to January 5, 1929?", [(2.0,)]),
        ("How many voyages departed no later than March 20, 1929?", [(4.0,)]),
        ("List the voyages of Ada Lund", [("V1",), ("V3",), ("V5",)]),
    ],
)
def test_questions(question, rows):
    assert answer(question) == rows


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("What was the population of Norway in 2020?", [5.4]),
        ("average population of Sweden after 2019", [pytest.approx(10.35)]),
        ("What was the highest population of Norway since 2020?", [5.5]),
        ("total population between 2019 and 2020", [pytest.approx(31.2)]),
        ("total population before 2020", [pytest.approx(15.5)]),
        ("How many countries are there?", [2.0]),
        ("Which country had the lowest population in 2019?", [5.3]),
    ],
)
def test_years_are_the_cells_of_a_column(question, values):
    rows = (("Norway", 5.3), ("Sweden", 10.2))
    cells = tuple(
        (name, str(year), f"{first + step / 10:.1f}")
        for name, first in rows
        for step, year in enumerate((2019, 2020, 2021))
    )
    table = replace(build_data_table(Table(("Country", "Year", "Population"), cells), "c:", 1), name="c")
    arrays = TableArrays(table)
    reading = TableVocabulary(arrays).read(question)
    assert reading.is_sure and [row.value for row in arrays.run(reading.query)] == values


@pytest.mark.parametrize(
    "question",
    [
        "How many voyages were profitable?",
        "How many voyages went to Lisbon?",
        "What is the cargo of Ada Lund?",  # three voyages, three cargoes
        "What was the growth of revenue?",
        "How many voyages by the mate?",
        "How many voyages were insured without coal?",
        "What share of voyages?",
        "What was the freight revenue in 1929?",  # of which of three voyages
        "top 3 captains by insured",
        "How many tons were carried to Norling?",  # whether they were, no column says
        "How many voyages departed on 1929-02-30?",
        "How many voyages departed on 30 February 1929?",
        "Which vessel departed on June 31st, 1929?",
        "Which vessel departed on 5 January?",
        "How many voyages departed before March?",
        "How many voyages since 0000-01-01?",
        "How many voyages before 9999-12-31?",
        "total freight revenue from 1928-07-01 to 1928-13-01",
    ],
)
def test_what_is_not_understood_is_doubted(question):
    reading = read(question)
    assert reading is None or reading.doubts


@pytest.mark.parametrize("question", ["", "Who was Ada's father?", "Why?"])
def test_other_questions_have_no_sure_reading(question):
    reading = read(question)
    assert reading is None or not reading.is_sure


@pytest.mark.parametrize(
    ("question", "result"),
    [
        ("When did the first voyage to Norling depart?", [("", "1928-07-14")]),
        ("When was the last voyage?", [("", "1930-02-11")]),
        ("On what date did the Tern depart first?", [("", "1929-01-05")]),
        ("Which captain departed most recently?", [("Bo Strand", "1930-02-11")]),
        ("Who departed first with coal?", [("Bo Strand", "1928-07-14")]),
        ("Which vessel was the latest to go to Norling?", [("Gannet", "1929-11-30")]),
    ],
)
def test_the_first_and_the_last_by_days(question, result):
    reading = read(question)
    assert reading is not None and reading.is_sure, reading and reading.doubts
    assert [(row.name, row.value) for row in VOCABULARY.arrays.run(reading.query)] == result
    expected = run_query(reading.sql, {"voyages": "voyages"}, lambda name: VOYAGES, QueryLimits()).rows
    assert [tuple(map(str, row)) for row in expected] == [tuple(filter(None, row)) for row in result]


def test_totals_are_left_out():
    table = build_data_table(
        Table(("Region", "Sales"), (("North", "10"), ("South", "20"), ("Total", "30"))), "s:", 1
    )
    table = replace(table, name="sales")
    reading = TableVocabulary(TableArrays(table)).read("total sales")
    assert reading is not None and reading.sql.endswith("where not _total")
    assert [row.value for row in TableArrays(table).run(reading.query)] == [30.0]


def test_a_tie_leaves_nobody_out():
    reading = read("Which vessel has the most voyages?")
    arrays = VOCABULARY.arrays
    query = arrays.include_ties(reading.query)
    assert (reading.query.limit, query.limit) == (1, 3)
    assert [row.name for row in arrays.run(query)] == ["Gannet", "Heron Maid", "Tern"]
    assert query.sql.endswith("limit 3")
