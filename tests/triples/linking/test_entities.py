"""Names for nodes: exact, alias, misspelled, qualified, ambiguous; with an encoder, with a model."""

from __future__ import annotations

import math

import pytest

import clew
from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt
from clew.models import create_encoder, create_language_model
from clew.triples.linking.entities import GraphEntityLinker, parse_mention
from clew.triples.linking.nearest_names import NAME_VECTORS, NearestNames
from kb_documents import HashEncoder
from link_graphs import graph_of
from retrieve_encoders import WordEncoder
from scripted import ScriptedServer

NODES = {
    "f44": {"name": "Kismet", "types": ["film"], "properties": {"year": 1944}, "text": "A film in colour."},
    "f55": {"name": "Kismet", "types": ["film"], "properties": {"year": 1955}, "text": "A musical film."},
    "song": {"name": "Kismet", "types": ["song"], "text": "A song about fate."},
    "hours": {"name": "24 Hours", "types": ["film"], "properties": {"year": 1931}},
    "frobe": {"name": "Gert Fröbe", "aliases": ["Karl Gerhart Fröbe"], "types": ["person"]},
    "town": {"name": "Kismet (Kansas)", "types": ["town"]},
    "who": {"name": "The Who", "types": ["band"]},
    "ring": {"name": "Goldfinger", "types": ["film"]},
}
TRIPLES = [
    ("f55", "directed by", "Minnelli"),
    ("f55", "written by", "Lederer"),
    ("f44", "directed by", "Dieterle"),
    ("ring", "starred actors", "frobe"),
]


@pytest.fixture
def graph(base):
    return graph_of(base, TRIPLES, **NODES)


def ids(found) -> list[str]:
    return [item.id.partition(":")[2] for item in found]


@pytest.mark.parametrize(
    ("name", "id", "how"),
    [
        ("Goldfinger", "ring", "name"),
        ("GOLD-FINGER", "ring", "spelling"),
        ("gert frobe", "frobe", "name"),
        ("Karl Gerhart Frobe", "frobe", "alias"),
        ("Gerd Fröbe", "frobe", "spelling"),
        ("Fröbe, Gert", "frobe", "spelling"),
        ("Gert Fröbe's", "frobe", "name"),
        ("Who", "who", "spelling"),
        ("the Goldfinger", "ring", "name"),
        ('"Goldfinger"', "ring", "name"),
        ("24 Hours (1931 film)", "hours", "name"),
        ("Goldfinger (film)", "ring", "name"),
        ("Kismet (song)", "song", "name"),
        ("Kismet (1944 film)", "f44", "name"),
        ("Kismet (1955 film)", "f55", "name"),
        ("Kismet (Kansas)", "town", "name"),
    ],
)
def test_a_name_finds_its_node(graph, name: str, id: str, how: str) -> None:
    (links,) = GraphEntityLinker().link(graph, [name])
    assert ids(links)[0] == id, links
    assert links[0].reason.startswith(how)
    scores = [item.score for item in links]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)


def test_a_name_of_several_gives_all_of_them_the_one_with_more_edges_first(graph) -> None:
    (links,) = GraphEntityLinker().link(graph, ["Kismet"])
    assert ids(links)[:3] == ["f55", "f44", "song"]
    assert [item.score for item in links[:3]] == [1, 1, 1]
    assert ids(links)[3] == "town" and links[3].reason == "name (Kansas)"
    assert ids(GraphEntityLinker().link(graph, ["Kismet"], k=1)[0]) == ["f55"]


def test_what_is_like_no_name_has_no_candidates(graph) -> None:
    assert GraphEntityLinker().link(graph, ["Xyzzy Qwrtp", "", "Goldfinger"])[:2] == [(), ()]
    assert GraphEntityLinker().link(graph, []) == []


def test_an_encoder_ranks_by_the_question(graph) -> None:
    linker = GraphEntityLinker(create_encoder("clew:hops"))
    (song,) = linker.link(graph, ["Kismet"], "Who sings the song Kismet, about fate?")
    assert ids(song)[0] == "song" and "context" in song[0].reason
    (film,) = linker.link(graph, ["Kismet"], "Who directed the musical film Kismet?")
    assert ids(film)[0] == "f55"
    (alone,) = linker.link(graph, ["Goldfinger"], "Who directed Goldfinger?")
    assert (
        alone[0].score == 1 and "context" not in alone[0].reason
    )  # nothing to decide, so nothing was encoded


def chooser(server: ScriptedServer) -> GraphEntityLinker:
    return GraphEntityLinker(model=create_language_model(server.llm), template=load_prompt("link-entity"))


def test_a_model_chooses_where_there_is_a_doubt(graph) -> None:
    with ScriptedServer([{"choice": 3}]) as server:
        names = ["Kismet", "Goldfinger"]
        links = chooser(server).link(graph, names, "Who sings Kismet?")
        (request,) = server.requests
    assert ids(links[0])[:3] == ["song", "f55", "f44"] and links[0][0].reason == "name, chosen by the model"
    assert ids(links[1])[0] == "ring"
    assert "Who sings Kismet?" in request.prompt and "3. Kismet (song): A song about fate." in request.prompt
    assert "directed by: Minnelli" in request.prompt
    scores = [item.score for item in links[0]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("I think the song.", "the model's choice cannot be used"),
        ({"choice": 9}, "the model chose 9, which is not there"),
        ({"choice": -1}, "the model chose -1, which is not there"),
        ({"choice": 0}, "the model chose none"),
    ],
)
def test_a_reply_of_no_use_leaves_the_order_and_says_so(graph, reply, text: str) -> None:
    with ScriptedServer([reply]) as server:
        (links,) = chooser(server).link(graph, ["Kismet"], "Who?")
    assert ids(links)[:3] == ["f55", "f44", "song"] and text in links[0].reason


def test_a_model_needs_its_prompt() -> None:
    with pytest.raises(UsageError):
        GraphEntityLinker(template=load_prompt("link-entity"))


def test_what_a_mention_is_looked_up_as() -> None:
    assert [way for way, _ in parse_mention("The Kismet (1944 film)").variants] == [
        "The Kismet (1944 film)", "The Kismet", "Kismet (1944 film)", "Kismet",
    ]  # fmt: skip
    assert parse_mention("Ohio’s").variants[1][0] == "Ohio"
    assert parse_mention("  ").variants == ()
    assert parse_mention("(500) Days").qualifier == ""


def test_a_name_that_stands_as_it_is_written_outweighs_every_context(tmp_path):
    path = tmp_path / "g.tsv"
    path.write_text("Moulin Rouge!\tdirected_by\tBaz\nMoulin Rouge\tdirected_by\tHuston\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(path)
        graph = base.graphs.get("g")
        for name in ("Moulin Rouge!", "Moulin Rouge"):
            ((first, *_),) = GraphEntityLinker(HashEncoder()).link(
                graph, [name], "the films of Huston and Baz"
            )
            assert first.name == name
        ((*both,),) = GraphEntityLinker().link(graph, ["moulin rouge"])
        assert {item.name for item in both if item.score == 1} == {"Moulin Rouge!", "Moulin Rouge"}


# By meaning

COLOURS = {
    "g": {"name": "green", "types": ["colour"]},
    "l": {"name": "light green", "types": ["colour"]},
    "o": {"name": "olive", "types": ["colour"]},
    "r": {"name": "red", "types": ["colour"]},
    "t": {"name": "green", "types": ["team"]},
}


class Hues(WordEncoder):
    """Knows that olive is a green."""

    def encode(self, texts, query=False):
        return super().encode([text.replace("olive", "olive green") for text in texts], query)


def test_names_that_mean_nearly_the_same_within_a_type_are_kept_with_scores(base) -> None:
    graph = graph_of(base, [], **COLOURS)
    by_spelling = GraphEntityLinker().link(graph, ["green"], types=["colour"])[0]
    assert ids(by_spelling)[0] == "g" and "o" not in ids(by_spelling)
    assert {item.id: item.score for item in by_spelling}["g:t"] == pytest.approx(0.9)  # of another type
    linker = GraphEntityLinker(nearest=NearestNames(Hues("green", "light", "oliv")))
    (links,) = linker.link(graph, ["green"], types=["colour"])
    assert ids(links)[0] == "g" and links[0].score == 1
    olive = next(item for item in links if item.id == "g:o")
    # cos(green, olive green) = 1 / sqrt 2, and a candidate by vector keeps nine tenths of it.
    assert olive.score == pytest.approx(0.9 / math.sqrt(2)) and olive.reason == "meaning 0.71"
    assert "r" not in ids(links)


def test_meaning_is_asked_where_spelling_fails_and_only_a_few_names_are_embedded(base) -> None:
    graph = graph_of(base, [], **COLOURS)
    encoder = WordEncoder("green", "light", "oliv")
    linker = GraphEntityLinker(nearest=NearestNames(encoder))
    names = graph.node_vectors(encoder, NAME_VECTORS)
    assert ids(linker.link(graph, ["green"])[0])[:1] == ["g"]
    assert len(names.rows_without_vectors()) == 5  # it was spelled right: nothing was embedded
    (links,) = linker.link(graph, ["olives olives"])
    assert (
        ids(links)[0] == "o"
        and links[0].reason.startswith("meaning 1.00")
        and len(names.rows_without_vectors()) == 0
    )
    few = WordEncoder("green", "red")
    GraphEntityLinker(nearest=NearestNames(few, cap=2)).link(graph, ["greene"], types=["colour"])
    # More names than may be embedded: only those that are spelled most like it were.
    assert ids(graph.entities(graph.node_vectors(few, NAME_VECTORS).rows_without_vectors())) == [
        "l",
        "o",
        "r",
        "t",
    ]


def test_a_mounted_graph_keeps_no_names() -> None:
    class Mounted:
        is_mounted = True

    assert NearestNames(WordEncoder("a")).search(Mounted(), ["x", "y"]) == [{}, {}]
