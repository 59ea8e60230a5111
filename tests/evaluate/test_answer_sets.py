"""Answers as sets, gold triples, and answers that are known by name: MetaQA."""

from __future__ import annotations

import json

import pytest

from clew.core.errors import UsageError
from clew.core.types import Answer, Entity, RankedAnswer
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.datasets.graphs import gold_triples
from clew.evaluate.examples import Example, Result, Support
from clew.evaluate.metrics import parse_metric
from clew.evaluate.records import given_answers
from clew.evaluate.run_folder import evaluate_recipes
from clew.evaluate.setup import EvaluationSettings, build_question_for, load_questions
from clew.papers.fourstep import LOSS_DESCRIPTIONS, classify_loss, triple_statistics
from clew.retrieve.nodes import node_hit

#: Film, relation, what is said of it.
FILMS = [
    ("Heron", "directed_by", "Ada Finch"),
    ("Heron", "written_by", "Bo Loam"),
    ("Heron", "starred_actors", "Cy Marsh"),
    ("Plover", "directed_by", "Ada Finch"),
    ("Plover", "starred_actors", "Di Reed"),
    ("Plover", "starred_actors", "Ada Finch"),
    ("Plover", "release_year", "1931"),
]


def metaqa(path, *records):
    names = ("question", "answers", "type")
    path.write_text("".join(json.dumps(dict(zip(names, record, strict=True))) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("movie_to_director", "Heron >> directed_by >> #1; final answer: #1"),
        ("actor_to_movie", "#1 >> starred_actors >> Heron; final answer: #1"),
        (
            "movie_to_writer_to_movie_to_year",
            "Heron >> written_by >> #1; #2 >> written_by >> #1; #2 >> release_year >> #3; final answer: #3",
        ),
        ("", ""),
        ("movie", ""),
        ("movie_to_movie", ""),
        ("actor_to_director", ""),
        ("movie_to_budget", ""),
    ],
)
def test_the_triples_that_a_type_spells(kind, text):
    example = Example("1", "what of [Heron]", ("x",), "entities", kind, meta={"topic": "Heron"})
    assert gold_triples(example) == text


def test_a_topic_that_would_divide_the_triples_is_quoted():
    example = Example("1", "[A; B]", (), "entities", "movie_to_director", meta={"topic": "A; B"})
    assert gold_triples(example) == '"A; B" >> directed_by >> #1; final answer: #1'


def test_gold_triples_are_asked_where_they_are_known(tmp_path):
    path = metaqa(tmp_path / "q.jsonl", ("who directed [Heron]", ["Ada Finch"], "movie_to_director"))
    data = load_questions(f"metaqa={path}", "none", None, 0, triples=True)
    (example,) = data.examples
    assert (
        build_question_for(data, EvaluationSettings())(example).chain
        == "Heron >> directed_by >> #1; final answer: #1"
    )
    assert data.title == "metaqa (none, gold triples)"
    assert (
        build_question_for(load_questions(f"metaqa={path}", "none", None, 0), EvaluationSettings())(
            example
        ).chain
        == ""
    )
    other = metaqa(tmp_path / "r.jsonl", ("who directed [Heron]", ["Ada Finch"], "about_movies"))
    with pytest.raises(UsageError, match="line 1: its gold triples are not known"):
        load_questions(f"metaqa={other}", "none", None, 0, triples=True)


def result(answers, given, found=()):
    pieces = tuple(Support(title=answer, entity=answer) for answer in answers)
    example = Example("1", "?", tuple(answers), "entities", support=pieces)
    return Result(example, answer_pieces=given, hit_pieces=[frozenset(item) for item in found])


def test_sets_by_hand():
    def both(item):
        return parse_metric("set-EM").measure(item), parse_metric("set-F1").measure(item)

    assert both(result("ab", [{0}, {1}])) == (1, 1)
    # Two of three given are right, two of two right ones are given: 2 * 2/3 * 1 / (2/3 + 1) = 4/5.
    assert both(result("ab", [{0}, set(), {1}])) == (0, pytest.approx(0.8))
    # One of one, one of three: 2 * 1 * 1/3 / (4/3) = 1/2.
    assert both(result("abc", [{1}])) == (0, pytest.approx(0.5))
    assert both(result("ab", [])) == (0, 0)
    assert both(result("ab", [set()])) == (0, 0)
    assert both(result("ab", None)) == (None, None)
    assert both(result("", [set()])) == (None, None)


def test_recall_of_what_places_can_hold():
    item = result("abcd", None, [{0}, set(), {1}, {2}])
    # Of four right ones the first two hits hold one: 1/4 of all, 1/2 of what two places can hold.
    assert (
        parse_metric("recall@2").measure(item) == 0.25
        and parse_metric("capped-recall@2").measure(item) == 0.5
    )
    assert parse_metric("recall@5").measure(item) == parse_metric("capped-recall@5").measure(item) == 0.75
    assert parse_metric("capped-recall@5").measure(result("", None)) is None


def entity(id, name):
    return node_hit("films", Entity(f"films:{id}", "", name), "", 1.0)


def test_nodes_are_known_by_id_and_by_name_only_where_the_data_says_names():
    by_id = Example("1", "?", ("7",), "entities", support=(Support(title="7"),))
    by_name = Example("1", "?", ("7",), "entities", support=(Support(title="7", entity="7"),))
    for hit, held in ((entity("7", "Heron"), (True, True)), (entity("Q1", "7"), (False, True))):
        results = tuple(bool(GoldEvidence(example).matching_pieces(hit.node)) for example in (by_id, by_name))
        assert results == held


def test_what_was_given_for_true():
    example = Example("1", "?", ("Heron", "Plover"), "entities",
                      support=tuple(Support(title=item, entity=item) for item in ("Heron", "Plover")))  # fmt: skip
    by_id = Example("2", "?", ("1", "2"), "entities", support=(Support(title="1"), Support(title="2")))
    ranked = tuple(
        RankedAnswer(name, entity(id, name), firm)
        for id, name, firm in (("1", "Heron", True), ("3", "Teal", True), ("2", "Plover", False))
    )
    # Of the ranked list the two that meet the constraints; of values all, also those that were not ranked.
    assert given_answers(by_id, Answer("", ranking=ranked)) == {"given": [[0], []]}
    assert given_answers(example, Answer("", values=("Heron", "Teal", "Plover"), ranking=ranked)) == {
        "given": [[0], [], [1]]
    }
    assert given_answers(example, Answer("", values=("Plover",))) == {"given": [[1]]}
    assert given_answers(by_id, Answer("", values=("Plover",))) == {}
    assert given_answers(example, Answer("read")) == {}


USED = {"triples": "#1 >> r >> A; final answer: #1", "usable": True, "constants": 1, "unmatched": [], "given up": [],
        "candidates": 2, "kept": 2, "filled": 18}  # fmt: skip


@pytest.mark.parametrize(
    ("gold", "text", "kind"),
    [
        ([{0}], USED, "ranking"),
        ([set()], USED, "triples"),
        ([set()], USED | {"given up": ["x"]}, "contradiction"),
        ([set()], USED | {"unmatched": ["B"]}, "constant"),
        ([], USED | {"usable": False}, "not usable"),
        ([], {"triples": "", "kept": 0, "filled": 20}, "no triples"),
    ],
)
def test_a_lost_answer_is_attributed_to_the_step_that_lost_it(gold, text, kind):
    lost = result("a", gold, [set(), {0}])
    assert classify_loss(lost, {"id": "1", "focus": text}) == kind and kind in LOSS_DESCRIPTIONS
    assert classify_loss(result("a", gold, [{0}]), {"id": "1", "focus": text}) is None
    assert classify_loss(lost, {"id": "1"}) is None


def test_diagnostics_by_hand():
    records = [
        {"id": "1", "focus": USED},
        {"id": "2", "focus": USED | {"candidates": 1, "kept": 1, "filled": 0, "given up": ["x"]}},
        {"id": "3", "focus": USED | {"usable": False, "constants": 2, "unmatched": ["B", "C"], "candidates": None}},
        {"id": "4", "focus": {"triples": "", "kept": 0, "filled": 20}},
        {"id": "failed", "error": "x"},
    ]  # fmt: skip
    results = {"1": result("a", [{0}]), "2": result("a", [set()]), "3": result("a", []), "4": result("a", [])}
    assert triple_statistics(records, results) == {
        "questions": "4",
        "with triples": "3 of 4 (75.0%)",
        "with usable triples": "2 of 4 (50.0%)",
        "constants matched": "2 of 4 (50.0%)",
        "candidates (least, quartiles, most)": "1, 1.25, 1.5, 1.75, 2",
        "one candidate": "1 of 2 (50.0%)",
        "a right answer among them": "1 of 2 (50.0%)",
        "relaxed": "1 of 2 (50.0%)",
        "filled up": "1 of 2 (50.0%)",
    }


def test_gold_triples_over_a_graph_alone(tmp_path):
    """The chain method on MetaQA's own triples; the graph stands beside no documents."""
    graph = tmp_path / "films.tsv"
    graph.write_text("".join("\t".join(film) + "\n" for film in FILMS))
    path = metaqa(
        tmp_path / "q.jsonl",
        ("who acted in films by the director of [Heron]", ["Cy Marsh", "Di Reed", "Ada Finch"],
         "movie_to_director_to_movie_to_actor"),
        ("when were films by [Ada Finch] released", ["1931", "1932"], "director_to_movie_to_year"),
    )  # fmt: skip
    data = load_questions(f"metaqa={path}", "none", None, 0, triples=True)
    folder = evaluate_recipes(
        tmp_path / "runs", data, ["chain(sources=kg)"], EvaluationSettings(graphs=(str(graph),))
    )
    assert folder.path.name == "metaqa-none-triples" and folder.facts["triples"] == "gold"
    (run,) = folder.load_runs()
    assert not run.errors
    scores = {name: list(run.values(parse_metric(name)).values()) for name in ("set-EM", "set-F1")}
    # Heron itself is left out, so Cy Marsh, who acts in no other film of Ada Finch's, is not found: precision 1,
    # recall 2/3, F1 4/5. The graph has one of two years: F1 2 * 1 * 1/2 / (3/2) = 2/3.
    assert scores == {"set-EM": [0, 0], "set-F1": [pytest.approx(0.8), pytest.approx(2 / 3)]}
