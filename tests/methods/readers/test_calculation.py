"""Questions over tables: worked by hand on two small tables, each wording another."""

import pytest

from clew.core.trail import CalculateStep, TrailRecorder
from clew.core.types import Hit, Question, Span, Table
from clew.methods.readers.calculation import TableCalculator, find_operation, find_periods
from clew.parse.data_tables import build_data_table, table_from_grid
from clew.parse.documents.builder import DocumentBuilder
from graph_corpora import locate
from span_models import NoReader
from span_readers import span_reader

GRID = [
    ["", "", "Years Ended September 30,", ""],
    ["(in millions)", "2019", "2018", "2017"],
    ["Fixed price", "$ 1,452.4", "$ 1,146.2", "$ 1,036.9"],
    ["Other", "44.1", "56.7", "70.8"],
    ["Total sales", "$1,496.5", "$1,202.9", "$1,107.7"],
    ["Operating loss", "(20)", "(30)", "—"],
    ["Gross margin", "31.5%", "30.0%", "28.0%"],
]
SALES = build_data_table(table_from_grid(GRID))
BY_YEAR = build_data_table(
    Table(("Year", "Revenue", "Staff"), (("2021", "100", "7"), ("2022", "150", "9"), ("2023", "120", "8")))
)
REGIONS = build_data_table(
    Table(
        ("Region", "2023", "2022"),
        (("North", "70", "40"), ("South", "20", "30"), ("East", "10", "25"), ("Total", "100", "95")),
        "Visitors",
    )
)


CHANGES = build_data_table(
    Table(
        ("", "2022", "2021", "Increase 2022 vs. 2021"),
        (
            ("Total operating revenues", "31,072", "31,042", "30"),
            ("Operating costs", "28,000", "27,500", "500"),
        ),
    )
)


#: A total without a label, and a column of changes beside those of the years.
PENSIONS = build_data_table(
    Table(
        ("", "2019", "2018", "2019 change"),
        (
            ("Charges:", "", "", ""),
            ("Defined contribution plans", "166", "178", "(12)"),
            ("Defined benefit plans", "57", "44", "13"),
            ("", "223", "222", "1"),
            ("Return on funds", "4%", "5%", "(100) bps"),
        ),
    )
)
#: Groups of rows that are periods, and columns that are parts of them.
RECEIVABLES = build_data_table(
    Table(
        ("", "Gross", "Allowance"),
        (
            ("December 31, 2019", "", ""),
            ("Transactions", "12,863", "$(238)"),
            ("Servicing", "6,868", "—"),
            ("Total", "19,731", "$(238)"),
            ("December 31, 2018", "", ""),
            ("Transactions", "14,704", "$(168)"),
            ("Servicing", "864", "—"),
            ("Total", "15,568", "$(168)"),
        ),
    )
)
SEGMENTS = build_data_table(
    Table(
        ("", "Digital Media", "Print and Radio"),
        (
            ("Fiscal 2022", "", ""),
            ("Revenue", "52", "10"),
            ("Cost", "30", "9"),
            ("Fiscal 2021", "", ""),
            ("Revenue", "40", "12"),
            ("Cost", "25", "8"),
        ),
        "Results of our segments",
    )
)
BY_QUARTER = build_data_table(
    Table(
        ("", "First", "Second"),
        (
            ("2019", "", ""),
            ("Sales", "55", "54"),
            ("Costs", "50", "49"),
            ("2018", "", ""),
            ("Sales", "51", "53"),
            ("Costs", "48", "47"),
        ),
    )
)
HARBOUR = build_data_table(
    Table(
        ("", "High tide", "Low tide"),
        (("First quarter", "9", "3"), ("Second quarter", "8", "3"), ("Third quarter", "7", "4")),
    )
)


#: A scale over the columns, a label that mentions a year, costs in parentheses, parts of a total.
OUTFLOWS = build_data_table(
    Table(
        ("", "Total", "2023 (in thousands)", "2022"),
        (
            ("Fuel expenses", "(90)", "(50)", "(40)"),
            ("Tax at 19 % (2017/18: 19 %) and other rates of earlier years", "7", "3", "4"),
            ("Tax at 21 % (2018/19: 20 %) and other rates of later years", "8", "4", "4"),
            ("Income attributable to the owners", "300", "200", "100"),
            ("Average crew", "25", "12", "13"),
        ),
    )
)
LEASES = build_data_table(
    Table(
        ("", "Total", "Less than 1 year", "More than 5 years"),
        (
            ("Operating leases", "$ 400", "100", "50"),
            ("Purchases", "600", "200", "30"),
            ("Total", "1,000", "300", "80"),
        ),
    )
)


def answer_from_tables(question, tables):
    """Return the best answer of several tables."""
    answers = [answer for table in tables if (answer := TableCalculator(table, "").answer(question))]
    return max(answers, key=lambda answer: answer.confidence, default=None)


def test_a_value_of_a_year_stands_in_the_column_of_that_year_alone() -> None:
    answer = answer_from_tables("What were total operating revenues in 2022?", [CHANGES])
    assert answer is not None and answer.text == "31,072"


QUARTERS = build_data_table(
    Table(
        ("", "Three months ended May 31, 2022", "Twelve months ended May 31, 2022"),
        (("Resort revenue", "991", "3,815"),),
    )
)


@pytest.mark.parametrize(
    ("period", "value"),
    [
        ("2022", "3,815"),
        ("the fourth quarter of 2022", "991"),
        ("the three months ended May 31, 2022", "991"),
    ],
)
def test_a_year_is_the_whole_year_where_the_table_has_it(period: str, value: str) -> None:
    answer = answer_from_tables(f"What was the resort revenue in {period}?", [QUARTERS])
    assert answer is not None and answer.text == value


def small_table(caption, *rows):
    return build_data_table(Table(("", "2022", "2021"), rows, caption))


BORROWINGS = build_data_table(
    Table(
        ("(Millions)", "2022 Year-End Stated Rate", "2022 Outstanding Balance", "2021 Outstanding Balance"),
        (
            ("Commercial paper", "4.1%", "$ 1,300", "$ 1,900"),
            ("Total borrowings", "0.9%", "$ 1,348", "$ 2,243"),
        ),
    )
)
RETURNS = small_table("Total return", ("Verizon", "$93.6", "$117.0"), ("Index", "$150.0", "$190.0"))
SEGMENT = small_table("Health Care Segment", ("Revenue from services", "5,659", "5,536"))
WHOLE = small_table("Statements of Operations", ("Revenue from services", "9,100", "10,400"))
QUARTER = small_table("Income before tax, Q1 2022", ("Income before tax", "5,144", "4,000"))


@pytest.mark.parametrize(
    ("tables", "question", "text"),
    [
        ([BORROWINGS], "What were total borrowings in 2022?", "$ 1,348 million"),
        ([BORROWINGS], "What was the rate of total borrowings in 2022?", "0.9%"),
        ([RETURNS], "How many shares are reserved under the 2022 plan of Verizon?", None),
        ([SEGMENT, WHOLE], "What was the revenue from services in 2022?", "9,100"),
        ([SEGMENT, WHOLE], "What was the revenue from services of the Health Care segment in 2022?", "5,659"),
        ([QUARTER], "What was income before tax in the fourth quarter of 2022?", None),
        ([QUARTER], "What was income before tax in 2022?", "5,144"),
    ],
)
def test_units_parts_and_quarters_have_to_fit(tables, question, text):
    answer = answer_from_tables(question, tables)
    assert (answer.text if answer else None) == text


@pytest.mark.parametrize(
    ("question", "text", "formula"),
    [
        ("What were the total sales in 2019?", "$1,496.5 million", ""),
        ("What was the gross margin in 2018?", "30.0%", ""),
        (
            "What were total sales in 2018 and 2019 respectively?",
            "$1,202.9 million; $1,496.5 million",
            "",
        ),
        ("What is the change in Other in 2019 from 2018?", "-12.6 million", "44.1 - 56.7 = -12.6"),
        (
            "What was the percentage change in Other between 2018 and 2019?",
            "-22.22%",
            "(44.1 - 56.7) / 56.7 = -22.22%",
        ),
        (
            "What is the average of fixed price sales for 2018 and 2019?",
            "1,299.3 million",
            "($ 1,146.2 + $ 1,452.4) / 2 = 1,299.3",
        ),
        ("What is the average operating loss?", "-16.67 million", "((20) + (30) + —) / 3 = -16.67"),
        (
            "What is Other as a percentage of total sales in 2017?",
            "6.39%",
            "70.8 / $1,107.7 = 6.39%",
        ),
        ("What is the ratio of other to fixed price in 2018?", "0.05", "56.7 / $ 1,146.2 = 0.05"),
        ("In which year were total sales the largest?", "2019", "$1,496.5 > $1,202.9 > $1,107.7"),
        ("In which year was the gross margin lowest?", "2017", "31.5% > 30.0% > 28.0%"),
        ("Which years did Other exceed 50 million?", "2018; 2017", "70.8 > 56.7 > 44.1"),
        (
            "How many years did total sales exceed $1,200 million?",
            "2",
            "count of 2019: $1,496.5, 2018: $1,202.9",
        ),
        ("What is the change in gross margin from 2017 to 2019?", "3.5%", "31.5% - 28.0% = 3.5%"),
        ("Which years does the table provide information for?", "2019; 2018; 2017", ""),
    ],
)
def test_answers_of_a_statement(question, text, formula):
    answer = TableCalculator(SALES).answer(question)
    assert (answer.text, answer.formula) == (text, formula)


@pytest.mark.parametrize(
    ("table", "question", "text"),
    [
        (BY_YEAR, "What was the revenue in 2022?", "150"),
        (BY_YEAR, "What was the change in revenue from 2021 to 2023?", "20"),
        (BY_YEAR, "In which year was the staff largest?", "2022"),
        (BY_YEAR, "What was the average revenue from 2021 to 2023?", "123.33"),
        (REGIONS, "Which region had the most visitors in 2022?", "North"),
        (REGIONS, "Which region had the second highest visitors in 2022?", "South"),
        (REGIONS, "What is the sum of North and East in 2023?", "80"),
        (REGIONS, "What is the difference between North and South in 2023?", "50"),
        (REGIONS, "How much did North change from 2022 to 2023?", "30"),
        (OUTFLOWS, "What were the average fuel expenses in 2022 and 2023?", "45 thousand"),
        (OUTFLOWS, "What was the change in fuel expenses from 2022 to 2023?", "10 thousand"),
        (OUTFLOWS, "What was the % change in fuel expenses from 2022 to 2023?", "25%"),
        (
            OUTFLOWS,
            "What was the percentage change in income attributable to the owners from 2022 to 2023?",
            "100%",
        ),
        (OUTFLOWS, "What was the change in the average crew from 2022 to 2023?", "-1 thousand"),
        (OUTFLOWS, "What is the 2023 average income attributable to the owners?", "150 thousand"),
        (PENSIONS, "What was the average charge for defined benefit plans from 2018 to 2019?", "50.5"),
        (PENSIONS, "What was the percentage change in the total pension charge from 2018 to 2019?", "0.45%"),
        (PENSIONS, "What was the change in the return on funds between 2018 and 2019?", "-1%"),
        (RECEIVABLES, "What was the change in the total allowance from 2018 to 2019?", "70"),
        (RECEIVABLES, "What was the gross amount of servicing in 2018?", "864"),
        (RECEIVABLES, "What was the average total of the gross amount?", "17,649.5"),
        (SEGMENTS, "What was the average revenue of Print and Radio from fiscal 2021 to fiscal 2022?", "11"),
        (SEGMENTS, "What were the revenues of the Digital Media segment in fiscal 2021?", "40"),
        (BY_QUARTER, "What were the sales in the second quarter of 2018?", "53"),
        (BY_QUARTER, "What was the change in sales from the first to the second quarter of 2019?", "-1"),
        (HARBOUR, "What is the difference between the high and low tide in the third quarter?", "3"),
        (HARBOUR, "What was the change in the high tide from the first to the third quarter?", "-2"),
        (HARBOUR, "In the first quarter, what is the difference between the low and high tide?", "-6"),
        (
            LEASES,
            "What is the percentage of operating leases of more than 5 years in total operating leases?",
            "12.5%",
        ),
    ],
)
def test_answers_of_other_shapes(table, question, text):
    assert TableCalculator(table).answer(question).text == text


@pytest.mark.parametrize(
    "header",
    [
        [["", "2019 (1)", "2018 (2)"]],
        [["", "2 0 1 9", "2 0 1 8"]],
        [["", "Year ended March 31,", "", "Change"], ["% of sales", "2019", "2018", "Amount"]],
    ],
)
def test_periods_head_columns_however_they_are_printed(header):
    rows = [["Freight", "7", "5", "2"], ["Storage", "3", "4", "1"]]
    table = build_data_table(table_from_grid([*header, *(row[: len(header[0])] for row in rows)]))
    assert TableCalculator(table).answer("What was the change in freight from 2018 to 2019?").text == "2"


def test_a_part_is_sure_where_the_question_names_it():
    asked = "What was the {}revenue in fiscal 2022?"
    named = TableCalculator(SEGMENTS).answer(asked.format("Digital Media "))
    assert (named.text, named.confidence) == ("52", 1.0)
    assert TableCalculator(SEGMENTS).answer(asked.format("")).confidence < 0.5
    assert TableCalculator(SEGMENTS).answer("What was the Digital Media revenue in fiscal 2017?") is None


def test_a_line_is_not_compared_with_itself():
    capital = build_data_table(
        Table(("", "December 31, 2022"), (("Common equity tier 1", "20.0"), ("Tier 1", "21.6")))
    )
    asked = "What is the difference between the tier 1 and the tier 2 capital at December 31, 2022?"
    assert TableCalculator(capital).answer(asked).operation == "lookup"


@pytest.mark.parametrize(
    "question",
    ["Why did sales fall in 2018?", "How is revenue recognised?", "What does gross margin mean?"],
)
def test_no_cell_answers_why_and_how(question):
    assert TableCalculator(SALES).answer(question) is None


def test_nothing_is_divided_by_zero():
    table = build_data_table(Table(("", "2023", "2022"), (("Sales", "5", "0"),)))
    assert TableCalculator(table).answer("What was the percentage change in sales from 2022 to 2023?") is None


def test_percentages_and_amounts_are_not_added():
    table = build_data_table(Table(("", "2023", "2022"), (("Sales", "5", "3%"),)))
    assert TableCalculator(table).answer("What was the average of sales in 2022 and 2023?") is None


def test_the_scale_of_the_context_counts_where_the_table_has_none():
    table = build_data_table(Table(("", "2023"), (("Sales", "5"), ("Margin", "3%"))))
    calculator = TableCalculator(table, "The following table shows sales (in thousands):")
    assert calculator.answer("What were sales in 2023?").text == "5 thousand"
    assert calculator.answer("What was the margin in 2023?").text == "3%"


def test_the_table_that_fits_best_answers():
    assert answer_from_tables("What was the gross margin in 2018?", [REGIONS, SALES]).table is SALES
    assert answer_from_tables("Why?", [REGIONS, SALES]) is None


def test_periods_and_operations():
    assert find_periods("from 2017 to 2019") == ["2017", "2018", "2019"]
    assert find_periods("Q2 2020 or the second quarter of 2020, FY21") == ["q2 2020", "2021"]
    assert find_operation("What is the average percentage of sales?") == "average"
    assert find_operation("By how much did sales increase in 2019?") == "change"


class NoModel(NoReader):
    """A reader that finds nothing, or always the same words."""

    name = "none"

    def __init__(self, words=""):
        self.words = words

    def read(self, question, contexts, limit=5):
        return [
            [
                Span(self.words, "text", number, place, place + len(self.words), 9.0)
                for number, passage in enumerate(passages)
                if self.words and (place := passage.text.find(self.words)) >= 0
            ]
            for passages in contexts
        ]

    def confidence(self, score):
        return score / 10


@pytest.fixture
def report(base):
    """A base with one report, and its row nodes as hits."""
    builder = DocumentBuilder()
    builder.add_paragraph("Sales by type of contract were as follows.")
    builder.add_table(table_from_grid(GRID))
    parsed = builder.finish(data=b"report", title="report", media_type="text/plain", parser="test/1")
    base.put_document(parsed, locate(parsed))
    base.catch_up()
    nodes = base.document_nodes(parsed.key)
    return base.snapshot(), [Hit(node, 1.0, (node.id,)) for node in nodes if node.kind == "row"]


def test_the_reader_quotes_each_operand(report):
    snapshot, hits = report
    reader = span_reader(NoModel(), snapshot=snapshot)
    trail = TrailRecorder()
    # One row of the table is enough: the others are read from the base.
    answer = reader.read(Question("What is Other as a percentage of total sales in 2019?"), hits[:1], trail)
    assert answer.text == "2.95%"
    assert answer.formula == "44.1 / $1,496.5 = 2.95%"
    assert [quote.text[quote.answer[0] : quote.answer[1]] for quote in answer.quotes] == ["44.1", "$1,496.5"]
    assert {quote.node for quote in answer.quotes} == {hit.node.id for hit in answer.evidence}
    step = trail.steps[0]
    assert isinstance(step, CalculateStep) and step.outcome == "answered"
    assert answer.to_dict()["formula"] == answer.formula


def test_two_periods_are_compared_by_the_cells_of_a_table(report):
    snapshot, hits = report
    reader = span_reader(NoModel(), snapshot=snapshot)
    answer = reader.read(
        Question("Were the total sales higher in 2017 or in 2019?"), hits[:1], TrailRecorder()
    )
    assert answer.text == "2019"
    assert [quote.text[quote.answer[0] : quote.answer[1]] for quote in answer.quotes] == [
        "$1,107.7",
        "$1,496.5",
    ]
    assert answer.confidence == 0.85


def test_how_many_is_not_answered_by_a_cell_without_a_number(base):
    builder = DocumentBuilder()
    builder.add_table(table_from_grid([["Facility", "Place"], ["Hotels owned", "France"], ["Mills", "Peru"]]))
    parsed = builder.finish(data=b"places", title="places", media_type="text/plain", parser="test/1")
    base.put_document(parsed, locate(parsed))
    base.catch_up()
    hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(parsed.key) if node.kind == "row"]
    reader = span_reader(NoModel(), snapshot=base.snapshot())
    assert (
        reader.read(Question("What is the place of the hotels owned?"), hits, TrailRecorder()).text
        == "France"
    )
    assert reader.read(Question("How many hotels are owned?"), hits, TrailRecorder()).abstained


def test_a_question_that_fits_no_row_is_read(report):
    snapshot, hits = report
    reader = span_reader(NoModel("44.1"), snapshot=snapshot, min_confidence=0.0)
    answer = reader.read(Question("What did the emperor eat?"), hits, TrailRecorder())
    assert answer.text == "44.1 million"
    start, end = answer.quotes[0].answer or (0, 0)
    assert answer.quotes[0].text[start:end] == "44.1"
    off = span_reader(NoModel("44.1"), snapshot=snapshot, calculate=False)
    assert off.read(Question("What was Other in 2019?"), hits, TrailRecorder()).text == "44.1"


@pytest.mark.parametrize(
    ("question", "text", "formula"),
    [
        ("Did total sales increase between 2018 and 2019?", "Yes", "$1,496.5 - $1,202.9 = 293.6"),
        ("Has Other grown from 2017 to 2018?", "No", "56.7 - 70.8 = -14.1"),
        ("Was the gross margin lower in 2018 than in 2019?", "Yes", "31.5% - 30.0% = 1.5%"),
        ("Was the gross margin lower in 2019 than in 2018?", "No", "31.5% - 30.0% = 1.5%"),
        ("Did the operating loss decrease between 2018 and 2019?", "Yes", "(20) - (30) = 10"),
        ("How much has Other declined between 2017 and 2018?", "-14.1 million", "56.7 - 70.8 = -14.1"),
    ],
)
def test_whether_and_how_much_something_grew(question, text, formula):
    result = TableCalculator(SALES).answer(question)
    assert result is not None and (result.text, result.formula) == (text, formula)


@pytest.mark.parametrize(
    "question",
    [
        "Did sales increase or decrease?",
        "Did sales grow by 20 % in 2019?",
        "Is Ada a sales manager?",
        "Did visitors come?",
        "Has Other grown every year from 2017 to 2019?",
    ],
)
def test_other_questions_for_yes_or_no_are_not_computed(question):
    assert TableCalculator(SALES).answer(question) is None
