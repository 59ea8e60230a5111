"""Graphs that are read as one are as a graph in which their nodes were merged by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from clew.questions.plans import COUNT, Comparison, Edge, GraphPlan, Kind, Same, run_plan
from clew.store.graphs.imported_graph import ImportedGraph
from clew.triples.linking.linked_graphs import join_linked
from link_graphs import graph_of

TYPES, RELATIONS = ("ship", "yard", "person"), ("owns", "built by", "near")


def make_world(base, seed, size=12):
    """Two random graphs that share half of their things, and one in which these are merged."""
    draw = random.Random(seed)
    things = {
        n: (draw.sample(TYPES, draw.randint(0, 2)), draw.sample(TYPES, 1), 1900 + n % 5) for n in range(size)
    }
    shared = set(range(0, size, 2))
    edges: dict[str, set] = {"a": set(), "b": set()}
    for name, own in edges.items():
        known = [n for n in range(size) if n in shared or (n % 4 == 1) == (name == "a")]
        while len(own) < 2 * size:
            own.add(
                (
                    draw.choice(known),
                    draw.choice(RELATIONS[:2] if name == "a" else RELATIONS[1:]),
                    draw.choice(known),
                )
            )
        nodes = {
            f"{name}{n}": {
                "name": f"Thing {n}" if name == "a" or n not in shared else f"Other {n}",
                "types": things[n][name == "b"],
                "properties": ({"wikidata": f"Q{n + 1}"} if n in shared else {})
                | ({"year": things[n][2]} if name == "b" else {}),
            }
            for n in known
        }
        graph_of(base, [(f"{name}{h}", r, f"{name}{t}") for h, r, t in own], name, **nodes)
    merged = {}
    for n in range(size):
        in_a, in_b = n in shared or n % 4 == 1, n in shared or n % 4 != 1
        merged[f"m{n}"] = {
            "name": f"Thing {n}",
            "aliases": [f"Other {n}"] if n in shared else [],
            "types": list(dict.fromkeys([*(things[n][0] if in_a else ()), *(things[n][1] if in_b else ())])),
            "properties": ({"wikidata": f"Q{n + 1}"} if n in shared else {})
            | ({"year": things[n][2]} if in_b else {}),
        }
    graph_of(base, [(f"m{h}", r, f"m{t}") for h, r, t in edges["a"] | edges["b"]], "merged", **merged)
    snapshot = base.snapshot()
    (joined,) = join_linked(snapshot, [snapshot.graph("a"), snapshot.graph("b")])
    return joined, snapshot.graph("merged")


def names(graph, rows):
    return sorted(entity.name for entity in graph.entities(np.asarray(rows, dtype=np.int64)))


def plans(draw, size=12):
    edge, other, name = draw.choice(RELATIONS), draw.choice(RELATIONS), f"Thing {draw.randrange(size)}"
    yield GraphPlan((Edge(name, (edge,), 1),))
    yield GraphPlan((Edge(2, (edge,), name), Edge(2, (other,), 1)))
    yield GraphPlan((Kind(1, draw.choice(TYPES)), Edge(1, (edge,), 2, "not", counted_from=1)))
    yield GraphPlan((Edge(1, (edge,), 2), Comparison(1, "year", ">", ("1902",))), COUNT)
    yield GraphPlan((Edge(1, (edge,), 2, "at least 2", counted_from=1), Edge(1, (other,), 3)))
    yield GraphPlan((Edge(name, (edge,), 1, repeated=True), Same(1, name, denied=True)))


@pytest.mark.parametrize("seed", range(8))
def test_joined_graphs_are_as_the_merged_graph(base, seed):
    joined, merged = make_world(base, seed)
    assert joined.size == merged.size and joined.types() == merged.types()
    for ours, theirs in (
        (joined.relations(), merged.relations()),
        (joined.properties(), merged.properties()),
    ):
        assert ours.keys() == theirs.keys()
    for name, relation in merged.relations().items():
        own = joined.relations()[name]
        assert (own.edges, own.head_types, own.tail_types) == (
            relation.edges,
            relation.head_types,
            relation.tail_types,
        )
    assert joined.properties()["year"].types == merged.properties()["year"].types
    for row in range(merged.size):
        (entity,) = merged.entities(np.array([row]))
        rows = joined.find_by_name(entity.name)
        (own,) = joined.entities(rows)
        assert (own.name, set(own.aliases), own.properties) == (
            entity.name,
            set(entity.aliases),
            entity.properties,
        )
        assert {own.type, *own.more_types} == {entity.type, *entity.more_types}
        assert np.array_equal(joined.rows([own.id]), rows)
        assert joined.relations_at(rows) == merged.relations_at(np.array([row]))
        for relation in (None, *merged.relations()):
            for inverse in (False, True):
                ends, others = (
                    graph.neighbours(own_rows, relation, inverse)[1]
                    for graph, own_rows in ((joined, rows), (merged, np.array([row])))
                )
                assert names(joined, ends) == names(merged, others)
                for end in ends.tolist() if relation and not inverse else ():
                    graph, (head, along, tail) = joined.find_edge(int(rows[0]), relation, end)
                    assert along == relation and tail in graph.neighbours(np.array([head]), relation)[1]
    draw = random.Random(seed)
    for plan in [plan for _ in range(20) for plan in plans(draw)]:
        ours, theirs = run_plan(joined, plan), run_plan(merged, plan)
        assert (ours is None) == (theirs is None), plan.triples
        if ours is not None:
            assert names(joined, ours) == names(merged, theirs), plan.triples


def test_only_what_is_said_to_be_the_same_is_joined(base):
    wikidata, same = "http://www.wikidata.org/entity/", "http://www.w3.org/2002/07/owl#sameAs"
    graph_of(
        base,
        [("x", same, f"{wikidata}Q5"), ("d", "near", "e"), ("n", "near", "x")],
        "a",
        d={"name": "Dora", "properties": {"imdb_id": "tt1"}},
        e={"name": "Edda", "properties": {"imdb_id": "tt1"}},
        n={"name": "Nora", "types": ["person"]},
        x={"name": "Xenia"},
    )
    graph_of(
        base,
        [("Q5", "near", "f"), ("f", "near", "m")],
        "b",
        f={"name": "Frida", "properties": {"imdb_id": "tt1"}},
        m={"name": "Nora", "types": ["person"]},
    )
    snapshot = base.snapshot()
    a, b = (snapshot.graph(name) for name in "ab")
    (joined,) = join_linked(snapshot, [a, b])
    # The address stands for Xenia, who is Q5. Of Dora and Edda none can be told to be Frida; a name says nothing.
    (row,) = joined.find_by_name("Xenia").tolist()
    assert joined.rows(["a:x", "b:Q5"]).tolist() == [row, row]
    assert joined.size == a.size + b.size - 2
    assert len(joined.find_by_name("Nora")) == 2
    assert join_linked(snapshot, [a]) == ()


def test_links_are_looked_for_in_linear_time(base, monkeypatch):
    read = []
    entities = ImportedGraph.entities
    monkeypatch.setattr(
        ImportedGraph, "entities", lambda self, rows: (read.append(len(rows)), entities(self, rows))[1]
    )
    counts = []
    for size in (500, 1000):
        for name in "ab":
            graph_of(
                base,
                [(f"n{n}", "near", f"n{n + 1}") for n in range(size)],
                name,
                **{f"n{n}": {"properties": {"wikidata": f"Q{n + 1}"}} for n in range(size)},
            )
        read.clear()
        snapshot = base.snapshot()
        (joined,) = join_linked(snapshot, [snapshot.graph(name) for name in "ab"])
        assert joined.size == size + 2
        assert join_linked(snapshot, [snapshot.graph(name) for name in "ab"]) == (joined,)  # remembered
        counts.append(sum(read))
    assert counts == [1000, 2000]
