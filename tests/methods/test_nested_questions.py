"""Questions inside questions: what is taken out, and what stays whole."""

from __future__ import annotations

import pytest

from clew.methods.nested_questions import take_apart
from clew.triples.language.chain import parse_chain

RELATIONS = {"brother", "wife", "director", "captain"}


def hops(question):
    nested = take_apart(question, RELATIONS.__contains__)
    return [] if nested is None else [hop.text for hop in nested.hops]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "When was the wife of Joel Marsh born?",
            ["What is the wife of Joel Marsh?", "When was #1 born?"],
        ),
        (
            "How deep is the dock that Ada Pell designed?",
            ["Which dock Ada Pell designed?", "How deep is #1?"],
        ),
        (
            "What does the mill run by Ines Tarrow grind?",
            ["Which mill was run by Ines Tarrow?", "What does #1 grind?"],
        ),
        (
            "Where was the sculptor who made the fountain of Oskell born?",
            ["Which sculptor made the fountain of Oskell?", "Where was #1 born?"],
        ),
        (
            "How tall is the tower built by the brother of the wife of Joel Marsh?",
            [
                "What is the wife of Joel Marsh?",
                "Who is the brother of #1?",
                "Which tower was built by #2?",
                "How tall is #3?",
            ],
        ),
        ("When did Ada Pell's brother die?", ["Who is the brother of Ada Pell?", "When did #1 die?"]),
        (
            "What is the wage of the purser of the ship whose captain is Ada Pell?",
            ["Which ship's captain is Ada Pell?", "Who is the purser of #1?", "What is the wage of #2?"],
        ),
    ],
)
def test_the_innermost_phrase_is_asked_first(question, expected):
    assert hops(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "Who founded the firm that built pier #2?",
        "Who is the brother of Ada Pell?",
        "What was the height of the water in March?",
        "What is the number of the page?",
        "Which films did Ada Pell direct?",
        "What did the authors of the study find?",
        "Summarise the report.",
        "",
    ],
)
def test_a_question_of_one_hop_stays_whole(question):
    assert hops(question) == []


def test_the_hops_are_a_chain_that_can_be_asked_again():
    nested = take_apart("How long is the vessel that Ottilie Brandt commands?", RELATIONS.__contains__)
    assert nested is not None
    assert str(parse_chain(str(nested.chain))) == str(nested.chain)
    assert str(nested.chain) == "Ottilie Brandt >> vessel commands >> #1; #1 >> long >> #2; final answer: #2"
