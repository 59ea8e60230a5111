"""Exact answers against two oracles: every binding tried in plain Python, and Oxigraph with the question's SPARQL."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import exact_brute as brute
from clew.core.errors import UsageError
from clew.core.protocols import PropertyGraph
from clew.store.store import Store
from clew.triples.engine.patterns import DirectedRelation
from clew.triples.language.chain import NOT
from clew.triples.language.typed_parsing import parse_typed_statements
from clew.triples.query import compile_question, evaluation, solve_question, to_sparql
from clew.triples.query.question import Group
from typed_questions import QuestionGenerator

NAMES = ["ann", "bo", "ruby", "Ruby", "rubý", "7", "12", "new york", "dee"]
RELATIONS = ["likes", "part_of", "born in"]


def draw_world(chance: random.Random) -> brute.World:
    """Return a small graph with names that clash, aliases, several types, and numbers and texts as properties."""
    size = chance.randint(4, 7)
    names = [chance.sample(NAMES, chance.choice((1, 1, 1, 2))) for _ in range(size)]
    types = [chance.sample(["person", "city", "work"], chance.choice((0, 1, 1, 2))) for _ in range(size)]
    properties: list[dict[str, Any]] = []
    for _ in range(size):
        own: dict[str, Any] = {}
        if chance.random() < 0.7:
            own["size"] = chance.choice((1, 2, 2.5, 3))
        if chance.random() < 0.5:
            own["colour"] = chance.choice(("red", "dark red", "Blue"))
        if chance.random() < 0.3:
            own["years"] = [chance.randint(1, 4), chance.randint(5, 9)]
        properties.append(own)
    edges = {
        relation: {
            (chance.randrange(size), chance.randrange(size)) for _ in range(chance.randint(3, 2 * size))
        }
        for relation in RELATIONS
    }
    return brute.World(names, types, properties, edges)


def store_world(base: Store, world: brute.World, name: str) -> tuple[PropertyGraph, brute.World]:
    """Store a world; return the graph, and the world with its nodes numbered as the graph's rows."""
    builder = base.graphs.create_builder(name)
    for node in world.nodes:
        first, *aliases = world.names[node]
        builder.add_node(
            f"n{node}",
            name=first,
            aliases=aliases,
            types=world.types[node],
            properties=world.properties[node],
        )
    for relation, pairs in world.edges.items():
        for head, tail in sorted(pairs):
            builder.add_edge(f"n{head}", relation, f"n{tail}")
    base.graphs.store_graph(builder, [])
    graph = base.snapshot().graph(name)
    rows = graph.rows([f"{name}:n{node}" for node in world.nodes]).tolist()
    order = sorted(world.nodes, key=lambda node: rows[node])
    return graph, brute.World(
        [world.names[node] for node in order],
        [world.types[node] for node in order],
        [world.properties[node] for node in order],
        {
            relation: {(rows[head], rows[tail]) for head, tail in pairs}
            for relation, pairs in world.edges.items()
        },
    )


def ask(graph: PropertyGraph, text: str) -> list[int] | None:
    """Return the rows of the exact answers; None where the question is refused."""
    try:
        question = compile_question(graph, parse_typed_statements(text).chain).question
    except UsageError:
        return None
    return None if question is None else solve_question(graph, question).tolist()


def ask_brute_force(world: brute.World, text: str) -> list[int]:
    return brute.BruteForce(world, parse_typed_statements(text).chain).answers()


def find_differences(base: Store, seeds: range, questions: int) -> tuple[list[str], int]:
    """Return the questions over small graphs that brute force answers otherwise, and how many have answers."""
    differences, answered = [], 0
    for seed in seeds:
        chance = random.Random(seed)
        graph, world = store_world(base, draw_world(chance), f"g{seed}")
        generator = QuestionGenerator(graph, seed)
        for _ in range(questions):
            text = generator.question()
            rows = ask(graph, text)
            if rows is None:
                continue
            answered += bool(rows)
            expected = ask_brute_force(world, text)
            if rows != expected:
                differences.append(f"seed {seed}: {text}\n{rows} instead of {expected}")
    return differences, answered


def find_differences_from_oxigraph(base: Store, seeds: range, questions: int) -> list[str]:
    pytest.importorskip("pyoxigraph", reason="the extra rdf is not installed")
    from clew.store.graphs.rdf_view import PREFIXES, open_rdf_store, row_of

    prefixes = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
    differences = []
    for seed in seeds:
        graph, _ = store_world(base, draw_world(random.Random(seed)), f"g{seed}")
        generator, rdf = QuestionGenerator(graph, seed), open_rdf_store(graph)
        for _ in range(questions):
            text = generator.question()
            rows = ask(graph, text)
            if rows is None:
                continue
            question = compile_question(graph, parse_typed_statements(text).chain).question
            assert question is not None
            solutions: Any = rdf.query(prefixes + to_sparql(question))
            expected = sorted({row_of(solution[0].value) or 0 for solution in solutions})
            if rows != expected:
                differences.append(f"seed {seed}: {text}\n{rows} instead of {expected}")
    return differences


@pytest.mark.slow
def test_exact_answers_are_those_of_every_binding_tried(base: Store) -> None:
    differences, answered = find_differences(base, range(30), 4)
    assert not differences, "\n".join(differences)
    assert answered > 40


@pytest.mark.slow
def test_many_exact_answers_are_those_of_every_binding_tried(base: Store) -> None:
    differences, answered = find_differences(base, range(1000, 1300), 10)
    assert not differences, "\n".join(differences)
    assert answered > 1000


def test_exact_answers_are_those_of_oxigraph(base: Store) -> None:
    assert not find_differences_from_oxigraph(base, range(100, 115), 6)


@pytest.mark.slow
def test_many_exact_answers_are_those_of_oxigraph(base: Store) -> None:
    assert not find_differences_from_oxigraph(base, range(2000, 2200), 10)


# The tests above see what is wrong


def test_names_that_are_compared_as_numbers_are_read_once(
    base: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = brute.World(
        [["house"], ["7"], ["12"], ["1990-05-04", "13"]],
        [(), (), (), ()],
        [{}] * 4,
        {"storeys": {(0, 1), (0, 2), (0, 3)}},
    )
    graph, world = store_world(base, world, "houses")
    text = "house >> storeys >> #1; #1 >= 9; #1 < 14; final answer: #1"
    assert ask(graph, text) == ask_brute_force(world, text) and len(ask(graph, text) or ()) == 2

    def read_again(*_: Any) -> None:
        raise AssertionError("a name is read again")

    monkeypatch.setattr(evaluation, "_read_entities", lambda graph, rows: [read_again() for _ in rows])
    assert len(ask(graph, text) or ()) == 2


def _fold_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "clew.triples.query.question._Compiler._rows", lambda self, text: self.graph.find_by_name(text)
    )


def _ignore_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "clew.triples.query.question._direct_relations",
        lambda relations, inverse: tuple(DirectedRelation(relation, False) for relation in relations),
    )


def _count_all_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    def heads(self: Any, count: Any, rows: Any) -> Any:
        return original(self, replace(count, group=Group((count.counted,))), rows)

    original = evaluation._Solver._heads
    monkeypatch.setattr(evaluation._Solver, "_heads", heads)


def _exceed_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def within(numbers: Any, count: Any) -> Any:
        return numbers > count.quantifier.least if count.quantifier != NOT else original(numbers, count)

    original = evaluation._within
    monkeypatch.setattr(evaluation, "_within", within)


def _keep_one_of_equals(monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(self: Any, rows: Any, ranking: Any) -> Any:
        return original(self, rows, ranking)[: ranking.count]

    original = evaluation._Solver.rank
    monkeypatch.setattr(evaluation._Solver, "rank", rank)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutate", [_fold_names, _ignore_directions, _count_all_tails, _exceed_bounds, _keep_one_of_equals]
)
def test_mutations_of_the_matching_rules_are_caught(
    base: Store, monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]
) -> None:
    mutate(monkeypatch)
    assert any(find_differences(base, range(seed, seed + 1), 4)[0] for seed in range(30))
