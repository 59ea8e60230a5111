"""Keywords that people type in place of a question."""

import pytest

from clew.methods.readers.keywords import complete_keywords


@pytest.mark.parametrize(
    ("text", "name", "question"),
    [
        ("amcor ceo", "amcor", "Who is Amcor's ceo?"),
        ("American Express CFO name", "American Express", "Who is American Express's CFO?"),
        ("Verizon auditor", "Verizon", "Who is Verizon's auditor?"),
        ("CEO of Pfizer", "Pfizer", "Who is Pfizer's CEO?"),
        ("adobe headcount", "adobe", "How many employees does Adobe have?"),
        ("number of employees at CVS Health", "CVS Health", "How many employees does CVS Health have?"),
        ("Adobe headquarters", "Adobe", "Where are Adobe's headquarters?"),
        ("Adobe address", "Adobe", "What is Adobe's address?"),
        ("verizon hq", "verizon", "Where is Verizon based?"),
        ("Pfizer R&D expenses 2021", "Pfizer", "What was Pfizer's R&D expenses in 2021?"),
        (
            "Pfizer 2021 research and development",
            "Pfizer",
            "What was Pfizer's research and development in 2021?",
        ),
        ("total debt of Verizon", "Verizon", "What is Verizon's total debt?"),
        ("Adobe's revenue FY2022 vs. FY2021", "Adobe", "What was Adobe's revenue in FY2022 and FY2021?"),
        ("MGM revenue fourth quarter 2022", "MGM", "What was MGM's revenue in fourth quarter 2022?"),
    ],
)
def test_keywords_are_read_as_the_question_that_they_stand_for(text, name, question) -> None:
    assert complete_keywords(text, [name]) == question


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Who is Amcor's CEO", ["Amcor"]),
        ("revenue?", []),
        ("Tesla deliveries 2022", []),
        ("Verizon", ["Verizon"]),
        ("Verizon 2022", ["Verizon"]),
        ("revenue Adobe Amcor 2022", ["Adobe", "Amcor"]),
        ("Is Adobe profitable", ["Adobe"]),
        ("list Pfizer products", ["Pfizer"]),
        ("growth 2021 Pfizer revenue 2022", ["Pfizer"]),
        (
            "the sale of the retail stores that CVS announced with the results for shareholders and others",
            ["CVS"],
        ),
    ],
)
def test_questions_and_keywords_about_nothing_known_stay_as_they_are(text, names) -> None:
    assert complete_keywords(text, names) == ""
