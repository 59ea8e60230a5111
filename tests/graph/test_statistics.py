import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.graph.keywords import KeywordGraph
from clew.graph.mentions import MentionGraph
from clew.graph.passages import UnionGraph, compute_statistics
from graph_corpora import corpus, edges, passages


class Cycle:
    """Each passage leads to the next; every third edge leads back as well."""

    mutual = False
    name = "cycle"

    def __init__(self, rows):
        self._after = {}
        for at, row in enumerate(rows):
            self._after.setdefault(row, set()).add(rows[(at + 1) % len(rows)])
            if at % 3 == 0:
                self._after.setdefault(rows[(at + 1) % len(rows)], set()).add(row)

    def neighbours(self, row):
        return np.array(sorted(self._after.get(row, ())), dtype=np.int64)

    def why(self, source, target):
        return "next"


def test_edges_are_counted_once_whichever_ends_give_them(bases):
    snapshot = bases.snapshot(corpus(0))
    count = len(passages(snapshot))
    for graph in (
        KeywordGraph(snapshot, 2),
        MentionGraph(snapshot, kinds=("title", "name")),
        UnionGraph([KeywordGraph(snapshot, 0), MentionGraph(snapshot, kinds=("title", "name"))]),
    ):
        undirected = {frozenset(pair) for pair in edges(snapshot, graph)}
        statistics = compute_statistics(snapshot, graph)
        assert (statistics.nodes, statistics.edges, statistics.sampled) == (count, len(undirected), count)
        assert statistics.mean_degree == pytest.approx(2 * len(undirected) / count)
        assert statistics.density == pytest.approx(len(undirected) / (count * (count - 1) / 2))
        assert statistics.isolated == count - len({node for pair in undirected for node in pair})
        assert statistics.graph == graph.name


def test_a_graph_that_is_not_mutual_has_each_edge_once(bases):
    snapshot = bases.snapshot(corpus(0))
    rows = snapshot.rows([node.id for node in passages(snapshot)]).tolist()
    assert compute_statistics(snapshot, Cycle(rows)).edges == len(rows)


@pytest.mark.slow
def test_a_sample_comes_close_and_repeats_with_its_seed(bases, monkeypatch):
    snapshot = bases.snapshot(corpus(0, documents=60))
    graph = KeywordGraph(snapshot, 1)
    exact = compute_statistics(snapshot, graph)
    monkeypatch.setattr("clew.graph.passages.EXACT_BELOW", 10)
    sampled = compute_statistics(snapshot, graph, sample=100, seed=1)
    assert sampled.sampled == 100 < exact.sampled
    assert sampled.edges == pytest.approx(exact.edges, rel=0.15)
    assert sampled == compute_statistics(snapshot, graph, sample=100, seed=1)
    assert sampled != compute_statistics(snapshot, graph, sample=100, seed=2)


def test_an_empty_base_has_no_density(bases):
    snapshot = bases.snapshot([])
    assert compute_statistics(snapshot, KeywordGraph(snapshot, 1)).density == 0


def test_a_union_has_the_edges_of_its_graphs_and_their_reasons(bases):
    snapshot = bases.snapshot(corpus(5))
    parts = [KeywordGraph(snapshot, 1), MentionGraph(snapshot)]
    union = UnionGraph(parts)
    assert edges(snapshot, union) == edges(snapshot, parts[0]) | edges(snapshot, parts[1])
    assert union.name == f"union(a={parts[0].name}, b={parts[1].name})"
    row = next(row for row in range(snapshot.size) if len(parts[1].neighbours(row)))
    other = int(parts[1].neighbours(row)[0])
    assert parts[1].explain_edge(row, other) in union.explain_edge(row, other)
    with pytest.raises(UsageError):
        UnionGraph([])
