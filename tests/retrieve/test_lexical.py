import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from clew.core.text import index_terms, query_terms
from clew.core.types import RETRIEVED_KINDS, Question, Scope
from clew.retrieve.lexical import BM25, TfIdf, intersect
from clew.store.store import Store
from retrieve_documents import add

WORDS = [f"word{n}" for n in range(60)]


def random_corpus(seed, documents=12):
    rng = random.Random(seed)

    def text():
        length = rng.choice([1, 3, 8, 30])
        return " ".join(WORDS[min(int(rng.expovariate(0.08)), 59)] for _ in range(length))

    return [
        (f"d{n}.txt", f"title {n}", *(text() for _ in range(rng.randint(1, 6)))) for n in range(documents)
    ]


def texts_of(snapshot):
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    return rows, [index_terms(node.text) for node in snapshot.nodes(rows)]


def plain_bm25(query, texts, k1, b):
    """BM25 from its definition, with dictionaries and loops."""
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for term in query_terms(query):
            holding = sum(term in other for other in texts)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            tf = text.count(term)
            score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(text) / mean))
        scores.append(score)
    return scores


def plain_tfidf(query, texts):
    """The cosine of ltc vectors from its definition."""

    def vector(words):
        weights = {}
        for term, count in Counter(words).items():
            holding = sum(term in other for other in texts)
            weights[term] = (1 + math.log(count)) * (math.log((1 + len(texts)) / (1 + holding)) + 1)
        return weights

    def length(weights):
        return math.sqrt(sum(weight**2 for weight in weights.values()))

    query_vector = vector(query_terms(query))
    scores = []
    for text in texts:
        row_vector = vector(text)
        dot = sum(weight * row_vector.get(term, 0.0) for term, weight in query_vector.items())
        scores.append(dot / length(query_vector) / length(row_vector) if row_vector else 0.0)
    return scores


def test_bm25_of_three_passages_by_hand(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "river bridge bridge", "river", "mill mill mill mill mill"))
    hits = BM25(snapshot, k1=1.2, b=0.75).retrieve(Question("bridge"), 10)
    # N = 3, df = 1, mean length 3, this one 3: idf = ln(1 + 2.5 / 1.5), gain = 2 * 2.2 / (2 + 1.2).
    assert [hit.node.text for hit in hits] == ["river bridge bridge"]
    assert hits[0].score == round(math.log(1 + 2.5 / 1.5) * 2 * 2.2 / 3.2, 9)
    assert hits[0].path == (hits[0].node.id,)


def test_tfidf_of_two_passages_by_hand(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "river bridge bridge", "river"))
    [first, second] = TfIdf(snapshot).retrieve(Question("river"), 10)
    both, item = 1.0, math.log(3 / 2) + 1  # idf of river, of bridge
    assert (first.node.text, first.score) == ("river", 1.0)
    assert second.score == round(both / math.hypot(both, (1 + math.log(2)) * item), 9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_equal_their_definitions_on_random_corpora(snapshot_of, seed):
    snapshot = snapshot_of(*random_corpus(seed))
    rows, texts = texts_of(snapshot)
    rng = random.Random(seed)
    for length in (1, 3, 40):
        query = " ".join(rng.choice([*WORDS, "absent"]) for _ in range(length))
        bm25, tfidf = BM25(snapshot, 0.9, 0.4), TfIdf(snapshot)
        np.testing.assert_allclose(bm25.all_scores(query)[rows], plain_bm25(query, texts, 0.9, 0.4))
        np.testing.assert_allclose(tfidf.all_scores(query)[rows], plain_tfidf(query, texts), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", [BM25, TfIdf])
@pytest.mark.parametrize("length", [1, 5, 200])
def test_scores_of_given_rows_equal_those_of_a_whole_search(snapshot_of, scorer, length):
    snapshot = snapshot_of(*random_corpus(7, documents=20))
    rng = random.Random(length)
    query = " ".join(rng.choices(WORDS, k=length))
    rows, _ = texts_of(snapshot)
    all_scores = scorer(snapshot).all_scores(query)
    for chosen in (rows, rows[::7], rows[:1], rows[:0], np.array([*rows[5:0:-1], *rows[:3]])):
        np.testing.assert_allclose(scorer(snapshot).scores(query, chosen), all_scores[chosen], atol=1e-12)


@pytest.mark.parametrize("length", [1, 5, 200])
def test_both_directions_of_a_sum_agree_with_the_whole(snapshot_of, length):
    snapshot = snapshot_of(*random_corpus(3, documents=20))
    rows, _ = texts_of(snapshot)
    query = " ".join(random.Random(length).choices(WORDS, k=length))
    term_sum = replace(TfIdf(snapshot)._term_sum(query), norms=None)
    for chosen in (rows, rows[::5], rows[:1]):
        np.testing.assert_allclose(term_sum._sum_by_rows(chosen), term_sum.for_all_rows()[chosen])
        np.testing.assert_allclose(term_sum._sum_by_terms(chosen), term_sum.for_all_rows()[chosen])


def test_scores_of_one_text_do_not_leak_into_those_of_the_next(snapshot_of):
    snapshot = snapshot_of(*random_corpus(5))
    rows, _ = texts_of(snapshot)
    search = BM25(snapshot)
    for query in ("word1", "word2", "word1"):
        np.testing.assert_array_equal(search.all_scores(query), BM25(snapshot).all_scores(query))
        np.testing.assert_array_equal(search.scores(query, rows), BM25(snapshot).all_scores(query)[rows])


def test_a_search_stays_within_its_scope(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "bridge"), ("b.txt", "t", "bridge river"))
    for document in snapshot.documents():
        scope = Scope(documents=frozenset([document.key]))
        hits = BM25(snapshot).retrieve(Question("bridge", scope), 10)
        assert [hit.node.document for hit in hits] == [document.key]
    assert BM25(snapshot).retrieve(Question("bridge", Scope(kinds=frozenset(["row"]))), 10) == []


def test_equal_scores_come_in_the_order_of_node_ids(snapshot_of):
    snapshot = snapshot_of(*((f"{n}.txt", "t", f"bridge x{n}") for n in range(30)))
    for k in (1, 7, 30):
        ids = [hit.node.id for hit in BM25(snapshot).retrieve(Question("bridge"), k)]
        everything = [hit.node.id for hit in BM25(snapshot).retrieve(Question("bridge"), 99)]
        assert ids == sorted(everything)[:k]


@pytest.mark.slow
def test_results_after_a_removal_are_those_of_a_base_that_never_held_the_document(tmp_path):
    remaining, removed = random_corpus(1), [("x" + name, *rest) for name, *rest in random_corpus(2)]
    with (
        Store.open(tmp_path / "one", create=True) as item,
        Store.open(tmp_path / "two", create=True) as two,
    ):
        for document in [*removed[:6], *remaining[::-1], *removed[6:]]:
            add(item, *document)
        item.catch_up()
        item.remove([f"/documents/{name}" for name, *_ in removed])
        item.catch_up()
        for document in remaining:
            add(two, *document)
        two.catch_up()
        for query in ("word0 word3", "word1 word7 word7 word30"):
            for scorer in (BM25, TfIdf):
                scores = [
                    [
                        (hit.node.id, hit.score)
                        for hit in scorer(base.snapshot()).retrieve(Question(query), 15)
                    ]
                    for base in (item, two)
                ]
                assert scores[0] == scores[1] and scores[0]


def test_a_question_without_known_words_finds_nothing(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "bridge"))
    assert BM25(snapshot).retrieve(Question("zebra"), 5) == []
    assert TfIdf(snapshot).retrieve(Question("?!"), 5) == []


def test_an_empty_base_finds_nothing(snapshot_of):
    snapshot = snapshot_of()
    assert BM25(snapshot).retrieve(Question("bridge"), 5) == []
    assert TfIdf(snapshot).retrieve(Question("bridge"), 5) == []


def test_where_two_ascending_arrays_agree():
    left, right = np.array([1, 4, 6, 9]), np.array([0, 4, 9, 12, 15])
    for item, other in ((left, right), (right, left)):
        here, there = intersect(item, other)
        assert item[here].tolist() == other[there].tolist() == [4, 9]
