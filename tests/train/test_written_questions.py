"""Questions written from sentences: what is asked, and which words of the text answer."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

from clew.core.errors import MissingExtra
from clew.core.types import ReaderPassage
from clew.train.reading_examples import written_examples
from clew.train.written_questions import PARSER, join_tokens, write_questions

needs_parser = pytest.mark.skipif(
    find_spec(PARSER) is None, reason="needs the extra parser (Python before 3.14)"
)
ARTICLE = ReaderPassage(
    "Ada Pell (engineer)",
    "Ada Pell was a Danish engineer who lived in Norway . She designed the Arlen Bridge in 1912 . The bridge was "
    "opened by Queen Maud on March 1 , 1915 . She married the painter Bo Lind in Oslo . Her firm employed 40 people "
    "for fifteen years . She did not like tunnels .",
)
BRIDGE = ReaderPassage(
    "Arlen Bridge", "The Arlen Bridge crosses a fjord . It is 240 metres long at the water line ."
)


def written(*articles):
    return {
        (question.question, passage.text[question.start : question.end])
        for passage, question in write_questions(articles, 99, random.Random(0))
    }


@needs_parser
def test_each_part_of_a_sentence_is_asked_for():
    pairs = written(ARTICLE)
    answers = {answer for _, answer in pairs}
    assert {"Arlen Bridge", "1912", "Queen Maud", "March 1, 1915", "Oslo", "40"} <= answers
    questions = " ".join(question for question, _ in pairs)
    assert "What did Ada Pell design" in questions
    assert "How many people did Ada Pell's firm employ" in questions


@needs_parser
def test_a_pronoun_stands_for_the_subject_of_the_article():
    assert ("How long is Arlen Bridge?", "240 metres") in written(BRIDGE)


@needs_parser
def test_answers_are_words_of_the_text_that_name_something():
    text = join_tokens(ARTICLE.text)
    for question, answer in written(ARTICLE):
        assert answer.casefold() not in {"she", "it", "her"}
        assert answer in text
        assert question.endswith("?")
        assert question[0].isupper()


@needs_parser
def test_negated_sentences_and_unknown_pronouns_ask_nothing():
    article = ReaderPassage(
        "Ada Pell", "They built the old pier in 1890 near Oslo . She did not build that long wall ."
    )
    assert written(article) == set()


@needs_parser
def test_examples_hold_their_answer_among_other_articles():
    others = [
        ReaderPassage(
            f"Hall {number}",
            f"Hall {number} is a house in Bergen . Ann Berg designed the house in 18{number} .",
        )
        for number in range(10, 40)
    ]
    examples = list(written_examples([ARTICLE, *others], 31, random.Random(1)))
    assert examples == list(written_examples([ARTICLE, *others], 31, random.Random(1)))
    assert {len(example.passages) for example in examples} >= {1, 2, 3}
    for example in examples:
        (place,) = example.places
        passage = example.passages[place.passage]
        assert passage.text[place.start : place.end] == example.answers[0]
        assert not any(example.answers[0] in other.text for other in example.passages if other != passage)


def test_without_the_parser_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("clew.train.written_questions.PARSER", "no_such_parser")
    with pytest.raises(MissingExtra, match="parser"):
        list(write_questions([ARTICLE], 1, random.Random(0)))


@pytest.mark.parametrize(
    ("split", "joined"),
    [
        ("Pell ( born 12 May 1870 ) , an engineer .", "Pell (born 12 May 1870), an engineer."),
        ("Pell 's bridge cost $ 40 .", "Pell's bridge cost $40."),
        ("``Arlen'' is 3 % longer", '"Arlen" is 3% longer'),
    ],
)
def test_split_texts_are_joined(split, joined):
    assert join_tokens(split) == joined
