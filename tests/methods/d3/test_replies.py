"""The ids that small models write in every way but the one that was asked for."""

import pytest

from clew.methods.d3.replies import parse_numbers, parse_verdict

OFFERED = range(11, 31)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "chosen", "unknown"),
    [
        ("12, 15", (12, 15), ()),
        ("12,15.", (12, 15), ()),
        ("[12], [15]", (12, 15), ()),
        ("[12, 15]", (12, 15), ()),
        ('["12", "15"]', (12, 15), ()),
        ('{"ids": [12, 15]}', (12, 15), ()),
        ('```json\n{"paragraph_ids": [12, "15"]}\n```', (12, 15), ()),
        ("12-14", (12, 13, 14), ()),
        ("12 to 14 and 20", (12, 13, 14, 20), ()),
        ("12–13; 15", (12, 13, 15), ()),
        ("P12, P15", (12, 15), ()),
        ("Paragraph ids: 12, 15", (12, 15), ()),
        ("paragraphs 12 and 15", (12, 15), ()),
        ("**12**, **15**", (12, 15), ()),
        ("- 12\n- 15", (12, 15), ()),
        ("* Paragraph 12\n* Paragraph 15", (12, 15), ()),
        ("1. Paragraph 12\n2. Paragraph 15", (12, 15), ()),
        ("1. 12\n2. 15", (12, 15), ()),
        ("12 15", (12, 15), ()),
        ("15, 12, 15", (15, 12), ()),
        ("12, 15\n\nParagraph 20 speaks of 1999 and is of no use.", (12, 15), ()),
        ("Paragraphs 12 and 15 are relevant, as they give the revenue of 2019.", (12, 15), ()),
        ("The relevant paragraphs are [12] and [15], since 17 ships were lost.", (12, 15), ()),
        ("12: Net sales rose by 17 percent.\n15: They fell in 2019.", (12, 15), ()),
        ("[12] Net sales rose by 17 percent.", (12,), ()),
        ("<think>Perhaps 13? No.</think>\n12, 15", (12, 15), ()),
        ("12, 15, 99", (12, 15), (99,)),
        ("1, 2, 12", (12,), (1, 2)),
        ("12-999999999", (12,), (999999999,)),
        ("all", tuple(OFFERED), ()),
        ("All of the paragraphs are relevant.", tuple(OFFERED), ()),
    ],
)
def test_numbers_in_a_reply(reply, chosen, unknown):
    result = parse_numbers(reply, OFFERED)
    assert (result.chosen, result.unknown, result.readable) == (chosen, unknown, True)


NOTHING = [
    "", " \n", "None", "none.", "N/A", "[]", "{}", '""', "-", "No paragraph is relevant.",
    "None of the paragraphs 11-30 are relevant.", "There are no relevant paragraphs.",
    "<think>12 or 15?</think>",
]  # fmt: skip


@pytest.mark.parametrize("reply", NOTHING)
def test_a_reply_that_chooses_nothing_is_readable(reply):
    result = parse_numbers(reply, OFFERED)
    assert (result.chosen, result.readable) == ((), True)


def test_words_without_ids_cannot_be_read():
    assert not parse_numbers("The company's revenue was 12 million.", OFFERED).readable
    assert not parse_numbers("I cannot help with that.", OFFERED).readable


@pytest.mark.parametrize(
    ("reply", "text"),
    [("Yes", True), ("no.", False), (" YES, it does.", True), ("True", True), ("false", False), ("1", True),
     ("The paragraph does, yes.", True), ("Not relevant", False), ("Maybe", None), ("", None),
     ("It could be yes or no", None), ("<think>no?</think>yes", True)],
)  # fmt: skip
def test_verdicts(reply, text):
    assert parse_verdict(reply) is text
