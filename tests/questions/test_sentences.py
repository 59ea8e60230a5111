"""Sentences that may answer: what of them is read alone."""

import numpy as np

from clew.questions.sentences import ALONE, OptionScores, stand_alone


def test_the_likeliest_options_are_read_alone_and_the_others_have_the_lowest_score_of_these():
    asked = []

    def read_alone(numbers):
        asked.extend(numbers)
        return [float(number) for number in numbers]

    count = ALONE + 5
    likeness, within = np.linspace(0.0, 1.0, count), [0.0] * count
    scores = OptionScores([], within, read_alone).score_alone(likeness)
    assert asked == list(range(count - 1, 4, -1))
    assert scores.tolist() == [5.0] * 5 + list(range(5, count))
    # How likely an option is within its passage counts, too.
    asked.clear()
    OptionScores([], [5.0, *within[1:]], read_alone).score_alone(likeness)
    assert 0 in asked and len(asked) == ALONE
    assert OptionScores([], [], read_alone).score_alone(np.zeros(0)).tolist() == []


def test_an_option_is_read_alone_behind_the_words_before_it():
    text = f"{'word ' * 40}It is open. Then shut."
    start = text.index("It is")
    passage, first, last = stand_alone("Rules", text, start, start + 11)
    assert passage.text[first:last] == "It is open."
    assert passage.text == f"{'word ' * 22}It is open." and passage.title == "Rules"
    assert stand_alone("", "It is open.", 0, 11)[1:] == (0, 11)
