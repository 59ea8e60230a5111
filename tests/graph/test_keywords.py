import itertools
import math
import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.mentions import linking_names
from clew.core.text import STOPWORDS, hash_term, index_terms, is_stop_term, title_names
from clew.graph.keywords import KeywordGraph
from graph_corpora import corpus, document, edges, pairs, passages, texts


def pool_by_hand(snapshot, n):
    """The formula of the docstring, document by document, in Python."""
    by_document = defaultdict(list)
    for node in passages(snapshot):
        by_document[node.document].append([term for term in index_terms(node.text) if not is_stop_term(term)])
    pool = set()
    for lists in by_document.values():
        frequency = Counter(term for terms in lists for term in terms)
        holding = Counter(term for terms in lists for term in set(terms))
        weight = {
            term: round(frequency[term] * (math.log((1 + len(lists)) / (1 + holding[term])) + 1), 9)
            for term in frequency
        }
        pool |= set(sorted(weight, key=lambda term: (-weight[term], hash_term(term)))[:n])
    return pool


def neighbours_by_hand(snapshot, n):
    pool = pool_by_hand(snapshot, n)
    titles = {name for document in snapshot.documents() for name in title_names(document.title)} - STOPWORDS
    keywords = {
        node.id: {term for term in index_terms(node.text) if term in pool}
        | {("title", name) for name, *_ in linking_names(node.text) if name in titles}
        for node in passages(snapshot)
    }
    return pairs(passages(snapshot), lambda a, b: bool(keywords[a.id] & keywords[b.id]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_edges_are_those_counted_pair_by_pair(bases, seed):
    snapshot = bases.snapshot(corpus(seed))
    for n in (0, 1, 3, 50):
        by_hand = neighbours_by_hand(snapshot, n)
        assert edges(snapshot, KeywordGraph(snapshot, n)) == by_hand
        assert by_hand or n == 0


@pytest.mark.slow
def test_the_construction_does_not_depend_on_how_many_postings_are_looked_at_in_one_go(bases, monkeypatch):
    snapshot = bases.snapshot(corpus(3, documents=30))
    by_hand = neighbours_by_hand(snapshot, 2)
    monkeypatch.setattr("clew.graph.passages._BLOCK", 10)
    assert edges(snapshot, KeywordGraph(snapshot, 2)) == by_hand


@pytest.mark.slow
def test_more_keywords_join_more_passages(bases):
    snapshot = bases.snapshot(corpus(1, documents=20))
    edge_sets = [edges(snapshot, KeywordGraph(snapshot, n)) for n in (0, 1, 2, 4, 100)]
    assert all(fewer <= more for fewer, more in itertools.pairwise(edge_sets))
    assert len(edge_sets[0]) < len(edge_sets[2]) < len(edge_sets[4])


def test_a_word_counts_by_frequency_in_its_document_and_for_not_being_in_every_passage(bases):
    # river: 2 * (ln(4/4) + 1) -> in all three passages twice+: 3; ferry: 2 * (ln(4/2) + 1) = 3.39
    snapshot = bases.snapshot([document("x", "river ferry ferry", "river gauge", "river bell")])
    keywords = KeywordGraph(snapshot, 1).keywords()
    assert keywords.tolist() == [hash_term("ferri")]


def test_a_document_of_one_passage_has_keywords(bases):
    snapshot = bases.snapshot([document("x", "the ferry and the ferry of the bell")])
    assert KeywordGraph(snapshot, 1).keywords().tolist() == [hash_term("ferri")]


def test_function_words_are_never_keywords(bases):
    text = "the the the and of it's don't they'll can't I was a b c"
    assert len(KeywordGraph(bases.snapshot([document("x", text, text)]), 50).keywords()) == 0


def test_a_title_joins_passages_in_which_its_words_are_adjacent_whatever_their_case(bases):
    snapshot = bases.snapshot(
        [
            document("Alf Clausen (composer)", "Nothing of him here."),
            document("a", "It was ALF CLAUSEN who wrote."),
            document("b", "She met Alf Clausen, once."),
            document("c", "Alf met a Mr Clausen."),
        ]
    )
    graph = KeywordGraph(snapshot, 0)
    (first, other) = [
        int(row)
        for row in snapshot.rows(
            [n.id for n in passages(snapshot) if "lausen" in n.text.lower() and "Mr" not in n.text]
        )
    ]
    assert graph.neighbours(first).tolist() == [other]
    assert graph.explain_edge(first, other).casefold() == "keywords: alf clausen"
    assert len(edges(snapshot, graph)) == 2


def test_keywords_of_many_passages_can_be_dropped(bases):
    snapshot = bases.snapshot([document(str(n), f"river ferry{n % 2}") for n in range(10)])
    assert set(KeywordGraph(snapshot, 5).keywords().tolist()) > set(
        KeywordGraph(snapshot, 5, share=0.5).keywords().tolist()
    )
    assert hash_term("river") not in KeywordGraph(snapshot, 5, share=0.5).keywords()
    assert hash_term("ferry0") in KeywordGraph(snapshot, 5, share=0.5).keywords()


def test_why_says_words_as_the_text_has_them(bases):
    snapshot = bases.snapshot(
        [document("x", "Ferries, once."), document("y", "Two FERRIES crossed; a bell.")]
    )
    first, other = sorted(int(row) for row in snapshot.rows([node.id for node in passages(snapshot)]))
    by_row = {
        row: node.text
        for row, node in zip((first, other), snapshot.nodes(np.array([first, other])), strict=True)
    }
    assert KeywordGraph(snapshot, 9).explain_edge(first, other).split(": ")[1] in by_row[other]
    assert KeywordGraph(snapshot, 9).explain_edge(other, first).split(": ")[1] in by_row[first]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_removed_document_leaves_no_trace(bases, seed):
    documents = corpus(seed, documents=10)
    remaining = documents[:6]
    base = bases.base(random.Random(seed).sample(documents, 10))
    paths = {document.key: document.paths for document in base.documents()}
    base.remove([path for document in documents[6:] for path in paths[document.key]])
    base.catch_up()
    after, never = base.snapshot(), bases.snapshot(remaining)
    for n in (0, 2):
        assert edges(after, KeywordGraph(after, n)) == edges(never, KeywordGraph(never, n))
        assert texts(after, edges(after, KeywordGraph(after, n)))


def test_an_empty_base_has_no_keywords(bases):
    assert len(KeywordGraph(bases.snapshot([]), 5).keywords()) == 0


def test_the_name_says_the_knobs(bases):
    snapshot = bases.snapshot([])
    assert KeywordGraph(snapshot, 7).name == "keywords(n=7)"
    assert KeywordGraph(snapshot, 7, share=0.05).name == "keywords(n=7, share=0.05)"


@pytest.mark.parametrize(("n", "share"), [(-1, 1.0), (5, 0.0), (5, 1.5)])
def test_knobs_out_of_range_are_refused(bases, n, share):
    with pytest.raises(UsageError):
        KeywordGraph(bases.snapshot([]), n, share)
