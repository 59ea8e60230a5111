"""The same thing in several graphs and in documents, with the evidence for each link."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import NotFound
from clew.core.types import Entity
from clew.triples.linking.entity_alignment import (
    align_entity,
    align_entity_with,
    align_graphs,
    entity_identifiers,
    identifier_scheme,
)
from link_graphs import graph_of
from sparql_servers import ScriptedEndpoint

WIKIDATA = "http://www.wikidata.org/entity/"
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


@pytest.fixture
def snapshot(snapshot_of, base):
    graph_of(
        base,
        [("lima", "capital of", "peru")],
        name="atlas",
        lima={"name": "Lima", "types": ["city"], "properties": {"wikidata": "Q2868"}},
        peru={"name": "Peru", "types": ["country"]},
        f1={"name": "Fargo", "types": ["film"], "properties": {"imdb_id": "tt0116282"}},
        f2={"name": "Fargo", "types": ["city"]},
        john={"name": "John Smith", "types": ["person"]},
        alien={"name": "Alien", "types": ["film"], "properties": {"imdb id": "tt0078748"}},
        old={"name": "Ciudad Vieja", "aliases": ["Old Town"]},
        pluto={"name": "Pluto", "types": ["planet"]},
    )
    graph_of(
        base,
        [("x1", "sameAs", f"{WIKIDATA}Q2868"), ("m", "part of", "n")],
        name="films",
        **{
            "Q2868": {"name": "Ciudad de los Reyes"},
            "x1": {"name": "Lima, the city"},
            "Q419": {"name": "PERU", "types": ["Country"]},
            "g1": {"name": "Fargo (1996)", "types": ["film"], "properties": {"IMDb": "TT0116282"}},
            "g2": {"name": "Fargo", "types": ["film"], "properties": {"imdb": "tt9999999"}},
            "j1": {"name": "John Smith", "types": ["person"]},
            "j2": {"name": "John Smith", "types": ["person"]},
            "a2": {"name": "Alien", "types": ["film"], "properties": {"imdb": "tt0000001"}},
            "o": {"name": "Old Town"},
            "dog": {"name": "Pluto", "types": ["dog"]},
        },
    )
    return snapshot_of(
        ("lima.txt", "Lima", "Lima lies by the sea."), ("old.txt", "Old Town (district)", "Old.")
    )


def by_target(found) -> dict[str, tuple[float, tuple[str, ...]]]:
    return {item.target: (item.score, item.by) for item in found}


def test_by_identifier_and_sameas_and_title(snapshot) -> None:
    alignments = align_entity(snapshot, "atlas:lima")
    key = next(document.key for document in snapshot.documents() if document.title == "Lima")
    assert by_target(alignments) == {
        "films:Q2868": (1.0, ("identifier wikidata=Q2868",)),
        "films:x1": (1.0, ("sameAs",)),
        key: (0.8, ("title 'Lima'",)),
    }
    assert [item.document for item in alignments] == [False, False, True]
    # A property is compared only where all of the other graph may be read; an id is looked up anyway.
    assert by_target(align_entity(snapshot, "films:x1")) == {"atlas:lima": (1.0, ("sameAs",))}
    assert by_target(align_entity(snapshot, "films:x1", thorough=False)) == {}
    assert set(by_target(align_entity(snapshot, "atlas:lima", thorough=False))) == {
        "films:Q2868",
        "films:x1",
        key,
    }


def test_entities_align_by_identifiers_and_not_where_identifiers_differ(snapshot) -> None:
    assert by_target(align_entity(snapshot, "atlas:f1")) == {
        "films:g1": (1.0, ("identifier imdb=tt0116282",))
    }
    assert by_target(align_entity(snapshot, "atlas:alien")) == {}
    assert by_target(align_entity(snapshot, "atlas:f2")) == {}


def test_names_count_where_they_tell(snapshot) -> None:
    assert by_target(align_entity(snapshot, "atlas:peru")) == {"films:Q419": (0.9, ("name 'Peru'",))}
    assert by_target(align_entity(snapshot, "atlas:john")) == {}  # two of that name on the other side
    assert by_target(align_entity(snapshot, "films:j1")) == {}
    assert by_target(align_entity(snapshot, "atlas:pluto")) == {"films:dog": (0.6, ("name 'Pluto'",))}
    old = by_target(align_entity(snapshot, "atlas:old"))
    assert old["films:o"] == (0.8, ("alias 'Old Town'",)) and len(old) == 2  # and the document of that title


def test_links_are_each_said_once_and_from_either_side(snapshot) -> None:
    alignments = list(align_graphs(snapshot))
    pairs = [(item.source, item.target) for item in alignments]
    assert len(set(pairs)) == len(pairs)
    assert ("atlas:f1", "films:g1") in pairs and ("films:g1", "atlas:f1") not in pairs
    between = {pair for pair in pairs if ":" in pair[1]}
    turned = {(item.target, item.source) for item in align_graphs(snapshot, "films") if not item.document}
    assert between == turned
    by_node = {
        (id, item.target)
        for id in snapshot.graph("atlas").ids(range(8))
        for item in align_entity(snapshot, id)
    }
    assert {pair for pair in pairs if pair[0].startswith("atlas")} <= by_node


def test_a_mounted_graph_is_asked_by_ids_and_names_and_never_gone_through(snapshot) -> None:
    assert by_target(align_entity(snapshot, "atlas:f1", remote=["films"])) == {}
    assert set(by_target(align_entity(snapshot, "atlas:peru", remote=["films"]))) == {"films:Q419"}
    alignments = list(align_graphs(snapshot, remote=["films"]))
    assert {item.source.partition(":")[0] for item in alignments} == {"atlas"}
    assert ("atlas:peru", "films:Q419") in {(item.source, item.target) for item in alignments}


@pytest.mark.slow
def test_aligning_with_one_graph_asks_only_that_graph(snapshot, base) -> None:
    for id in snapshot.graph("atlas").ids(range(8)):
        every = align_entity(snapshot, id, thorough=False)
        assert align_entity_with(snapshot, id, "films") == tuple(item for item in every if not item.document)
    assert align_entity_with(snapshot, "atlas:lima", "atlas") == ()
    (alignments,) = [item.summary for item in align_entity_with(snapshot, "atlas:peru", "films")]
    assert alignments == "atlas:peru is films:Q419: name 'Peru'"
    with ScriptedEndpoint(lambda query: []) as far:
        clew.KnowledgeBase(base).graphs.mount("far", far.url)
        beside, asked = base.snapshot(), len(far.queries)
        assert by_target(align_entity_with(beside, "atlas:lima", "films")).keys() == {
            "films:Q2868",
            "films:x1",
        }
        assert len(far.queries) == asked
        assert align_entity_with(beside, "atlas:lima", "far") == () and len(far.queries) > asked


def test_a_node_that_is_not_there(snapshot) -> None:
    with pytest.raises(NotFound):
        align_entity(snapshot, "atlas:nowhere")


@pytest.mark.parametrize(
    ("property", "scheme"),
    [
        ("imdb_id", "imdb"),
        ("IMDb ID", "imdb"),
        ("wikidataId", "wikidata"),
        ("DOI", "doi"),
        ("ISBN-13", "isbn13"),
        ("id", ""),
        ("year", ""),
        ("number", ""),
    ],
)
def test_which_properties_identify(property: str, scheme: str) -> None:
    assert identifier_scheme(property) == scheme


def test_identifiers_are_compared_without_their_spelling() -> None:
    item = Entity(
        "g:http://www.wikidata.org/entity/Q5",
        "",
        "x",
        properties={
            "doi": "https://doi.org/10.1000/ABC",
            "orcid": ("0000-0002-1825-0097", ""),
            "owl:sameAs": "http://example.org/x",
            "wikidata": "wd:Q7",
            "year": 1944,
        },
    )
    assert set(entity_identifiers(item)) == {
        ("wikidata", "Q5"),
        ("wikidata", "Q7"),
        ("doi", "10.1000/abc"),
        ("orcid", "0000000218250097"),
        ("iri", "http://example.org/x"),
    }


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_commands(tmp_path) -> None:
    kb = ("--kb", tmp_path / "kb")
    assert "no links" in run("graph", "links", "--kb", make(tmp_path, "alone", "Q1\tLima\n"))
    make(tmp_path, "kb", "Q1\tLima\nQ2\tCuzco\n")
    (tmp_path / "b.csv").write_text("id,name\nx,Lima\ny,CUZCO\n")
    run("graph", "add", tmp_path / "b.csv", *kb)
    output = run("graph", "links", *kb)
    assert output.splitlines() == [
        "Lima  a:Q1  =  Lima  b:x  (name 'Lima')",
        "Cuzco  a:Q2  =  CUZCO  b:y  (name 'Cuzco')",
    ]
    assert "more" in run("graph", "links", "--limit", 1, *kb)
    shaped = json.loads(run("graph", "links", "b", "--json", *kb))
    assert shaped["more"] is False and shaped["links"][0] == {
        "source": "b:x", "source_name": "Lima", "target": "a:Q1", "target_name": "Lima",
        "document": False, "score": 0.8, "by": ["name 'Lima'"],
    }  # fmt: skip
    assert "same as: Lima  b:x  (name 'Lima')" in run("graph", "show", "a", "Lima", *kb)
    shown = json.loads(run("graph", "show", "a", "Lima", "--json", *kb))
    assert shown["entities"][0]["same_as"][0]["target"] == "b:x"
    with clew.open(tmp_path / "kb") as base:
        assert [link.target for link in base.graphs.links("a")] == ["b:x", "b:y"]
        assert base.graphs.equivalents("a:Q1")[0].by == ("name 'Lima'",)


def make(tmp_path, kb: str, rows: str):
    (tmp_path / "a.csv").write_text("id,name\n" + rows.replace("\t", ","))
    run("graph", "add", tmp_path / "a.csv", "--kb", tmp_path / kb)
    return tmp_path / kb
