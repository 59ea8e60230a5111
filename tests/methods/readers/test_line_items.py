"""Questions over several years and for ratios by name: over all tables of a document and its editions."""

from dataclasses import replace

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Location, Question, Span, Table
from clew.methods.readers.line_items import document_lines
from clew.methods.readers.named_ratios import answer_ratio, parse_ratio_question
from clew.methods.readers.year_series import answer_series, parse_series_question
from clew.parse.documents.builder import DocumentBuilder
from span_models import NoReader
from span_readers import span_reader

INCOME = Table(
    ("", "2022", "2021", "2020"),
    (
        ("Net sales", "$800", "$640", "$500"),
        ("Cost of sales", "(520)", "(400)", "(300)"),
        ("Gross profit", "280", "240", "200"),
        ("Operating income", "96", "64", "80"),
        ("Interest expense", "(8)", "(8)", "—"),
        ("Income taxes", "(20)", "(16)", "(20)"),
        ("Net income", "$68", "$40", "$60"),
        ("Effective tax rate", "22.7%", "28.6%", "25.0%"),
        ("Diluted earnings per share", "$0.68", "$0.40", "$0.60"),
    ),
    "Consolidated statements of income (in millions, except per share)",
)
BALANCE = Table(
    ("", "2022", "2021"),
    (
        ("Inventories", "40", "30"),
        ("Total current assets", "140", "120"),
        ("Total assets", "400", "320"),
        ("Total current liabilities", "100", "80"),
        ("Long-term debt", "50", "60"),
        ("Total liabilities", "200", "180"),
        ("Total shareholders' equity", "200", "140"),
    ),
    "Consolidated balance sheets (in millions)",
)
CASH = Table(
    ("", "2022", "2021", "2020"),
    (
        ("Inventories", "(10)", "5", "7"),
        ("Net cash provided by operating activities", "90", "70", "60"),
        ("Capital expenditures", "(30)", "(20)", "(10)"),
        ("Net cash used in investing activities", "(40)", "(25)", "(12)"),
        ("Dividends paid", "(12)", "(11)", "(10)"),
    ),
    "Consolidated statements of cash flows (in millions)",
)
ROPES = Table(
    ("", "2022", "2021", "2020"),
    (("Net sales", "300", "310", "290"), ("Operating income", "30", "20", "10")),
    "Ropes segment (in millions)",
)


def put(base, name, *tables, text="The company makes ropes and sails."):
    builder = DocumentBuilder()
    builder.add_paragraph(text)
    for table in tables:
        builder.add_heading(1, table.caption)
        builder.add_table(table)
    parsed = builder.finish(data=name.encode(), title=name, media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location(f"/docs/{name}", "/docs", 1, 1, 1))
    return parsed.key


@pytest.fixture
def lines(base):
    """The line items of an annual report, its hits, and the base."""
    key = put(base, "acme-report.txt", INCOME, BALANCE, CASH, ROPES)
    base.catch_up()
    hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(key) if node.kind == "passage"]
    return document_lines(hits, base.snapshot()), hits, base.snapshot()


YEARS = (
    ("In which year from 2020 to 2022 was net income highest?", "2022", "$68 (2022) > $60 (2020) > $40 (2021)"),
    (
        "In what year between 2020 and 2022 was Acme's operating income lowest?",
        "2021",
        "96 (2022) > 80 (2020) > 64 (2021)",
    ),
    ("What was the average of operating income over 2020 to 2022?", "80 million", "(80 + 64 + 96) / 3 = 80"),
    ("What were total dividends paid over the last three years?", "33 million", "10 + 11 + 12 = 33"),
    ("What was the median effective tax rate from 2020 to 2022?", "25%", "median of 25.0%, 28.6%, 22.7% = 25%"),
    (
        "How did gross profit develop from 2020 to 2022?",
        "2020: 200 million; 2021: 240 million; 2022: 280 million; rose each year",
        "200 -> 240 (+20.00%) -> 280 (+16.67%)",
    ),
    ("Did net income increase every year from 2020 to 2022?", "No", "$60 (2020) -> $40 (2021) -> $68 (2022)"),
    ("In which years from 2020 to 2022 did operating income fall?", "2021", "80 (2020) -> 64 (2021) -> 96 (2022)"),
    (
        "What was the compound annual growth rate of net sales from 2020 to 2022?",
        "26.49%",
        "($800 / $500) ^ (1/2) - 1 = 26.49%",
    ),
    ("By what percentage did net sales grow in total from 2020 to 2022?", "60%", "($800 - $500) / $500 = 60%"),
    ("In how many years from 2020 to 2022 was net income above $50 million?", "2", "count of 2020: $60, 2022: $68"),
)  # fmt: skip


@pytest.mark.parametrize(("question", "text", "formula"), YEARS)
def test_answers_over_several_years(lines, question, text, formula) -> None:
    asked = parse_series_question(question)
    answer = answer_series(asked, lines[0])
    assert (answer.text, answer.formula) == (text, formula)
    assert len(answer.operands) == (2 if asked.kind == "percent" else 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "In which year from 2017 to 2019 was net income highest?",  # no such years
        "What was the average of tobacco sales from 2020 to 2022?",  # no such line
        "What was the sum of effective tax rates over 2020, 2021 and 2022?",  # percentages are not added
        "What was the average of total assets over 2020 to 2022?",  # one year is missing
    ],
)
def test_what_lacks_a_year_or_a_line_is_not_computed(lines, question) -> None:
    asked = parse_series_question(question)
    assert asked is not None and answer_series(asked, lines[0]) is None


@pytest.mark.parametrize(
    "question",
    [
        "What was net income in 2022?",
        "Was net income higher in 2021 or in 2022?",
        "What is the percentage change in net sales from 2020 to 2022?",
        "Which quarter from Q1 2020 to Q4 2022 was best?",
        "Who wrote the report on the years 2020 to 2022?",
    ],
)
def test_other_questions_are_not_over_several_years(question) -> None:
    assert parse_series_question(question) is None


RATIOS = (
    ("What was the operating margin in 2022?", "12%", "96 / $800 = 12%"),
    ("What was Acme's gross margin in FY2021?", "37.5%", "240 / $640 = 37.5%"),
    ("What is the current ratio?", "1.4", "140 / 100 = 1.4"),
    ("What was the quick ratio at December 31, 2022?", "1", "(140 - 40) / 100 = 1"),
    ("What was the debt to equity ratio in 2022?", "0.25", "50 / 200 = 0.25"),
    ("What was free cash flow in 2022?", "60 million", "90 - 30 = 60"),
    ("What was EPS growth in 2022?", "70%", "($0.68 - $0.40) / $0.40 = 70%"),
    ("What was the interest coverage in 2022?", "12", "96 / 8 = 12"),
    (
        "Does Acme have an improving operating margin as of FY2022? If it is not useful, say so.",
        "Yes, operating margin rose: 10% (2021), 12% (2022)",
        "2021: 64 / $640 = 10%; 2022: 96 / $800 = 12%",
    ),
)


@pytest.mark.parametrize(("question", "text", "formula"), RATIOS)
def test_ratios_are_computed_from_the_lines_of_statements(lines, question, text, formula) -> None:
    answer = answer_ratio(parse_ratio_question(question), lines[0])
    assert (answer.text, answer.formula) == (text, formula)


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "What was the operating margin of the ropes segment in 2022?",  # not that of the company
        "What was the operating margin in 2015?",
        "What was the current ratio in 2020?",  # the balance sheet has two years
        "What was the inventory turnover of Hamburg in 2022?",
    ],
)
def test_a_ratio_of_another_thing_or_year_is_not_computed(lines, question) -> None:
    assert answer_ratio(parse_ratio_question(question), lines[0]) is None


def test_other_questions_ask_for_no_ratio() -> None:
    assert parse_ratio_question("What were total current assets in 2022?") is None
    assert parse_ratio_question("What was the operating margin in Q2 2022?") is None


class Words(NoReader):
    """A trained reader that is sure of the same words for every question."""

    def __init__(self, words):
        self.words = words

    def read(self, question, contexts, limit=5):
        return [
            [
                Span(self.words, "text", number, place, place + len(self.words), 9.0)
                for number, passage in enumerate(passages)
                if (place := passage.text.find(self.words)) >= 0
            ]
            for passages in contexts
        ]

    def confidence(self, score):
        return 0.9


def test_the_reader_quotes_the_operands_of_two_tables(lines) -> None:
    _, hits, snapshot = lines
    reader = span_reader(NoReader(), snapshot=snapshot)
    answer = reader.read(Question("What was the return on assets in 2022?"), hits, TrailRecorder())
    assert (answer.text, answer.formula) == ("17%", "$68 / 400 = 17%")
    assert [quote.text[slice(*(quote.answer or ()))] for quote in answer.quotes] == ["$68", "400"]
    assert len({hit.node.parent for hit in answer.evidence}) == 2


VALUES = (
    ("What were net sales in 2021?", "$640 million", ""),
    ("How much net cash did operating activities provide in 2022?", "90 million", ""),
    ("How large were inventories in 2021?", "30 million", ""),
    ("What was diluted earnings per share in 2022?", "$0.68", ""),
    ("What are total assets?", "400 million", ""),
    ("What was total revenue in 2020?", "$500 million", ""),
    ("What were earnings in 2021?", "$40 million", ""),
    ("What was the cost of goods sold in 2022?", "(520) million", ""),
    ("How much were interest expenses in 2022?", "(8) million", ""),
    ("By how much did net sales grow from 2021 to 2022?", "160 million", "$800 - $640 = 160"),
    ("What was the percent change in operating income from 2020 to 2021?", "-20%", "(64 - 80) / 80 = -20%"),
    ("How did gross profit change?", "40 million", "280 - 240 = 40"),
)


def test_a_line_item_named_in_full_is_that_of_the_companys_own_statement(lines) -> None:
    """No hit is a table: the reader looks at all tables of the document. The segment has the same labels."""
    _, hits, snapshot = lines
    reader = span_reader(Words("nothing"), snapshot=snapshot)
    for question, text, formula in VALUES:
        answer = reader.read(Question(question), hits, TrailRecorder())
        assert (answer.text, answer.formula) == (text, formula), question
        assert answer.confidence == 0.85 and answer.quotes[0].answer is not None


GROUPED = (
    Table(
        ("", "2022", "2021"),
        (
            ("Net revenues", "$800", "$640"),
            ("Net income", "$68", "$40"),
            ("Income taxes", "(20)", "(16)"),
            ("Basic earnings per common share:", "", ""),
            ("Income from continuing operations", "$0.75", "$0.45"),
            ("Net income attributable to Acme", "$0.70", "$0.42"),
            ("Diluted earnings per common share:", "", ""),
            ("Income from continuing operations", "$0.73", "$0.44"),
            ("Net income attributable to Acme", "$0.68", "$0.40"),
        ),
        "Consolidated statements of income (in millions, except per share)",
    ),
    Table(
        ("", "2022", "2021"),
        (
            ("Inventories, net:", "", ""),
            ("Raw materials", "10", "8"),
            ("Work in process", "5", "4"),
            ("Finished goods", "25", "18"),
            ("Total current assets", "140", "120"),
            ("Total assets", "400", "320"),
            ("Total current liabilities", "100", "80"),
            ("Total liabilities", "200", "180"),
        ),
        "Consolidated balance sheets (in millions)",
    ),
)


@pytest.fixture
def grouped(base):
    """The line items of a report whose statements group their rows."""
    key = put(base, "acme-report.txt", *GROUPED)
    base.catch_up()
    hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(key) if node.kind == "passage"]
    return document_lines(hits, base.snapshot()), hits, base.snapshot()


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What was Acme's diluted EPS in 2022?", "$0.68"),
        ("What were reported diluted earnings per share in 2021?", "$0.40"),
        ("How much was Acme's EPS in 2022?", "$0.68"),
        ("What was the basic earnings per common share in 2022?", "$0.70"),
    ],
)
def test_earnings_per_share_are_those_of_all_operations(grouped, question, text) -> None:
    _, hits, snapshot = grouped
    answer = span_reader(NoReader(), snapshot=snapshot).read(Question(question), hits, TrailRecorder())
    assert answer.text == text


def test_inventories_without_a_sum_are_summed(grouped) -> None:
    answer = answer_ratio(parse_ratio_question("What was the quick ratio in 2022?"), grouped[0])
    assert (answer.text, answer.formula) == ("1", "(140 - 10 - 5 - 25) / 100 = 1")


def test_a_label_without_a_word_of_the_question_is_no_rival(base) -> None:
    rate = Table(
        ("", "2022", "2021"), (("Effective tax rate", "26.9%", "21.9%"), ("Taxes", "9", "8")), "Taxes"
    )
    hedges = Table(("", "2022", "2021"), (("Tax effect", "2", "1"), ("Gains", "4", "3")), "Hedges")
    # "Rate" tells little where many labels have it.
    rates = Table(
        ("", "2022", "2021"),
        tuple(
            (f"{name} rate", "3", "2")
            for name in ("Discount", "Growth", "Interest", "Exchange", "Lapse", "Swap")
        ),
        "Rates",
    )
    for number, tables in enumerate(((rate, rates), (rate, rates, hedges))):
        key = put(base, f"report{number}.txt", *tables)
        base.catch_up()
        hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(key) if node.kind == "passage"]
        chosen = document_lines(hits, base.snapshot()).choose(
            "What was the effective tax rate in 2022?", ["2022"]
        )
        assert chosen is not None and chosen[1], number
        assert chosen[0].operand("2022").text == "26.9%"


def test_what_no_label_says_in_full_is_left_to_the_tables_that_were_found(lines) -> None:
    items, _, _ = lines
    for question in (
        "What were net sales of sails in 2022?",
        "What was goodwill in 2022?",
        "What was profit in 2022?",
    ):
        assert items.choose(question, ["2022"]) is None, question
    assert items.choose("What were net sales in 2019?", ["2019"]) is None


def test_tables_that_disagree_leave_it_open(base) -> None:
    stock = Table(
        ("", "2022", "2021"), (("Research", "7", "6"), ("Sales", "2", "2")), "Compensation in stock"
    )
    staff = Table(("", "2022", "2021"), (("Research", "90", "80"), ("Sales", "20", "20")), "People")
    budget = Table(("", "2022"), (("Research", "90"), ("Sales", "21")), "Budget")
    question = "What was research in 2022?"
    for tables, text in (((stock, staff), None), ((stock, staff, budget), "90")):
        key = put(base, f"{len(tables)}.txt", *tables)
        base.catch_up()
        hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(key) if node.kind == "passage"]
        chosen = document_lines(hits, base.snapshot()).choose(question, ["2022"])
        assert (chosen and chosen[0].operand("2022").text) == text


def test_another_number_is_no_answer_to_a_question_for_a_ratio_or_a_year(lines) -> None:
    _, hits, snapshot = lines
    reader = span_reader(Words("ropes"), snapshot=snapshot)
    for question in (
        "What was the inventory turnover of the ropes segment in 2022?",
        "In which year from 2016 to 2019 was net income highest?",
    ):
        answer = reader.read(Question(question), hits, TrailRecorder())
        assert answer.abstained and not answer.quotes, answer.text
    assert reader.read(Question("What does the company make?"), hits, TrailRecorder()).text == "ropes"


def test_years_of_other_editions_belong_to_the_line(base) -> None:
    keys = [
        put(
            base,
            f"ferry-{year}.txt",
            Table(("", "Persons"), (("Passengers", count), ("Crew", "7")), "Traffic"),
        )
        for year, count in ((2019, "1,200"), (2020, "300"), (2021, "900"), (2022, "1,500"))
    ]
    other = put(base, "canal.txt", Table(("", "2022"), (("Passengers", "44"),), "Traffic"))
    base.catch_up()
    nodes = [node for key in keys for node in base.document_nodes(key) if node.kind == "passage"]
    lines = document_lines([Hit(node, 1.0, (node.id,)) for node in nodes], base.snapshot())
    question = parse_series_question("In which year from 2019 to 2022 were passengers fewest?")
    answer = answer_series(question, lines)
    assert (answer.text, answer.formula) == ("2020", "1,500 (2022) > 1,200 (2019) > 900 (2021) > 300 (2020)")
    assert len({operand.row.id.partition(":")[0] for operand in answer.operands}) == 4
    # Hits of unrelated documents belong to no one line.
    mixed = [Hit(node, 1.0, (node.id,)) for node in (nodes[0], *base.document_nodes(other)[:1])]
    assert document_lines(mixed, base.snapshot()) is None


@pytest.fixture
def two_companies(base):
    """Hits of two reports, of which one says nothing of its income; and the snapshot."""
    changed = {"Net sales": ("$1,900", "$610", "$500"), "Net income": ("$18", "$70", "$60")}
    larger = replace(INCOME, rows=tuple((row[0], *changed.get(row[0], row[1:])) for row in INCOME.rows))
    keys = [
        put(base, "Acme Ropes 2022.txt", INCOME, BALANCE, text="Acme Ropes makes ropes."),
        put(base, "Bolt Anchors 2022.txt", larger, BALANCE),
    ]
    base.catch_up()
    hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(keys[0]) if node.kind == "passage"]
    return hits, base.snapshot()


@pytest.mark.parametrize(
    ("question", "text", "quoted"),
    [
        (
            "Which company had the higher net income in 2022, Acme Ropes or Bolt Anchors?",
            "Acme Ropes",
            {"$68", "$18"},
        ),
        ("Who had more sales in 2022, Acme Ropes or Bolt Anchors?", "Bolt Anchors", {"$800", "$1,900"}),
        ("Was Acme Ropes's net income higher than Bolt Anchors's in 2021?", "No", {"$40", "$70"}),
        (
            "What was Acme Ropes's net income in 2022, 2021 and 2020?",
            "$68 million; $40 million; $60 million",
            None,
        ),
    ],
)
def test_line_items_of_companies_are_compared(two_companies, question, text, quoted) -> None:
    hits, snapshot = two_companies
    answer = span_reader(NoReader(), snapshot=snapshot).read(Question(question), hits, TrailRecorder())
    assert answer.text == text and not answer.abstained
    if text == "Acme Ropes":
        assert answer.formula == "$68 million > $18 million"
    if quoted:
        assert {quote.text[slice(*(quote.answer or (0, 0)))] for quote in answer.quotes} == quoted


@pytest.mark.parametrize(
    "question",
    [
        "Which company had the higher net income in 2022, Acme Ropes or Corran Sails?",
        "Who had more goodwill in 2022, Acme Ropes or Bolt Anchors?",
        "Who had more sales in 2020, Acme Ropes or Corran Sails?",
        "Which company is the bigger, Acme Ropes or Bolt Anchors?",
    ],
)
def test_what_no_values_are_there_for_is_not_compared(two_companies, question) -> None:
    hits, snapshot = two_companies
    answer = span_reader(Words("Acme Ropes"), snapshot=snapshot).read(
        Question(question), hits, TrailRecorder()
    )
    assert answer.abstained
