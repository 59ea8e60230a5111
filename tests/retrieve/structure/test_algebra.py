"""Counting, listing, locating, existence and differences, on documents as people have them."""

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.parse.documents.reader import read_file
from clew.retrieve.structure.grammar import parse_question
from clew.retrieve.structure.lookup import StructureSearch
from structure_documents import write_documents

ULTA = "ULTABEAUTY_2023Q4_EARNINGS.pdf"


@pytest.fixture(scope="module")
def snapshot(lasting, tmp_path_factory):
    paths = sorted(write_documents(tmp_path_factory.mktemp("structure")).iterdir())
    return lasting.snapshot([read_file(path) for path in paths], [path.name for path in paths])


def ask(snapshot, question):
    return StructureSearch(snapshot).find(Question(question), TrailRecorder())


def pages(result):
    return {(hit.node.document_name.split("_")[0], hit.node.page) for hit in result.hits}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "How does page 8 of the Ulta release differ from page 10 of the Amcor release?",
            {("ULTABEAUTY", 8), ("AMCOR", 10)},
        ),
        ("What is said about the outlook on page 2 of the Ulta press release?", {("ULTABEAUTY", 2)}),
        ("What do pages two to three of the Ulta report say?", {("ULTABEAUTY", 2), ("ULTABEAUTY", 3)}),
        ("What is on page 59 of NIKE_2023_10K.pdf?", {("NIKE", 59)}),
        ("p3 of the Ulta release", {("ULTABEAUTY", 3)}),
        ("What is on the page after page 3 of the Ulta release?", {("ULTABEAUTY", 4)}),
        ("the page before Exhibit 1 in the Ulta release", {("ULTABEAUTY", 5)}),
        ("What does Exhibit 1 of the Ulta release show?", {("ULTABEAUTY", 6)}),
        ("Compare pages 1 of the Boeing 10-K and 2 of the Costco 10-K", {("BOEING", 1), ("COSTCO", 2)}),
    ],
)
def test_places_are_shown_and_nothing_else(snapshot, question, expected):
    result = ask(snapshot, question)
    assert pages(result) == expected
    assert result.text == ""


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many rows does sales.csv have?", "sales.csv has 2,000 rows."),
        ("How many tables does the Ulta release have?", "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 tables."),
        ("how long is the Boeing annual report", "BOEING_2022_10K.pdf has 4 pages."),
        (
            "How many tables are on page 6 of the Ulta release?",
            "Page 6 of ULTABEAUTY_2023Q4_EARNINGS.pdf has 1 table.",
        ),
        ("How many documents do I have?", "There are 9 documents."),
        (
            "How many exhibits are there in the Ulta release?",
            "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 exhibits.",
        ),
        ("Which page of the Boeing 10-K holds the effective tax rate?", "Page 3 of BOEING_2022_10K.pdf"),
        (
            "Which page of the Ulta release has Exhibit 3?",
            "Page 8 of ULTABEAUTY_2023Q4_EARNINGS.pdf: Exhibit 3",
        ),
        (
            "Which pages of the Ulta release have tables?",
            "ULTABEAUTY_2023Q4_EARNINGS.pdf has tables on pages 6, 7, 8 and 9.",
        ),
        (
            "Is there an Exhibit 5 in the Ulta release?",
            "No. ULTABEAUTY_2023Q4_EARNINGS.pdf has no exhibit 5.",
        ),
        ("Does the Ulta release have any tables on page 2?", ""),
        ("Which of my documents is the longest?", "NIKE_2023_10K.pdf, with 60 pages."),
        (
            "What does page 99 of the Amcor release say?",
            "AMCOR_2023Q4_EARNINGS.pdf has 14 pages; it has no page 99.",
        ),
        ("page 99", "No document has a page 99: the longest, NIKE_2023_10K.pdf, has 60 pages."),
        ("Show me row 2001 of sales.csv", "sales.csv has 2,000 rows in 1 table; there is no row 2001."),
        (
            "What is in table 7 of the Ulta release?",
            f"{ULTA} has 4 tables; it has no table 7.",
        ),
    ],
)
def test_what_can_be_computed_is_computed(snapshot, question, text):
    assert ask(snapshot, question).text.replace("MICROSOFT", "NIKE") == text


def test_the_tables_of_a_document_are_listed_and_of_no_other(snapshot):
    result = ask(snapshot, "which tables are there in the Ulta report?")
    assert result.text.splitlines() == [
        "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 tables:",
        "1. Exhibit 1 Condensed Consolidated Statements of Income, page 6, 3 rows",
        "2. Exhibit 2 Condensed Consolidated Balance Sheets, page 7, 3 rows",
        "3. Exhibit 3 Condensed Consolidated Statements of Cash Flows, page 8, 3 rows",
        "4. Exhibit 4 Store Update, page 9, 3 rows",
    ]
    assert {hit.node.document_name for hit in result.hits} == {"ULTABEAUTY_2023Q4_EARNINGS.pdf"}


def test_a_row_of_a_table_in_a_file(snapshot):
    (hit,) = ask(snapshot, "Show me row 1500 of the table in sales.csv").hits
    assert "INV-11500" in hit.node.text


def test_what_changed_between_two_documents(snapshot):
    result = ask(snapshot, "What changed between lease-2022.md and lease-2023.md?")
    assert result.text.splitlines() == [
        "Changes from lease-2022.md to lease-2023.md:",
        "- Rent: The rent is 800 dollars a month, due on the first day.",
        "+ Rent: The rent is 950 dollars a month, due on the first day.",
        "+ Parking: Two places in the yard belong to the lease.",
    ]
    assert len(result.hits) == 3


@pytest.mark.parametrize(
    "question",
    [
        "How does Boeing's effective tax rate in 2022 compare to 2021?",
        "How did deliveries in 2022 compare with 2021?",
        "How many pages did the tenant write about the mill?",
        "How many tables did Ulta Beauty sell in 2023?",
        "What changed at the mill between 2022 and 2023?",
        "Which section of the roof leaks?",
        "What is the conference call about?",
        "Where is the mill?",
        "Is there a wheel at the mill?",
    ],
)
def test_questions_about_content_are_left_to_the_search(snapshot, question):
    assert not ask(snapshot, question)


def test_a_question_of_two_parts_is_two_queries():
    first, second = parse_question(
        "How many tables are there in the lease and what is in section 2 of the lease?"
    )
    assert (first.operation, first.kind) == ("count", "table")
    assert second.operation == "show"
    assert ("section", "2") in [(selector.word, selector.label) for selector in second.selectors]
