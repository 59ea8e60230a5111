"""Plans over tables: whatever is proposed is computed as DuckDB computes the SQL that is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clew.core.types import Table
from clew.methods.tables.sql_engine import run_query
from clew.methods.tables.sql_process import QueryLimits
from clew.models.plan_judge import create_plan_judge
from clew.parse.data_tables import build_data_table
from clew.questions.shapes import hash_runs
from clew.questions.table_catalogue import TableCatalogue
from clew.questions.table_query import Condition, TableArrays, TableQuery
from clew.questions.table_reading import (
    MOST_WITHOUT,
    TABLE_FEATURES,
    TableModel,
    TableReader,
    TableResult,
    read_tables,
    run_options,
    shape_of,
)
from clew.questions.text import MOST_MISFIT, QuestionText

VOYAGES = (
    ("Voyage", "Departed", "Vessel", "Port", "Cargo", "Tons", "Freight Revenue", "Insured", "Captain"),
    ("V1", "1928-03-02", "Heron Maid", "Oskell", "Salt", "120", "1,400.50", "yes", "Ada Lund"),
    ("V2", "1928-07-14", "Heron Maid", "Norling", "Coal", "300", "2,100", "no", "Bo Strand"),
    ("V3", "1929-01-05", "Tern", "Oskell", "Coal", "80", "(250)", "yes", "Ada Lund"),
    ("V4", "1929-03-20", "Tern", "Skerry", "Salt fish", "95", "990", "yes", "Cy Moe"),
    ("V5", "1929-11-30", "Gannet", "Norling", "Coal", "410", "3,300", "no", "Ada Lund"),
    ("V6", "1930-02-11", "Gannet", "Oskell", "Timber", "", "1,750", "yes", "Bo Strand"),
)
ACCOUNTS = (
    ("T€", "2024", "2023"),
    ("Sales", "1.250,5", "980,0"),
    ("Services", "300,0", "310,5"),
    ("Total revenue", "1.550,5", "1.290,5"),
    ("Wages", "(410,0)", "(395,5)"),
)
STOCK = (
    ("prod_nm", "qty_oh", "qty_min", "prc_czk", "promised", "received"),
    ("METFORMIN 1000MG TBL FLM 60", "5", "8", "1.000,50", "2024-03-01", "2024-03-26"),
    ("IBUPROFEN 400MG TBL FLM 30", "40", "20", "89,90", "2024-03-05", "2024-03-05"),
    ("SALBUTAMOL 100UG INH 200D", "12", "15", "2.140,00", "2024-04-02", ""),
    ("ZINC OINTMENT 30G", "9", "9", "45,00", "2024-04-09", "2024-04-10"),
)


def open_catalogue(name, rows):
    table = build_data_table(Table(rows[0], rows[1:]), f"{name}:", 1)
    return TableCatalogue(TableArrays(replace(table, name=name)))


CATALOGUES = {
    name: open_catalogue(name, rows)
    for name, rows in (("voyages", VOYAGES), ("accounts", ACCOUNTS), ("stock", STOCK))
}


def propose(question, name):
    """Return the options over a table, and what comes of each."""
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    read = read_tables(QuestionText(question), [CATALOGUES[name]], model.columns, model.cells, judge.encoder)
    candidates = run_options(read, range(len(read.options)))
    return [(each.option, each.result) for each in candidates]


QUESTIONS = [
    ("voyages", "How many voyages went to Oskell in 1929?"),
    ("voyages", "Which captain carried the most coal for more than 2000, and who has not been insured?"),
    ("voyages", "Top 2 vessels by revenue between March 1928 and January 1929"),
    ("voyages", "What share of the freight revenue came from Norling?"),
    ("voyages", "Departures in March"),
    ("accounts", "By how much did sales change from 2023 to 2024?"),
    ("accounts", "Did sales or services bring more in 2024?"),
    ("accounts", "total revenue 2023"),
    ("accounts", "What were sales on average in 2023 and 2024, and in which year were they higher?"),
    ("stock", "How many days late was metformin received, and which products are below their minimum?"),
    ("stock", "How many days lie between promised and received on average?"),
]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        asked if number in (0, 5) else pytest.param(*asked, marks=pytest.mark.slow)
        for number, asked in enumerate(QUESTIONS)
    ],
)
def test_every_plan_is_computed_as_its_sql(name, question):
    pytest.importorskip("duckdb")
    options = propose(question, name)
    assert len(options) > 60
    table = CATALOGUES[name].table
    families = {option.family for option, _ in options}
    for family in families:
        for option, result in [each for each in options if each[0].family == family][:3]:
            expected = run_query(option.plan.sql, {name: name}, lambda _: table, QueryLimits(seconds=20)).rows
            if option.plan.formula == "each":
                assert list(map(write, expected[0])) == [write(row.value) for row in result.rows]
                continue
            if option.plan.formula:
                value = expected[0][0]
                own = result.number
                if value is None or own is None or option.plan.formula in ("ratio", "share"):
                    assert (value is None) == (own is None) and (
                        own is None or abs(value) == pytest.approx(own)
                    )
                else:
                    assert value == pytest.approx(own)
                continue
            rows, given = [write(row.value) for row in result.rows], [write(row[-1]) for row in expected]
            if option.plan.query.descending is None:
                assert sorted(rows) == sorted(given)
            else:  # what ties with the last row is listed, too
                assert rows[: len(given)] == given and set(rows[len(given) :]) <= set(given[-1:])


def write(value):
    return f"{value:.6f}" if isinstance(value, int | float) else str(value)


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("voyages", "How many voyages went to Oskell?", 3.0),
        ("voyages", "How many voyages were not insured?", 2.0),
        ("voyages", "How many voyages departed between March 1928 and March 1929?", 4.0),
        ("voyages", "How many voyages departed in March?", 2.0),
        ("voyages", "What is the cargo of V4?", "Salt fish"),
        ("voyages", "Which vessel departed on the 5th of January 1929?", "Tern"),
        ("voyages", "total freight revenue of coal", 5150.0),
        ("voyages", "Which voyage had the second highest freight revenue?", 2100.0),
        ("voyages", "Which voyage was 3rd by freight revenue?", 1750.0),
        ("voyages", "How many voyages made a loss on freight revenue?", 1.0),
        ("voyages", "How many voyages with salt had more than 100 tons and revenue below 2000?", 1.0),
        ("accounts", "total revenue 2023", 1290.5),
        ("accounts", "change of sales from 2023 to 2024", 270.5),
        ("accounts", "wages in 2024", -410.0),
        ("accounts", "What were sales on average in 2023 and 2024?", 1115.25),
        # The name is told by a word that no other has, and its column by none.
        ("stock", "How many packs of metformin are on hand?", 5.0),
        ("stock", "How many products are below their minimum?", 2.0),
        ("stock", "How many days after the promised date was metformin received?", 25.0),
        ("stock", "How many days lie between promised and received on average?", 26 / 3),
        ("stock", "How many products cost over 1.000 crowns?", 2.0),
        ("stock", "How many products cost between 80 and 1.500 crowns?", 2.0),
        ("stock", "Total minimum of metformin, ibuprofen and salbutamol", 43.0),
    ],
)
def test_what_a_question_means_is_proposed(name, question, answer):
    answers = []
    for _, result in propose(question, name):
        answers += [result.number] if result.number is not None else [row.value for row in result.rows][:1]
    assert any(
        value == answer if isinstance(answer, str) else isinstance(value, float) and abs(value) == abs(answer)
        for value in answers
    )


def test_what_is_named_by_a_rare_word_leads_to_the_rows_of_another_table():
    orders = open_catalogue(
        "orders",
        (
            ("order", "product", "amount"),
            ("1", "P7", "300"),
            ("2", "P9", "120"),
            ("3", "P7", "95"),
            ("4", "P8", "20"),
        ),
    )
    products = open_catalogue(
        "products",
        (
            ("code", "name"),
            ("P7", "WARFARIN 5MG TBL NOB 100"),
            ("P8", "ZINC OINTMENT 30G"),
            ("P9", "IBUPROFEN 400MG TBL 30"),
        ),
    )
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    read = read_tables(
        QuestionText("With which orders did we buy warfarin?"),
        [orders, products],
        model.columns,
        model.cells,
        judge.encoder,
    )
    found = [{row.value for row in each.result.rows} for each in run_options(read, range(len(read.options)))]
    assert {1.0, 3.0} in found


def test_a_code_that_stands_for_one_cell_leads_to_another_table_of_many_rows_for_it():
    filings = open_catalogue(
        "filings",
        (
            ("document", "Company", "Co. code"),
            ("F1", "Brennan Seals plc", "BRN"),
            ("F2", "Brennan Seals plc", "BRN"),
            ("F3", "Oostveen Lighting NV", "OOS"),
        ),
    )
    staff = open_catalogue(
        "staff",
        (
            ("co_cd", "country", "people"),
            ("BRN", "Germany", "84"),
            ("BRN", "Norway", "12"),
            ("OOS", "Germany", "40"),
            ("OOS", "Poland", "35"),
        ),
    )
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    question = QuestionText("How many people does Brennan Seals plc have in Germany?")
    read = read_tables(question, [filings, staff], model.columns, model.cells, judge.encoder)
    found = [[row.value for row in each.result.rows] for each in run_options(read, range(len(read.options)))]
    assert [84.0] in found


def test_rows_of_totals_count_for_cells_alone():
    arrays = CATALOGUES["accounts"].arrays
    total = Condition(0, "=", ("Total revenue",))
    assert [
        row.value for row in arrays.run(TableQuery(arrays.table, "values", 1, (total,), with_totals=True))
    ] == [1550.5]
    assert arrays.run(TableQuery(arrays.table, "values", 1, (total,))) == []
    assert arrays.run(TableQuery(arrays.table, "sum", 1))[0].value == pytest.approx(1140.5)


def test_an_empty_cell_is_found_and_counted():
    arrays = CATALOGUES["voyages"].arrays
    gap = Condition(5, "empty", ())
    assert [row.value for row in arrays.run(TableQuery(arrays.table, "count", None, (gap,)))] == [1.0]
    sixth = Condition(0, "=", ("V6",))
    assert [row.value for row in arrays.run(TableQuery(arrays.table, "values", 5, (sixth,)))] == [None]


def test_a_tie_leaves_nobody_out():
    arrays = CATALOGUES["voyages"].arrays
    query = arrays.include_ties(
        TableQuery(arrays.table, "count", None, (), group=2, descending=True, limit=1)
    )
    assert query.limit == 3 and [row.name for row in arrays.run(query)] == ["Gannet", "Heron Maid", "Tern"]


def test_the_features_of_options_are_numbers_and_no_two_options_mean_the_same():
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    read = read_tables(
        QuestionText("How many voyages went to Oskell?"),
        list(CATALOGUES.values()),
        model.columns,
        model.cells,
        judge.encoder,
    )
    assert np.isfinite(read.features).all() and len(read.features) == len(read.options)
    keys = [(option.plan.query.table.name, option.plan.key) for option, _ in read.options]
    assert len(set(keys)) == len(keys)


def read(question, name):
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    return read_tables(QuestionText(question), [CATALOGUES[name]], model.columns, model.cells, judge.encoder)


def test_an_option_says_by_which_column_it_names_rows():
    found = read("Top 2 voyages by tons", "voyages")
    start = TABLE_FEATURES.index("place of the column of names")
    seen = {}
    for (option, catalogue), features in zip(found.options, found.features, strict=True):
        query = option.plan.query
        if query.group is not None and not option.plan.formula:
            seen[catalogue.table.columns[query.group].header] = tuple(features[start : start + 3])
    # The first column of names, all of whose cells are different, below a word of the table's name.
    assert seen["Voyage"] == (1.0, 1.0, 1.0) and seen["Vessel"][1:] == (0.5, 0.0)
    of_sums = [
        features[start] for (option, _), features in zip(found.options, found.features, strict=True)
        if option.plan.query.aggregate == "sum" and option.plan.query.group is None
    ]  # fmt: skip
    assert of_sums and not any(of_sums)


def test_two_cells_of_each_row_are_asked_together():
    found = [
        (option.plan, [(row.name, row.value) for row in result.rows])
        for option, result in propose("Which voyage went to Skerry, and when did it depart?", "voyages")
        if option.family == "pairs"
    ]
    plans = [plan for plan, rows in found if rows == [("V4", "1929-03-20")]]
    assert "Voyage and Departed where Port is Skerry" in [plan.say() for plan in plans]
    # Of a bound the amount is given, too; of a cell that every row has, nothing is asked.
    found = propose("Which voyages carried more than 200 tons?", "voyages")
    rows = [
        sorted((row.name, row.value) for row in result.rows)
        for option, result in found
        if option.family == "pairs"
    ]
    assert [("V2", 300.0), ("V5", 410.0)] in rows
    assert all(
        each.column != option.plan.query.column
        for option, _ in found
        if option.family == "pairs"
        for each in option.plan.query.conditions
        if each.operator == "="
    )


def features_of(name, asked, catalogues, is_meant):
    """Return a feature of the options over the first of some tables that are meant."""
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    found = read_tables(QuestionText(asked), catalogues, model.columns, model.cells, judge.encoder)
    place = TABLE_FEATURES.index(name)
    return {
        float(row[place])
        for (option, catalogue), row in zip(found.options, found.features, strict=True)
        if catalogue is catalogues[0] and is_meant(option.plan.query)
    }


def test_a_column_is_known_to_other_tables_whose_rows_have_its_cells():
    boats = (
        ("Hull", "Plate", "Length"),
        *((f"H{n}", f"P-{n}", str(n)) for n in range(40, 48)),
    )
    trips = (("Trip", "Boat", "Miles"), *((f"T{n}", f"P-{40 + n % 8}", str(3 * n)) for n in range(24)))
    own, other = open_catalogue("boats", boats), open_catalogue("trips", trips)
    for catalogues, known in (([own, other], {1.0}), ([own], {0.0})):
        for column, expected in ((0, {0.0}), (1, known)):
            seen = features_of(
                "other tables know the names",
                "Which boats are longer than 45?",
                catalogues,
                lambda query, column=column: (
                    query.aggregate == "values" and query.column == column and query.group is None
                ),
            )
            assert seen == expected


def test_a_column_that_the_question_names_and_a_plan_leaves_out_is_counted():
    def find(asked, group):
        return features_of(
            "columns left out",
            asked,
            [CATALOGUES["voyages"]],
            lambda query: (
                query.aggregate == "average"
                and query.column == 5
                and query.group == group
                and not query.conditions
                and query.descending is None
            ),
        )

    assert find("average tons by captain", None) == {1.0} and find("average tons by captain", 8) == {0.0}
    assert find("average tons", None) == {0.0}


def test_what_a_question_counts_is_compared_with_what_a_plan_gives():
    def find(asked, aggregate, column):
        return features_of(
            "what is counted",
            asked,
            [CATALOGUES["voyages"]],
            lambda query: query.aggregate == aggregate and query.column == column,
        )

    assert find("How many voyages went to Oskell?", "count", None) == {1.0}
    assert find("How many sailors went to Oskell?", "count", None) == {-1.0}
    assert find("How many tons went to Oskell?", "sum", 5) == {1.0}
    assert find("tons to Oskell", "sum", 5) == {0.0}


def test_a_sign_before_a_number_is_a_word_of_the_shape():
    encoder = create_plan_judge().encoder
    signs = {
        sign: set(shape_of(read(f"tons {sign} 100", "voyages"), [CATALOGUES["voyages"]], encoder)[0].tolist())
        for sign in (">", "<", "")
    }
    alone = {sign: set(hash_runs([sign]).tolist()) for sign in "<>"}
    assert alone[">"] & signs[">"] and not alone[">"] & alone["<"]
    assert signs[">"] != signs["<"] != signs[""]


def test_a_reading_that_leaves_out_a_name_of_the_question_is_not_stated():
    reader = TableReader(create_plan_judge())
    asked = "Which captain who lodged at the Anchor Inn carried coal?"
    readings = reader.read(asked, list(CATALOGUES.values()))
    assert all(reading.probability <= MOST_WITHOUT for reading in readings)
    (first, *_) = reader.read("What is the cargo of V4?", list(CATALOGUES.values()))
    assert first.probability > MOST_WITHOUT


def test_nobody_is_a_number_in_a_table_and_no_place_a_day():
    reader, catalogues = TableReader(create_plan_judge()), list(CATALOGUES.values())
    for question in ("Who is the tonnage of V4?", "When is the cargo of V4?"):
        readings = reader.read(question, catalogues)
        assert all(reading.probability <= MOST_MISFIT for reading in readings)
    assert TableResult((), number=3.0).texts == ["3.0"]


def test_a_reading_that_leaves_out_a_day_of_the_question_is_not_stated():
    reader, catalogues = TableReader(create_plan_judge()), [CATALOGUES["accounts"]]
    asked = reader.read("What were sales on 5 March 2024?", catalogues)[0]
    whole = reader.read("What were sales in 2024?", catalogues)[0]
    assert asked.plan.sql == whole.plan.sql
    assert asked.probability <= MOST_WITHOUT < whole.probability


def test_a_question_of_which_no_option_can_be_run_has_no_reading(monkeypatch):
    monkeypatch.setattr("clew.questions.table_reading.run_options", lambda read, places: [])
    assert TableReader(create_plan_judge()).read("total revenue 2023", [CATALOGUES["accounts"]]) == ()


def test_a_cell_leads_to_rows_of_a_table_that_has_each_of_its_codes_several_times():
    vehicles = (
        ("plate", "fuel"),
        *((f"AB{number} X", "diesel" if number % 3 else "solar") for number in range(9)),
    )
    trips = (("trip", "plate"), *((f"T{number}", f"AB{number % 9} X") for number in range(27)))
    catalogues = [open_catalogue(name, rows) for name, rows in (("vehicles", vehicles), ("trips", trips))]
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    question = QuestionText("How many trips were made with solar vehicles?")
    read = read_tables(question, catalogues, model.columns, model.cells, judge.encoder)
    said = {each.say_beside(question): each for each in run_options(read, range(len(read.options)))}
    (row,) = said["trips: how many trips where plate is that of solar"].result.rows
    assert row.value == 9


def test_options_that_cannot_be_run_take_no_place_of_others(monkeypatch):
    reader = TableReader(create_plan_judge())
    monkeypatch.setattr("clew.questions.table_reading.MOST_RUN", 10)
    found = reader.find_candidates(QuestionText("By how much did sales change?"), [CATALOGUES["accounts"]])
    assert len(found) == 10


@pytest.mark.parametrize(
    ("asked", "condition", "compared"),
    [
        ("Voyages that left before 5 March 1928", "departed < 1928-03-05", (1.0, 1.0, 0.0)),
        ("Voyages that left before 5 March 1928", "departed <= 1928-03-05", (1.0, -1.0, 0.0)),
        ("Voyages that left before 5 March 1928", "departed > 1928-03-05", (-1.0, 0.0, 0.0)),
        (
            "Voyages that left before 5 March 1928",
            "departed >= 1928-03-05 and departed <= 1928-03-05",
            (-1.0, 0.0, 0.0),
        ),
        ("Voyages that left on 5 March 1928", "departed > 1928-03-05", (0.0, 0.0, 1.0)),
        ("Voyages with tons below their freight revenue", "tons is below freight revenue", (1.0, 0.0, 0.0)),
        ("Voyages with tons below their freight revenue", "tons is above freight revenue", (-1.0, 0.0, 0.0)),
        ("Voyages with tons like their freight revenue", "tons is above freight revenue", (0.0, 0.0, 1.0)),
    ],
)
def test_a_plan_is_compared_with_the_bound_that_the_question_gives(asked, condition, compared):
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    question = QuestionText(asked)
    read = read_tables(question, [CATALOGUES["voyages"]], model.columns, model.cells, judge.encoder)
    place = next(
        place
        for place, (option, _) in enumerate(read.options)
        if option.plan.say().casefold() == f"how many voyages where {condition}"
    )
    names = ("bounded as the question says", "with or without the bound", "bounded without a word")
    assert tuple(read.features[place, TABLE_FEATURES.index(name)] for name in names) == compared


NO_RESULT = "(formula without stored result)"
STOCK = (
    ("Item", "Group", "Fee", "Value"),
    ("Rope", "A", "0.1", "40.25"),
    ("Tar", "A", "0.2", NO_RESULT),
    ("Hemp", "B", "0.3", ""),
    ("Pitch", "B", "0.45", "12.5"),
)


def test_sums_of_cells_are_exact():
    arrays = TableArrays(build_data_table(Table(STOCK[0], STOCK[1:])))

    def compute(aggregate, *names):
        conditions = (Condition(0, "=", names),) if names else ()
        return arrays.run(TableQuery(arrays.table, aggregate, 2, conditions))[0].value

    assert compute("sum", "Rope", "Tar") == 0.3 and compute("sum", "Rope", "Tar", "Hemp") == 0.6
    assert compute("average", "Rope", "Tar", "Hemp") == 0.2 and compute("median", "Rope", "Tar") == 0.15
    assert compute("sum") == 1.05


def test_nothing_is_computed_past_a_formula_without_a_result():
    table = build_data_table(Table(STOCK[0], STOCK[1:]))
    arrays = TableArrays(table)
    in_a, in_b = (Condition(1, "=", (group,)) for group in "AB")
    query = TableQuery(table, "sum", 3, (in_a,))
    for aggregate in ("sum", "average", "maximum", "minimum", "median"):
        (row,) = arrays.run(replace(query, aggregate=aggregate))
        assert row.value is None and row.rows.tolist() == [1]
    assert arrays.run(replace(query, conditions=(in_b,)))[0].value == 12.5
    assert arrays.run(replace(query, aggregate="count"))[0].value == 2
    assert (
        arrays.run(replace(query, aggregate="share", part=(Condition(0, "=", ("Rope",)),)))[0].value is None
    )
    # Who has the highest value is not known, neither among rows nor among groups.
    highest = TableQuery(table, "values", 3, group=0, descending=True, limit=1)
    assert [row.value for row in arrays.run(highest)] == [None]
    assert [row.value for row in arrays.run(replace(highest, aggregate="sum", group=1))] == [None]
    assert arrays.run(replace(highest, conditions=(in_b,)))[0].name == "Pitch"
    assert [row.cells[3] for row in table.rows] == ["40.25", "", "", "12.5"]
