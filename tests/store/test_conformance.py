"""What every implementation of the store must do, checked against Python dictionaries."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from clew.core.errors import NotFound
from clew.core.types import KINDS, PASSAGE, RETRIEVED_KINDS, ROW, ParsedDocument, ParsedNode, Scope
from clew.knowledge_base.base_copy import upload_base
from clew.store.object_store import FolderObjects
from clew.store.remote.store import RemoteStore
from clew.store.segments import FIELDS, count_field_terms
from clew.store.store import Store
from kb_documents import HashEncoder, document, location


class PublishedStore:
    """A base that is written in a folder, and read from the copy of it in object storage."""

    def __init__(self, folder):
        self.written = Store.open(folder / "written", create=True)
        self.objects = FolderObjects(folder / "copy")
        self.reader = None
        for name in ("put_document", "remove", "catch_up", "encode"):
            setattr(self, name, getattr(self.written, name))

    def __getattr__(self, name):
        upload_base(self.written.path, self.objects, take_over=False, progress=lambda done, total: None)
        if self.reader is None:
            self.reader = RemoteStore(self.objects)
        self.reader.refresh()
        return getattr(self.reader, name)

    def close(self):
        self.written.close()
        if self.reader is not None:
            self.reader.close()


@pytest.fixture(params=["folder", "storage"])
def base(request, tmp_path):
    is_folder = request.param == "folder"
    opened = Store.open(tmp_path / "base", create=True) if is_folder else PublishedStore(tmp_path)
    yield opened
    opened.close()


def shuffled_history(base, seed: int) -> dict[str, ParsedDocument]:
    """Add, replace, remove and locate in random order, indexing now and then; return what is left, by path."""
    rng = random.Random(seed)
    paths: dict[str, ParsedDocument] = {}
    for stamp in range(40):
        path = f"/docs/{rng.randrange(8)}.txt"
        if path in paths and rng.random() < 0.4:
            base.remove([path])
            del paths[path]
        else:
            paths[path] = document(rng.randrange(10), rng.randrange(2))
            base.put_document(paths[path], location(path, stamp))
        if rng.random() < 0.3:
            base.catch_up()
    return paths


def parent_name(parsed: ParsedDocument, node: ParsedNode) -> str:
    return "" if node.parent is None else parsed.nodes[node.parent].name


def twin(paths: dict[str, ParsedDocument], field: str) -> dict[str, Counter[int]]:
    return {
        f"{value.key}:{position}": counts
        for value in {value.key: value for value in paths.values()}.values()
        for position, node in enumerate(value.nodes)
        if (counts := count_field_terms(field, node, parent_name(value, node))) is not None
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("field", FIELDS)
def test_postings_equal_their_brute_force_twin_after_any_history(base, seed: int, field: str) -> None:
    paths = shuffled_history(base, seed)
    snapshot = base.snapshot()
    postings, expected = snapshot.postings(field), twin(paths, field)
    holders: dict[int, dict[str, int]] = {}
    for id, counts in expected.items():
        for term, count in counts.items():
            holders.setdefault(term, {})[id] = count
    assert postings.node_count == len(expected)
    lengths = {id: sum(counts.values()) for id, counts in expected.items()}
    assert postings.average_length == pytest.approx(sum(lengths.values()) / max(len(lengths), 1))
    vocabulary, frequency = postings.vocabulary()
    assert dict(zip(vocabulary.tolist(), frequency.tolist(), strict=True)) == {
        term: len(hits) for term, hits in holders.items()
    }
    assert np.all(vocabulary[1:] > vocabulary[:-1])
    terms = np.array([*holders, 12345], dtype=np.uint64)
    assert postings.document_frequency(terms).tolist() == [*map(len, holders.values()), 0]
    for term, hits in holders.items():
        rows, counts = postings.rows_with(term)
        assert np.all(rows[1:] > rows[:-1])
        assert dict(zip(snapshot.ids(rows), counts.tolist(), strict=True)) == hits
    ids = random.Random(seed).sample(sorted(expected), len(expected))
    rows = snapshot.rows(ids)
    assert postings.lengths(rows).tolist() == [lengths[id] for id in ids]
    starts, hashes, counts = postings.term_matrix(rows)
    for number, id in enumerate(ids):
        part = slice(starts[number], starts[number + 1])
        assert dict(zip(hashes[part].tolist(), counts[part].tolist(), strict=True)) == expected[id]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nodes_columns_and_masks_equal_the_parsed_documents(base, seed: int) -> None:
    paths = shuffled_history(base, seed)
    snapshot = base.snapshot()
    documents = {item.key: item for item in paths.values()}
    assert [item.key for item in snapshot.documents()] == sorted(documents)
    assert int(snapshot.mask(Scope()).sum()) == sum(len(item.nodes) for item in documents.values())
    for key, value in documents.items():
        first, end = snapshot.document_rows(key)
        rows = np.arange(first, end)
        nodes = snapshot.nodes(rows)
        assert [node.text for node in nodes] == [node.text for node in value.nodes]
        assert [node.name for node in nodes] == [node.name for node in value.nodes]
        assert [(node.span, node.page, node.kind) for node in nodes] == [
            (node.span, node.page, node.kind) for node in value.nodes
        ]
        assert snapshot.column("document")[rows].tolist() == [first] * len(rows)
        assert snapshot.column("parent")[rows].tolist() == [
            -1 if node.parent is None else first + node.parent for node in value.nodes
        ]
        assert snapshot.column("page")[rows].tolist() == [node.page or -1 for node in value.nodes]
        assert [KINDS[kind] for kind in snapshot.column("kind")[rows]] == [node.kind for node in value.nodes]
        inside = snapshot.mask(Scope(documents=frozenset([key])), RETRIEVED_KINDS)
        assert int(inside.sum()) == sum(node.kind in RETRIEVED_KINDS for node in value.nodes)
        assert inside[first:end].sum() == inside.sum()
        assert base.document_nodes(key) == nodes and base.document_text(
            key
        ) == value.text == snapshot.document_text(key)
        assert base.node(nodes[-1].id) == nodes[-1]
    only_rows = snapshot.mask(Scope(kinds=frozenset([ROW])), (PASSAGE, ROW))
    assert {node.kind for node in snapshot.nodes(np.flatnonzero(only_rows))} <= {ROW}


def test_headings_are_the_sections_above(base) -> None:
    item = document(1)
    base.put_document(item, location("/docs/a.txt"))
    for node, parsed in zip(base.document_nodes(item.key), item.nodes, strict=True):
        path, parent = [], parsed.parent
        while parent is not None:
            if item.nodes[parent].kind == "section":
                path.append(item.nodes[parent].name)
            parent = item.nodes[parent].parent
        assert node.headings == tuple(path[::-1])


def test_unknown_ids_are_refused(base) -> None:
    item = document(1)
    base.put_document(item, location("/docs/a.txt"))
    snapshot = base.snapshot()
    for id in ("nothing", "nothing:1", f"{item.key}:{len(item.nodes)}", f"{item.key}:x", ""):
        with pytest.raises(NotFound):
            snapshot.rows([id])
        with pytest.raises(NotFound):
            base.node(id)


@pytest.mark.slow
def test_vectors_equal_brute_force_and_respect_the_mask(base, encoder: HashEncoder) -> None:
    paths = shuffled_history(base, 5)
    base.encode(encoder)
    snapshot = base.snapshot()
    view = snapshot.vectors(encoder.name)
    assert view.missing_count() == 0 and view.dimension == encoder.dimension
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    vectors = view.vectors(rows).astype(np.float64)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    queries = encoder.encode(["a question", "another"], query=True)
    allowed = snapshot.mask(Scope(documents=frozenset([next(iter(paths.values())).key])), RETRIEVED_KINDS)
    for mask in (None, allowed):
        among = rows if mask is None else rows[mask[rows]]
        hits, scores = view.search(queries, 5, mask)
        for query, near, score in zip(queries, hits, scores, strict=True):
            exact = (view.vectors(among).astype(np.float64) * query.astype(np.float64)).sum(axis=1)
            best = np.sort(exact)[::-1][:5]
            assert np.allclose(score[: len(best)], best, atol=1e-8)
            assert set(near[near >= 0].tolist()) <= set(among.tolist())
            assert np.all(near[len(best) :] == -1)


@pytest.mark.slow
def test_adding_and_removing_a_document_leaves_the_base_as_if_never_added(tmp_path) -> None:
    for seed in range(5):
        order = random.Random(seed).sample(range(6), 6)
        with (
            Store.open(tmp_path / f"long{seed}", create=True) as long,
            Store.open(tmp_path / f"short{seed}", create=True) as short,
        ):
            for number in order:
                long.put_document(document(number), location(f"/docs/{number}.txt"))
                if number % 2:
                    long.catch_up()
            for number in (0, 1, 2):
                long.remove([f"/docs/{number}.txt"])
            for number in (5, 4, 3):
                short.put_document(document(number), location(f"/docs/{number}.txt"))
            assert list(long.dump()) == list(short.dump())
            assert long.digest() == short.digest()
            left, right = long.snapshot(), short.snapshot()
            for field in FIELDS:
                a, b = left.postings(field), right.postings(field)
                assert (a.node_count, a.average_length) == (b.node_count, b.average_length)
                assert [x.tolist() for x in a.vocabulary()] == [x.tolist() for x in b.vocabulary()]
                for term in a.vocabulary()[0][:50].tolist():
                    pairs = [
                        sorted(zip(s.ids(p.rows_with(term)[0]), p.rows_with(term)[1].tolist(), strict=True))
                        for s, p in ((left, a), (right, b))
                    ]
                    assert pairs[0] == pairs[1]
