"""Sentences that may answer: what of them is read alone, and what they are measured by."""

import numpy as np
import pytest

from clew.core.types import Hit, Node
from clew.questions.sentences import (
    ALONE,
    FEATURES,
    SENTENCE,
    OptionScores,
    measure_sentences,
    measure_verdict,
    split_hits,
    split_text,
    stand_alone,
)


def test_the_likeliest_options_are_read_alone_and_the_others_have_the_lowest_score_of_these():
    asked = []

    def read_alone(numbers):
        asked.extend(numbers)
        return [float(number) for number in numbers]

    count = ALONE + 5
    likeness, within = np.linspace(0.0, 1.0, count), [0.0] * count
    scores = OptionScores([], within, read_alone).score_alone(likeness)
    assert asked == list(range(count - 1, 4, -1))
    assert scores.tolist() == [5.0] * 5 + list(range(5, count))
    # How likely an option is within its passage counts, too.
    asked.clear()
    OptionScores([], [5.0, *within[1:]], read_alone).score_alone(likeness)
    assert 0 in asked and len(asked) == ALONE
    assert OptionScores([], [], read_alone).score_alone(np.zeros(0)).tolist() == []


def test_an_option_is_read_alone_behind_the_words_before_it():
    text = f"{'word ' * 40}It is open. Then shut."
    start = text.index("It is")
    passage, first, last = stand_alone("Rules", text, start, start + 11)
    assert passage.text[first:last] == "It is open."
    assert passage.text == f"{'word ' * 22}It is open." and passage.title == "Rules"
    assert stand_alone("", "It is open.", 0, 11)[1:] == (0, 11)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Pay 5 marks.\n2. Leave by noon. Sweep.", ["Pay 5 marks.", "Leave by noon.", "Sweep."]),
        ("Rules:\n  (a) pay; and\n  b) go", ["Rules:", "pay; and", "go"]),
        ("- Pay up.\n- Go.", ["- Pay up.", "- Go."]),
        ("In 7. Then go.", ["In 7.", "Then go."]),
    ],
)
def test_the_number_of_an_item_is_no_part_of_what_answers(text, expected):
    assert [text[start:end] for start, end, kind in split_text(text) if kind == SENTENCE] == expected


class EqualEncoder:
    """Finds all texts equally like each other."""

    def encode(self, texts, query=False):
        return np.ones((len(texts), 1))


def measure(question, text, headings=()):
    """Return the features of the options of one passage by their words."""
    node = Node("d:1", "passage", text, "d", "d", 0, None, "", 0, None, headings, (0, len(text)))
    hits = [Hit(node, 1.0, ("d:1",))]
    options = split_hits(hits)
    scores = OptionScores([], [0.0] * len(options), lambda numbers: [0.0] * len(numbers))
    features, _ = measure_sentences(
        question, hits, options, EqualEncoder(), lambda terms: [1.0] * len(terms), scores
    )
    rows = [dict(zip(FEATURES, row, strict=True)) for row in features]
    return {option.text(hits): row for option, row in zip(options, rows, strict=True)}


def test_a_lead_in_is_told_from_its_list():
    rows = measure("What may I bring?", "You may bring:\n- a torch\n- boots")
    assert [row["a lead-in"] for row in rows.values()] == [1.0, 0.0, 0.0, 0.0]


def test_a_question_in_a_text_is_told_from_what_stands_behind_it():
    rows = measure("When can I pay?", "When can I pay? On Mondays. Bring the bill.")
    assert [row["a question"] for row in rows.values()] == [1.0, 0.0, 0.0]
    assert [row["behind a question"] for row in rows.values()] == [0.0, 1.0, 0.0]
    rows = measure("When can I pay?", "On Mondays. Bring the bill.", headings=("Fees", "When can I pay?"))
    assert [row["behind a question"] for row in rows.values()] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("question", "lacking"),
    [
        ("How many keys are there?", [0.0, 0.0, 1.0]),
        ("Say, when are they lent?", [0.0, 0.0, 1.0]),
        ("How do I get keys?", [0.0, 0.0, 0.0]),
    ],
)
def test_where_a_number_is_asked_for_a_sentence_without_one_is_told(question, lacking):
    rows = measure(question, "There are 2 keys. There are twelve keys. There are keys.")
    assert [row["no number where one is asked for"] for row in rows.values()] == lacking


def test_words_that_negate_are_told_in_question_and_answer():
    assert measure_verdict("Can I smoke?", "You can’t smoke.").tolist() == [1, 0, 1, 0]
    assert measure_verdict("Is it not free?", "It is never free.").tolist() == [1, 1, 1, 1]
    assert measure_verdict("Is another knot a nothingness?", "It is notable.").tolist() == [1, 0, 0, 0]
