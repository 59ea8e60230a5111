import math

import numpy as np
from rapidfuzz.distance import Levenshtein

from clew.core.types import RETRIEVED_KINDS, Hit, Question, Scope
from clew.retrieve.dense import DenseSearch, KnnSearch, interleave
from clew.retrieve.hybrid import HybridSearch
from clew.retrieve.lexical import BM25
from retrieve_encoders import WordEncoder

ENCODER = WordEncoder("river", "bridge", "mill")
TEXTS = ("river river", "river bridge", "bridge mill", "mill mill mill", "something else")


def encoded_snapshot(base, snapshot_of, *documents):
    snapshot_of(*documents)
    base.encode(ENCODER)
    return base.snapshot()


def test_dense_orders_by_cosine(base, snapshot_of):
    snapshot = encoded_snapshot(base, snapshot_of, ("a.txt", "", *TEXTS))
    hits = DenseSearch(snapshot, ENCODER).retrieve(Question("river"), 3)
    assert [(hit.node.text, round(hit.score, 6)) for hit in hits[:2]] == [
        ("river river", 1.0),
        ("river bridge", round(math.sqrt(0.5), 6)),
    ]


def test_dense_stays_within_its_scope(base, snapshot_of):
    snapshot = encoded_snapshot(base, snapshot_of, ("a.txt", "", *TEXTS), ("b.txt", "t", "river", "mill"))
    for document in snapshot.documents():
        scope = Scope(documents=frozenset([document.key]))
        hits = DenseSearch(snapshot, ENCODER).retrieve(Question("river", scope), 9)
        assert {hit.node.document for hit in hits} == {document.key}


def test_dense_breaks_ties_by_node_id(base, snapshot_of):
    snapshot = encoded_snapshot(base, snapshot_of, *((f"{n}.txt", "t", "river") for n in range(12)))
    ids = [hit.node.id for hit in DenseSearch(snapshot, ENCODER).retrieve(Question("river"), 12)]
    assert ids == sorted(ids) and len(ids) == 12


def test_knn_takes_half_by_embedding_and_half_by_levenshtein(base, snapshot_of):
    snapshot = encoded_snapshot(base, snapshot_of, ("a.txt", "", *TEXTS, "rivet", "driver", "arrivers"))
    hits = KnnSearch(snapshot, ENCODER).retrieve(Question("river"), 4)
    near = [hit.node.text for hit in DenseSearch(snapshot, ENCODER).retrieve(Question("river"), 2)]
    assert [hits[0].node.text, hits[2].node.text] == near == ["river river", "river bridge"]
    rest = {
        text: Levenshtein.normalized_similarity("river", text) for text in ("rivet", "driver", "arrivers")
    }
    assert [hits[1].node.text, hits[3].node.text] == sorted(rest, key=rest.get, reverse=True)[:2]
    assert [hit.score for hit in hits] == [1.0, 0.5, round(1 / 3, 9), 0.25] or hits[2].score == 1 / 3


def test_knn_gives_as_many_as_there_are_and_none_twice(base, snapshot_of):
    snapshot = encoded_snapshot(base, snapshot_of, ("a.txt", "", *TEXTS))
    hits = KnnSearch(snapshot, ENCODER).retrieve(Question("river bridge"), 30)
    assert sorted(hit.node.text for hit in hits) == sorted(TEXTS)


def test_fuzzy_matching_respects_what_is_allowed(base, snapshot_of):
    snapshot = encoded_snapshot(base, snapshot_of, ("a.txt", "", *TEXTS))
    allowed = snapshot.mask(Scope(), RETRIEVED_KINDS)
    first = np.flatnonzero(allowed)[0]
    allowed[first] = False
    rows, scores = KnnSearch(snapshot, ENCODER).fuzzy_matches("river river", 9, allowed)
    assert first not in rows and len(rows) == len(TEXTS) - 1
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)


def test_two_arrays_alternate():
    assert interleave(np.array([1, 3]), np.array([2, 4, 5])).tolist() == [1, 2, 3, 4, 5]
    assert interleave(np.array([1, 3, 5]), np.array([2])).tolist() == [1, 2, 3, 5]


class Fixed:
    """A retriever that always gives the same hits."""

    def __init__(self, hits):
        self.hits = hits

    def retrieve(self, question, k):
        return self.hits[:k]


def test_rank_fusion_by_hand(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "one", "two", "three"))
    nodes = snapshot.nodes(np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)))
    first, two, three = (Hit(node, 1.0, (node.id,)) for node in nodes)
    hits = HybridSearch((Fixed([first, two]), Fixed([two, three]))).retrieve(Question("x"), 9)
    assert [(hit.node.text, hit.score) for hit in hits] == [
        ("two", round(1 / 62 + 1 / 61, 9)),
        ("one", round(1 / 61, 9)),
        ("three", round(1 / 62, 9)),
    ]


def test_rank_fusion_breaks_ties_by_node_id_and_reaches_deeper_than_k(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "one", "two", "three"))
    nodes = snapshot.nodes(np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)))
    first, two, three = (Hit(node, 1.0, (node.id,)) for node in nodes)
    hits = HybridSearch((Fixed([two, first]), Fixed([three, first]))).retrieve(Question("x"), 1)
    assert [hit.node.text for hit in hits] == ["one"]
    hits = HybridSearch((Fixed([two]), Fixed([first]))).retrieve(Question("x"), 2)
    assert [hit.node.id for hit in hits] == sorted([first.node.id, two.node.id])


def test_fusion_of_retrievers_that_agree_is_their_order(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "river river", "river mill mill", "bridge"))
    bm25 = BM25(snapshot)
    alone = [hit.node.id for hit in bm25.retrieve(Question("river"), 9)]
    assert [hit.node.id for hit in HybridSearch((bm25, bm25)).retrieve(Question("river"), 9)] == alone
