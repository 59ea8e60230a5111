"""Which kind of answer a question asks for, and what cannot answer it."""

import pytest

from clew.methods.readers.answer_kinds import (
    contains_answer,
    expected_kind,
    is_impossible,
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


@pytest.mark.parametrize(
    ("question", "impossible", "possible"),
    [
        (
            "How many employees does the company have?",
            ["34.6%", "our", "$40", "a few", "Section 6"],
            ["79,000", "two"],
        ),
        ("What share, and how many percent?", ["ours"], ["34.6%"]),
        (
            "On what date did the fiscal year end?",
            ["$449.94", "12 %", "the last one"],
            ["December 2", "May 1, 2023"],
        ),
        ("In which year did it erupt?", ["this year"], ["940 AD", "1902"]),
        ("What was total revenue?", ["2020", "FY 2021"], ["2,020", "$17,606 million"]),
        (
            "Who is the director?",
            ["Vice President", "Director", "their", "She"],
            ["Ada Pell", "the mayor", "The Who"],
        ),
        ("Who built the lighter?", ["1919", "May 1, 1919"], ["Tolland Yard", "the 3rd Engineers"]),
        ("The Lighter: built by?", ["1919"], ["Tolland Yard"]),
        (
            "At what time did it sink?",
            ["1912", "the harbour"],
            ["ten to eight", "7:40", "6pm", "half past six"],
        ),
        ("When was it painted?", ["1928.11"], ["1903", "12 May 1903"]),
        ("Who earns more, Ada Pell or Bo Lind?", ["We carried more", "Cy Moe"], ["Ada Pell", "Lind"]),
        ("Which is older, the pier or the lock?", ["1907"], ["the lock"]),
        ("Where was it built?", ["1919", "71"], ["Tolland Yard", "21 Mill Lane"]),
        ("What was the weight of the man who built it?", [], ["71"]),
        ("Which firm is the auditor?", ["another qualified firm", "Our accounting firm"], ["KPMG LLP", "3M"]),
        ("Which virus was studied?", ["these"], ["tobacco mosaic virus"]),
        (
            "How many people drowned?",
            ["19 October 1943, Saltreach", "March 14"],
            ["41 in March 1929", "two, on 19 October"],
        ),
        (
            "How long is the river?",
            ["ever. The great slip of 1866", "wide harbour. Boats"],
            ["58 kilometres", "as long as Mr. Pell said", "U.S. Route 20"],
        ),
        (
            "At which university did Pell study?",
            ["school", "the tower"],
            ["Oslo", "University of Oslo", "ETH"],
        ),
        (
            "What did the bridge cost in the end?",
            ["five spans on four piers", "Strake"],
            ["$9", "nine guineas", "9,226"],
        ),
        ("What does the hirer pay a day?", ["two hands", "a craft"], ["$9 for every day", "nine pounds"]),
        ("What did the widow pay?", [], ["tribute"]),
        ("Who drowned?", ["I", "He"], ["Ivo", "George I"]),
    ],
)
def test_what_cannot_answer_is_no_answer(question, impossible, possible):
    assert [text for text in impossible if not is_impossible(question, text)] == []
    assert [text for text in possible if is_impossible(question, text)] == []
