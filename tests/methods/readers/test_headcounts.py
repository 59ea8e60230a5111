"""How many people work for a company, by what documents about it say."""

import doctest

import pytest

from clew.core.types import Location
from clew.methods.readers import headcounts
from clew.methods.readers.headcounts import find_headcount, parse_headcount_question
from clew.parse.documents.builder import DocumentBuilder

#: The wordings of annual reports.
REPORT = (
    "As of June 30, 2023, we had approximately 41,000 employees, with temporary workers, worldwide.",
    "With approximately 35,000 employees at 166 plants, the Ropes segment is one of the largest of its kind.",
    "As of the end of 2019 we employed about 52,500 people in 30 countries.",
    "During 2023 we closed approximately 90,000 accounts of customers, and our colleagues opened 120,000.",
    "Our plan covers people with more than 60,000 hours. The 401(k) plan is for employees.",
)


@pytest.fixture
def report(base):
    builder = DocumentBuilder()
    for text in REPORT:
        builder.add_paragraph(text)
    parsed = builder.finish(data=b"acme", title="Acme", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/acme.txt", "/docs", 1, 1, 1))
    base.catch_up()
    return parsed.key, base.snapshot()


def test_examples_in_docstrings():
    assert doctest.testmod(headcounts).failed == 0


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("How many employees did Acme have in 2023?", "41,000"),
        ("How many people worked for Acme at the end of 2019?", "52,500"),
        ("What was the number of employees of Acme as of June 30, 2023?", "41,000"),
        ("What is Acme's headcount?", "41,000"),
        ("What is the size of Acme's workforce?", "41,000"),
    ],
)
def test_the_number_is_the_largest_of_the_year_or_the_latest(report, question, number):
    key, snapshot = report
    asked = parse_headcount_question(question)
    assert asked is not None and asked.whose == "Acme"
    count = find_headcount(asked, {key}, snapshot)
    assert count is not None and count.text == number
    assert count.node.text[count.start : count.end] == number


@pytest.mark.parametrize(
    "question",
    [
        "How many people live in Corran?",
        "How many employees were injured?",
        "How many stores does Acme have?",
        "Who employs most people?",
    ],
)
def test_other_questions_ask_for_no_headcount(question):
    assert parse_headcount_question(question) is None


def test_nothing_is_found_where_nothing_is_said(report):
    _, snapshot = report
    assert find_headcount(parse_headcount_question("How many people work for Acme?"), (), snapshot) is None
