"""What an encoder learns from, by hand."""

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.evaluate.examples import Example, Paragraph, Support
from clew.train.encoder import PAPER_SETTINGS, build_settings
from clew.train.pairs import Pair, Passage, add_mined_negatives, pairs_from_examples, pairs_from_passages

LOCK = Paragraph("Elm lock", ("Its keeper is Ann.",))
ANN = Paragraph("Ann", ("Ann was born in Elmton.",))
NOISE = [Paragraph(f"Noise {n}", (f"Nothing {n}.",)) for n in range(3)]
BRIDGE = Example(
    "1", "Where was the keeper of Elm lock born?", ("Elmton",), question_type="bridge",
    support=(Support("Elm lock", 0), Support("Ann", 0)), corpus=(NOISE[0], ANN, NOISE[1], LOCK, NOISE[2]),
)  # fmt: skip


def test_every_hop_asks_with_what_came_before() -> None:
    first, second = pairs_from_examples([BRIDGE], "mdr", 2, 0)
    assert (first.query, first.positive) == (BRIDGE.question, "Elm lock: Its keeper is Ann.")
    assert second.query == f"{BRIDGE.question} Elm lock: Its keeper is Ann."
    assert second.positive == "Ann: Ann was born in Elmton."
    far = {f"Noise {n}: Nothing {n}." for n in range(3)}
    assert all(len(one.negatives) == 2 and set(one.negatives) <= far for one in (first, second))
    # Three distractors serve two pairs of two: the second pair starts where the first one stopped.
    assert set(first.negatives) | set(second.negatives) == far


def test_dpr_asks_with_the_question_alone_and_needs_no_order() -> None:
    unordered = Example(
        "2",
        BRIDGE.question,
        ("nowhere",),
        support=BRIDGE.support,
        corpus=BRIDGE.corpus,
        question_type="bridge",
    )
    found = pairs_from_examples([unordered], "dpr", 1, 0)
    assert [(one.query, one.positive) for one in found] == [
        (BRIDGE.question, "Elm lock: Its keeper is Ann."),
        (BRIDGE.question, "Ann: Ann was born in Elmton."),
    ]


def test_a_comparison_starts_at_either_passage() -> None:
    both = Example(
        "3",
        "Who is older?",
        ("Ann",),
        question_type="comparison",
        support=BRIDGE.support,
        corpus=BRIDGE.corpus,
    )
    pairs = pairs_from_examples([both, both], "mdr", 0, 0)
    assert {(pair.query.count(":"), pair.positive[:3]) for pair in pairs} == {
        (0, "Elm"), (0, "Ann"), (1, "Ann"), (1, "Elm")
    }  # fmt: skip
    assert len(pairs) == 4 and all(pair.negatives == () for pair in pairs)


def test_hard_negatives_are_the_nearest_that_are_wrong() -> None:
    pairs = [
        Pair("q ab", "a", ("far",), "q"), Pair("q a ab", "b", (), "q"), Pair("r b", "bb", ("abc",), "r"),
    ]  # fmt: skip
    words = "abcr"

    def encode(texts):
        counts = np.array([[text.count(word) for word in words] for text in texts], float) + 1e-9
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    first, second, third = add_mined_negatives(pairs, encode, 1)
    # "abc" is nearest to "ab" of what is not right for q; "a" and "b" are right for it, "far" is known.
    assert (first.negatives, second.negatives) == (("far", "abc"), ("abc",))
    # "b" is in the query; of the others "a" and "far" have nothing of it, "bb" is right.
    assert third.negatives[0] == "abc" and third.negatives[1] in {"a", "far"}
    assert [one.positive for one in (first, second, third)] == ["a", "b", "bb"]


def passage(document: str, text: str, headings: tuple[str, ...] = (), names: str = "") -> Passage:
    return Passage(document, document.title(), headings, text, frozenset(names.split()))


def test_a_base_makes_pairs_of_links_neighbours_and_headings() -> None:
    passages = [
        passage("a", "A names b and c.", ("Top",), "b c"),
        passage("a", "A goes on.", ("Top",)),
        passage("b", "B begins.", names="a x"),
        passage("b", "B ends.", ("End",), "b"),
        passage("c", "C begins."),
    ]
    # x is the name of two documents: it leads to neither; b's own name leads nowhere.
    titles = {"a": frozenset("a"), "b": frozenset("b"), "c": frozenset({"c", "x"}), "d": frozenset("x")}
    found = {(one.query, one.positive) for one in pairs_from_passages(passages, titles, 100, 0)}
    assert found == {
        ("A names b and c.", "B: B begins."),
        ("A names b and c.", "C: C begins."),
        ("B begins.", "A. Top: A names b and c."),
        ("A names b and c.", "A. Top: A goes on."),
        ("A. Top", "A names b and c."),
        ("A. Top", "A goes on."),
        ("B. End", "B ends."),
    }
    few = pairs_from_passages(passages, titles, 3, 0)
    assert len(few) == 3 and few == pairs_from_passages(passages, titles, 3, 0)
    assert isinstance(few[0], Pair) and pairs_from_passages([], {}, 3, 0) == []


def test_the_paper_s_configuration_is_its_table_5() -> None:
    assert (
        PAPER_SETTINGS.epochs,
        PAPER_SETTINGS.warmup,
        PAPER_SETTINGS.learning_rate,
        PAPER_SETTINGS.clip,
    ) == (50, 300, 2e-5, 2)
    assert (
        128 <= PAPER_SETTINGS.batch <= 512
        and 128 <= PAPER_SETTINGS.max_tokens <= 350
        and PAPER_SETTINGS.blend == 1
    )
    assert build_settings("paper", {"epochs": 1}).epochs == 1
    for words in (("papre", {}), ("clew", {"objective": "mrd"})):
        with pytest.raises(UsageError, match="Did you mean"):
            build_settings(*words)
