"""Where a company has its headquarters, by what documents about it say."""

import doctest

import pytest

from clew.core.trail import SpanReadStep, TrailRecorder
from clew.core.types import Hit, Location, Question
from clew.methods.readers import headquarters
from clew.methods.readers.headquarters import find_headquarters, parse_headquarters_question
from clew.methods.readers.spans import SpanAnswerReader
from clew.parse.documents.builder import DocumentBuilder
from span_models import NoReader

REPORT = (
    "12 Quay Street, Corran 04410 (Address of principal executive offices) (Zip Code)",
    "Our corporate headquarters are located in Upper Quill, where we occupy two mills.",
    "The Freight segment's principal office is located in Marl, which has a harbour.",
    "Other locations include the headquarters for Tern Works Limited in St. Helier, Jersey; and a depot in Vold.",
    "Our principal executive officer is in Dunmere. Harbour dues are paid at our offices in Oskell.",
    "Acme's registered office address and the address where the register is kept is 3 Mint Row, Vold.",
    "Our head office is in a 2.2 million square foot building located in lower Corran on land leased from the port.",
    "Pell & Lind, based in Marl, audits the accounts. They began in 1922.",
)

QUESTIONS = {
    "Where are Acme's corporate headquarters?": "Upper Quill",
    "Where does Acme have its head office?": "lower Corran",
    "What is the address of Acme?": "12 Quay Street, Corran 04410",
    "What is Acme's address?": "12 Quay Street, Corran 04410",
    "Where are the principal executive offices of Acme?": "12 Quay Street, Corran 04410",
    "Where is Acme's registered office?": "3 Mint Row, Vold",
    "Where is Tern Works headquartered?": "St. Helier, Jersey",
    "In which town is Pell & Lind based?": "Marl",
    # The office of a segment is not that of the company, and Tern Works Limited is not Tern.
    "Where is Boeing based?": None,
    "Where is Tern headquartered?": None,
}


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
    assert doctest.testmod(headquarters).failed == 0


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_place_is_that_of_the_company_itself(report, question):
    key, snapshot = report
    asked = parse_headquarters_question(question)
    assert asked is not None
    place = find_headquarters(asked, {key}, snapshot, is_subject="Acme" in question)
    assert (place and place.place) == QUESTIONS[question]
    assert place is None or place.node.text[place.start : place.end] == place.place


def test_an_address_above_the_line_that_says_what_it_is_counts(base):
    builder = DocumentBuilder()
    builder.add_heading(1, "7 Quay Street, Corran 04410")
    builder.add_paragraph("(Address of principal executive offices)")
    parsed = builder.finish(data=b"acme", title="Acme", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/acme.txt", "/docs", 1, 1, 1))
    base.catch_up()
    asked = parse_headquarters_question("Where are the executive offices of Acme?")
    place = find_headquarters(asked, {parsed.key}, base.snapshot(), is_subject=True)
    assert place is not None and place.place == "7 Quay Street, Corran 04410"


@pytest.mark.parametrize(
    "question",
    [
        "Where was the founder of Acme born?",
        "Where is the office of the mayor?",
        "What is the address of the pilot house?",
        "Who works at the headquarters of Acme?",
    ],
)
def test_other_questions_ask_for_no_headquarters(question):
    assert parse_headquarters_question(question) is None


def test_the_reader_quotes_the_sentence_and_says_how_it_was_read(report):
    key, snapshot = report
    last = snapshot.nodes(snapshot.rows([f"{key}:5"]))[0]
    trail = TrailRecorder()
    answer = SpanAnswerReader(NoReader(), snapshot=snapshot).read(
        Question("Where are Acme's corporate headquarters?"), [Hit(last, 1.0, (last.id,))], trail
    )
    assert answer.text == "Upper Quill" and answer.confidence == 0.7
    (quote,) = answer.quotes
    assert quote.text == REPORT[1]
    step = trail.steps[0]
    assert isinstance(step, SpanReadStep) and step.model == "what is said of headquarters"
