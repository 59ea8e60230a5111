"""What this store promises beyond the protocols: crashes, damage, removal, several processes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from clew.core.errors import Damaged, NotFound, StoreError, UsageError
from clew.core.types import RETRIEVED_KINDS, Box, Scope, Table
from clew.parse.documents.builder import DocumentBuilder
from clew.store.segments import Segment, SegmentIndex
from clew.store.store import Store
from kb_documents import HashEncoder, document, location

HERE = Path(__file__).parent.parent


def fill(base: Store, count: int = 4) -> None:
    for number in range(count):
        base.put_document(document(number), location(f"/docs/{number}.txt"))
        base.catch_up()


def state(base: Store, encoder: HashEncoder | None = None) -> object:
    snapshot = base.snapshot()
    terms, frequency = snapshot.postings("text").vocabulary()
    holders = [snapshot.ids(snapshot.postings("text").rows_with(term)[0]) for term in terms.tolist()]
    near = None
    if encoder:
        view = snapshot.vectors(encoder.name)
        near = snapshot.ids(view.search(encoder.encode(["question"], query=True), 5)[0][0])
    return terms.tolist(), frequency.tolist(), holders, near


def test_put_document_returns_what_it_did(base) -> None:
    first, two = document(1), document(2)
    assert base.put_document(first, location("/a")) == "added"
    assert base.put_document(first, location("/a")) == "unchanged"
    assert base.put_document(first, location("/b")) == "located"
    assert base.put_document(two, location("/b")) == "replaced"
    assert [d.paths for d in base.documents() if d.key == first.key] == [("/a",)]
    assert base.put_document(two, location("/a")) == "replaced"
    assert [d.key for d in base.documents()] == [two.key]
    assert base.put_location(location("/c", 7), two.key) == "located"
    assert base.locations()["/c"] == (location("/c", 7), two.key)
    assert base.remove(["/a", "/b"]) == []
    assert [d.key for d in base.remove(["/c"])] == [two.key]
    assert base.documents() == []


def test_documents_are_found_by_key_path_and_name(base) -> None:
    base.put_document(document(1), location("/docs/a/report.pdf"))
    base.put_document(document(2), location("/docs/b/report.pdf"))
    assert base.document("/docs/a/report.pdf").key == document(1).key
    assert base.document(document(2).key).name == "report.pdf"
    with pytest.raises(UsageError, match="2 documents"):
        base.document("report.pdf")
    with pytest.raises(NotFound):
        base.document("nothing")


@pytest.mark.parametrize("place", ["40", "9" * 18, "9" * 5_000, "-1", "²", ""])
def test_a_node_that_a_document_does_not_have_is_not_there(base, place) -> None:
    base.put_document(document(1), location("/docs/a/report.pdf"))
    id = f"{document(1).key}:{place}"
    for look in (lambda: base.node(id), lambda: base.snapshot().rows([id])):
        with pytest.raises(NotFound, match="no node"):
            look()


def test_opening_a_missing_too_new_or_broken_base(tmp_path) -> None:
    with pytest.raises(NotFound, match="clew add"):
        Store.open(tmp_path / "no")
    Store.open(tmp_path / "new", create=True).close()
    connection = sqlite3.connect(tmp_path / "new" / "base.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer"):
        Store.open(tmp_path / "new")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "base.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(Damaged):
        Store.open(tmp_path / "bad")


def test_a_base_of_format_4_is_opened_and_its_rows_have_no_boxes_of_cells(tmp_path) -> None:
    builder = DocumentBuilder()
    cells = (Box(3, 60, 90.5, 99, 101), None, Box(3, 200, 90, 220.2, 101, 0.9))
    table = Table(
        ("", "a", "b"), (("Ropes", "", "4"),), boxes=(Box(3, 60, 70, 220, 101),), cell_boxes=(cells,)
    )
    builder.add_table(table)
    parsed = builder.finish(data=b"t", title="t", media_type="text/plain", parser="t/1")
    id = f"{parsed.key}:2"
    with Store.open(tmp_path / "base", create=True) as store:
        store.put_document(parsed, location("/docs/t.txt"))
        assert store.node(id).cells == cells
        assert store.node(id).boxes == (Box(3, 60, 90, 220.2, 101, 0.9),)
        store.catch_up()
        assert not store.doctor(repair=False)
    connection = sqlite3.connect(tmp_path / "base" / "base.sqlite")
    for table, column in (("node", "cells"), ("document", "language"), ("document", "fields")):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    with Store.open(tmp_path / "base") as store:
        assert store.node(id).cells == () and store.node(id).text == "Ropes: b: 4"
        store.put_document(document(1), location("/docs/1.txt"))


def test_removed_text_remains_in_no_file(base, encoder: HashEncoder) -> None:
    builder = DocumentBuilder()
    builder.add_heading(1, "Zanzibarquux heading")
    builder.add_paragraph("The secretpassphrase is hidden here.")
    secret = builder.finish(data=b"s", title="Covertname", media_type="text/plain", parser="t/1")
    base.put_document(document(1), location("/docs/1.txt"))
    base.put_document(secret, location("/docs/secret.txt"))
    base.encode(encoder)
    before = base.snapshot().vectors(encoder.name).vectors(base.snapshot().rows([f"{secret.key}:2"]))
    base.remove(["/docs/secret.txt"])
    for file in base.path.rglob("*"):
        if file.is_file():
            held = file.read_bytes()
            for word in (b"secretpassphrase", b"Zanzibarquux", b"Covertname", before.tobytes()):
                assert word not in held, file


def test_a_snapshot_stays_as_it_was(base) -> None:
    fill(base, 2)
    old = base.snapshot()
    before = old.postings("text").vocabulary()[0].tolist()
    base.put_document(document(7), location("/docs/7.txt"))
    base.remove(["/docs/0.txt"])
    new = base.snapshot()
    assert new.generation > old.generation
    assert {d.key for d in old.documents()} == {document(0).key, document(1).key}
    assert {d.key for d in new.documents()} == {document(7).key, document(1).key}
    assert old.postings("text").vocabulary()[0].tolist() == before
    with pytest.raises(NotFound):
        old.nodes(old.rows([f"{document(0).key}:0"]))


def test_memoized_values_are_computed_once_per_generation(base) -> None:
    fill(base, 2)
    computed_values = []
    for _ in range(2):
        base.snapshot().memoize("x", lambda: computed_values.append(1))
    assert computed_values == [1]
    base.put_document(document(5), location("/docs/5.txt"))
    base.snapshot().memoize("x", lambda: computed_values.append(1))
    assert computed_values == [1, 1]


@pytest.mark.slow
def test_values_of_documents_alone_outlive_vectors_settings_and_unindexed_documents(
    base, encoder: HashEncoder
) -> None:
    fill(base, 2)
    with Store.open(base.path) as reader:
        reader.index_on_snapshot = False
        computed_values: list[str] = []

        def computed() -> list[str]:
            """Return which values had to be computed."""
            computed_values.clear()
            view = reader.snapshot()
            view.memoize("any", lambda: computed_values.append("any"))
            view.memoize("documents", lambda: computed_values.append("documents"), documents_only=True)
            return list(computed_values)

        assert computed() == ["any", "documents"]
        assert computed() == []
        base.encode(encoder)
        assert computed() == ["any"]
        assert reader.snapshot().vectors(encoder.name).missing_count() == 0
        base.set_setting("encoder", "other")
        assert computed() == ["any"]
        base.put_document(document(5), location("/docs/5.txt"))
        assert computed() == ["any"] and reader.snapshot().pending == 1
        base.catch_up()
        assert computed() == ["any", "documents"] and reader.snapshot().pending == 0
        base.put_location(location("/docs/other-name.txt"), document(5).key)
        assert computed() == ["any", "documents"]
        base.remove(["/docs/0.txt"])
        assert computed() == ["any", "documents"]
        assert state(reader) == state(base)


@pytest.mark.slow
def test_threads_share_one_view_and_its_memoized_values(base) -> None:
    fill(base, 3)
    ready, computed_values = threading.Barrier(8), []

    def slowly() -> str:
        computed_values.append(1)
        time.sleep(0.05)
        return base.snapshot().memoize("inner", lambda: "inner")

    def look(_: int) -> tuple[object, object]:
        ready.wait()
        view = base.snapshot()
        return view, view.memoize("outer", slowly)

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(look, range(8)))
    assert len({id(view) for view, _ in seen}) == 1
    assert computed_values == [1] and {value for _, value in seen} == {"inner"}


def test_documents_indexed_while_a_view_is_made_are_in_the_next_one(base, monkeypatch) -> None:
    fill(base, 2)
    with Store.open(base.path) as reader:
        reader.index_on_snapshot = False
        base.put_document(document(7), location("/docs/7.txt"))
        load = SegmentIndex.load

        def load_and_be_overtaken(self: SegmentIndex) -> list[Segment]:
            monkeypatch.undo()
            segments = load(self)
            base.catch_up()
            return segments

        monkeypatch.setattr(SegmentIndex, "load", load_and_be_overtaken)
        assert reader.snapshot().pending == 1
        assert reader.snapshot().pending == 0


@pytest.mark.slow
def test_segments_stay_few_and_drop_removed_documents(base) -> None:
    fill(base, 20)
    segments = [path for path in (base.derived / "segments").glob("s*") if path.is_dir()]
    assert len(segments) <= 8
    base.remove([f"/docs/{number}.txt" for number in range(16)])
    base.put_document(document(31), location("/docs/31.txt"))
    base.catch_up()
    held = sum(len(item.documents) for item in base._index.load())
    assert held == 5


def derived_files(base: Store) -> list[Path]:
    return sorted(path for path in base.derived.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["delete", "truncate", "empty"])
def test_missing_or_truncated_derived_files_are_rebuilt(tmp_path, encoder, damage: str) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        fill(base, 3)
        base.encode(encoder)
        wanted = state(base, encoder)
        files = [path.relative_to(base.path) for path in derived_files(base)]
    for file in files:
        path = tmp_path / "base" / file
        if not path.exists():
            continue  # rebuilt under another name
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2 if damage == "truncate" else 0])
        with Store.open(tmp_path / "base") as base:
            base.encode(encoder)
            assert state(base, encoder) == wanted, file
            assert not [f for f in base.doctor() if not f.repaired]


def test_doctor_finds_and_repairs_a_flipped_byte(base) -> None:
    fill(base, 3)
    wanted = state(base)
    path = max((base.derived / "segments").rglob("text.terms.npy"), key=lambda p: p.stat().st_size)
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)
    assert [f.repaired for f in base.doctor(repair=False) if "text.terms" in f.what] == [False]
    assert any(f.repaired for f in base.doctor())
    assert base.doctor() == []
    assert state(base) == wanted


def test_equal_texts_keep_their_vectors_when_a_document_changes(base, encoder: HashEncoder) -> None:
    def version(words: str):
        builder = DocumentBuilder()
        builder.add_paragraph("A paragraph that stays.")
        builder.add_paragraph(words)
        return builder.finish(data=words.encode(), title="T", media_type="text/plain", parser="t/1")

    base.put_document(version("Old words."), location("/a"))
    base.encode(encoder)
    base.put_document(version("New words."), location("/a"))
    encoder.encoded.clear()
    assert base.encode(encoder) == 2
    assert encoder.encoded == ["T: New words."]


@pytest.mark.slow
def test_encoding_resumes_where_it_was_interrupted(base, encoder: HashEncoder, monkeypatch) -> None:
    monkeypatch.setattr("clew.store.vectors.BATCH", 4)
    fill(base, 4)

    class Stops(HashEncoder):
        def encode(self, texts, query=False):
            if len(self.encoded) >= 8:
                raise KeyboardInterrupt
            return super().encode(texts, query)

    stops = Stops()
    with pytest.raises(KeyboardInterrupt):
        base.encode(stops)
    total = int(base.snapshot().mask(Scope(), RETRIEVED_KINDS).sum())
    assert base.snapshot().vectors(encoder.name).missing_count() == total - 8
    base.encode(encoder)
    assert len(encoder.encoded) == len(set(encoder.encoded)) <= total - 8
    assert base.snapshot().vectors(encoder.name).missing_count() == 0


CHILD = """
import sys; sys.path.insert(0, sys.argv[2])
from kb_documents import document, location
from clew.store import Store
with Store.open(sys.argv[1], create=True) as base:
    for number in range(200):
        base.put_document(document(number), location(f"/docs/{number}.txt"))
        print(number, flush=True)
        if number % 3 == 0: base.catch_up()
        if number % 7 == 6: base.remove([f"/docs/{number - 3}.txt"])
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_committed(tmp_path) -> None:
    rng = random.Random(3)
    for attempt in range(20):
        path = tmp_path / f"base{attempt}"
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(HERE)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(rng.randint(1, 8)):
            child.stdout.readline()
        time.sleep(rng.random() * 0.02)
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        with Store.open(path) as base:
            # Everything up to the last printed number was committed, and removals lag behind by three.
            keys = {item.key for item in base.documents()}
            last = int(rest[-1]) if rest else 0
            expected = [n for n in range(last + 1) if (n + 3) % 7 != 6]
            assert {document(n).key for n in expected} <= keys
            base.snapshot()
            assert not [finding for finding in base.doctor() if not finding.repaired]
            assert base.doctor() == []
            assert base.snapshot().pending == 0


ADDER = """
import sys; sys.path.insert(0, sys.argv[2])
from kb_documents import document, location
from clew.store import Store
with Store.open(sys.argv[1]) as base:
    for number in range(12):
        base.put_document(document(number), location(f"/docs/{number}.txt"))
        base.catch_up()
"""


@pytest.mark.slow
def test_one_process_adds_while_another_asks(base) -> None:
    base.put_document(document(100), location("/docs/100.txt"))
    child = subprocess.Popen([sys.executable, "-c", ADDER, str(base.path), str(HERE)])
    seen = []
    while child.poll() is None:
        snapshot = base.snapshot()
        rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
        assert len(snapshot.nodes(rows)) == len(rows)
        seen.append(len(snapshot.documents()))
    assert child.returncode == 0
    assert seen == sorted(seen)
    assert len(base.snapshot().documents()) == 13


@pytest.mark.slow
def test_listing_and_showing_import_no_numpy(tmp_path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        fill(base, 2)
    code = (
        "import sys\nfrom clew.store import Store\n"
        "base = Store.open(sys.argv[1])\n"
        "key = base.documents()[0].key\nbase.document_nodes(key); base.info(); base.digest(); base.close()\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "base")], check=False).returncode == 0


def test_a_text_is_encoded_only_once_in_a_batch_in_a_run_and_across_runs(base, encoder, monkeypatch):
    monkeypatch.setattr("clew.store.vectors.BATCH", 4)

    def parsed_of(number, texts):
        builder = DocumentBuilder()
        for text in texts:
            builder.add_paragraph(text)
        return builder.finish(data=bytes([number]), title="T", media_type="text/plain", parser="t/1")

    for number, texts in enumerate((["a", "b", "a", "c", "b", "d", "a"], ["e", "a", "e"])):
        parsed = parsed_of(number, texts)
        base.put_document(parsed, location(f"/docs/{number}.txt"))
        base.encode(encoder)
    assert sorted(encoder.encoded) == sorted(set(encoder.encoded)) and len(encoder.encoded) == 5
    snapshot = base.snapshot()
    view = snapshot.vectors(encoder.name)
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    held = np.array([node.text for node in snapshot.nodes(rows)])
    assert view.missing_count() == 0 and len(rows) == 10
    alike = view.vectors(rows) @ view.vectors(rows).T > 0.999
    assert np.array_equal(alike, held[:, None] == held[None, :])
