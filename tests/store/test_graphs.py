"""Imported graphs: against dictionaries, against damage, against a history."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.core.errors import NotFound, UsageError
from clew.core.text import clean_name
from clew.store.database import DATABASE_FILE
from clew.store.graphs import builder, tables
from clew.store.store import Store
from graph_twin import Twin, assert_equal
from kb_documents import document, location

# Names are cleaned where they enter (tests/parse/graphs/test_hostile_names.py): these have nothing to clean.
IDS = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=4)
    .map(clean_name)
    .filter(bool)
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
SCALARS = st.one_of(
    st.integers(-(10**12), 10**12), st.booleans(), TEXTS, st.floats(allow_nan=False, allow_infinity=False)
)
PROPERTIES = st.dictionaries(TEXTS.map(clean_name), SCALARS, max_size=2)


@st.composite
def twins(draw: st.DrawFn) -> Twin:
    twin = Twin()
    ids = draw(st.lists(IDS, min_size=1, max_size=8, unique=True))
    for id in draw(st.lists(st.sampled_from(ids), unique=True)):
        twin.add_node(
            id,
            types=draw(st.lists(st.sampled_from(["film", "person", "", "Ort"]), max_size=3)),
            name=draw(st.one_of(st.just(""), IDS)),
            aliases=draw(st.lists(TEXTS.map(clean_name), max_size=2)),
            text=draw(TEXTS),
            properties=draw(PROPERTIES),
        )
    relations = draw(st.lists(IDS, min_size=1, max_size=3))
    for _ in range(draw(st.integers(0, 20))):
        item = (draw(st.sampled_from(ids)), draw(st.sampled_from(relations)), draw(st.sampled_from(ids)))
        twin.add_edge(*item, draw(st.one_of(st.none(), PROPERTIES)))
    return twin


def store_twin(base: Store, name: str, twin: Twin, order: list[int] | None = None) -> str:
    builder = base.graphs.create_builder(name)
    twin.give(builder, order)
    return base.graphs.store_graph(builder, [])


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(twins(), st.randoms(use_true_random=False))
def test_a_graph_equals_its_twin_whatever_the_order_of_its_input(
    tmp_path_factory: pytest.TempPathFactory, twin: Twin, rng: random.Random
) -> None:
    with Store.open(tmp_path_factory.mktemp("base"), create=True) as base:
        empty = (list(base.dump()), base.digest())
        assert store_twin(base, "g", twin) == "added"
        assert_equal(base.snapshot().graph("g"), twin)
        dump, digest = list(base.dump()), base.digest()
        order = list(range(twin.size()))
        rng.shuffle(order)
        assert store_twin(base, "g", twin, order) == "unchanged"
        assert (list(base.dump()), base.digest()) == (dump, digest)
        assert base.doctor() == []
        base.graphs.remove("g")
        assert (list(base.dump()), base.digest()) == empty


def film_twin(seed: int, nodes: int = 300, edges: int = 3000) -> Twin:
    """Many edges of one relation, few of another, so that both forms of an adjacency are made."""
    rng = random.Random(seed)
    twin = Twin()
    for number in range(nodes):
        twin.add_node(f"n{number}", types=[rng.choice(["film", "person"])], name=f"Name {number % 100}")
    for _ in range(edges):
        relation = "many" if rng.random() < 0.99 else "few"
        properties = {"year": rng.randrange(1900, 2000)} if rng.random() < 0.1 else None
        twin.add_edge(f"n{rng.randrange(nodes)}", relation, f"n{rng.randrange(nodes)}", properties)
    return twin


@pytest.mark.slow
def test_adjacency_equals_brute_force_for_dense_and_sparse_relations(base) -> None:
    twin = film_twin(3)
    store_twin(base, "films", twin)
    assert_equal(base.snapshot().graph("films"), twin)


@pytest.mark.slow
def test_pairs_and_statements_may_need_several_database_rows(base, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (builder, tables):
        monkeypatch.setattr(module, "PAIRS_PER_BLOB", 100)
        monkeypatch.setattr(module, "STATEMENTS_PER_BLOB", 7)
    twin = film_twin(5, nodes=80, edges=1500)
    store_twin(base, "films", twin)
    assert_equal(base.snapshot().graph("films"), twin)
    assert sum('"edge"' in line for line in base.dump()) == len(twin.edges)
    assert base.doctor() == []


@pytest.mark.slow
def test_graphs_and_documents_do_not_affect_each_other(base) -> None:
    item = document(1)
    base.put_document(item, location("/docs/a.txt"))
    before = (list(base.dump()), base.digest())
    size = base.snapshot().size
    store_twin(base, "b", film_twin(1, 20, 50))
    store_twin(base, "a", film_twin(2, 20, 50))
    snapshot = base.snapshot()
    assert list(snapshot.graphs()) == ["a", "b"] and snapshot.size == size
    assert_equal(snapshot.graph("a"), film_twin(2, 20, 50))
    assert_equal(snapshot.graph("b"), film_twin(1, 20, 50))
    assert base.document_nodes(item.key)
    base.graphs.remove("a")
    base.graphs.remove("b")
    assert (list(base.dump()), base.digest()) == before
    assert not list((base.derived / "graphs").glob("*"))


def test_a_changed_graph_replaces_the_old_one_and_older_views_raise_not_found(base) -> None:
    store_twin(base, "g", film_twin(1, 30, 100))
    old = base.snapshot().graph("g")
    digest = base.digest()
    assert store_twin(base, "g", film_twin(2, 31, 100)) == "replaced"
    assert base.digest() != digest
    with pytest.raises(NotFound, match="replaced a moment ago"):
        old.entities(np.array([0]))
    assert old.neighbours(np.array([0]), "many")[1].dtype == np.int64  # the arrays stay as they were
    assert_equal(base.snapshot().graph("g"), film_twin(2, 31, 100))
    assert len(list((base.derived / "graphs").iterdir())) == 1


def test_a_removed_graph_remains_in_no_file(base) -> None:
    twin = Twin()
    twin.add_node(
        "x", name="Zerzura-in-the-name", text="Zerzura-in-the-text", properties={"k": "Zerzura-value"}
    )
    twin.add_edge("x", "Zerzura-relation", "Zerzura-id", {"said": "Zerzura-statement"})
    store_twin(base, "g", twin)
    base.graphs.remove("g")
    for path in base.path.rglob("*"):
        if path.is_file():
            assert b"Zerzura" not in path.read_bytes(), path


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm", ["gone", "one gone", "no grams", "cut", "flipped", "manifest", "manifest of another version"]
)
def test_damaged_arrays_are_rebuilt(base, harm: str) -> None:
    twin = film_twin(4, 40, 200)
    store_twin(base, "g", twin)
    (folder,) = (base.derived / "graphs").iterdir()
    tails = folder / "out.tails.npy"
    if harm == "gone":
        shutil.rmtree(folder)
    elif harm == "one gone":
        tails.unlink()
    elif harm == "no grams":
        (folder / "grams.names.npy").unlink()
    elif harm == "cut":
        tails.write_bytes(tails.read_bytes()[:-3])
    elif harm == "flipped":
        content = bytearray(tails.read_bytes())
        content[-2] ^= 1
        tails.write_bytes(content)
    elif harm == "manifest":
        (folder / "graph.json").write_text("{")
    else:
        manifest = folder / "graph.json"
        manifest.write_text(manifest.read_text().replace("graphs/3", "graphs/2"))
    with Store.open(base.path) as again:
        if harm == "flipped":  # found by its checksum alone
            assert [item.repaired for item in again.doctor()] == [True]
        elif harm == "cut":
            assert [item.repaired for item in again.doctor(repair=False)] == [False]
        assert_equal(again.snapshot().graph("g"), twin)
        rows, likeness = again.snapshot().graph("g").find_similar_names("nome 7", 1)
        assert rows.tolist() == [37] and 0.8 < likeness[0] < 1
        assert again.doctor() == []


def test_damaged_content_of_a_graph_is_reported_as_not_repaired(base) -> None:
    store_twin(base, "g", film_twin(4, 40, 200))
    base.close()
    with sqlite3.connect(base.path / DATABASE_FILE) as connection:
        connection.execute("UPDATE graph_edge SET pairs = substr(pairs, 9) WHERE relation = 'many'")
    connection.close()
    with Store.open(base.path) as again:
        (finding,) = again.doctor()
        assert finding.what == "graph g" and not finding.repaired


@pytest.mark.parametrize("name", ["", "a:b", "a b", "-x", "a/b", "0123456789abcdef0123456789abcdef"])
def test_invalid_names_of_graphs_are_refused(base, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be named"):
        store_twin(base, name, film_twin(1, 5, 5))
    assert list(base.snapshot().graphs()) == []


def test_unknown_graphs_nodes_and_relations_are_refused_with_a_hint(base) -> None:
    with pytest.raises(UsageError, match="clew graph add"):
        base.snapshot().graph("films")
    store_twin(base, "films", film_twin(1, 5, 9))
    graph = base.snapshot().graph("films")
    with pytest.raises(UsageError, match="Did you mean 'films'"):
        base.snapshot().graph("fims")
    with pytest.raises(UsageError, match="Did you mean 'many'"):
        graph.neighbours(np.array([0]), "mny")
    for id in ("films:n99", "other:n1", "n1"):
        with pytest.raises(NotFound, match="no node"):
            graph.rows([id])
    with pytest.raises(UsageError):
        base.graphs.remove("fims")
    assert graph.edge_properties(0, "many", 10**6) == []


def test_a_base_without_graph_tables_is_migrated(tmp_path: Path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        base.put_document(document(1), location("/docs/a.txt"))
        digest = base.digest()
    with sqlite3.connect(tmp_path / "base" / DATABASE_FILE) as connection:
        for table in ("graph", "graph_node", "graph_edge", "graph_statement", "mount"):
            connection.execute(f"DROP TABLE {table}")
        for table, column in (("node", "cells"), ("document", "language"), ("document", "fields")):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with Store.open(tmp_path / "base") as base:
        assert base.digest() == digest
        store_twin(base, "g", film_twin(1, 5, 9))
        assert_equal(base.snapshot().graph("g"), film_twin(1, 5, 9))


def test_adjacency_of_single_relations_and_of_all_together(base) -> None:
    twin = film_twin(9, 120, 900)
    for number in range(60):  # pairs that two relations join are one
        twin.add_edge(f"n{number}", "few", f"n{number + 1}")
        twin.add_edge(f"n{number}", "many", f"n{number + 1}")
    store_twin(base, "g", twin)
    graph = base.snapshot().graph("g")
    row_of = {id: int(row) for id, row in zip(sorted(twin.nodes), range(graph.size), strict=True)}
    rows = np.arange(graph.size)[::-1]
    for relation in (None, "many", "few"):
        pairs = {(row_of[h], row_of[t]) for h, r, t in twin.edges if relation in (None, r)}
        for inverse in (False, True):
            offsets, others = graph.neighbours(rows, relation, inverse)
            edges = graph.adjacency(relation, inverse)
            heads = rows[::-1] if edges.heads is None else edges.heads
            tails = []
            for place, row in enumerate(rows.tolist()):
                expected = sorted(p[1 - inverse] for p in pairs if p[inverse] == row)
                assert others[offsets[place] : offsets[place + 1]].tolist() == expected
                at = np.flatnonzero(heads == row)
                tails.append(
                    edges.tails[edges.starts[at[0]] : edges.starts[at[0] + 1]].tolist() if len(at) else []
                )
                assert tails[-1] == expected
    with pytest.raises(UsageError, match="Did you mean 'many'"):
        graph.adjacency("mny")


def test_has_type_and_property_values(base) -> None:
    twin = Twin()
    twin.add_node("a", types=["film", "work"], properties={"year": 1979, "note": "Déjà  vu"})
    twin.add_node("b", types=["work"], properties={"note": ["x", True], "year": "2000-01-01"})
    twin.add_node("c", properties={"year": "12 films"})
    twin.add_edge("a", "r", "c")
    store_twin(base, "g", twin)
    graph = base.snapshot().graph("g")
    rows = np.array([2, 0, 1, 0])
    assert graph.has_type(rows, "work").tolist() == [False, True, True, True]
    assert graph.has_type(rows, "film").tolist() == [False, True, False, True]
    assert graph.has_type(rows, "no such type").tolist() == [False] * 4
    year, note, none = (graph.property_values(name) for name in ("year", "note", "no such property"))
    assert year.rows.tolist() == [0, 1, 2] and note.rows.tolist() == [0, 1, 1] and len(none.rows) == 0
    assert (
        year.numbers[:2].tolist() == [1979, 2000]
        and np.isnan(year.numbers[2])
        and np.isnan(note.numbers).all()
    )
    for column, expected in ((year, ["1979", "2000 01 01", "12 films"]), (note, ["deja vu", "x", "true"])):
        texts = column.texts.tobytes()
        assert [
            texts[start - column.starts[0] : end - column.starts[0]].decode()
            for start, end in zip(column.starts, column.starts[1:], strict=False)
        ] == expected
