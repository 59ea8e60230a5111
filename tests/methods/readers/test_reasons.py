"""Why something is so, by the clauses of documents that give a cause."""

import doctest

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Location, Question
from clew.methods.readers import reasons
from clew.methods.readers.answer_kinds import is_impossible
from clew.methods.readers.reasons import parse_reason_question
from clew.methods.readers.spans import SpanAnswerReader
from clew.parse.documents.builder import DocumentBuilder
from span_models import NoReader

#: Heading and text; the wordings are those of annual reports.
REPORT = (
    (
        "Results",
        "Operating income decreased $5.4 million, or 41%, in 2022 compared to 2021. The decrease in operating income "
        "was primarily driven by the charges for the lost steamer, partially offset by lower coal prices.",
    ),
    (
        "Freight segment",
        "Operating income decreased in 2022 compared to 2021 due to the closing of the quay.",
    ),
    (
        "Results",
        "Net sales increased 7% in 2022 primarily due to higher fares. Net sales decreased in 2020 as a result of "
        "the strike at the coal port.",
    ),
    ("Cost of coal", "Costs in 2022 rose, reflecting the war in the east."),
    ("The market", "The market was closed because the bridge had been washed away."),
    ("Dividends", "The dividend was lower. It results from fewer shares."),
    ("Staff", "Wages fell in 2022 due to:"),
    (
        "Fares",
        "Fares increased in 2022, reflecting an operational increase of $12.2 million. The operational increase in "
        "fares was mainly due to the new bridge.",
    ),
)


@pytest.fixture
def report(base):
    builder = DocumentBuilder()
    for heading, text in REPORT:
        builder.add_heading(1, heading)
        builder.add_paragraph(text)
    parsed = builder.finish(data=b"acme", title="Acme", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/acme.txt", "/docs", 1, 1, 1))
    base.catch_up()
    hits = [Hit(node, 1.0, (node.id,)) for node in base.document_nodes(parsed.key) if node.kind == "passage"]
    return hits[::-1], base.snapshot()


def test_examples_in_docstrings():
    assert doctest.testmod(reasons).failed == 0


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Why did operating income decrease in 2022?", "the charges for the lost steamer"),
        ("What was the main reason for the decline in operating income?", "the charges for the lost steamer"),
        ("Why did net sales grow in 2022?", "higher fares"),
        ("What caused net sales to fall in 2020?", "the strike at the coal port"),
        ("Why did fares go up in 2022?", "the new bridge"),
        ("How come the market was closed?", "the bridge had been washed away"),
        ("Why was the market closed?", "the bridge had been washed away"),
        ("Why was the dividend lower?", "fewer shares"),
        # No sentence gives a cause of these.
        ("Why did operating income increase in 2022?", None),
        ("Why did net sales fall in 2022?", None),
        ("Why did wages fall in 2022?", None),
        ("Why was the bridge washed away?", None),
        ("Why?", None),
    ],
)
def test_the_cause_is_that_of_what_is_asked_about(report, question, text):
    hits, snapshot = report
    answer = SpanAnswerReader(NoReader(), snapshot=snapshot).read(Question(question), hits, TrailRecorder())
    assert (None if answer.abstained else answer.text) == text
    if text:
        (quote,) = answer.quotes
        node = next(hit.node for hit in hits if hit.node.id == quote.node)
        assert quote.answer and node.text[slice(*quote.answer)] == text


@pytest.mark.parametrize(
    "question", ["When did sales fall?", "What was the reason given?", "How did it happen?", ""]
)
def test_other_questions_ask_for_no_cause(question):
    assert not parse_reason_question(question).strip(" ?")


def test_an_amount_is_no_cause():
    assert is_impossible("Why did sales fall?", "$21.7 million (12%)")
    assert not is_impossible("Why did sales fall?", "12 fewer ships")
