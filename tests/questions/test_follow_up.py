"""Follow-up questions completed from the turns before them."""

from __future__ import annotations

import time
from itertools import product

import pytest

from clew.app.answers.follow_ups import ChatMessage, complete_question, rewrite_standalone
from clew.models.plan_judge import create_plan_judge
from clew.questions.follow_up import Turn, list_candidates

SHIP = Turn("Who built the Heron Queen in 1921?", "Strake & Loam")


def list_questions(typed: str, *turns: Turn) -> list[str]:
    candidates = list_candidates(typed, turns, create_plan_judge().encoder)
    return [candidate.question for candidate in candidates if not candidate.asks_source]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("and in 1922?", "Who built the Heron Queen in 1922?"),
        ("and the year before?", "Who built the Heron Queen in 1920?"),
        ("What about the Bittern?", "Who built the Bittern in 1921?"),
        ("Where is its yard?", "Where is Strake & Loam's yard?"),
        ("Where did it sink?", "Where did the Heron Queen sink?"),
    ],
)
def test_what_a_question_means_is_among_its_candidates(typed: str, meant: str) -> None:
    questions = list_questions(typed, SHIP)
    assert questions[0] == typed and meant in questions


def test_a_part_of_a_date_is_exchanged_alone() -> None:
    turn = Turn("Who was on watch on 7 August 1931?", "Lemuel Strand")
    for typed, day in (
        ("on the 9th?", "9 August 1931"),
        ("in July?", "7 July 1931"),
        ("in 1930?", "7 August 1930"),
    ):
        assert f"Who was on watch on {day}?" in list_questions(typed, turn)


def test_names_of_earlier_turns_can_be_meant() -> None:
    turns = [
        Turn("Who owns the Railway Tap?", "Anneke Voss"),
        Turn("Which pub has Nell?", "The Bell Inn"),
        SHIP,
    ]
    assert "Who built the Railway Tap in 1921?" in list_questions("No, the other one.", *turns)


@pytest.mark.parametrize("typed", ["Which document says so?", "where does it say that?"])
def test_the_source_of_an_answer_is_asked_for(typed: str) -> None:
    asked = complete_question(typed, [SHIP])
    assert asked.asks_source and asked.question == SHIP.question


@pytest.mark.parametrize(
    "typed", ["Who owns the lighter Bittern?", "How many people live in Dunmere Landing?"]
)
def test_a_question_that_names_its_subject_stays(typed: str) -> None:
    assert complete_question(typed, [SHIP]).question == typed
    assert complete_question(typed, []).question == typed


def test_each_question_of_a_conversation_builds_on_those_before() -> None:
    messages = [
        ChatMessage("user", "Who built the Heron Queen?"),
        ChatMessage("assistant", "Strake & Loam [1]\n\nSources:\n[1] report.pdf"),
        ChatMessage("user", "and the Bittern?"),
        ChatMessage("assistant", "Tolland Yard [1]"),
        ChatMessage("user", "Which document says so?"),
        ChatMessage("assistant", "report.pdf [1]"),
        ChatMessage("user", "when?"),
    ]
    assert "Bittern" in rewrite_standalone(messages, None).question
    assert rewrite_standalone(messages[:5], None).asks_source
    assert rewrite_standalone(messages[:1], None).question == messages[0].text


def test_whatever_is_typed_something_comes_back() -> None:
    texts = [
        "",
        "?",
        "Thanks!",
        "Why is that there then?",
        "and",
        "what about",
        "it it it",
        "1931",
        "and " * 50,
    ]
    questions = [
        "",
        "Who built the Heron Queen?",
        "?",
        "it",
        "in in in",
        "What is x's y's z?",
        "(((",
        "5 7/8",
    ]
    for text, question in product(texts, questions):
        assert isinstance(complete_question(text, [Turn(question, "Strake & Loam")]).question, str)


@pytest.mark.parametrize("text", ["the it " * 5_000, "A." * 10_000, "9" * 20_000, "in the Bern " * 3_000])
def test_long_texts_take_linear_time(text: str) -> None:
    started = time.perf_counter()
    complete_question(text, [SHIP])
    complete_question("and in Bern?", [Turn(text, text)])
    assert time.perf_counter() - started < 5
