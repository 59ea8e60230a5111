"""What an encoder learns from, by hand."""

from typing import ClassVar

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.examples import Example, Paragraph, Support
from clew.evaluate.setup import graph_base
from clew.retrieve.nodes import NodeTexts
from clew.train.encoder import (
    PAPER_SETTINGS,
    EncoderSettings,
    HeldOutNodes,
    build_settings,
    training_from_graph,
)
from clew.train.pairs import (
    NodeQuestion,
    Pair,
    Passage,
    add_mined_negatives,
    find_node_questions,
    pairs_from_examples,
    pairs_from_nodes,
    pairs_from_passages,
)
from link_graphs import graph_of
from small_bases import base
from stark_clinic import write_clinic, write_questions

__all__ = ["base"]

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
    assert all(len(item.negatives) == 2 and set(item.negatives) <= far for item in (first, second))
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
    result = pairs_from_examples([unordered], "dpr", 1, 0)
    assert [(item.query, item.positive) for item in result] == [
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

    def encode(texts, query):
        counts = np.array([[text.count(word) for word in words] for text in texts], float) + 1e-9
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    first, second, third = add_mined_negatives(pairs, encode, 1)
    # "abc" is nearest to "ab" of what is not right for q; "a" and "b" are right for it, "far" is known.
    assert (first.negatives, second.negatives) == (("far", "abc"), ("abc",))
    # "b" is in the query; of the others "a" and "far" have nothing of it, "bb" is right.
    assert third.negatives[0] == "abc" and third.negatives[1] in {"a", "far"}
    assert [item.positive for item in (first, second, third)] == ["a", "b", "bb"]


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
    results = {(item.query, item.positive) for item in pairs_from_passages(passages, titles, 100, 0)}
    assert results == {
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


def test_stark_s_questions_are_paired_with_the_texts_of_their_answers(tmp_path) -> None:
    # The layout of the official files: a processed knowledge base, and qa.csv with its splits.
    questions = list(parse_dataset(f"stark={write_questions(tmp_path / 'qa')}#test-0.1").examples())
    with graph_base(write_clinic(tmp_path / "clinic")) as base:
        (info,) = base.graphs.graph_infos()
        graph = base.snapshot().graph(info.name)
        result = find_node_questions(graph, questions)
        assert [graph.ids(question.rows) for question in result] == [
            sorted(f"{graph.name}:{answer}" for answer in example.answers) for example in questions
        ]
        pairs = pairs_from_nodes(graph, result, answers=2, negatives=3, seed=1)
        assert pairs == pairs_from_nodes(graph, result, answers=2, negatives=3, seed=1)
        text_of = dict(enumerate(NodeTexts(graph).documents(np.arange(graph.size))))
        for question in result:
            own = [pair for pair in pairs if pair.query == question.text]
            right = {text_of[row] for row in question.rows.tolist()}
            assert len(own) == min(2, len(right)) and {pair.positive for pair in own} <= right
            assert all(len(pair.negatives) == 3 and not right & set(pair.negatives) for pair in own)


def test_an_answer_that_is_no_id_is_the_node_that_is_written_so(base) -> None:
    graph = graph_of(base, [("Kismet", "r", "kismet"), ("Other", "r", "Kismet")])
    examples = [
        Example("1", "capital?", ("Kismet",), "entities"),
        Example("2", "either?", ("KISMET",), "entities"),
        Example("3", "neither?", ("Nowhere",), "entities"),
    ]
    capital, either = find_node_questions(graph, examples)
    assert [entity.name for entity in graph.entities(capital.rows)] == ["Kismet"]
    assert {entity.name for entity in graph.entities(either.rows)} == {"Kismet", "kismet"}


def test_held_out_questions_are_searched_over_the_texts_of_nodes(base) -> None:
    graph = graph_of(base, [("aa", "r", "bb"), ("bb", "r", "cc"), ("dd", "r", "aa")])
    row = {entity.name: row for row, entity in enumerate(graph.entities(np.arange(graph.size)))}

    class LetterModel:
        """Counts letters of the name, the first line of a node's text."""

        prompts: ClassVar[dict[str, str]] = {}

        def encode(self, texts, **_):
            names = [text.splitlines()[0].removeprefix("name: ") for text in texts]
            counts = np.array([[name.count(letter) for letter in "abcd"] for name in names], float) + 1e-9
            return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    questions = [
        NodeQuestion("aab", np.array([row["aa"]])),  # the first
        NodeQuestion("bba", np.sort([row["aa"], row["cc"]])),  # aa is the second, cc further down
    ]
    measures = HeldOutNodes(graph, questions, np.arange(graph.size)).measure(LetterModel())
    assert measures == {"Hit@1": 0.5, "recall@20": 1.0, "MRR": 0.75}


def test_training_over_a_graph_needs_one_graph_and_one_hop(base, tmp_path) -> None:
    data = [f"stark={write_questions(tmp_path / 'qa')}#test-0.1"]
    settings = EncoderSettings(objective="dpr")
    with pytest.raises(UsageError, match="has 0 graphs"):
        training_from_graph(base, data, "m", settings, 0.3)
    with graph_base(write_clinic(tmp_path / "clinic")) as clinic:
        with pytest.raises(UsageError, match="without hops"):
            training_from_graph(clinic, data, "m", EncoderSettings(), 0.3)
        training = training_from_graph(clinic, data, "m", settings, 0.3)
        assert isinstance(training.held_out, HeldOutNodes) and len(training.held_out.questions) == 2
        learned = {pair.query for pair in training.pairs}
        assert not learned & {question.text for question in training.held_out.questions}
        assert training.origin["graph"] == clinic.graphs.graph_infos()[0].digest
    graph_of(base, [("a", "r", "b")])
    with pytest.raises(UsageError, match="is a node of g"):
        training_from_graph(base, data, "m", settings, 0.3)
    with pytest.raises(UsageError, match="no graph at"), graph_base(tmp_path / "nowhere"):
        pass
