"""Nodes of graphs ranked by their texts: worked by hand, lazily embedded, gone with their graph."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from clew.app.cli.options import describe_encoder_input
from clew.core.errors import UsageError
from clew.core.text import index_terms
from clew.core.trail import TrailRecorder
from clew.core.types import ENTITY, Question, Scope
from clew.methods.prompting import hit_title, numbered_contexts
from clew.papers.fourstep import describe_vectors
from clew.retrieve import nodes
from clew.retrieve.nodes import (
    NodeBM25,
    NodeChunkSearch,
    NodeRetriever,
    NodeTexts,
    NodeVectorSearch,
    answer_rows,
    join_document,
    mean_of_top,
    rank_and_pad,
    split_text,
    top_rows,
)
from link_graphs import graph_of
from node_graphs import EDGES, FILMS, Counted, node_files
from retrieve_encoders import WordEncoder


@pytest.fixture
def films(base):
    return graph_of(base, EDGES, "films", **FILMS)


def test_the_document_of_a_node_names_it_and_what_it_is_joined_to(films) -> None:
    texts = NodeTexts(films)
    first, second, _, person = films.rows(["films:k1", "films:k2", "films:k3", "films:d"]).tolist()
    documents = texts.documents(np.array([person, first, second]))
    assert documents[0] == (
        "name: William Dieterle\nalso: Wilhelm Dieterle\ntype: person\n"
        "relations:\ndirector of: Kismet, Love Letters, Juarez"
    )
    # A relation that is given both ways is said once.
    assert documents[1] == (
        "name: Kismet\ntype: film\nyear: 1944\nA beggar of Baghdad.\n"
        "relations:\ndirector: William Dieterle\nnear: Juarez"
    )
    assert documents[2].endswith("A soldier writes letters.\nrelations:\ndirector: William Dieterle")
    limited = NodeTexts(films, ends_per_relation=2).documents(np.array([person]))
    assert limited[0].endswith("director of: Kismet, Love Letters and 1 more")
    assert (
        limited[0] != documents[0]
        and NodeTexts(films, ends_per_relation=2).document_name != texts.document_name
    )


def test_a_graph_of_many_relations_is_asked_for_those_that_are_there(base) -> None:
    triples = [(f"n{n}", f"relation {n:03}", f"n{n + 1}") for n in range(80)]
    graph = graph_of(base, triples, "many")
    (text,) = NodeTexts(graph).documents(graph.rows(["many:n7"]))
    assert text == "name: n7\nrelations:\nrelation 007: n8\nrelation 006 of: n6"


def test_a_long_text_is_cut_and_its_relations_stay() -> None:
    assert join_document("x" * 50, "relations:\na: b", 40) == "x" * 26 + "\nrelations:\na:"
    assert join_document("x" * 10, "", 5) == "xxxxx"
    assert split_text("one two\nthree\nfour five six", 14) == ["one two\nthree", "four five six"]
    assert split_text("a" * 7, 3) == ["aaa", "aaa", "a"] and split_text("", 3) == []


def test_chunks_never_mix_text_and_relations(films) -> None:
    (chunks,) = NodeTexts(films, chunk_size=70).chunks(films.rows(["films:k1"]))
    assert chunks == [
        "Kismet: name: Kismet\ntype: film\nyear: 1944\nA beggar of Baghdad.",
        "Kismet: relations:\ndirector: William Dieterle\nnear: Juarez",
    ]


def test_bm25_over_nodes_is_the_formula(films) -> None:
    texts = NodeTexts(films)
    documents = texts.documents(np.arange(4))
    counts = [
        [index_terms(document).count("letter") for document in documents],
        [index_terms(document).count("soldier") for document in documents],
    ]
    lengths = np.array([len(index_terms(document)) for document in documents])
    expected = np.zeros(4)
    for tf in map(np.array, counts):
        holders = int((tf > 0).sum())
        idf = math.log(1 + (4 - holders + 0.5) / (holders + 0.5))
        expected += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths / lengths.mean()))
    ranked_rows = NodeBM25(texts).rank("soldier's letters".replace("'s", ""), 4)
    assert (
        ranked_rows.rows.tolist()
        == np.flatnonzero(expected)[np.argsort(-expected[expected > 0], kind="stable")].tolist()
    )
    assert ranked_rows.scores.tolist() == pytest.approx(
        sorted(expected[expected > 0], reverse=True), abs=1e-8
    )
    assert NodeBM25(texts).rank("letters", 4, films.rows(["films:k1"])).rows.tolist() == []


def test_vector_search_ranks_by_cosine_and_embeds_what_it_needs(films) -> None:
    encoder = Counted("letter", "mexico", "baghdad")
    search = NodeVectorSearch(encoder, NodeTexts(films))
    rows = films.rows(["films:k2", "films:k3"])
    ranked_rows = search.rank("letters mexico", 5, rows)
    vectors = encoder.encode(NodeTexts(films).documents(rows)).astype(np.float64)
    cosines = vectors @ encoder.encode(["letters mexico"], query=True)[0].astype(np.float64)
    assert ranked_rows.rows.tolist() == rows[np.argsort(-cosines)].tolist()
    assert ranked_rows.scores.tolist() == pytest.approx(sorted(cosines, reverse=True))
    assert ranked_rows.counts.nodes == 2 and ranked_rows.counts.embedded == 2
    seen = len(encoder.seen)
    assert search.rank("mexico", 5, rows).counts.embedded is None and len(encoder.seen) == seen
    # All nodes: the other two are embedded now.
    assert search.rank("baghdad", 1).rows.tolist() == films.rows(["films:k1"]).tolist()
    assert len(encoder.seen) == seen + 2


def test_what_is_found_does_not_depend_on_what_was_embedded_before(base, films) -> None:
    encoder = WordEncoder("letter", "mexico", "baghdad")
    capped = NodeVectorSearch(encoder, NodeTexts(films), cap=1)
    first = capped.rank("letters", 3)
    assert first.rows.tolist() == films.rows(["films:k2"]).tolist()
    assert first.counts.without_a_vector == 4 and first.counts.looked_at == "the best 1 by words"
    NodeVectorSearch(encoder, NodeTexts(films)).rank("mexico", 3, films.rows(["films:k3"]))
    repeated = capped.rank("letters", 3)
    assert (repeated.rows.tolist(), repeated.scores.tolist()) == (first.rows.tolist(), first.scores.tolist())
    # Nor where all but a few have a vector; only where all that may answer have one, all are ranked.
    NodeVectorSearch(encoder, NodeTexts(films)).rank("mexico", 3, films.rows(["films:k1"]))
    assert capped.rank("letters", 4).rows.tolist() == first.rows.tolist()
    NodeVectorSearch(encoder, NodeTexts(films)).rank("mexico", 4)
    all_ranked = capped.rank("letters", 4)
    assert len(all_ranked.rows) == 4 and all_ranked.counts.looked_at is None


def test_all_that_may_answer_are_ranked_once_they_have_a_vector_though_others_have_none(base) -> None:
    builder = base.graphs.create_builder("films")
    for id, fields in FILMS.items():
        builder.add_node(id, **fields)
    for edge in EDGES:
        builder.add_edge(*edge)
    base.graphs.store_graph(builder, [], json.dumps({"answers": ["film"]}))
    encoder = WordEncoder("letter", "mexico", "baghdad")
    without_vectors = describe_vectors(base.path, encoder, False, lambda done, total: None)
    everything = describe_vectors(base.path, encoder, True, lambda done, total: None)
    assert (without_vectors, everything) == (
        "0 of the 3 nodes that may answer",
        "3 of the 3 nodes that may answer",
    )
    graph = base.snapshot().graph("films")
    texts = NodeTexts(graph)
    assert (
        graph.node_vectors(encoder, texts.document_name).rows_without_vectors(None).tolist()
        == graph.rows(["films:d"]).tolist()
    )
    rows = answer_rows(graph)
    ranked_rows = NodeVectorSearch(encoder, texts, cap=1).rank("letters mexico baghdad baghdad", 4, rows)
    assert ranked_rows.counts.looked_at is None and ranked_rows.counts.embedded is None
    cosines = encoder.encode(texts.documents(rows)) @ encoder.encode(["letters mexico baghdad baghdad"])[0]
    assert ranked_rows.rows.tolist() == rows[np.argsort(-cosines, kind="stable")].tolist()
    assert ranked_rows.scores.tolist() == pytest.approx(sorted(cosines.tolist(), reverse=True))


def test_without_a_common_word_the_first_rows_by_id_are_ranked_and_the_counts_say_so(films) -> None:
    ranked_rows = NodeVectorSearch(WordEncoder("zebra"), NodeTexts(films), cap=1).rank("zebra", 3)
    assert len(ranked_rows.rows) == 1 and ranked_rows.counts.looked_at == "the first 1 by id"


def test_of_a_large_graph_some_candidates_are_read(films, base, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = NodeTexts(films)
    large = NodeVectorSearch(WordEncoder("letter"), texts, cap=1, count_limit=3)
    ranked_rows = large.rank("letters", 3, films.rows_of_type("film"))
    assert ranked_rows.rows.tolist() == films.rows(["films:k2"]).tolist()
    assert ranked_rows.counts.looked_at == "the best 1 by words"
    assert not [
        path for path in node_files(base) if path.name.startswith("words")
    ]  # nothing was counted for it
    # The same as from counted words, where the candidates are all nodes.
    everything = np.arange(4)
    read, counted = (
        NodeBM25(texts).rank_by_reading("letters dieterle", 4, everything),
        NodeBM25(texts).rank("letters dieterle", 4),
    )
    assert read.rows.tolist() == counted.rows.tolist() and len(read.rows) == 4
    assert read.scores.tolist() == pytest.approx(counted.scores.tolist(), abs=1e-8)
    monkeypatch.setattr(nodes, "READING_LIMIT", 2)
    limited = NodeVectorSearch(
        WordEncoder("letter", "x"), NodeTexts(films, ends_per_relation=11), cap=1, count_limit=3
    )
    assert limited.rank("baghdad", 3).counts.looked_at == "the best 1 by words of the first 2 by id"


def test_only_nodes_that_the_plain_search_finds_are_chunked(films) -> None:
    encoder = Counted("letter", "mexico", "baghdad")
    texts = NodeTexts(films, chunk_size=70)
    ranked_rows = NodeChunkSearch(NodeVectorSearch(encoder, texts), first=2, top=1).rank(
        "letters", 1, films.rows_of_type("film")
    )
    assert ranked_rows.rows.tolist() == films.rows(["films:k2"]).tolist()
    chunked = [text for text in encoder.seen if not text.startswith("name:")]
    assert {text.partition(":")[0] for text in chunked} <= {
        "Love Letters",
        "Juarez",
        "Kismet",
        "William Dieterle",
    }
    assert len({text.partition(":")[0] for text in chunked}) == 2
    query = encoder.encode(["letters"], query=True)[0].astype(np.float64)
    mine = encoder.encode([chunk for chunk in chunked if chunk.startswith("Love Letters")]).astype(np.float64)
    assert ranked_rows.scores.tolist() == pytest.approx([max(mine @ query)])


def test_the_mean_of_the_best_chunks() -> None:
    vectors = np.array([[0.2], [0.9], [0.4], [0.5], [0.1]], dtype=np.float32)
    query = np.ones(1, dtype=np.float32)
    offsets = np.array([0, 3, 3, 5])
    assert mean_of_top(offsets, vectors, query, 2).tolist() == pytest.approx([0.65, 0, 0.3])
    assert mean_of_top(offsets, vectors, query, 1).tolist() == pytest.approx([0.9, 0, 0.5])


def test_what_fills_up_is_the_next_best_and_never_a_filtered_one(films) -> None:
    search = NodeVectorSearch(WordEncoder("letter", "mexico", "baghdad"), NodeTexts(films))
    first, second, third = films.rows(["films:k1", "films:k2", "films:k3"]).tolist()
    (person,) = films.rows(["films:d"]).tolist()
    ranked, padding = rank_and_pad(search, "letters mexico", np.array([first, third]), 3)
    assert ranked.rows.tolist() == [third, first]
    assert padding.rows.tolist() == [second] and len(padding.scores) == 1
    ranked, padding = rank_and_pad(search, "letters", np.array([first]), 20, films.rows_of_type("film"))
    assert (ranked.rows.tolist(), padding.rows.tolist()) == ([first], [second, third])
    ranked, padding = rank_and_pad(search, "letters", np.array([first, second]), 2)
    assert ranked.rows.tolist() == [second, first] and not len(padding.rows)
    ranked, padding = rank_and_pad(search, "letters", np.array([], dtype=np.int64), 4)
    assert not len(ranked.rows) and padding.rows.tolist()[:2] == [second, person]


def test_ties_go_by_row_and_so_by_id() -> None:
    ranked_rows = top_rows(np.array([1, 4, 7, 9]), np.array([0.5, 0.7, 0.5, 0.5]), 3)
    assert ranked_rows.rows.tolist() == [4, 1, 7]
    assert top_rows(np.array([1]), np.array([0.5]), 0).rows.tolist() == []


def test_hits_are_entities_of_the_types_that_may_answer(base, films) -> None:
    snapshot = base.snapshot()
    encoder = WordEncoder("dieterl", "letter")
    retriever = NodeRetriever(snapshot, "vss", lambda texts: NodeVectorSearch(encoder, texts), ("film",))
    record = TrailRecorder()
    hits = retriever.explore(Question("letters"), 2, record)
    assert [hit.node.id for hit in hits] == ["films:k2", "films:k1"]  # the others have none: by id
    assert hits[0].node.kind == ENTITY and hits[0].node.name == "Love Letters"
    assert hits[0].node.text.startswith("name: Love Letters")
    assert record.steps[0].detail["graph"] == "films" and record.steps[0].detail["nodes"] == 3
    everything = NodeRetriever(snapshot, "vss", lambda texts: NodeVectorSearch(encoder, texts))
    assert everything.retrieve(Question("dieterle"), 1)[0].node.id == "films:d"
    persons = everything.retrieve(Question("letters", Scope(kinds=frozenset({"person"}))), 3)
    assert [hit.node.id for hit in persons] == ["films:d"]
    assert everything.retrieve(Question("letters", Scope(graphs=frozenset({"other"}))), 3) == []
    with pytest.raises(UsageError, match="type"):
        answer_rows(films, ["flim"])


# What is kept


def test_an_entity_is_shown_with_its_graph_and_called_by_its_name(base, films) -> None:
    hit = NodeRetriever(base.snapshot(), "bm25", NodeBM25).retrieve(Question("beggar"), 1)[0]
    assert hit.node.place == "graph films" and hit_title(hit) == "Kismet"
    assert numbered_contexts([hit])[0].startswith("[1] graph films\nname: Kismet")


def test_what_leaves_the_machine_is_named() -> None:
    for recipe in ("vss", "read(retriever=multi-vss)", "reranked", "read(retriever=reranked(retriever=vss))"):
        assert describe_encoder_input("the question", [recipe]) == "the question and texts of nodes"
    for recipe in ("default", "bm25-nodes", "reranked(retriever=bm25-nodes)", "chain"):
        assert describe_encoder_input("the question", [recipe]) == "the question"
