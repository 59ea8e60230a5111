"""An imported graph as RDF: the terms of every node and edge and no others, odd names, stores on disk."""

from __future__ import annotations

import math
import os
import sys
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import Damaged, MissingExtra, NotFound
from clew.core.text import fold_name, parse_number, scalar_text
from clew.store.graphs import rdf_view
from clew.store.graphs.sparql_query import query_imported_graph
from clew.store.store import Store
from clew.triples.engine.patterns import Predicate
from clew.triples.engine.predicates import PropertyTest
from link_graphs import graph_of

pyoxigraph = pytest.importorskip("pyoxigraph")

ODD = (
    "",
    "plain_name",
    "directed by",
    'says "so"',
    "50% of it",
    "line break and tab",
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


@pytest.mark.slow
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
ids = st.sampled_from(["a", "b", "c", 'odd "id"', "é\\n"])
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


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(nodes=nodes, triples=st.lists(st.tuples(ids, words, ids), max_size=8))
def test_every_term_of_a_graph_and_no_other(tmp_path_factory, nodes, triples):
    _, store = store_of(tmp_path_factory.mktemp("base"), triples, **nodes)
    assert stored_triples(store) == expected_triples(triples, nodes)


# What the module promises about the engine's tests of properties


DATED = {
    f"n{place}": {"properties": {"value": value}}
    for place, value in enumerate(
        [
            *("1990-01-01", "1990-05-04", "1990-12-31", "1991-01-01", "1992-02-29T08:00", " 1989-07-01 "),
            *(
                1989,
                1990,
                1990.5,
                "1990",
                "1990.25",
                1991,
                -3,
                "1e3",
                10**20,
                True,
                "Nine Lanterns",
                "lantern",
            ),
            *(["1990-05-04", 1995], ["1988-05-04", 1990.5, 1992], ["Élan", "élan vital"], "nine"),
        ]
    )
}
BOUNDS = (1990, 1990.5, "1990-05-04", 1991, "1991-01-01", 1992, "1992-02-29", 1989.25)


def double(number):
    return f'"{number!r}"^^xsd:double'


def first_day(bound):
    """Return the first day that is not before a bound."""
    number = parse_number(bound)
    day = date(int(number), 1, 1)
    while parse_number(str(day)) < number:
        day += timedelta(1)
    return f'"{day}"^^xsd:date'


def sparql_of(test, value, high=None):
    """Return the pattern that means the same as a test of the property."""
    if test in ("contains", "says") or (test == "=" and math.isnan(parse_number(value))):
        word = fold_name(scalar_text(value))
        conditions = {
            "=": f'?v = "{word}"',
            "contains": f'CONTAINS(?v, "{word}")',
            "says": f'CONTAINS(CONCAT(" ", ?v, " "), " {word} ")',
        }
        return f"?x f:value ?v FILTER({conditions[test]})"

    def is_whole(bound):
        return "-" not in str(bound)[1:] and parse_number(bound) % 1 == 0

    low = parse_number(value)
    if test != "between":
        return f"?x {'y' if is_whole(value) else 'n'}:value ?v FILTER(?v {test} {double(low)})"
    top = parse_number(high)
    between = f"FILTER(?v >= {double(low)} && ?v <= {double(top)})"
    if not is_whole(high):
        return f"?x n:value ?v {between}"
    if is_whole(value):
        return f"?x y:value ?v {between}"
    end = f'"{int(top) + 1}-01-01"^^xsd:date'
    day = f"?x d:value ?v FILTER(?v >= {first_day(value)} && ?v < {end})"
    return f"{{ ?x y:value ?v {between} }} UNION {{ {day} }}"


def test_sparql_reads_values_as_the_engine_does(tmp_path):
    graph, store = store_of(tmp_path, [], **DATED)
    tests: list[tuple] = [(test, bound, None) for test in ("=", "<", "<=", ">", ">=") for bound in BOUNDS]
    tests += [("between", low, high) for low in BOUNDS for high in BOUNDS]
    tests += [
        (test, word, None)
        for test in ("=", "contains", "says")
        for word in ("lantern", "nine", "ÉLAN", "Nine Lanterns", "1990", True)
    ]
    for test, value, high in tests:
        predicate = Predicate("#1", "value", test, value, high)
        holds = PropertyTest(graph, predicate).holds(np.arange(graph.size, dtype=np.uint32))
        query = f"SELECT DISTINCT ?x {{ {sparql_of(test, value, high)} }}"
        solutions = store.query(query, prefixes=dict(rdf_view.PREFIXES))
        rows = sorted(rdf_view.row_of(solution["x"].value) or 0 for solution in solutions)
        assert rows == np.flatnonzero(holds).tolist(), (test, value, high)


# Stores on disk


def test_a_store_is_built_once_and_removed_with_its_graph(tmp_path):
    base = Store.open(tmp_path / "base", create=True)
    graph = graph_of(base, [("a", "r", "b")], "first")
    calls = []
    for _ in range(2):
        store = base.graphs.open_rdf_store(graph, lambda done, total: calls.append((done, total)))
        assert store.query("ASK { <urn:clew:node:0> <urn:clew:relation:r> <urn:clew:node:1> }")
    assert calls == [(3, 3)]
    (folder,) = (tmp_path / "base" / "derived" / "rdf").iterdir()

    (folder / rdf_view.MANIFEST).write_text('{"maker": "rdf/0"}')
    assert rdf_view.read_rdf_store(folder) is None
    base.graphs.open_rdf_store(graph, lambda done, total: calls.append((done, total)))
    assert len(calls) == 2  # built again
    (folder / "CURRENT").unlink()
    assert base.graphs.open_rdf_store(graph).query("ASK { ?x <urn:clew:relation:r> ?y }")

    graph_of(base, [("a", "r", "c")], "second")
    assert folder.exists()
    base.graphs.remove("first")
    assert list(folder.parent.iterdir()) == []
    with pytest.raises(NotFound, match="removed or replaced"):
        base.graphs.open_rdf_store(graph)
    assert list(folder.parent.iterdir()) == []


def test_an_abandoned_store_is_deleted_and_a_fresh_one_stays(tmp_path):
    folders = [tmp_path / "rdf" / name for name in ("a", "a.old", "a.new", "b")]
    for folder in folders:
        folder.mkdir(parents=True)
    os.utime(folders[1], (0, 0))
    rdf_view.delete_stale_stores(tmp_path, ["a"], 3600)
    assert [folder.exists() for folder in folders] == [True, False, True, False]


def test_progress_is_reported_and_triples_are_loaded_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(rdf_view, "_REPORT_INTERVAL", -1.0)
    monkeypatch.setattr(rdf_view, "_NODE_BATCH", 2)
    monkeypatch.setattr(rdf_view, "_EDGE_BATCH", 2)
    monkeypatch.setattr(rdf_view, "_PART", 15_000)
    ends = [f"n{number}" for number in range(5)]
    triples = [(head, "50% of", tail) for head in ends for tail in ends]
    long = {id: {"text": "x" * 10_000} for id in ends}
    graph = graph_of(Store.open(tmp_path, create=True), triples, **long)
    calls = []
    store = rdf_view.open_rdf_store(graph, lambda done, total: calls.append((done, total)))
    assert stored_triples(store) == expected_triples(triples, long)
    assert [total for _, total in calls] == [30] * 16
    assert [done for done, _ in calls] == [2, 4, 5, *range(7, 30, 2), 30]


def test_without_pyoxigraph_the_error_names_the_extra(tmp_path, monkeypatch):
    graph = graph_of(Store.open(tmp_path, create=True), [("a", "r", "b")])
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[rdf\]'"):
        rdf_view.open_rdf_store(graph)


class BrokenStore:
    def query(self, query, prefixes):
        raise OSError("a block is missing")


def test_a_store_that_cannot_be_read_is_said(tmp_path):
    graph = graph_of(Store.open(tmp_path, create=True), [("a", "r", "b")])
    with pytest.raises(Damaged, match=r"a block is missing.*derived/rdf"):
        query_imported_graph(graph, BrokenStore(), "ASK {}")
