"""Questions inside and beside questions: which phrases are asked first, and how the ways through them are weighed."""

from __future__ import annotations

import numpy as np
import pytest

from clew.questions.sequences import (
    CONFIDENCE,
    CONFIDENCE_WEIGHTS,
    DOCUMENT,
    ENDING_FEATURES,
    ENDING_WEIGHTS,
    FEATURES,
    GRAPH,
    SPLIT_WEIGHTS,
    TABLE,
    Ending,
    Link,
    Reply,
    choose_ending,
    measure_endings,
    rank_splits,
    split_parts,
)
from clew.questions.text import QuestionText

NESTED = [
    "How long is the vessel that Ottilie Brandt commands?",
    "A man lent his belt. What is his wife's name, and since when?",
    "points of the wine bottled on 20 september 2022",
    "What did the boat that carried 1,320 kg cost?",
    "Who is the brother of Paolo Marchisio's employer?",
]


def test_there_is_a_weight_for_each_feature() -> None:
    assert len(SPLIT_WEIGHTS) == len(FEATURES)
    assert len(ENDING_WEIGHTS) == len(ENDING_FEATURES) and len(CONFIDENCE_WEIGHTS) == len(CONFIDENCE)


@pytest.mark.parametrize("question", NESTED)
def test_a_phrase_is_replaced_where_it_stands_and_leaves_something_to_ask(question: str) -> None:
    splits = rank_splits(QuestionText(question))
    assert splits
    assert sum(np.exp(chance) for _, chance in splits) == pytest.approx(1)
    assert [chance for _, chance in splits] == sorted((chance for _, chance in splits), reverse=True)
    for split, _ in splits:
        phrase = question[split.start : split.end]
        assert split.fill(phrase) == question and split.asked.endswith("?")
        assert phrase == phrase.strip() and any(map(str.isalnum, split.fill("")))
        assert not any(mark in phrase[:-1] for mark in "?") and not phrase.endswith("1")


@pytest.mark.parametrize("question", ["", "Who?", "Who built it?", "the " * 200])
def test_what_has_no_phrase_is_asked_whole(question: str) -> None:
    assert rank_splits(QuestionText(question)) == []


def end(value: str, text: str, link: float = 0.8, ending: float = 0.8, source: str = TABLE) -> Ending:
    split, chance = rank_splits(QuestionText(NESTED[0]))[0]
    return Ending(
        Link(split, chance, Reply(GRAPH, link, (value,)), value),
        Reply(source, ending, tuple(text.split("|"))),
    )


def test_without_endings_nothing_is_chosen() -> None:
    assert choose_ending([], []) is None


def test_the_likelier_steps_are_chosen_and_make_the_answer_likelier() -> None:
    sure, unsure = end("Lady Annis", "96 ft", 0.9, 0.9), end("Heron", "7 ft", 0.2, 0.1)
    for endings in ([sure, unsure], [unsure, sure]):
        chosen = choose_ending(endings, [])
        assert chosen is not None and chosen[0] is sure and 0 < chosen[1] < 1
    alone = choose_ending([unsure], [])
    assert alone is not None and chosen is not None and alone[1] < chosen[1]


def test_what_an_ending_repeats_of_the_question_is_seen() -> None:
    features = measure_endings([end("Lady Annis", "Lady Annis"), end("Lady Annis", "96 ft", source=DOCUMENT)])
    repeated = ENDING_FEATURES.index("the ending is in the question")
    assert features[:, repeated].tolist() == [1, 0]
    assert features[:, ENDING_FEATURES.index("the ending is from documents")].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("question", "second"),
    [
        (
            "What does the hirer pay a day if the lighter Bittern is returned late, "
            "and in what year was the Bittern built?",
            "In what year was the Bittern built?",
        ),
        ("What was Pfizer's revenue in 2020, and who is its chief?", "Who is Pfizer's chief?"),
        ("How much is the deposit? When is it paid back?", "When is it paid back (the deposit)?"),
    ],
)
def test_questions_beside_each_other_stand_alone(question: str, second: str) -> None:
    assert [alone for _, alone in split_parts(question)][1:] == [second]


@pytest.mark.parametrize(
    "question",
    [
        "Who built the Heron Queen?",
        "In 2019, what was the revenue?",
        "Between 2018 and 2019, which year had the higher revenue?",
        "When was the singer born who is known for her voice and who's third album is Diamond Cut?",
        "What was the profession of Amy Johnson, who flew to Australia?",
        "What is the time lag between when it changes and when it is seen?",
        "How and how many calories do almonds have?",
        "Explain what it does and how they use it.",
        "Which is longer and which is older, the Heron Queen or the Kittiwake?",
        "Why and when?",
        "",
    ],
)
def test_a_question_that_asks_once_stays_whole(question: str) -> None:
    assert split_parts(question) == ()


def test_words_that_have_the_value_of_the_phrase_alone_answer_less_than_the_question() -> None:
    ending = end("Lady Annis", "96 ft")
    assert ending.goes_beyond("Ottilie Brandt commands the Lady Annis.")
    assert not ending.goes_beyond("The Lady Annis is 96 ft long.") and not ending.goes_beyond("It is long.")
