"""Replies that name entries, in the forms in which models write them."""

import pytest

from clew.methods.d3.replies import EntryNames

PATHS = [
    ("Introduction",),  # 1
    ("Methods", "Data, Annotation, and Splits"),  # 2
    ("Methods", "Models"),  # 3
    ("Results",),  # 4
    ("Results", "Main Results"),  # 5
    ("Results", "Models"),  # 6
    ("Item 7. Management's Discussion",),  # 7
    ("2022",),  # 8
]


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("Introduction, Results", [1, 4]),
        ("introduction,RESULTS", [1, 4]),
        ("Introduction; Results", [1, 4]),
        ("- Introduction\n- Results", [1, 4]),
        ("* Section: Methods > Models", [3]),
        ("1. Introduction\n2. Data, Annotation, and Splits", [1, 2]),
        ("Methods > Data, Annotation, and Splits, Results", [2, 4]),
        ('"Introduction", "Main Results"', [1, 5]),
        ("**Results** | _Introduction_", [4, 1]),
        ('["Main Results", "introduction"]', [5, 1]),
        ('```json\n{"sections": ["Results", 3]}\n```', [4, 3]),
        ("{'names': ['Main Results',", [5]),
        ("[Introduction, Results]", [1, 4]),
        ("[1], [4]", [1, 4]),
        ("(2), (5).", [2, 5]),
        ("1-3", [1, 2, 3]),
        ("1 and 4", [1, 4]),
        ("Section 2, section 4", [2, 4]),
        ("6. Models", [6]),  # of two that are called so, the one so numbered
        ("Models", [3, 6]),  # both
        ("Item 7", [7]),
        ("Managements Discusion", [7]),
        ("data annotation and splits", [2]),
        ("2022", [8]),
        ("Relevant sections: Introduction, Results.", [1, 4]),
        ("The sections Introduction and Main Results may be relevant.", [1, 5]),
        ("<think>Methods? No.</think>\nIntroduction", [1]),
        ("Introduction, Introduction", [1]),
        ("", []),
        ("None", []),
        ("N/A", []),
        ("[]", []),
        ("none of the sections are relevant.", []),
    ],
)
def test_what_is_meant_is_found(reply, numbers):
    assert EntryNames(PATHS).match_reply(reply) == ([number - 1 for number in numbers], [])


@pytest.mark.parametrize(
    ("reply", "numbers", "unknown"),
    [
        ("Introduction, Conclusion", [1], ["Conclusion"]),
        ("9999, 2", [2], ["9999"]),
        ("I cannot help with that", [], ["I cannot help with that"]),
    ],
)
def test_what_is_not_there_is_told(reply, numbers, unknown):
    assert EntryNames(PATHS).match_reply(reply) == ([number - 1 for number in numbers], unknown)


def test_numbers_are_those_that_were_shown():
    names = EntryNames(PATHS[2:4], numbers=[3, 4])
    assert names.match_reply("4, 1") == ([1], ["1"])


def test_without_numbers_a_number_is_part_of_a_heading():
    names = EntryNames([("1 Models",), ("2 Results",)], numbers=[])
    assert names.match_reply("2 Results, 1 Models") == ([1, 0], [])
    assert names.match_reply("7") == ([], ["7"])
