"""What is kept of the texts of nodes: gone with their graph, made once, continued, found when damaged."""

import numpy as np
import pytest

from clew.core.errors import ModelError, NotFound
from clew.retrieve.nodes import NodeBM25, NodeTexts, NodeVectorSearch
from clew.store import vectors
from clew.store.graphs import node_index
from clew.store.store import Store
from link_graphs import graph_of
from node_graphs import EDGES, FILMS, Counted, node_files
from retrieve_encoders import WordEncoder


def test_vectors_and_words_go_with_their_graph(base) -> None:
    before = (list(base.dump()), base.digest())
    graph = graph_of(base, EDGES, "films", **FILMS)
    NodeVectorSearch(WordEncoder("letter"), NodeTexts(graph), cap=1).rank("letters", 1)
    assert [path.name.split("-")[0] for path in node_files(base)] == ["vectors", "words"]
    assert base.doctor() == []
    base.graphs.remove("films")
    assert node_files(base) == [] and (list(base.dump()), base.digest()) == before
    # Whoever still holds the graph cannot bring anything of it back.
    with pytest.raises(NotFound):
        NodeVectorSearch(WordEncoder("mexico"), NodeTexts(graph)).rank("mexico", 1)
    assert node_files(base) == []


def test_vectors_outlive_the_base_and_a_repair_of_the_arrays(base) -> None:
    graph = graph_of(base, EDGES, "films", **FILMS)
    encoder = Counted("letter")
    first = NodeVectorSearch(encoder, NodeTexts(graph)).rank("letters", 4)
    embedded = len(encoder.seen)
    (base.path / "derived" / "graphs").rename(base.path / "gone")
    with Store.open(base.path) as other:
        assert [problem.problem for problem in other.doctor()] == ["its arrays are not built yet"]
        repeated = NodeVectorSearch(encoder, NodeTexts(other.snapshot().graph("films"))).rank("letters", 4)
    assert repeated.rows.tolist() == first.rows.tolist() and len(encoder.seen) == embedded


def test_two_processes_make_each_vector_once(base) -> None:
    graph = graph_of(base, EDGES, "films", **FILMS)
    encoder = Counted("letter")
    texts = NodeTexts(graph)
    mine = graph.node_vectors(encoder, texts.document_name)
    with Store.open(base.path) as other:
        theirs = other.snapshot().graph("films").node_vectors(encoder, texts.document_name)

        def slow(rows):
            theirs.encode_missing(np.arange(2), texts.single_texts)  # the other one is quicker
            return texts.single_texts(rows)

        assert mine.encode_missing(np.arange(4), slow) == 4
        for vectors_of in (mine, theirs):
            offsets, vectors = vectors_of.vectors(np.arange(4))
            assert offsets.tolist() == [0, 1, 2, 3, 4] and len(vectors_of.rows_without_vectors()) == 0
            assert np.array_equal(vectors, encoder.encode(texts.documents(np.arange(4))))


def test_damaged_vectors_and_words_are_found_and_made_again(base) -> None:
    graph = graph_of(base, EDGES, "films", **FILMS)
    encoder = WordEncoder("letter")
    search = NodeVectorSearch(encoder, NodeTexts(graph), cap=1)
    expected = search.rank("letters", 1)
    vectors, words = node_files(base)
    (vectors / "vectors.f32").write_bytes(b"")
    [block] = words.iterdir()
    (block / "terms.npy").unlink()
    problems = [problem.problem for problem in base.doctor()]
    assert problems == ["vectors of its nodes are damaged; encode again", "words of its nodes are damaged"]
    assert base.doctor() == []
    assert not [path for folder in node_files(base) for path in folder.rglob("*") if path.is_file()]
    repeated = NodeVectorSearch(encoder, NodeTexts(base.snapshot().graph("films")), cap=1).rank("letters", 1)
    assert repeated.rows.tolist() == expected.rows.tolist()


def test_words_of_more_nodes_than_a_block(base, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(base, [(f"n{n}", "next", f"n{n + 1}") for n in range(50)], "long")
    expected = NodeBM25(NodeTexts(graph)).rank("n7 n20", 9)
    monkeypatch.setattr(node_index, "WORD_BLOCK", 8)
    monkeypatch.setattr(node_index, "WORD_BATCH", 3)
    parted = NodeBM25(NodeTexts(graph, ends_per_relation=11)).rank("n7 n20", 9)
    assert (parted.rows.tolist(), parted.scores.tolist()) == (
        expected.rows.tolist(),
        expected.scores.tolist(),
    )


def test_counting_words_continues_where_it_was_stopped(base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_index, "WORD_BLOCK", 8)
    monkeypatch.setattr(node_index, "WORD_BATCH", 4)
    graph = graph_of(base, [(f"n{n}", "next", f"n{n + 1}") for n in range(20)], "long")
    texts, progress = NodeTexts(graph), []

    def broken(rows):
        if rows[0] >= 12:
            raise KeyboardInterrupt
        return texts.single_texts(rows)

    with pytest.raises(KeyboardInterrupt):
        graph.node_postings(texts.document_name, broken)
    assert graph.node_postings(texts.document_name) is None
    result = graph.node_postings(
        texts.document_name, texts.single_texts, lambda done, total: progress.append((done, total))
    )
    assert progress == [(12, 21), (16, 21), (20, 21), (21, 21)] and result.node_count == 21


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
    monkeypatch.setattr(node_index, "ENCODE_BATCH", 4)
    graph = graph_of(base, [(f"n{n}", "next", f"n{n + 1}") for n in range(20)], "long")
    texts, progress = NodeTexts(graph), []
    with pytest.raises(ModelError):
        graph.node_vectors(Failing(10), texts.document_name).encode_missing(np.arange(21), texts.single_texts)
    stored = graph.node_vectors(Failing(13), texts.document_name)
    assert len(stored.rows_without_vectors()) == 13
    assert (
        stored.encode_missing(
            np.arange(21), texts.single_texts, lambda done, total: progress.append((done, total))
        )
        == 13
    )
    assert progress == [(4, 13), (8, 13), (12, 13), (13, 13)] and len(stored.rows_without_vectors()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True])
def test_search_equals_brute_force(base, monkeypatch: pytest.MonkeyPatch, signed: bool) -> None:
    if signed:  # as of 32,768 vectors: a shortlist by signs, here so long that nothing can be missed
        monkeypatch.setattr(vectors, "BINARY_INDEX_MINIMUM", 50)
        monkeypatch.setattr(node_index, "EXACT_LIMIT", 50)
    rng = np.random.default_rng(5)
    words = [f"w{n}" for n in range(30)]
    nodes = {f"n{n:03}": {"name": " ".join(rng.choice(words, 4))} for n in range(300)}
    graph = graph_of(base, [], "words", **nodes)
    encoder, texts = WordEncoder(*words), NodeTexts(graph)
    search = NodeVectorSearch(encoder, texts)
    rows = np.sort(rng.choice(300, 120, replace=False))
    for among in (None, rows, rows[:20]):
        chosen = np.arange(300) if among is None else among
        result = search.rank("w3 w7 w7", 15, among)
        matrix = encoder.encode(texts.documents(chosen)).astype(np.float64)
        scores = (matrix @ encoder.encode(["w3 w7 w7"], query=True)[0].astype(np.float64)).round(9)
        order = np.lexsort((chosen, -scores))[:15]
        assert result.scores.tolist() == pytest.approx(scores[order].tolist())
        assert result.rows.tolist() == chosen[order].tolist()
