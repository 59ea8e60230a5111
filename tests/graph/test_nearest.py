import hashlib

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.graph.nearest import NearestGraph
from graph_corpora import corpus, document, edges, locate, passages


class Hashed:
    """A unit vector drawn from the text alone."""

    name = "hashed"
    dimension = 16
    objective = ""

    def encode(self, texts, query=False):
        seeds = (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) for text in texts)
        drawn = np.array([np.random.default_rng(seed).normal(size=16) for seed in seeds]).reshape(-1, 16)
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def encoded(lasting):
    base = lasting.base(corpus(7))
    base.encode(Hashed())
    return base.snapshot()


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_neighbours_are_the_nearest_by_inner_product(encoded, k):
    nodes = passages(encoded)
    rows = encoded.rows([node.id for node in nodes])
    vectors = encoded.vectors("hashed").vectors(rows).astype(np.float64)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -np.inf)
    pairs = edges(encoded, NearestGraph(encoded, "hashed", k))
    for node, own in zip(nodes, similar, strict=True):
        near = {other for pair, other in pairs if pair == node.id}
        assert len(near) == min(k, len(nodes) - 1)
        worst = min(own[at] for at, other in enumerate(nodes) if other.id in near)
        better = sum(score > worst + 1e-6 for score in own)
        assert better < k


def test_several_at_once_are_what_each_is_alone(encoded):
    rows = encoded.rows([node.id for node in passages(encoded)]).tolist()
    together = NearestGraph(encoded, "hashed", 3).neighbours_of([*rows, rows[0]])
    assert [near.tolist() for near in together[:-1]] == [
        NearestGraph(encoded, "hashed", 3).neighbours(row).tolist() for row in rows
    ]
    assert together[-1].tolist() == together[0].tolist()


def test_the_reason_is_the_similarity(encoded):
    item, other = encoded.rows([node.id for node in passages(encoded)[:2]]).tolist()
    first, second = encoded.vectors("hashed").vectors(np.array([item, other])).astype(np.float64)
    assert (
        NearestGraph(encoded, "hashed").explain_edge(item, other) == f"knn: similarity {first @ second:.2f}"
    )


def test_a_passage_without_a_vector_has_no_neighbours_and_is_nobodys(bases):
    base = bases.base([document("a", "one", "two")])
    base.encode(Hashed())
    new = document("b", "three")
    base.put_document(new, locate(new))
    base.catch_up()
    snapshot = base.snapshot()
    graph = NearestGraph(snapshot, "hashed", 5)
    rows = {node.text: int(snapshot.rows([node.id])[0]) for node in passages(snapshot)}
    assert graph.neighbours(rows["three"]).tolist() == []
    assert graph.neighbours(rows["one"]).tolist() == [rows["two"]]


def test_the_name_says_the_knobs(encoded):
    assert NearestGraph(encoded, "hashed", 4).name == "knn(k=4)"
    with pytest.raises(UsageError):
        NearestGraph(encoded, "hashed", 0)
