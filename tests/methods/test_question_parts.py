"""Several questions in one."""

from __future__ import annotations

import pytest

from clew.core.types import Answer
from clew.methods.question_parts import QuestionPart, split_question
from clew.methods.router import join_answers

SEVERAL = {
    "Who built the Heron Queen, and when?": ["Who built the Heron Queen?", "When (the Heron Queen)?"],
    "When was the Kittiwake built, and when was the Heron Queen?": [
        "When was the Kittiwake built?",
        "When was the Heron Queen built?",
    ],
    "Who was Hesper Marrable married to and what medal did she receive?": [
        "Who was Hesper Marrable married to?",
        "What medal did Hesper Marrable receive?",
    ],
    "What is the rent, when is it due, and who pays the insurance?": [
        "What is the rent?",
        "When is it due (the rent)?",
        "Who pays the insurance?",
    ],
    "How much is the deposit? When is it paid back?": [
        "How much is the deposit?",
        "When is it paid back (the deposit)?",
    ],
    "Which ships sank, and which were raised?": ["Which ships sank?", "Which ships were raised?"],
    "What share of Adobe's revenue came from APAC, and which countries does the note list?": [
        "What share of Adobe's revenue came from APAC?",
        "Which countries does the note list (Adobe's revenue came from APAC)?",
    ],
    "What was Pfizer's revenue in 2020, and who is its chief financial officer?": [
        "What was Pfizer's revenue in 2020?",
        "Who is Pfizer's chief financial officer?",
    ],
    "How many people live in Saltreach, and who won the cup in 1931?": [
        "How many people live in Saltreach?",
        "Who won the cup in 1931?",
    ],
}
WHOLE = [
    "Who built the Heron Queen?",
    "In 2019, what was the revenue?",
    "Between 2018 and 2019, which year had the higher revenue?",
    "When was the singer born who is known for her voice and who's third album is Diamond Cut?",
    "The Jump is a series. What recurring character appears in it?",
    "What was the profession of Amy Johnson, who flew to Australia?",
    "What is the time lag between when it changes and when it is seen?",
    "How and how many calories do almonds have?",
    "Explain what it does and how they use it.",
    "Which is longer and which is older, the Heron Queen or the Kittiwake?",
    "Which ships and which crews were lost?",
    "Name the mother of Edward Stafford, who was the daughter of Edward Stanley?",
    "Why and when?",
    "",
]


@pytest.mark.parametrize("question", SEVERAL)
def test_each_part_stands_alone(question: str) -> None:
    assert [part.alone for part in split_question(question)] == SEVERAL[question]


@pytest.mark.parametrize("question", WHOLE)
def test_a_question_that_asks_once_stays_whole(question: str) -> None:
    assert split_question(question) == ()


PARTS = [QuestionPart("Who built it?", "Who built it?"), QuestionPart("When?", "When was it built?")]


def test_a_part_without_an_answer_is_named() -> None:
    joined = join_answers(PARTS, [Answer("Strake", confidence=0.6), Answer("none", abstained=True)])
    assert joined.text == "Strake; not found: when?"
    assert not joined.abstained and joined.confidence == 0.6
    # A budget that ended after the first part leaves the second without an answer.
    assert join_answers(PARTS, [Answer("Strake")]).text == joined.text


def test_without_any_answer_the_whole_abstains() -> None:
    joined = join_answers(PARTS, [Answer("none", abstained=True)] * 2)
    assert joined.abstained and joined.text == "No answer that clew is sure of."


def test_long_answers_have_a_line_each_and_the_least_confidence_counts() -> None:
    long = "A sentence of a model, " * 8
    joined = join_answers(PARTS, [Answer(long, confidence=0.9), Answer("1907", confidence=0.4)])
    assert joined.text.splitlines() == [long, "1907"]
    assert joined.confidence == 0.4 and joined.values == (long, "1907")
