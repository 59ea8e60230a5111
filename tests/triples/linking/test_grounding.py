"""Pairs of an entity and a relation that a graph has edges for."""

from __future__ import annotations

import pytest

from clew.core.types import LinkedEntity, LinkedRelation
from clew.triples.linking.relations import ground
from link_graphs import graph_of

TRIPLES = [
    ("Kismet", "directed by", "Dieterle"),
    ("Kismet", "directed by", "Minnelli"),
    ("Kismet (song)", "sung by", "Cher"),
    ("Dieterle", "born in", "Ludwigshafen"),
]


def entity(graph, id: str, score: float) -> LinkedEntity:
    (row,) = graph.rows([f"g:{id}"]).tolist()
    return LinkedEntity(row, f"g:{id}", id, score, "name")


def relation(name: str, score: float, inverse: bool = False) -> LinkedRelation:
    return LinkedRelation(name, inverse, score, "name")


def test_a_pair_without_an_edge_is_none_however_well_its_words_fit(base) -> None:
    graph = graph_of(base, TRIPLES)
    entities = [
        entity(graph, "Kismet (song)", 0.9),
        entity(graph, "Kismet", 0.8),
        entity(graph, "Dieterle", 0.2),
    ]
    relations = [relation("directed by", 0.9), relation("directed by", 0.7, True), relation("sung by", 0.5)]
    result = ground(graph, entities, relations)
    assert [(item.entity.name, item.relation.name, item.relation.inverse) for item in result] == [
        ("Kismet", "directed by", False),
        ("Kismet (song)", "sung by", False),
        ("Dieterle", "directed by", True),
    ]
    assert [graph.ids(item.rows) for item in result] == [
        ["g:Dieterle", "g:Minnelli"], ["g:Cher"], ["g:Kismet"],
    ]  # fmt: skip
    assert [item.score for item in result] == pytest.approx([0.72, 0.45, 0.14])
    (first,) = ground(graph, entities, relations, k=1)
    assert first.entity.name == "Kismet" and first.rows.tolist() == result[0].rows.tolist()


def test_ties_keep_the_order_of_the_candidates(base) -> None:
    graph = graph_of(base, [("a", "r", "x"), ("b", "r", "y"), ("a", "s", "z"), ("b", "s", "z")])
    entities = [entity(graph, "b", 0.5), entity(graph, "a", 0.5)]
    relations = [relation("s", 0.5), relation("r", 0.5)]
    result = ground(graph, entities, relations)
    assert [(item.entity.name, item.relation.name) for item in result] == [
        ("b", "s"), ("b", "r"), ("a", "s"), ("a", "r"),
    ]  # fmt: skip


def test_grounding_without_entity_relation_or_edge_is_empty(base) -> None:
    graph = graph_of(base, TRIPLES)
    assert ground(graph, [], [relation("sung by", 1.0)]) == ()
    assert ground(graph, [entity(graph, "Kismet", 1.0)], []) == ()
    assert ground(graph, [entity(graph, "Kismet", 1.0)], [relation("born in", 1.0)]) == ()
