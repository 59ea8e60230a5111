import random
from collections import defaultdict

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.text import STOPWORDS, candidate_names, title_names
from clew.graph.mentions import SHARED_NAME_STRENGTH, MentionGraph
from clew.graph.passages import UnionGraph
from graph_corpora import corpus, document, edges, located, pairs, passages


def neighbours_by_hand(snapshot, common, leads):
    nodes = passages(snapshot)
    mentioned = {node.id: {name for name, _, _ in candidate_names(node.text)} for node in nodes}
    holders, in_document = defaultdict(set), defaultdict(list)
    for node in nodes:
        in_document[node.document].append(node.id)
        for name in mentioned[node.id]:
            holders[name].add(node.id)
    titled = defaultdict(set)
    for entry in snapshot.documents():
        for name in title_names(entry.title):
            if name not in STOPWORDS:
                titled[name] |= set(in_document[entry.key][:leads])
    by_id = {node.id: node for node in nodes}
    joins = {
        name
        for name, ids in holders.items()
        if len(ids) <= common and (name in titled or len({by_id[id].document for id in ids}) > 1)
    }

    def joined(a, b):
        about = any(b.id in titled[name] for name in mentioned[a.id] if name in titled)
        back = any(a.id in titled[name] for name in mentioned[b.id] if name in titled)
        return bool(mentioned[a.id] & mentioned[b.id] & joins) or about or back

    return pairs(nodes, joined)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_edges_are_those_counted_pair_by_pair(bases, seed):
    snapshot = bases.snapshot(corpus(seed))
    for common, leads in ((0, 1), (3, 0), (5, 2), (1000, 1000)):
        by_hand = neighbours_by_hand(snapshot, common, leads)
        assert edges(snapshot, MentionGraph(snapshot, common, leads)) == by_hand


def rows_of(snapshot, *texts):
    id_of_text = {node.text: node.id for node in passages(snapshot)}
    return [int(row) for row in snapshot.rows([id_of_text[text] for text in texts])]


def test_a_new_title_finds_passages_that_were_there_before_and_a_removed_one_is_gone(bases):
    old = document("minutes", "The council heard Hesper Marrable speak.")
    base = bases.base([old])
    assert edges(base.snapshot(), MentionGraph(base.snapshot())) == set()
    new = document("Hesper Marrable", "She built gauges.")
    base.put_document(new, located(new))
    base.catch_up()
    snapshot = base.snapshot()
    passage, lead = rows_of(snapshot, "The council heard Hesper Marrable speak.", "She built gauges.")
    assert MentionGraph(snapshot).neighbours(passage).tolist() == [lead]
    assert MentionGraph(snapshot).neighbours(lead).tolist() == [passage]
    assert MentionGraph(snapshot).explain_edge(passage, lead) == "mentions: Hesper Marrable"
    assert MentionGraph(snapshot).explain_edge(lead, passage) == "mentions: Hesper Marrable"
    base.remove(
        [path for entry in base.documents() if entry.title == "Hesper Marrable" for path in entry.paths]
    )
    base.catch_up()
    assert edges(base.snapshot(), MentionGraph(base.snapshot())) == set()


def test_a_name_of_one_document_joins_nothing_and_of_two_it_does(bases):
    one = document("x", "Corran is far.", "Near Corran.")
    alone = bases.snapshot([one])
    assert edges(alone, MentionGraph(alone)) == set()
    joined = bases.snapshot([one, document("y", "To Corran again.")])
    assert len(edges(joined, MentionGraph(joined))) == 6


def test_a_common_name_joins_no_two_passages_but_still_leads_to_its_document(bases):
    documents = [document("Quill", "A river."), *(document(f"n{i}", f"Saw Quill {i}x.") for i in range(4))]
    snapshot = bases.snapshot(documents)
    assert len(edges(snapshot, MentionGraph(snapshot, common=3))) == 2 * 4
    assert len(edges(snapshot, MentionGraph(snapshot, common=4))) == 2 * 4 + 4 * 3


def test_leads_are_the_first_passages_of_the_document(bases):
    snapshot = bases.snapshot([document("Quill", "one", "two", "three"), document("n", "At Quill.")])
    at, one, two = rows_of(snapshot, "At Quill.", "one", "two")
    assert MentionGraph(snapshot, leads=2).neighbours(at).tolist() == sorted([one, two])


@pytest.mark.parametrize("seed", range(3))
def test_a_removed_document_leaves_no_trace(bases, seed):
    documents = corpus(seed, documents=10)
    base = bases.base(random.Random(seed).sample(documents, 10))
    paths = {entry.key: entry.paths for entry in base.documents()}
    base.remove([path for removed in documents[:4] for path in paths[removed.key]])
    base.catch_up()
    after, never = base.snapshot(), bases.snapshot(documents[4:])
    assert edges(after, MentionGraph(after)) == edges(never, MentionGraph(never))


def test_neighbours_are_the_same_for_few_and_for_many(bases, monkeypatch):
    snapshot = bases.snapshot(corpus(4, documents=20))
    sorted_way = edges(snapshot, MentionGraph(snapshot, 50))
    monkeypatch.setattr("clew.graph.passages._SORT_BELOW", 0)
    assert edges(snapshot, MentionGraph(snapshot, 50)) == sorted_way


def test_an_empty_base_has_no_mentions(bases):
    snapshot = bases.snapshot([])
    assert edges(snapshot, MentionGraph(snapshot)) == set()
    assert MentionGraph(snapshot).name == "mentions(common=5, leads=3)"


def test_knobs_out_of_range_are_refused(bases):
    with pytest.raises(UsageError):
        MentionGraph(bases.snapshot([]), common=-1)
    with pytest.raises(UsageError):
        MentionGraph(bases.snapshot([]), leads=-1)


def test_every_neighbour_has_a_reason(bases):
    snapshot = bases.snapshot(corpus(2, documents=12))
    graph = MentionGraph(snapshot)
    for node in passages(snapshot):
        row = int(snapshot.rows([node.id])[0])
        assert all(graph.explain_edge(row, int(other)) for other in graph.neighbours(row))
    assert len(np.concatenate([graph.neighbours(row) for row in range(snapshot.size)]))


def test_the_edge_from_a_name_to_the_text_about_it_is_the_strongest(bases):
    about = document("Hesper Marrable", "She built gauges for the river.")
    one = document("minutes", "The council heard Hesper Marrable speak.")
    other = document("diary", "Met Hesper Marrable at the lock.")
    snapshot = bases.snapshot([about, one, other])
    gauges, heard, met = rows_of(
        snapshot,
        "She built gauges for the river.",
        "The council heard Hesper Marrable speak.",
        "Met Hesper Marrable at the lock.",
    )
    graph = MentionGraph(snapshot)
    assert graph.strengths(heard, np.array([gauges, met])).tolist() == [1.0, SHARED_NAME_STRENGTH]
    assert graph.strengths(gauges, np.array([heard, met])).tolist() == [
        SHARED_NAME_STRENGTH,
        SHARED_NAME_STRENGTH,
    ]
    assert len(graph.strengths(gauges, np.array([], dtype=np.int64))) == 0
    union = UnionGraph([MentionGraph(snapshot, leads=0), graph])
    assert union.strengths(heard, np.array([gauges, met])).tolist() == [1.0, SHARED_NAME_STRENGTH]
