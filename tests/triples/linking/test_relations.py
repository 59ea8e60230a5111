"""Words for relations: spelled out, both ways, with aliases, with an encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from clew.core.errors import UnreadableFile
from clew.models import create_encoder
from clew.triples.linking.relation_words import verbalise_relation, word_stems
from clew.triples.linking.relations import (
    ENCODER_WEIGHT,
    OTHER_DIRECTION_WEIGHT,
    GraphRelationLinker,
    load_aliases,
)
from kb_documents import HashEncoder
from link_graphs import graph_of

FILMS = [
    ("Kismet", "directed_by", "Dieterle"),
    ("Kismet", "hasGenre", "musical"),
    ("Kismet", "http://example.org/ns#releaseYear", "1944"),
    ("Kismet", "starred actors", "Dietrich"),
    ("Dieterle", "place of birth", "Ludwigshafen"),
]


def first(linker: GraphRelationLinker, graph, phrase: str) -> tuple[str, bool]:
    (links,) = linker.link(graph, [phrase])
    return links[0].name, links[0].inverse


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("directed_by", "directed by"),
        ("placeOfBirth", "place of birth"),
        ("http://example.org/ns#directedBy", "directed by"),
        ("schema:birthPlace", "birth place"),
        ("hasISBNNumber", "has isbn number"),
        ("has part(s)", "has part s"),
        ("ÉcritPar", "écrit par"),
        ("#", "#"),
    ],
)
def test_relations_are_spelled_out(name: str, words: str) -> None:
    assert verbalise_relation(name) == words


def test_words_of_one_family_have_one_stem() -> None:
    for item, other in (
        ("directed by", "the director"),
        ("publisher", "published by"),
        ("founder", "founded"),
    ):
        assert word_stems(item) == word_stems(other)
    assert word_stems("director") != word_stems("producer")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phrase", "relation", "inverse"),
    [
        ("director", "directed_by", False),
        ("directed by", "directed_by", False),
        ("was directed by", "directed_by", False),
        ("directed", "directed_by", True),
        ("director of", "directed_by", True),
        ("films directed by", "directed_by", True),
        ("genre", "hasGenre", False),
        ("genre of", "hasGenre", True),
        ("releaseYear", "http://example.org/ns#releaseYear", False),
        ("actor", "starred actors", False),
        ("starred in", "starred actors", True),
        ("birth place", "place of birth", False),
    ],
)
def test_phrases_find_their_relation_and_its_direction(
    base, phrase: str, relation: str, inverse: bool
) -> None:
    assert first(GraphRelationLinker(), graph_of(base, FILMS), phrase) == (relation, inverse)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "phrase", "inverse"),
    [
        ("capital of", "capital of", False),
        ("capital of", "capital", True),
        ("country of citizenship", "citizen of", False),
        ("wrote", "author", True),
        ("wrote", "wrote", False),
    ],
)
def test_a_relation_worded_backwards_is_followed_from_its_tail(
    base, relation: str, phrase: str, inverse: bool
) -> None:
    assert first(GraphRelationLinker(), graph_of(base, [("a", relation, "b")]), phrase) == (relation, inverse)


def test_the_type_that_is_asked_for_decides_the_direction(base) -> None:
    graph = graph_of(base, [("k", "made", "d")], k={"types": ["film"]}, d={"types": ["person"]})
    assert first(GraphRelationLinker(), graph, "film made") == ("made", True)
    assert first(GraphRelationLinker(), graph, "person made") == ("made", False)


def test_both_directions_are_candidates_and_scores_are_from_0_to_1(base) -> None:
    graph = graph_of(base, FILMS)
    (links,) = GraphRelationLinker().link(graph, ["directed by"], k=100)
    assert {(item.name, item.inverse) for item in links} == {
        (name, inverse) for name in graph.relations() for inverse in (False, True)
    }
    scores = [item.score for item in links]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    assert links[0].score == 1 and links[0].reason == "name"
    assert (links[1].name, links[1].inverse, links[1].score) == ("directed_by", True, OTHER_DIRECTION_WEIGHT)
    assert len(GraphRelationLinker().link(graph, ["directed by"], k=3)[0]) == 3


def test_scores_are_cosine_and_words_by_hand(base) -> None:
    graph = graph_of(base, [("a", "river", "b"), ("a", "stone", "b")])
    encoder = HashEncoder()
    linker = GraphRelationLinker(encoder)
    (links,) = linker.link(graph, ["rivers mill"])
    vectors = encoder.encode(["rivers mill", "river", "stone"])
    cosine = max(float(vectors[0] @ vectors[1]), 0.0)
    words = max(2 * 1 / (2 + 1), 0.0)  # one stem of two is shared with the one of the label
    by_name = {(item.name, item.inverse): item.score for item in links}
    assert by_name["river", False] == pytest.approx(
        ENCODER_WEIGHT * cosine + (1 - ENCODER_WEIGHT) * words, abs=1e-6
    )


class Counting(HashEncoder):
    def encode(self, texts: Sequence[str], query: bool = False) -> np.ndarray:
        self.calls = [*getattr(self, "calls", []), list(texts)]
        return super().encode(texts, query)


def test_labels_are_encoded_once_and_phrases_in_one_batch(base) -> None:
    graph, other = graph_of(base, FILMS), graph_of(base, [("a", "river", "b")], name="h")
    encoder = Counting()
    linker = GraphRelationLinker(encoder)
    linker.link(graph, ["director", "genre", "director"])
    assert [len(call) for call in encoder.calls] == [5, 2]
    linker.link(graph, ["year"])
    linker.link(other, ["year"])
    assert [len(call) for call in encoder.calls] == [5, 2, 1, 1, 1]


def test_an_encoder_finds_words_that_share_no_stem(base) -> None:
    graph = graph_of(
        base, [("a", item, "b") for item in ("spouse", "date of birth", "publisher", "composer")]
    )
    linker = GraphRelationLinker(create_encoder("clew:hops"))
    assert first(linker, graph, "wife or husband") == ("spouse", False)
    assert first(linker, graph, "birthday") == ("date of birth", False)


def test_aliases_name_a_relation_or_its_iri(base, tmp_path) -> None:
    path = tmp_path / "aliases.tsv"
    path.write_text(
        "# ours\ndirected_by\tRegie\n\ndirected_by\tRegisseur\n"
        '["hasGenre", "Gattung", "Sparte"]\n{"relation": "starred actors", "aliases": ["Besetzung"]}\n',
        encoding="utf-8",
    )
    aliases = load_aliases(path)
    assert aliases == {
        "directed_by": ("Regie", "Regisseur"),
        "hasGenre": ("Gattung", "Sparte"),
        "starred actors": ("Besetzung",),
    }
    linker = GraphRelationLinker(aliases=aliases)
    (links,) = linker.link(graph_of(base, FILMS), ["sparte"])
    assert (links[0].name, links[0].score, links[0].reason) == ("hasGenre", 1, "alias 'sparte'")


@pytest.mark.parametrize(
    "line", ["directed_by", "directed_by\t", '["hasGenre"]', '{"relation": "x"}', "[1", '["a", 2]']
)
def test_lines_that_are_no_aliases_are_named(tmp_path, line: str) -> None:
    path = tmp_path / "aliases.tsv"
    path.write_text(f"directed_by\tRegie\n{line}\n", encoding="utf-8")
    with pytest.raises(UnreadableFile, match="line 2"):
        load_aliases(path)
    with pytest.raises(UnreadableFile, match="cannot read"):
        load_aliases(tmp_path / "none")


def test_a_graph_without_relations_has_no_candidates(base) -> None:
    assert GraphRelationLinker().link(graph_of(base, [], a={"name": "A"}), ["x", "y"]) == [(), ()]
    assert GraphRelationLinker().link(graph_of(base, FILMS, name="f"), []) == []
