"""Nodes of graphs ranked by their texts: worked by hand, lazily embedded, gone with their graph."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from clew.catalog.fourstep_bases import embedded
from clew.cli.remote import with_nodes
from clew.errors import ModelError, NotFound, UsageError
from clew.kb import KnowledgeBase
from clew.read.contexts import numbered, place, title_of
from clew.retrieve.entities import (
    EntityRetriever,
    NodeChunks,
    NodeSearch,
    NodeWords,
    aggregated,
    answer_rows,
    best,
    sorted_and_filled,
)
from clew.retrieve.nodetexts import NodeTexts, joined, pieces
from clew.text import terms
from clew.trail import Recorder
from clew.types import ENTITY, Question, Scope
from link_graphs import graph_of
from retrieve_encoders import WordEncoder

FILMS = {
    "k1": {"name": "Kismet", "types": ["film"], "text": "A beggar of Baghdad.", "properties": {"year": 1944}},
    "k2": {"name": "Love Letters", "types": ["film"], "text": "A soldier writes letters."},
    "k3": {"name": "Juarez", "types": ["film"], "text": "An emperor in Mexico."},
    "d": {"name": "William Dieterle", "types": ["person"], "aliases": ["Wilhelm Dieterle"]},
}
EDGES = [
    ("k1", "director", "d"),
    ("k2", "director", "d"),
    ("k3", "director", "d"),
    ("k1", "near", "k3"),
    ("k3", "near", "k1"),
]


class Counted(WordEncoder):
    """Notes what it was given to encode."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self.seen: list[str] = []

    def encode(self, texts, query=False):
        if not query:
            self.seen += list(texts)
        return super().encode(texts, query)


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
    few = NodeTexts(films, each=2).documents(np.array([person]))
    assert few[0].endswith("director of: Kismet, Love Letters and 1 more")
    assert few[0] != documents[0] and NodeTexts(films, each=2).document_name != texts.document_name


def test_a_graph_of_many_relations_is_asked_for_those_that_are_there(base) -> None:
    triples = [(f"n{n}", f"relation {n:03}", f"n{n + 1}") for n in range(80)]
    graph = graph_of(base, triples, "many")
    (text,) = NodeTexts(graph).documents(graph.rows(["many:n7"]))
    assert text == "name: n7\nrelations:\nrelation 007: n8\nrelation 006 of: n6"


def test_a_long_text_is_cut_and_its_relations_stay() -> None:
    assert joined("x" * 50, "relations:\na: b", 40) == "x" * 26 + "\nrelations:\na:"
    assert joined("x" * 10, "", 5) == "xxxxx"
    assert pieces("one two\nthree\nfour five six", 14) == ["one two\nthree", "four five six"]
    assert pieces("a" * 7, 3) == ["aaa", "aaa", "a"] and pieces("", 3) == []


def test_chunks_never_mix_text_and_relations(films) -> None:
    (chunks,) = NodeTexts(films, size=70).chunks(films.rows(["films:k1"]))
    assert chunks == [
        "Kismet: name: Kismet\ntype: film\nyear: 1944\nA beggar of Baghdad.",
        "Kismet: relations:\ndirector: William Dieterle\nnear: Juarez",
    ]


def test_bm25_over_nodes_is_the_formula(films) -> None:
    texts = NodeTexts(films)
    documents = texts.documents(np.arange(4))
    counts = [
        [terms(one).count("letter") for one in documents],
        [terms(one).count("soldier") for one in documents],
    ]
    lengths = np.array([len(terms(one)) for one in documents])
    wanted = np.zeros(4)
    for tf in map(np.array, counts):
        holders = int((tf > 0).sum())
        idf = math.log(1 + (4 - holders + 0.5) / (holders + 0.5))
        wanted += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths / lengths.mean()))
    found = NodeWords(texts).nearest("soldier's letters".replace("'s", ""), 4)
    assert (
        found.rows.tolist() == np.flatnonzero(wanted)[np.argsort(-wanted[wanted > 0], kind="stable")].tolist()
    )
    assert found.scores.tolist() == pytest.approx(sorted(wanted[wanted > 0], reverse=True), abs=1e-8)
    assert NodeWords(texts).nearest("letters", 4, films.rows(["films:k1"])).rows.tolist() == []


def test_vector_search_ranks_by_cosine_and_embeds_what_it_needs(films) -> None:
    encoder = Counted("letter", "mexico", "baghdad")
    search = NodeSearch(encoder, NodeTexts(films))
    rows = films.rows(["films:k2", "films:k3"])
    found = search.nearest("letters mexico", 5, rows)
    vectors = encoder.encode(NodeTexts(films).documents(rows)).astype(np.float64)
    cosines = vectors @ encoder.encode(["letters mexico"], query=True)[0].astype(np.float64)
    assert found.rows.tolist() == rows[np.argsort(-cosines)].tolist()
    assert found.scores.tolist() == pytest.approx(sorted(cosines, reverse=True))
    assert found.detail["nodes"] == 2 and found.detail["embedded"] == 2
    seen = len(encoder.seen)
    assert "embedded" not in search.nearest("mexico", 5, rows).detail and len(encoder.seen) == seen
    # All nodes: the other two are embedded now.
    assert search.nearest("baghdad", 1).rows.tolist() == films.rows(["films:k1"]).tolist()
    assert len(encoder.seen) == seen + 2


def test_what_is_found_does_not_depend_on_what_was_embedded_before(base, films) -> None:
    encoder = WordEncoder("letter", "mexico", "baghdad")
    capped = NodeSearch(encoder, NodeTexts(films), cap=1)
    first = capped.nearest("letters", 3)
    assert first.rows.tolist() == films.rows(["films:k2"]).tolist()
    assert first.detail["without a vector"] == 4 and first.detail["looked at"] == "the best 1 by words"
    NodeSearch(encoder, NodeTexts(films)).nearest("mexico", 3, films.rows(["films:k3"]))
    again = capped.nearest("letters", 3)
    assert (again.rows.tolist(), again.scores.tolist()) == (first.rows.tolist(), first.scores.tolist())
    # Nor where all but a few have a vector; only where all that may answer have one, all are ranked.
    NodeSearch(encoder, NodeTexts(films)).nearest("mexico", 3, films.rows(["films:k1"]))
    assert capped.nearest("letters", 4).rows.tolist() == first.rows.tolist()
    NodeSearch(encoder, NodeTexts(films)).nearest("mexico", 4)
    whole = capped.nearest("letters", 4)
    assert len(whole.rows) == 4 and "looked at" not in whole.detail


def test_all_that_may_answer_are_ranked_once_they_have_a_vector_though_others_have_none(base) -> None:
    builder = base.graphs.builder("films")
    for id, said in FILMS.items():
        builder.node(id, **said)
    for edge in EDGES:
        builder.edge(*edge)
    base.graphs.store(builder, [], json.dumps({"answers": ["film"]}))
    encoder = WordEncoder("letter", "mexico", "baghdad")
    some = embedded(base.path, encoder, False, lambda done, total: None)
    every = embedded(base.path, encoder, True, lambda done, total: None)
    assert (some, every) == ("0 of the 3 nodes that may answer", "3 of the 3 nodes that may answer")
    graph = base.snapshot().graph("films")
    texts = NodeTexts(graph)
    assert (
        graph.vectors(encoder, texts.document_name).missing(None).tolist() == graph.rows(["films:d"]).tolist()
    )
    rows = answer_rows(graph)
    found = NodeSearch(encoder, texts, cap=1).nearest("letters mexico baghdad baghdad", 4, rows)
    assert "looked at" not in found.detail and "embedded" not in found.detail
    cosines = encoder.encode(texts.documents(rows)) @ encoder.encode(["letters mexico baghdad baghdad"])[0]
    assert found.rows.tolist() == rows[np.argsort(-cosines, kind="stable")].tolist()
    assert found.scores.tolist() == pytest.approx(sorted(cosines.tolist(), reverse=True))


def test_no_word_in_common_means_the_first_by_id_and_that_is_said(films) -> None:
    found = NodeSearch(WordEncoder("zebra"), NodeTexts(films), cap=1).nearest("zebra", 3)
    assert len(found.rows) == 1 and found.detail["looked at"] == "the first 1 by id"


def test_of_a_large_graph_some_candidates_are_read(films, base, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.retrieve import entities

    texts = NodeTexts(films)
    large = NodeSearch(WordEncoder("letter"), texts, cap=1, counted=3)
    found = large.nearest("letters", 3, films.of_type("film"))
    assert found.rows.tolist() == films.rows(["films:k2"]).tolist()
    assert found.detail["looked at"] == "the best 1 by words"
    assert not [path for path in kept(base) if path.name.startswith("words")]  # nothing was counted for it
    # The same as from counted words, where the candidates are all nodes.
    every = np.arange(4)
    read, counted = (
        NodeWords(texts).read("letters dieterle", 4, every),
        NodeWords(texts).nearest("letters dieterle", 4),
    )
    assert read.rows.tolist() == counted.rows.tolist() and len(read.rows) == 4
    assert read.scores.tolist() == pytest.approx(counted.scores.tolist(), abs=1e-8)
    monkeypatch.setattr(entities, "READ", 2)
    few = NodeSearch(WordEncoder("letter", "x"), NodeTexts(films, each=11), cap=1, counted=3)
    assert few.nearest("baghdad", 3).detail["looked at"] == "the best 1 by words of the first 2 by id"


def test_chunks_are_made_of_what_the_plain_search_finds_alone(films) -> None:
    encoder = Counted("letter", "mexico", "baghdad")
    texts = NodeTexts(films, size=70)
    found = NodeChunks(NodeSearch(encoder, texts), first=2, top=1).nearest(
        "letters", 1, films.of_type("film")
    )
    assert found.rows.tolist() == films.rows(["films:k2"]).tolist()
    chunked = [text for text in encoder.seen if not text.startswith("name:")]
    assert {text.partition(":")[0] for text in chunked} <= {
        "Love Letters",
        "Juarez",
        "Kismet",
        "William Dieterle",
    }
    assert len({text.partition(":")[0] for text in chunked}) == 2
    query = encoder.encode(["letters"], query=True)[0].astype(np.float64)
    mine = encoder.encode([one for one in chunked if one.startswith("Love Letters")]).astype(np.float64)
    assert found.scores.tolist() == pytest.approx([max(mine @ query)])


def test_the_mean_of_the_best_chunks() -> None:
    vectors = np.array([[0.2], [0.9], [0.4], [0.5], [0.1]], dtype=np.float32)
    query = np.ones(1, dtype=np.float32)
    offsets = np.array([0, 3, 3, 5])
    assert aggregated(offsets, vectors, query, 2).tolist() == pytest.approx([0.65, 0, 0.3])
    assert aggregated(offsets, vectors, query, 1).tolist() == pytest.approx([0.9, 0, 0.5])


def test_what_fills_up_is_the_next_best_and_never_a_filtered_one(films) -> None:
    search = NodeSearch(WordEncoder("letter", "mexico", "baghdad"), NodeTexts(films))
    first, second, third = films.rows(["films:k1", "films:k2", "films:k3"]).tolist()
    (person,) = films.rows(["films:d"]).tolist()
    firm, more = sorted_and_filled(search, "letters mexico", np.array([first, third]), 3)
    assert firm.rows.tolist() == [third, first]
    assert more.rows.tolist() == [second] and len(more.scores) == 1
    firm, more = sorted_and_filled(search, "letters", np.array([first]), 20, films.of_type("film"))
    assert (firm.rows.tolist(), more.rows.tolist()) == ([first], [second, third])
    firm, more = sorted_and_filled(search, "letters", np.array([first, second]), 2)
    assert firm.rows.tolist() == [second, first] and not len(more.rows)
    firm, more = sorted_and_filled(search, "letters", np.array([], dtype=np.int64), 4)
    assert not len(firm.rows) and more.rows.tolist()[:2] == [second, person]


def test_ties_go_by_row_and_so_by_id() -> None:
    found = best(np.array([1, 4, 7, 9]), np.array([0.5, 0.7, 0.5, 0.5]), 3)
    assert found.rows.tolist() == [4, 1, 7]
    assert best(np.array([1]), np.array([0.5]), 0).rows.tolist() == []


def test_hits_are_entities_of_the_types_that_may_answer(base, films) -> None:
    snapshot = base.snapshot()
    encoder = WordEncoder("dieterl", "letter")
    retriever = EntityRetriever(snapshot, "vss", lambda texts: NodeSearch(encoder, texts), ("film",))
    record = Recorder()
    hits = retriever.explore(Question("letters"), 2, record)
    assert [hit.node.id for hit in hits] == ["films:k2", "films:k1"]  # the others have none: by id
    assert hits[0].node.kind == ENTITY and hits[0].node.name == "Love Letters"
    assert hits[0].node.text.startswith("name: Love Letters")
    assert record.steps[0].detail["graph"] == "films" and record.steps[0].detail["nodes"] == 3
    everything = EntityRetriever(snapshot, "vss", lambda texts: NodeSearch(encoder, texts))
    assert everything.retrieve(Question("dieterle"), 1)[0].node.id == "films:d"
    persons = everything.retrieve(Question("letters", Scope(kinds=frozenset({"person"}))), 3)
    assert [hit.node.id for hit in persons] == ["films:d"]
    assert everything.retrieve(Question("letters", Scope(graphs=frozenset({"other"}))), 3) == []
    with pytest.raises(UsageError, match="type"):
        answer_rows(films, ["flim"])


# What is kept


def kept(base: KnowledgeBase) -> list[Path]:
    return sorted((base.path / "derived" / "nodes").glob("*/*"))


def test_vectors_and_words_go_with_their_graph(base) -> None:
    before = (list(base.dump()), base.digest())
    graph = graph_of(base, EDGES, "films", **FILMS)
    NodeSearch(WordEncoder("letter"), NodeTexts(graph), cap=1).nearest("letters", 1)
    assert [path.name.split("-")[0] for path in kept(base)] == ["vectors", "words"]
    assert base.doctor() == []
    base.graphs.remove("films")
    assert kept(base) == [] and (list(base.dump()), base.digest()) == before
    # Whoever still holds the graph cannot bring anything of it back.
    with pytest.raises(NotFound):
        NodeSearch(WordEncoder("mexico"), NodeTexts(graph)).nearest("mexico", 1)
    assert kept(base) == []


def test_vectors_outlive_the_base_and_a_repair_of_the_arrays(base) -> None:
    graph = graph_of(base, EDGES, "films", **FILMS)
    encoder = Counted("letter")
    first = NodeSearch(encoder, NodeTexts(graph)).nearest("letters", 4)
    made = len(encoder.seen)
    (base.path / "derived" / "graphs").rename(base.path / "gone")
    with KnowledgeBase.open(base.path) as other:
        assert [one.problem for one in other.doctor()] == ["its arrays are missing or damaged"]
        again = NodeSearch(encoder, NodeTexts(other.snapshot().graph("films"))).nearest("letters", 4)
    assert again.rows.tolist() == first.rows.tolist() and len(encoder.seen) == made


def test_two_processes_make_each_vector_once(base) -> None:
    graph = graph_of(base, EDGES, "films", **FILMS)
    encoder = Counted("letter")
    texts = NodeTexts(graph)
    mine = graph.vectors(encoder, texts.document_name)
    with KnowledgeBase.open(base.path) as other:
        theirs = other.snapshot().graph("films").vectors(encoder, texts.document_name)

        def slow(rows):
            theirs.make(np.arange(2), texts.whole)  # the other one is quicker
            return texts.whole(rows)

        assert mine.make(np.arange(4), slow) == 4
        for one in (mine, theirs):
            offsets, vectors = one.vectors(np.arange(4))
            assert offsets.tolist() == [0, 1, 2, 3, 4] and len(one.missing()) == 0
            assert np.array_equal(vectors, encoder.encode(texts.documents(np.arange(4))))


def test_damaged_vectors_and_words_are_found_and_made_again(base) -> None:
    graph = graph_of(base, EDGES, "films", **FILMS)
    encoder = WordEncoder("letter")
    search = NodeSearch(encoder, NodeTexts(graph), cap=1)
    wanted = search.nearest("letters", 1)
    vectors, words = kept(base)
    (vectors / "vectors.f32").write_bytes(b"")
    (words / "0.terms.npy").unlink()
    problems = [one.problem for one in base.doctor()]
    assert problems == ["vectors of its nodes are damaged; encode again", "words of its nodes are damaged"]
    assert base.doctor() == [] and kept(base) == []
    again = NodeSearch(encoder, NodeTexts(base.snapshot().graph("films")), cap=1).nearest("letters", 1)
    assert again.rows.tolist() == wanted.rows.tolist()


def test_words_of_more_nodes_than_a_block(base, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.kb.graphs import nodes

    graph = graph_of(base, [(f"n{n}", "next", f"n{n + 1}") for n in range(50)], "long")
    whole = NodeWords(NodeTexts(graph)).nearest("n7 n20", 9)
    monkeypatch.setattr(nodes, "BLOCK", 8)
    monkeypatch.setattr(nodes, "BATCH", 3)
    parted = NodeWords(NodeTexts(graph, each=11)).nearest("n7 n20", 9)
    assert (parted.rows.tolist(), parted.scores.tolist()) == (whole.rows.tolist(), whole.scores.tolist())


class Failing(WordEncoder):
    """Gives up after some texts, as an endpoint that breaks off or a kill does."""

    def __init__(self, most: int) -> None:
        super().__init__("n7", "n20")
        self.most = most

    def encode(self, texts, query=False):
        self.most -= len(texts)
        if self.most < 0:
            raise ModelError("broken off")
        return super().encode(texts, query)


def test_embedding_all_continues_where_it_was_stopped(base, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.kb.graphs import nodes

    monkeypatch.setattr(nodes, "BATCH", 4)
    graph = graph_of(base, [(f"n{n}", "next", f"n{n + 1}") for n in range(20)], "long")
    texts, told = NodeTexts(graph), []
    with pytest.raises(ModelError):
        graph.vectors(Failing(10), texts.document_name).make(np.arange(21), texts.whole)
    kept = graph.vectors(Failing(13), texts.document_name)
    assert len(kept.missing()) == 13
    assert kept.make(np.arange(21), texts.whole, lambda done, total: told.append((done, total))) == 13
    assert told == [(4, 13), (8, 13), (12, 13), (13, 13)] and len(kept.missing()) == 0


@pytest.mark.parametrize("signed", [False, True])
def test_search_equals_brute_force(base, monkeypatch: pytest.MonkeyPatch, signed: bool) -> None:
    from clew.kb import vectors
    from clew.kb.graphs import nodes as kept_nodes

    if signed:  # as of 32,768 vectors: a shortlist by signs, here so long that nothing can be missed
        monkeypatch.setattr(vectors, "SIGNED", 50)
        monkeypatch.setattr(kept_nodes, "EXACT", 50)
    rng = np.random.default_rng(5)
    words = [f"w{n}" for n in range(30)]
    nodes = {f"n{n:03}": {"name": " ".join(rng.choice(words, 4))} for n in range(300)}
    graph = graph_of(base, [], "words", **nodes)
    encoder, texts = WordEncoder(*words), NodeTexts(graph)
    search = NodeSearch(encoder, texts)
    rows = np.sort(rng.choice(300, 120, replace=False))
    for among in (None, rows, rows[:20]):
        chosen = np.arange(300) if among is None else among
        found = search.nearest("w3 w7 w7", 15, among)
        matrix = encoder.encode(texts.documents(chosen)).astype(np.float64)
        scores = (matrix @ encoder.encode(["w3 w7 w7"], query=True)[0].astype(np.float64)).round(9)
        order = np.lexsort((chosen, -scores))[:15]
        assert found.scores.tolist() == pytest.approx(scores[order].tolist())
        assert found.rows.tolist() == chosen[order].tolist()


def test_an_entity_is_shown_with_its_graph_and_called_by_its_name(base, films) -> None:
    hit = EntityRetriever(base.snapshot(), "bm25", NodeWords).retrieve(Question("beggar"), 1)[0]
    assert place(hit.node) == "graph films" and title_of(hit) == "Kismet"
    assert numbered([hit]).startswith("[1] graph films\nname: Kismet")


def test_what_leaves_the_machine_is_named() -> None:
    for recipe in ("vss", "read(retriever=multi-vss)", "reranked", "read(retriever=reranked(retriever=vss))"):
        assert with_nodes("the question", [recipe]) == "the question and texts of nodes"
    for recipe in ("default", "bm25-nodes", "reranked(retriever=bm25-nodes)", "chain"):
        assert with_nodes("the question", [recipe]) == "the question"
