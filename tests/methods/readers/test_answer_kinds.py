"""Which kind of answer a question asks for, and what cannot answer it."""

import pytest

from clew.methods.readers.answer_kinds import (
    contains_answer,
    expected_kind,
)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who built it?", "person"),
        ("By whom was it built?", "person"),
        ("In which year did it sink?", "date"),
        ("When did it sink?", "date"),
        ("How many people live there?", "amount"),
        ("What is the FY2018 capital expenditure amount?", "amount"),
        ("Where was the owner of the boat born?", "place"),
        ("Why did it sink?", "reason"),
        ("Which ship was longer?", "name"),
        ("Is it deep?", "any"),
        ("Wie heißt der Fluss?", "any"),
    ],
)
def test_the_kind_of_answer_is_read_from_the_question(question, kind):
    assert expected_kind(question) == kind


@pytest.mark.parametrize(
    ("kind", "text", "question", "answer"),
    [
        ("date", "It sank in 1929.", "When did it sink?", True),
        ("date", "It sank in 1929.", "When in 1929 did it sink?", False),
        ("date", "It sank on 14 March.", "When did it sink?", True),
        ("amount", "It costs $9 a day.", "What does it cost?", True),
        ("amount", "It costs nine pence.", "What does it cost?", True),
        ("amount", "It costs a lot.", "What does it cost?", False),
        ("person", "The keeper was Edwin Pellow.", "Who was the keeper?", True),
        ("person", "Nobody knew.", "Who was the keeper?", False),
        ("person", "Edwin Pellow knew.", "Who knew Edwin Pellow?", False),
        ("place", "It stood at Fenner Mouth.", "Where did it stand?", True),
        ("place", "Edwin Pellow stood.", "Where did it stand?", False),
        ("reason", "It sank because of fog.", "Why did it sink?", True),
        ("any", "It sank because of fog in 1929.", "Did it sink?", False),
    ],
)
def test_an_answer_of_a_kind_is_told_from_what_the_question_says_itself(kind, text, question, answer):
    assert contains_answer(kind, text, question) is answer
