"""Final answers out of free text, and votes."""

import pytest

from clew.methods.prompting import majority_vote, parse_final_answer, parse_short_answer


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("He was born there. So the answer is: Ellery.", "Ellery"),
        ("So the answer is Ellery", "Ellery"),
        ("**So the answer is:** Ellery", "Ellery"),
        ("So the answer is: **Ellery**. This follows from both.", "Ellery"),
        ("The answer is: A. But wait, that is wrong. The final answer is: B.", "B"),
        ("Final Answer:\n\nEllery", "Ellery"),
        ("Hence \\boxed{42}.", "42"),
        ("Answer: St. Louis, Missouri.", "St. Louis, Missouri"),
        ("So the answer is: 23,750.", "23,750"),
        ("So the answer is: 1.5 million.", "1.5 million"),
        ("<think>The answer is: A</think>So the answer is: B.", "B"),
        ("<think>The answer is: A", ""),
        ('{"thought": "x", "answer": "Ellery"}', "Ellery"),
        ("Ellery", "Ellery"),
        ("I wonder where that might be, and who could possibly know it.", ""),
        ("One line.\nAnother line.", ""),
        ("So the answer is:", ""),
        ("", ""),
    ],
)
def test_the_answer_that_a_reasoning_ends_with(reply, text):
    assert parse_final_answer(reply) == text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (" Ellery.", "Ellery"),
        ("Answer: Ellery\nQuestion: another", "Ellery"),
        ("```\nEllery\n```", "Ellery"),
        ("1. Ellery", "Ellery"),
        ("1871", "1871"),
        ('"The Tin Parade"', "The Tin Parade"),
        ("I have thought about it. The answer is: Ellery.", "Ellery"),
        ('{"answer": "Ellery"}', "Ellery"),
        ("** \n—\n", ""),
    ],
)
def test_the_answer_where_nothing_else_was_asked_for(reply, text):
    assert parse_short_answer(reply) == text


def test_the_majority_does_not_see_case_articles_and_punctuation():
    assert majority_vote(["Boston", "the Dunmere", "dunmere.", ""]) == (
        "the Dunmere",
        {"the Dunmere": 2, "Boston": 1},
    )
    assert majority_vote(["b", "a", "a", "b"]) == ("b", {"b": 2, "a": 2})
    assert majority_vote(["$", "€", "€"]) == ("€", {"€": 2, "$": 1})
    assert majority_vote(["", ""]) == ("", {}) == majority_vote([])
