"""What a single row of a table says, found by the row that has every word of a question."""

import numpy as np
import pytest

from clew.core.trail import SpanReadStep, TrailRecorder
from clew.core.types import PASSAGE, ROW, Hit, Location, Question, Scope, Span, Table
from clew.methods.readers import row_facts, table_answers
from clew.methods.readers.row_facts import find_row_fact
from clew.parse.documents.builder import DocumentBuilder
from span_models import NoReader
from span_readers import span_reader

STAFF = [
    ["Name", "Post", "Ward", "Hours a week", "Since"],
    ["Osei, Abena", "Sister", "Elm", "36", "2014"],
    ["Dray, Tom", "Porter", "Elm", "40", "2019"],
    ["Quist, Ruth", "Porter", "Ash", "20", "2021"],
    ["Quist, Piet", "Cook", "", "38", "2020"],
    ["Vik, Lars", "First cook", "Ash", "30", "2011"],
    ["Total", "", "", "164", ""],
]
NOTICE = [
    ["", ""],
    ["Founder", "Wilma Haas (née Korth)"],
    ["Opened", "4 June 1907, Bergen Road"],
    ["Beds", "62"],
]
PRICES = [
    ["Article", "Number", "Price ($)", "Change ($)", "Maker", "Made"],
    ["Wheelchair, folding", "14", "210", "10", "Nyholm", "1931"],
    ["Drip stand", "9", "35", "5", "Rask", "1927"],
]
ROOMS = [
    ["Room", "Cleaner", "Floor"],
    ["Laundry", "Mrs Stork", "0"],
    ["Chapel", "the parish", "1"],
    ["Little Chapel", "Tor Moe", "2"],
]


@pytest.fixture
def clinic(base):
    builder = DocumentBuilder()
    for heading, grid in (
        ("Staff", STAFF),
        ("Clinic Sorvik", NOTICE),
        ("Inventory", PRICES),
        ("Rooms", ROOMS),
    ):
        builder.add_heading(1, heading)
        builder.add_table(Table(tuple(grid[0]), tuple(map(tuple, grid[1:]))))
    parsed = builder.finish(data=b"clinic", title="Clinic", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/clinic.txt", "/docs", 1, 1, 1))
    base.catch_up()
    return base.snapshot()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        # A header that the question names, for the label or for two cells.
        ("How many hours a week does Ruth Quist have?", "20"),
        ("What is the price of a folding wheelchair?", "210"),
        ("What is the price of the wheelchair?", "210"),
        ("How many hours a week does the porter of Elm have?", "40"),
        ("Who cleans the laundry?", "Mrs Stork"),
        ("On which floor of the cleaner is the chapel?", "1"),
        ("How many drip stands are in the inventory?", "9"),
        # Of two headers that may be meant, the one whose cell is of the kind that is asked for.
        ("When was the drip stand made?", "1927"),
        ("Who made the drip stand?", "Rask"),
        # An ordinal that is part of a cell.
        ("Who is the first cook on Ash?", "Vik, Lars"),
        # A row with one value.
        ("How many beds does Clinic Sorvik have?", "62"),
        ("Who was the founder of Clinic Sorvik?", "Wilma Haas (née Korth)"),
        # The label of a row that two cells describe.
        ("Who is the porter of the Elm ward?", "Dray, Tom"),
        ("Who is the sister on Elm?", "Osei, Abena"),
    ],
)
def test_the_row_that_has_every_word_answers(clinic, question, answer):
    fact = find_row_fact(question, clinic, Scope())
    assert fact is not None and fact.text == answer


@pytest.mark.parametrize(
    "question",
    [
        "Who is the porter?",  # one word describes two rows
        "Who is the night porter of Elm?",  # "night" is nowhere
        "How many hours a week does Quist have?",  # two rows disagree, and neither is named whole
        "Who has the most hours on Elm?",
        "Who was the first porter of Elm?",
        "Who is Mrs Stork?",  # a room is not who she is
        "What is the price of most wheelchairs?",
        "What is the change in price of the drip stand?",
        "Is Tom Dray the porter of Elm?",
        "What is the wheelchair?",  # two values, none of them asked for
        "How many beds does Clinic Halden have?",
        "Who is the cook of the Elm ward?",
        "What is the number of hours of the total?",
        "How much does the porter of Ash earn a year?",
    ],
)
def test_a_row_that_leaves_a_word_over_does_not(clinic, question):
    assert find_row_fact(question, clinic, Scope()) is None


def test_only_documents_in_scope_are_looked_at(clinic):
    assert find_row_fact("Who cleans the laundry?", clinic, Scope(documents=frozenset({"0" * 64}))) is None


def _all_nodes(snapshot):
    ranges = [snapshot.document_rows(document.key) for document in snapshot.documents()]
    return [node for first, last in ranges for node in snapshot.nodes(np.arange(first, last))]


def test_the_hours_of_a_namesake_are_not_looked_up(clinic):
    rows = [node for node in _all_nodes(clinic) if node.kind == ROW and "Quist, Ruth" in node.text]
    hits = [Hit(node, 1.0, (node.id,)) for node in rows]
    reader = span_reader(MarkingReader("nothing", 0.0), snapshot=clinic)
    texts = [
        reader.read(Question(question), hits, TrailRecorder()).text
        for question in (
            "What hours a week did old Ruth Quist have?",
            "What hours a week did old Anna Quist have?",
        )
    ]
    assert texts == ["20", "No answer that clew is sure of."]


def test_words_that_very_many_rows_have_describe_none(clinic, monkeypatch):
    monkeypatch.setattr(row_facts, "_MAX_ROWS", 0)
    assert find_row_fact("Who cleans the laundry?", clinic, Scope()) is None


def test_a_large_table_is_left_to_sql(clinic, monkeypatch):
    monkeypatch.setattr(table_answers, "MAX_ROWS", 1)
    assert find_row_fact("Who cleans the laundry?", clinic, Scope()) is None


class MarkingReader(NoReader):
    """A reader that marks some words in each passage that has them."""

    name = "marks"

    def __init__(self, words, confidence):
        self.words, self.sure = words, confidence

    def read(self, question, contexts, limit=5):
        return [
            [
                Span(self.words, "text", number, start, start + len(self.words), 1.0)
                for number, passage in enumerate(passages)
                if (start := passage.text.find(self.words)) >= 0
            ]
            for passages in contexts
        ]

    def confidence(self, score):
        return self.sure


def test_a_cell_that_leaves_words_over_yields_to_a_sentence_that_is_surer(base, clinic):
    builder = DocumentBuilder()
    builder.add_paragraph("A new wheelchair, with a motor, had a price of $400.")
    parsed = builder.finish(data=b"note", title="Note", media_type="text/plain", parser="test/1")
    base.put_document(parsed, Location("/docs/note.txt", "/docs", 1, 1, 1))
    base.catch_up()
    snapshot = base.snapshot()
    nodes = [
        node for node in _all_nodes(snapshot) if "heelchair" in node.text and node.kind in {PASSAGE, ROW}
    ]
    reader = span_reader(MarkingReader("$400", 0.9), snapshot=snapshot)
    hits = [Hit(node, 1.0, (node.id,)) for node in nodes]
    result = reader.read(Question("What is the price of a motor wheelchair, folding?"), hits, TrailRecorder())
    assert result.text == "$400"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was Clinic Sorvik opened?", "4 June 1907"),
        ("Who is the porter of the Elm ward?", "Dray, Tom"),
        ("How many beds does Clinic Sorvik have?", "62"),
    ],
)
def test_the_answer_is_marked_in_its_row(clinic, question, answer):
    trail = TrailRecorder()
    result = span_reader(MarkingReader("4 June 1907", 0.5), snapshot=clinic).read(
        Question(question), [], trail
    )
    assert result.text == answer and result.confidence == 0.8
    (quote,) = result.quotes
    assert quote.answer is not None and quote.text[slice(*quote.answer)] == answer
    assert quote.node == result.evidence[0].node.id
    step = trail.steps[-1]
    assert isinstance(step, SpanReadStep) and step.model == "the row that has every word"
