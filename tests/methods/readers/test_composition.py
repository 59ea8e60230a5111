"""Questions taken apart by rule, and the answers that the answers of their parts make."""

import doctest

import pytest

from clew.core import values
from clew.methods.readers import composition
from clew.methods.readers.composition import compose_answer, compose_question


@pytest.mark.parametrize("module", [composition, values])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Who is Ada Pell's paternal grandfather?",
            ["Who is the father of Ada Pell?", "Who is the father of #1?"],
        ),
        ("Where did the composer of song Low Tide die?", ["Who composed Low Tide?", "Where did #1 die?"]),
        (
            "Which film has the director who died later, Red Dust or The Long Way?",
            ["Who directed Red Dust?", "When did #1 die?", "Who directed The Long Way?", "When did #3 die?"],
        ),
        (
            "Are both villages, Corran and Upper Quill, located in the same country?",
            ["In which country is Corran?", "In which country is Upper Quill?"],
        ),
        ("Was Ada Pell or Bo Lind born first?", ["When was Ada Pell born?", "When was Bo Lind born?"]),
        (
            "What does the hirer pay a day, and in what year was the Bittern built?",
            ["What does the hirer pay a day?", "In what year was the Bittern built?"],
        ),
    ],
)
def test_questions_of_several_hops_are_taken_apart(question, parts):
    composed = compose_question(question)
    assert composed is not None
    assert [part.text for part in composed.parts] == parts


@pytest.mark.parametrize(
    "question",
    [
        "What does the hirer pay a day, and in what year was memo #2 written?",
        "When was the director of film Red Dust #1 born?",
        "What is the capital of Peru?",
        "Who directed Red Dust?",
        "How many warehouses did Costco operate?",
        "Is the river longer than the canal?",
        "Which tribes live in the north and south of the island?",
        "What was Nike's diluted earnings per share in fiscal 2023?",
        "Who was the first president of the association which published the journal?",
        "",
        "Did sales fall in 2022?",
        "Was it a cold winter in 1922?",
        "Was the Kittiwake built before 1900?",
        "???",
    ],
)
def test_other_questions_stay_whole(question):
    assert compose_question(question) is None


@pytest.mark.parametrize(
    ("question", "values_read", "answer"),
    [
        ("Who was born first, Ada Pell or Bo Lind?", ["3 May 1901", "1899"], "Bo Lind"),
        ("Who was born first, Ada Pell or Bo Lind?", ["in the spring", "1899"], ""),
        ("Who is older, Ada Pell or Bo Lind?", ["3 May 1901", "4 May 1901"], "Ada Pell"),
        ("Are Ada Pell and Bo Lind from the same country?", ["an American", "United States"], "yes"),
        ("Are Ada Pell and Bo Lind from the same country?", ["Norway", "Swedish"], "no"),
        ("When was the director of Red Dust born?", ["Ada Pell", "1901"], "1901"),
    ],
)
def test_the_answer_follows_from_the_values(question, values_read, answer):
    composed = compose_question(question)
    assert compose_answer(question, composed, values_read) == answer
