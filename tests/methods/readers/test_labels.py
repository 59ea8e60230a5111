"""Labels out of what a model wrote about a claim."""

import pytest

from clew.methods.prompting import LABELS, parse_label

S, R, N = LABELS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("SUPPORTS", S),
        ("refutes", R),
        ("NOT ENOUGH INFO", N),
        (" Supported.", S),
        ("Label: REFUTED", R),
        ("not enough information", N),
        ("Not_Enough_Info", N),
        ("NEI", N),
        ("True", S),
        ("FALSE.", R),
        ("Yes, it does.", S),
        ("No, he was born in Boston.", R),
        ("No evidence is known.", N),
        ("The claim is not true.", R),
        ("The claim is not entirely correct.", R),
        ("This is incorrect.", R),
        ("It is not false.", S),
        ("The claim is inaccurate.", R),
        ("It is true that he taught, but the claim is REFUTED", R),
        ("The passages do not support the claim.", N),
        ("Nothing is known, so it is not refuted.", N),
        ("It is not supported by anything.", N),
        ("It is neither supported nor refuted.", N),
        ("This cannot be determined.", N),
        ("I can't say.", N),
        ("insufficient evidence to say that it is true", N),
        ("Untrue", R),
        ("He is from Boston, not from here, which contradicts it.", R),
        ("It was lit in 1871, which is true. So the answer is: REFUTES.", R),
        ("So the answer is: SUPPORTS.\nThe evidence does not speak against it; false alarms aside.", S),
        ("**Verdict:** REFUTES", R),
        ("Verdict:\nREFUTES", R),
        ("Corran Light >> year >> unknown; final answer: NOT ENOUGH INFO", N),
        ("Corran Light >> year >> 1871; final answer: SUPPORTS", S),
        ("The answer is unclear to many, but the label is SUPPORTS", S),
        ("The statement REFUTES nothing, which is why it is true", R),
        ("<think>SUPPORTS, surely</think>REFUTES", R),
        ("Say SUPPORTS, REFUTES or NOT ENOUGH INFO", ""),
        ("The answer is: SUPPORTS, REFUTES or NOT ENOUGH INFO", ""),
        ("The answer is SUPPORTS. The label is SUPPORTS or REFUTES", ""),
        ("Dunmere", ""),
        ("", ""),
    ],
)
def test_labels_in_the_usual_words(reply, label):
    assert parse_label(reply) == label
