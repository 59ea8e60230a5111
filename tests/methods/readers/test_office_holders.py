"""Who holds an office, by who is named beside it."""

import doctest

import pytest

from clew.core.trail import SpanReadStep, TrailRecorder
from clew.core.types import Hit, Location, Question
from clew.methods.readers import office_holders
from clew.methods.readers.office_holders import find_holder, parse_office_question
from clew.methods.readers.spans import SpanAnswerReader
from clew.parse.documents.builder import DocumentBuilder
from span_models import NoReader

OFFICERS = (
    "Executive officers of Acme as of today.",
    "Ada Pell 58 Chief Financial Officer and Executive Vice President",
    "BO LIND — Chairman and Chief Executive Officer",
    "Cy Marsh, M.D., age 44, Executive Vice President and Chief Medical Officer of Acme since May 2022; Chief Risk "
    "Officer of Tern Works from January 2011 until 2018.",
    "Mr. Marsh was formerly Chief Executive Officer of the port.",
    "Dee Vane, Assistant General Counsel, and Flo Orrin, General Counsel, signed.",
    "I, Bo Lind, Chairman and Chief Executive Officer of Acme, certify that I have reviewed this report.",
    "/s/ Ada Pell Ada Pell, Chief Financial Officer",
    "Gus Wick: Secretary. Hal Quint: Secretary.",
    "The Chief Operating Officer reports to the board.",
    "Ida Strake, Chief Executive Officer of Tern Works, spoke at the opening.",
    "In 2020 Jo Ames met the Treasurer.",
    "23.1 Consent of Marl & Finch LLP, Independent Registered Public Accounting Firm",
    "Independent auditor of the port: Tern Accountants LLP, formerly.",
    "The lease was drawn up by Quay Partners LLP.",
    "Kit Orme, Head of Ports since May 2019 and Chief Sustainability Officer since June 2021. Chief Clerk from 2011 "
    "until 2018.",
)

HOLDERS = {
    "Who is Acme's chief financial officer?": "Ada Pell",
    "Who is the CEO of Acme?": "Bo Lind",
    "Who is the chief medical officer of Acme?": "Cy Marsh",
    "Who is Acme's general counsel?": "Flo Orrin",
    "Who has been Acme's auditor since 1983?": "Marl & Finch LLP",
    "Which firm is the independent auditor of the company?": "Marl & Finch LLP",
    "Who audits Acme?": "Marl & Finch LLP",
    "Who runs Acme?": "Bo Lind",
    "Which firm audited Acme's accounts in 2022?": "Marl & Finch LLP",
    "Who became Acme's chief sustainability officer in June 2021?": "Kit Orme",
    "Who was appointed chief sustainability officer of Acme in 2020?": None,
    # Two secretaries, nobody named beside the office, an office elsewhere and in the past, a verb in between.
    "Who is the secretary of Acme?": None,
    "Who is Acme's chief operating officer?": None,
    "Who is Acme's chief risk officer?": None,
    "Who is the treasurer of Acme?": None,
}


@pytest.fixture
def report(base):
    builder = DocumentBuilder()
    for text in OFFICERS:
        builder.add_paragraph(text)
    parsed = builder.finish(data=b"acme", title="Acme", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/acme.txt", "/docs", 1, 1, 1))
    base.catch_up()
    return parsed.key, base.snapshot()


def test_examples_in_docstrings():
    assert doctest.testmod(office_holders).failed == 0


def test_who_is_named_beside_an_office_holds_it(report):
    key, snapshot = report
    for question, name in HOLDERS.items():
        asked = parse_office_question(question)
        assert asked is not None, question
        holder = find_holder(asked, {key}, snapshot, is_subject=True)
        assert (holder and holder.name) == name, question
        assert holder is None or holder.node.text[holder.start : holder.end] == name


def test_an_office_elsewhere_needs_the_name_of_where(report):
    key, snapshot = report
    for question, name in {
        "Who is the chief executive officer of Tern Works?": "Ida Strake",
        "Who is the chief executive officer of Boeing?": None,
    }.items():
        holder = find_holder(parse_office_question(question), {key}, snapshot, is_subject=False)
        assert (holder and holder.name) == name, question


def test_other_questions_ask_for_no_office():
    for question in (
        "Who built the pier?",
        "Who is Ada Pell?",
        "What does the chairman earn?",
        "Who is the culprit?",
    ):
        assert parse_office_question(question) is None


def test_the_reader_quotes_the_mention_and_says_how_it_was_read(report):
    key, snapshot = report
    first = snapshot.nodes(snapshot.rows([f"{key}:1"]))[0]
    trail = TrailRecorder()
    answer = SpanAnswerReader(NoReader(), snapshot=snapshot).read(
        Question("Who is Acme's chief financial officer?"), [Hit(first, 1.0, (first.id,))], trail
    )
    assert answer.text == "Ada Pell" and answer.confidence == 0.8
    (quote,) = answer.quotes
    assert "Ada Pell" in quote.text and "Chief Financial Officer" in quote.text
    step = trail.steps[0]
    assert isinstance(step, SpanReadStep) and step.model == "names beside the office"


MINUTES = (
    "Present:\n- The Mayor, Councillor Inge Dahl\n- Councillors Bo Lind and Ada Pell\n- The Town Clerk, Mr Per Vold\n"
    "- The Borough Surveyor and the Town Clerk's deputy",
    "The Surveyor spoke of drains. Signed: Inge Dahl, Mayor of Corran.",
    "Tor Aas, Harbour Master of Corran, sent his regrets.",
)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who is the mayor of Corran?", "Inge Dahl"),
        ("Who was mayor of Corran in 1951?", "Inge Dahl"),
        ("Who is the town clerk?", "Per Vold"),
        # Nobody is named beside the surveyor; the item before names somebody else. No master but that of the harbour.
        ("Who is the borough surveyor?", None),
        ("Who is the master of Corran?", None),
    ],
)
def test_roles_are_read_within_the_item_of_a_list(base, question, name):
    builder = DocumentBuilder()
    for text in MINUTES:
        builder.add_paragraph(text)
    parsed = builder.finish(data=b"corran", title="Minutes", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/corran-minutes.txt", "/docs", 1, 1, 1))
    base.catch_up()
    holder = find_holder(parse_office_question(question), {parsed.key}, base.snapshot(), is_subject=True)
    assert (holder and holder.name) == name


def test_an_office_that_several_documents_fill_differently_has_no_holder(base):
    for number, name in enumerate(("Inge Dahl", "Bo Lind")):
        builder = DocumentBuilder()
        builder.add_paragraph(f"Signed by {name}, Mayor, in the town hall.")
        parsed = builder.finish(data=name.encode(), title=name, media_type="text/plain", parser="test/1")
        base.put_document(parsed, Location(f"/docs/{number}.txt", "/docs", 1, 1, 1))
        base.catch_up()
        snapshot = base.snapshot()
        nodes = [snapshot.nodes(snapshot.rows([f"{document.key}:1"]))[0] for document in snapshot.documents()]
        hits = [Hit(node, 1.0, (node.id,)) for node in nodes]
        answer = SpanAnswerReader(NoReader(), snapshot=snapshot).read(
            Question("Who is the mayor?"), hits, TrailRecorder()
        )
        assert answer.abstained is (number == 1)
