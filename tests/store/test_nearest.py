import io
import shutil
from itertools import pairwise

import numpy as np
import pytest

from clew.core.types import RETRIEVED_KINDS, Scope
from clew.store import vectors
from clew.store.binary_index import BLOCK, BinaryIndexFile, binary_codes
from clew.store.vectors import StoredVectors, VectorFiles, vectors_folder
from kb_documents import HashEncoder, document, location

DIMENSION = 70  # no multiple of 64


def unit(rng: np.random.Generator, count: int) -> np.ndarray:
    """Vectors in twenty clusters, as those of texts are in many."""
    centres = np.random.default_rng(9).standard_normal((20, DIMENSION))
    vectors = centres[rng.integers(0, 20, count)] + 0.6 * rng.standard_normal((count, DIMENSION))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_a_code_has_a_bit_for_each_positive_number() -> None:
    given = np.zeros((2, 65), dtype=np.float32)
    given[0, [0, 3, 64]] = 1, 0.5, 2
    given[1, 1] = -1
    assert binary_codes(given).tolist() == [[0b1001, 1], [0, 0]]


def test_hamming_distances_count_different_signs(tmp_path) -> None:
    rng = np.random.default_rng(0)
    every = unit(rng, BLOCK + 300)
    file = BinaryIndexFile(tmp_path / "signs", DIMENSION, len(every))
    file.rebuild(every)
    query = unit(rng, 1)
    wanted = ((every > 0) != (query > 0)).sum(axis=1)
    assert file.read().hamming_distances(binary_codes(query)[0]).tolist() == wanted.tolist()


def test_a_shortlist_has_all_slots_at_a_distance_or_none(tmp_path) -> None:
    rng = np.random.default_rng(1)
    every = unit(rng, 900)
    file = BinaryIndexFile(tmp_path / "signs", DIMENSION, len(every))
    file.rebuild(every)
    among = rng.random(len(every)) < 0.7
    query = unit(rng, 1)[0]
    distance = ((every > 0) != (query > 0)).sum(axis=1)
    hits = file.read().shortlist(query, among, 40)
    limit = np.sort(distance[among])[39]
    assert hits.tolist() == np.flatnonzero(among & (distance <= limit)).tolist()
    assert file.read().shortlist(query, among, 10_000).tolist() == np.flatnonzero(among).tolist()


def test_codes_written_in_parts_equal_those_written_at_once(tmp_path) -> None:
    every = unit(np.random.default_rng(2), BLOCK + 500)
    whole = BinaryIndexFile(tmp_path / "whole", DIMENSION, len(every))
    whole.rebuild(every)
    starts = [0, 7, BLOCK - 1, BLOCK + 3, len(every)]
    for start, end in pairwise(starts):
        BinaryIndexFile(tmp_path / "grown", DIMENSION, end).write(start, every[start:end])
    assert (tmp_path / "grown").read_bytes() == (tmp_path / "whole").read_bytes()
    assert whole.matches(every)
    changed = every.copy()
    changed[BLOCK + 499] *= -1
    assert not whole.matches(changed)


def view_of(folder, every: np.ndarray, rows: np.ndarray, live: np.ndarray) -> StoredVectors:
    file = BinaryIndexFile(folder / "signs", DIMENSION, len(every))
    file.rebuild(every)
    return StoredVectors(every, rows, live, live, file.read())


def test_a_search_by_codes_finds_nearly_what_an_exact_one_finds(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 100)
    monkeypatch.setattr(vectors, "SHORTLIST_SIZE", 300)
    rng = np.random.default_rng(3)
    every, live = unit(rng, 6000), rng.random(6000) < 0.9
    view = view_of(tmp_path, every, np.arange(6000), live)
    queries, allowed = unit(rng, 20), rng.random(6000) < 0.5
    hits, scores = view.search(queries, 10, allowed)
    exact = StoredVectors(every, np.arange(6000), live, live).search(queries, 10, allowed)[0]
    assert live[hits].all() and allowed[hits].all()
    assert np.mean([np.isin(a, b).mean() for a, b in zip(hits, exact, strict=True)]) > 0.95
    products = np.einsum("qkd,qd->qk", every[hits].astype(np.float64), queries.astype(np.float64))
    assert np.allclose(scores, products, atol=1e-8) and np.all(np.diff(scores) <= 0)


def test_a_search_by_codes_does_not_depend_on_history(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 100)
    monkeypatch.setattr(vectors, "SHORTLIST_SIZE", 50)
    rng = np.random.default_rng(4)
    live, removed = unit(rng, 2000), unit(rng, 700)
    place = rng.permutation(2700)
    everything = np.concatenate([live, removed])[place]
    old = view_of(tmp_path, everything, place, np.arange(2700) < 2000)
    clean = view_of(tmp_path, live, np.arange(2000), np.ones(2000, dtype=np.bool_))
    queries = unit(rng, 20)
    for left, right in zip(old.search(queries, 15), clean.search(queries, 15), strict=True):
        assert np.array_equal(left, right)


def test_a_small_scope_is_searched_exactly(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 200)
    monkeypatch.setattr(vectors, "SHORTLIST_SIZE", 1)
    monkeypatch.setattr(vectors, "SHORTLIST_PER_HIT", 1)
    rng = np.random.default_rng(5)
    every, live = unit(rng, 3000), np.ones(3000, dtype=np.bool_)
    view = view_of(tmp_path, every, np.arange(3000), live)
    allowed, queries = np.arange(3000) < 200, unit(rng, 5)
    exact = np.argsort(-(queries.astype(np.float64) @ every[:200].T.astype(np.float64)), axis=1)[:, :10]
    assert np.array_equal(view.search(queries, 10, allowed)[0], exact)


@pytest.fixture
def signed(base, monkeypatch):
    """A base with enough vectors for binary codes."""
    monkeypatch.setattr(vectors, "BINARY_INDEX_MINIMUM", 8)
    monkeypatch.setattr("clew.store.vectors.BATCH", 5)
    for number in range(6):
        base.put_document(document(number), location(f"/docs/{number}.txt"))
    base.encode(HashEncoder())
    return base


def store_of(base) -> VectorFiles:
    return VectorFiles(vectors_folder(base.derived, HashEncoder.name))


def test_codes_follow_added_and_removed_vectors(signed) -> None:
    store = store_of(signed)
    assert store.binary_index_file().matches(store.vectors())
    signed.remove(["/docs/0.txt"])
    assert store.binary_index_file().matches(store.vectors())
    signed.remove([f"/docs/{number}.txt" for number in (1, 2, 3)])
    codes = store.binary_index_file()
    assert codes.matches(store.vectors()) if codes else not (store.folder / "signs.u64").exists()


@pytest.mark.parametrize("damage", ["delete", "truncate", "flip"])
def test_damaged_codes_are_rebuilt(signed, damage: str) -> None:
    path = store_of(signed).folder / "signs.u64"
    whole = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(whole[:-8] if damage == "truncate" else bytes([whole[0] ^ 1]) + whole[1:])
    if damage != "flip":
        snapshot = signed.snapshot()
        rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
        assert snapshot.vectors(HashEncoder.name).missing_count() == 0
        assert (
            snapshot.vectors(HashEncoder.name).search(np.ones((1, 16), np.float32), len(rows))[0] >= 0
        ).all()
    assert [item.repaired for item in signed.doctor(repair=False)] == [False]
    assert [item.repaired for item in signed.doctor()] == [True]
    assert path.read_bytes() == whole
    shutil.copy(path, path.with_suffix(".copy"))
    path.write_bytes(b"")
    signed.encode(HashEncoder())
    assert path.read_bytes() == whole


def test_a_search_among_no_rows_finds_nothing_although_vectors_are_there() -> None:
    no_rows = np.zeros(0, dtype=np.bool_)
    vectors = np.eye(3, 8, dtype=np.float32)
    searched = StoredVectors(vectors, np.full(3, -1), no_rows, no_rows).search(vectors[:1], 2, no_rows)
    assert searched[0].tolist() == [[-1, -1]]


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("pause", [1, 2, 8])
def test_vectors_that_are_replaced_while_they_are_opened_are_whole(
    tmp_path, monkeypatch, first: int, pause: int
) -> None:
    """A writer renames the folder before the reader's file ``first`` is opened, and puts the new one there later."""
    files = VectorFiles(tmp_path / "v")
    numbers = np.arange(10)
    files.append("e", np.eye(10, dtype=np.float32), numbers, numbers.astype(np.uint64))
    fresh, old = tmp_path / "v.new", tmp_path / "v.old"
    VectorFiles(fresh).append(
        "e", np.eye(10, dtype=np.float32)[:4], numbers[:4], numbers[:4].astype(np.uint64)
    )
    opened = 0

    def open_file(path, *arguments, **options):
        nonlocal opened
        if opened == first:
            files.folder.rename(old)
        if opened == first + pause:
            fresh.rename(files.folder)
            shutil.rmtree(old)
        opened += 1
        return real_open(path, *arguments, **options)

    real_open = io.open
    monkeypatch.setattr("io.open", open_file)
    monkeypatch.setattr("builtins.open", open_file)
    vectors_read, rows, _ = files.open_for_search()
    assert len(vectors_read) == len(rows) and len(rows) in {10, 4}
    assert np.array_equal(np.argmax(vectors_read, axis=1), rows)
