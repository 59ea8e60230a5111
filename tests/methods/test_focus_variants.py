"""Variants of ``focus``: constants that are widened (AF-Retriever), scores of fields (mFAR), learned weights."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import clew
import focus_brute as brute
from clew.core.text import count_terms, hash_term, query_terms
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.knowledge_base import registry
from clew.methods.focus import ranking
from clew.methods.focus.pattern_builder import WIDEST, TriplePreparer
from clew.methods.focus.solutions import SubstitutionEngine, widen_constants
from clew.retrieve.nodes import (
    SAME,
    FieldWeights,
    NodeFieldSearch,
    NodeTexts,
    NodeVectorSearch,
    describe_fields,
)
from clew.triples.engine.patterns import Constant, Pattern, TypedTriple, Variable, along
from film_world import GLASS, LOW, NINE, SALT, TIN, films
from link_graphs import graph_of
from retrieve_encoders import WordEncoder

DATA = Path(__file__).parents[3] / "shared" / "data"
WIDENED = "focus(constants=widened, form=none, sort=words, sources=none)"


def ask(store, text, recipe=WIDENED, question=""):
    method = registry.build_method(recipe, store)
    return method.answer(Question(question or text, Scope(), text), TrailRecorder())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_scopes_widen_until_enough_is_found(base, seed) -> None:
    draw, size = random.Random(seed), 10
    edges = {(draw.randrange(size), "r", draw.randrange(size)) for _ in range(18)} | {(size, "r", size + 1)}
    types = {row: set() for row in range(size + 2)}
    rows = {name: draw.sample(range(size), 6) for name in "cd"}
    scores = tuple(1 - place / 10 for place in range(6))
    triples = (
        TypedTriple("c", along("r"), "y"),
        TypedTriple("y", along("r"), "x"),
        TypedTriple("x", along("r"), "d"),
    )
    triples = triples[: draw.choice([1, 2, 3])]
    used = {end for triple in triples for end in (triple.head, triple.tail)}
    target = "x" if "x" in used else "y"
    constants = tuple(
        Constant(name, tuple(of_name), scores) for name, of_name in rows.items() if name in used
    )
    variables = tuple(Variable(name) for name in "xy" if name in used)
    pattern, wanted = Pattern(target, variables, constants, triples), draw.choice([1, 3, 50])
    # Each scope computed by trying every assignment; no unknown is the first candidate of a constant.
    firsts = tuple(constant.rows[0] for constant in constants)
    expected: dict[int, int] = {}
    for width in (1, 2, 3, 5, 8):
        narrowed = replace(
            pattern,
            variables=tuple(replace(variable, excluded=firsts) for variable in variables),
            constants=tuple(Constant(constant.name, constant.rows[:width]) for constant in constants),
        )
        for row in brute.answers(narrowed, edges, types, size + 2):
            expected.setdefault(row, width)
        if len(expected) >= wanted or width >= 6:
            break
    nodes = {f"n{row:02}": {"name": str(row)} for row in range(size + 2)}
    graph = graph_of(
        base, [(f"n{head:02}", relation, f"n{tail:02}") for head, relation, tail in edges], **nodes
    )
    _, substitution, widths = widen_constants(graph, pattern, wanted)
    assert dict(widths) == expected
    assert substitution.rows is not None and substitution.rows.tolist() == sorted(expected)


def test_what_wider_constants_add_ranks_below_and_is_no_answer(base) -> None:
    films(base)
    answer = ask(base, "#1 : film; #1 >> directed_by >> Ilse Varnholt; final answer: #1")
    assert set(answer.values) == {SALT, LOW, GLASS}
    assert [ranked.name for ranked in answer.ranking if not ranked.meets_all] == [
        ranked.name for ranked in answer.ranking[3:]
    ]
    assert {ranked.name for ranked in answer.ranking[3:]} == {TIN, NINE}
    assert not any(step.name == "exact" for step in answer.trail)


def test_candidates_are_those_called_so_then_the_nearest_and_none_for_identifiers(base) -> None:
    graph = graph_of(
        base,
        [("f", "by", id) for id in ("a", "b", "c", "d", "e")],
        a={"name": "Ann Pell", "types": ["person"]},
        b={"name": "ANN PELL", "types": ["person"]},
        c={"name": "Anne Pelle", "types": ["person"]},
        d={"name": "1889", "types": ["year"]},
        e={"name": "1989", "types": ["year"]},
    )
    method = registry.build_method(WIDENED, base)
    engine = method.engine  # type: ignore[attr-defined]
    assert isinstance(engine, SubstitutionEngine) and isinstance(engine.preparer, TriplePreparer)
    linked = engine.preparer.constants.link(graph, {"ann pell": ("person",), "1889": ()}, "", TrailRecorder())
    assert [entity.name for entity in linked["ann pell"][:3]] == ["Ann Pell", "ANN PELL", "Anne Pelle"]
    assert [entity.score for entity in linked["ann pell"][:2]] == [1.0, 1.0]
    assert linked["ann pell"][2].score < 1 and len(linked["ann pell"]) <= WIDEST
    assert [entity.name for entity in linked["1889"]] == ["1889"]


def test_scores_of_fields_are_the_formula(base) -> None:
    graph = films(base)
    encoder = WordEncoder("green", "sea", "film", "night", "colour", "name")
    rows = np.sort(graph.rows_of_type("film"))
    texts = NodeTexts(graph)
    weights = FieldWeights(3.0, 0.5)
    query = "which green film is by the sea"
    ranked = NodeFieldSearch(NodeVectorSearch(encoder, texts), weights=weights).rank(query, 5, rows)

    fields = texts.fields(rows)
    names = list(dict.fromkeys(name for of_node in fields for name in of_node))
    assert {"name", "type", "text", "colour", "release_year", "directed_by", "starred_actors"} <= set(names)
    vector = encoder.encode([query], query=True)[0]
    words = Counter(map(hash_term, query_terms(query)))
    scores = np.zeros((2, len(names), len(rows)))
    for column, name in enumerate(names):
        of_field = [of_node[name] for of_node in fields]  # every film has every field
        dense = encoder.encode([f"{name}: {text}" for text in of_field]) @ vector
        counts = [count_terms(text) for text in of_field]
        lengths = [sum(of_text.values()) for of_text in counts]
        lexical = np.zeros(len(rows))
        for term, asked in words.items():
            having = sum(term in of_text for of_text in counts)
            idf = np.log(1 + (len(rows) - having + 0.5) / (having + 0.5))
            for place, of_text in enumerate(counts):
                norm = 1.2 * (0.25 + 0.75 * lengths[place] / (sum(lengths) / len(rows)))
                lexical[place] += asked * idf * 2.2 * of_text.get(term, 0) / (of_text.get(term, 0) + norm)
        for scorer, values in enumerate((dense, lexical)):
            scores[scorer, column] = (values - values.mean()) / (values.std() if values.std() > SAME else 1.0)
    likeness = encoder.encode([name.replace("_", " ") for name in names]) @ vector
    logits = np.stack([3.0 * likeness, 3.0 * likeness + 0.5])
    expected = (np.exp(logits)[:, :, None] * scores).sum((0, 1)) / np.exp(logits).sum()
    by_row = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
    assert [by_row[row] for row in rows.tolist()] == pytest.approx(
        (1 / (1 + np.exp(-expected))).tolist(), abs=1e-5
    )


def test_a_property_never_hides_the_name_of_a_node(base) -> None:
    graph = graph_of(
        base, [("a", "r", "b")], a={"name": "Real", "properties": {"name": "Other", "size": (1, 2)}}
    )
    (entity, *_) = graph.entities(graph.find_by_name("Real"))
    assert describe_fields(entity) == {"name": "Real", "size": "1; 2"}


def test_weights_are_those_of_the_recipe(base, monkeypatch) -> None:
    films(base)
    text = '#1 : film; #1 >> directed_by >> Ilse Varnhold; ~ "brisk comedy"; final answer: #1'
    fixed = ask(base, text, "focus(form=none, sort=words, fusion=fixed)", "which film")
    # Weight for nothing but wishes: the film that the wish describes has all of it.
    monkeypatch.setattr(ranking, "LEARNED_WEIGHTS", (0.0, 0.0, 0.0, 0.0, 2.0))
    learned = ask(base, text, "focus(form=none, sort=words, fusion=learned)", "which film")
    assert {ranked.name for ranked in learned.ranking[:3]} == {ranked.name for ranked in fixed.ranking[:3]}
    assert learned.ranking[0].name == LOW and learned.ranking[0].hit.score == pytest.approx(2.0)
    assert [ranked.hit.score for ranked in learned.ranking[1:3]] == pytest.approx([0.0, 0.0], abs=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["metaqa", "papers", "tables"])
def test_on_real_graphs_the_narrowest_scope_is_what_the_names_lead_to(tmp_path, monkeypatch, name) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    paths = [DATA / "metaqa/graph.tsv"]
    if name == "papers":
        options = importlib.import_module("graph_import").generate(tmp_path, 3000, 7)
        paths = [Path(option) for option in options if option.endswith(".csv")]
    elif name == "tables" and (DATA / "ottqa/tables.jsonl").is_file():
        write_tables = importlib.import_module("real_graphs").write_tables
        paths = [write_tables(DATA / "ottqa/tables.jsonl", tmp_path / "tables.jsonl")]
    if not all(path.is_file() for path in paths):
        pytest.skip(f"the shared data are not at {DATA}")
    with clew.open(tmp_path / "kb", create=True) as opened:
        opened.graphs.add(paths, name="g")
        graph, draw, asked = opened.graphs.get("g"), random.Random(3), 0
        relations = [relation for relation in graph.relations() if " of" not in relation]
        for _ in range(40):
            relation = draw.choice(relations)
            _, tails = graph.neighbours(np.arange(graph.size), relation)
            if not len(tails):
                continue
            tail = int(draw.choice(tails.tolist()))
            (end,) = graph.entities(np.array([tail]))
            if len(graph.find_by_name(end.name)) > 1 or any(mark in end.name for mark in '"#;~>'):
                continue
            heads = np.setdiff1d(graph.neighbours(np.array([tail]), relation, True)[1], [tail])
            answer = ask(opened.store, f'#1 >> "{relation}" >> "{end.name}"; final answer: #1')
            expected = {entity.name for entity in graph.entities(heads)}
            assert set(answer.values) == expected, (relation, end.name)
            asked += bool(expected)
            if asked == 6:
                break
        assert asked >= 3
