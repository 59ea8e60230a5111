"""An imported graph as RDF: the terms of every node and edge and no others, odd names, stores on disk."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.text import fold_name, parse_number, scalar_text
from clew.store.graphs import rdf_view
from clew.store.store import Store
from link_graphs import graph_of

pyoxigraph = pytest.importorskip("pyoxigraph")

ODD = (
    "",
    "plain_name",
    "directed by",
    'says "so"',
    "50% of it",
    "line\nbreak\r\tand tab",
    "back\\slash",
    "Amélie",
    "監督",
    "http://example.org/a#b?c=<d>",
    "x:y~z-w.v",
    "%20",
    "²½",
    "\U0001f600",
)
IRI_MAKERS = (
    rdf_view.relation_iri,
    rdf_view.property_iri,
    rdf_view.number_iri,
    rdf_view.year_iri,
    rdf_view.day_iri,
    rdf_view.folded_iri,
)


@pytest.mark.parametrize("make_iri", IRI_MAKERS)
def test_names_survive_their_iris(make_iri):
    iris = [make_iri(name) for name in ODD]
    assert [rdf_view.name_of(iri) for iri in iris] == list(ODD)
    assert len(set(iris)) == len(ODD)
    for iri in iris:
        assert pyoxigraph.NamedNode(iri).value == iri
        list(pyoxigraph.Store().query(f"SELECT * {{ ?x <{iri}> ?y }}"))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_name_is_an_iri_and_back(name):
    iri = rdf_view.relation_iri(name)
    assert rdf_view.name_of(pyoxigraph.NamedNode(iri).value) == name


def test_rows_survive_their_iris():
    assert [rdf_view.row_of(rdf_view.node_iri(row)) for row in (0, 7, 4_000_000_000)] == [0, 7, 4_000_000_000]
    others = (
        "urn:clew:node:",
        "urn:clew:node:x",
        "urn:clew:node:²",
        "urn:clew:node:-1",
        "7",
        "urn:clew:name",
    )
    assert [rdf_view.row_of(iri) for iri in others] == [None] * len(others)


def store_of(tmp_path, triples, **nodes):
    graph = graph_of(Store.open(tmp_path, create=True), triples, **nodes)
    return graph, rdf_view.open_rdf_store(graph)


def stored_triples(store):
    """Return every triple as three texts, the datatype of a literal after it."""
    terms = set()
    for quad in store:
        object = quad.object
        text = object.value
        if isinstance(object, pyoxigraph.Literal):
            datatype = object.datatype.value.rpartition("#")[2]
            text = ("double", float(text)) if datatype == "double" else (datatype, text)
        terms.add((quad.subject.value, quad.predicate.value, text))
    return terms


def expected_triples(triples, nodes) -> set[tuple[str, str, object]]:
    """Return what the mapping promises, from what the graph was made of."""
    ids = sorted(set(nodes) | {end for head, _, tail in triples for end in (head, tail)}, key=str.encode)
    row = {id: f"urn:clew:node:{place}" for place, id in enumerate(ids)}
    expected: set[tuple[str, str, object]] = {
        (row[head], rdf_view.relation_iri(name), row[tail]) for head, name, tail in triples
    }

    for id in ids:
        node = nodes.get(id, {})
        name = node.get("name") or id
        names = {name, *filter(None, node.get("aliases", ()))}
        literals = {(rdf_view.ID, id), (rdf_view.NAME, name)}
        literals |= {(rdf_view.ALIAS, alias) for alias in names - {name}}
        literals |= {(rdf_view.FOLDED_NAME, fold_name(text)) for text in names}
        literals |= {(rdf_view.TYPE, type) for type in node.get("types", ())}
        literals |= {(rdf_view.TEXT, text) for text in [node.get("text")] if text}
        expected |= {(row[id], predicate, ("string", text)) for predicate, text in literals}
        for key, content in node.get("properties", {}).items():
            for value in content if isinstance(content, list) else [content]:
                text, number = scalar_text(value), parse_number(value)
                expected.add((row[id], rdf_view.property_iri(key), ("string", text)))
                expected.add((row[id], rdf_view.folded_iri(key), ("string", fold_name(text))))
                if not math.isnan(number):
                    is_day = (
                        isinstance(value, str) and value.strip()[4:5] == "-" and value.strip()[7:8] == "-"
                    )
                    year = math.floor(number) if is_day else number
                    expected.add((row[id], rdf_view.number_iri(key), ("double", number)))
                    expected.add((row[id], rdf_view.year_iri(key), ("double", float(year))))
                    if is_day:
                        expected.add((row[id], rdf_view.day_iri(key), ("date", value.strip()[:10])))
    return expected


words = st.sampled_from([word for word in ODD if word.strip()])
values = st.one_of(
    words,
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.sampled_from(
        ["1990", " 1990.5 ", "1990-05-04", "1990-01-01T10:00", "1990-02-30", "1e400", "-1e400", "0x1"]
    ),
)
ids = st.sampled_from(["a", "b", "c", 'odd "id"', "é\n"])
nodes = st.dictionaries(
    ids,
    st.fixed_dictionaries(
        {},
        optional={
            "name": words,
            "aliases": st.lists(words, max_size=2),
            "types": st.lists(words, max_size=2, unique=True),
            "text": words,
            "properties": st.dictionaries(words, st.one_of(values, st.lists(values, min_size=1, max_size=3))),
        },
    ),
)


@settings(max_examples=40, deadline=None)
@given(nodes=nodes, triples=st.lists(st.tuples(ids, words, ids), max_size=8))
def test_every_term_of_a_graph_and_no_other(tmp_path_factory, nodes, triples):
    _, store = store_of(tmp_path_factory.mktemp("base"), triples, **nodes)
    assert stored_triples(store) == expected_triples(triples, nodes)
