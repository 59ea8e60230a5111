"""Names of mounted graphs: by a real Oxigraph's labels, by scripted endpoints' searches, by tables of titles."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from clew.core.errors import MissingExtra, UnreadableFile, UsageError
from clew.store.sparql.mount_options import MountOptions
from clew.store.sparql.name_lookup import MAX_SCANNED_LABELS, scan_queries
from sparql_servers import Bindings, ScriptedEndpoint, serving, store_turtle

EX = "http://example.org/"
TURTLE = f"""
@prefix : <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:d rdfs:label "William Dieterle"@en ; skos:altLabel "Wilhelm Dieterle"@en .
:m rdfs:label "Marlene Dietrich" . :f rdfs:label "Gert Fröbe"@en . :k rdfs:label "Kismet"@en , "Kismet (Film)"@de .
:k2 rdfs:label "Kismet"@en . :kd rdfs:label "Kismet Hardy"@en . :o rdfs:label "Ödland"@de .
:k :director :d .
"""


@pytest.fixture(scope="module", params=["server", "folder"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("store")
    if request.param == "server":
        yield from serving(folder, TURTLE)
    else:
        pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
        yield str(store_turtle(folder / "store", TURTLE))


def short(graph, rows) -> list[str]:
    return [item.rpartition("/")[2] for item in graph.ids(rows)]


@pytest.mark.slow
def test_similar_names_of_a_store_without_a_search(place: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", place)
        assert graph.lookup.service == "scan"
        rows, likeness = graph.find_similar_names("Wiliam Dieterle", 3)
        assert short(graph, rows)[0] == "d" and 0.9 < likeness[0] < 1
        assert list(likeness) == sorted(likeness, reverse=True) and len(rows) == 2
        # Each word has a letter wrong, one in either half.
        assert short(graph, graph.find_similar_names("Marlqne Dietricx", 1)[0]) == ["m"]
        # Equal names have a likeness of 1, ties are in the order of ids, and a label in German is none in English.
        rows, likeness = graph.find_similar_names("kismet", 5)
        assert short(graph, rows) == ["k", "k2", "kd"] and likeness.tolist()[:2] == [1.0, 1.0]
        assert short(graph, graph.find_similar_names("kismet", 1)[0]) == ["k"]
        assert short(graph, graph.find_similar_names("Wilhelm Dieterle", 1)[0]) == ["d"]
        # Accents make no difference, as for an imported graph.
        assert (
            short(graph, graph.find_by_name("Gert Frobe"))
            == ["f"]
            == short(graph, graph.find_by_name("GERT FRÖBE"))
        )
        for nothing in ("Odland", "zzz", "", "?"):
            assert len(graph.find_by_name(nothing)) == 0
        rows, likeness = graph.find_similar_names("?", 4)
        assert len(rows) == len(likeness) == 0
        assert len(graph.find_similar_names("Kismet", 0)[0]) == 0


def test_without_a_search_only_equal_names_are_found(place: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", place, MountOptions(lookup="labels"))
        assert (
            short(graph, graph.find_by_name("KISMET")) == ["k", "k2"]
            and len(graph.find_by_name("Gert Frobe")) == 0
        )
        assert len(graph.find_similar_names("Kismett", 3)[0]) == 0
        german = base.graphs.mount("de", place, MountOptions(("de",)))
        assert short(german, german.find_by_name("odland")) == ["o"]
        with pytest.raises(UsageError, match="Did you mean 'scan'"):
            base.graphs.mount("x", place, MountOptions(lookup="scam"))


def test_names_are_quoted_in_queries(place: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", place)
        for name in ('") } #', "a\\", 'Kismet" || true || "', "x\ny\t'z'", "{{{ ?x", "'"):
            graph.find_by_name(name)
            graph.find_similar_names(name, 2)
    assert '"' not in scan_queries("a\\b", ("en",))[0].replace('"a"', "").replace('"b"', "").replace(
        '"en"', ""
    ).replace('""', "")


def scripted_search(mark: str, strict: str, loose: str, labels: bool = True) -> tuple[list[str], object]:
    """Return what a scripted endpoint notes and does: it has a search whose questions contain ``mark``; the strict
    one must contain ``strict`` and finds Kismet, the loose one ``loose`` and finds two."""
    seen: list[str] = []

    def answer(query: str) -> Bindings | None:
        if "PREFIX" in query and mark not in query:
            return None  # another's search: refused
        if mark in query:
            seen.append(query)
            if "Kismat" not in query and "kismat" not in query and "kism" not in query:
                return [{"x": f"{EX}probe", "l": "probe"}]
            if strict in query:
                return []
            assert loose in query, query
            solutions = [{"x": f"{EX}k", "l": "Kismet"}, {"x": f"{EX}kd", "l": "Kismet Hardy"}]
            return solutions if labels else [{"x": solution["x"]} for solution in solutions]
        if "VALUES ?x" in query and f"<{EX}kd>" in query:
            return [{"x": f"{EX}k", "l": "Kismet"}, {"x": f"{EX}kd", "l": "Kismet Hardy"}]
        if "LIMIT 20 " in f"{query} ":
            return [{"l": "Some Label"}]
        if "directClaim" in query and not labels:
            return [{"e": f"{EX}P57", "p": "http://www.wikidata.org/prop/direct/P57"}]
        return []

    return seen, answer


@pytest.mark.parametrize(
    ("service", "mark", "strict", "loose"),
    [
        ("virtuoso", "<bif:contains>", "'kismat'\"", "<bif:contains> \"'kism*'\""),
        ("qlever", "ql:contains-word", 'ql:contains-word "kismat"', 'ql:contains-word "kism*"'),
        ("wikidata", "wikibase:mwapi", 'mwapi:search "Kismat"', 'mwapi:gsrsearch "kismat~"'),
    ],
)
def test_the_search_of_an_endpoint_is_detected_and_used(
    tmp_path: Path, service: str, mark: str, strict: str, loose: str
) -> None:
    """Only the queries to these three services and the reading of their answers are tested."""
    seen, answer = scripted_search(mark, strict, loose, labels=service != "wikidata")
    with ScriptedEndpoint(answer) as server, clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", server.url)
        assert graph.lookup.service == service and len(seen) == 1
        rows, likeness = graph.find_similar_names("Kismat", 2)
        assert short(graph, rows) == ["k", "kd"] and likeness[0] == pytest.approx(10 / 12)
        assert len(seen) == 3 and strict in seen[1] and loose in seen[2]
        # Looking up a name asks the strictest question alone.
        assert len(graph.find_by_name("Kismat")) == 0 and len(seen) == 4
    with clew.open(tmp_path / "kb") as base:
        assert base.graphs.get("g").lookup.service == service  # stored, not asked for again
        assert len(seen) == 4


def test_the_queries_of_each_service() -> None:
    from clew.store.sparql.name_lookup import qlever_queries, virtuoso_queries, wikidata_queries

    strict, loose = virtuoso_queries("William O'Dieterle", ("en",))
    assert "'william' AND 'o' AND 'dieterle'" in strict and "'will*' OR 'diet*'" in loose
    assert strict.count("UNION") == 1 and strict.endswith("LIMIT 200")
    strict, loose = qlever_queries("William Dieterle", ("en",))
    assert 'ql:contains-word "william dieterle" . ?t ql:contains-entity ?l' in strict
    assert '"will*"' in loose and '"diet*"' in loose
    english, german, loose = wikidata_queries('The "Blue" Angel', ("en", "de"))
    assert 'mwapi:search "The \\"Blue\\" Angel" ; mwapi:language "en"' in english
    assert 'mwapi:language "de"' in german and 'mwapi:gsrsearch "the blue angel~"' in loose
    assert (
        virtuoso_queries("ab", ("en",))[1:] == []
        and virtuoso_queries("?!", ("en",)) == qlever_queries("?!", ("en",)) == []
    )


def test_auto_does_not_choose_scan_for_a_large_store(tmp_path: Path) -> None:
    def answer(query: str) -> Bindings | None:
        if "COUNT(*)" in query and f"LIMIT {MAX_SCANNED_LABELS + 1}" in query:
            return [{"n": str(MAX_SCANNED_LABELS + 1)}]
        return [{"l": "Some Label"}] if query.endswith("LIMIT 20") else []

    with ScriptedEndpoint(answer) as server, clew.open(tmp_path / "kb", create=True) as base:
        assert base.graphs.mount("g", server.url).lookup.service == "labels"


TITLES = "title\tid\nKismet_(film)\t{ex}k2\nDie_Göttliche\t{ex}m\nBill\t{ex}d\nGone\t{ex}gone\nEarth\tQ2\n"


@pytest.mark.parametrize("form", ["titles.tsv", "titles.tsv.gz", "titles.csv", "index.db"])
def test_a_table_of_titles_comes_first(place: str, tmp_path: Path, form: str) -> None:
    table = tmp_path / form
    text = TITLES.format(ex=EX)
    if form == "index.db":
        with sqlite3.connect(table) as database:
            database.execute(
                "CREATE TABLE mapping (wikipedia_id int PRIMARY KEY, wikipedia_title text, wikidata_id text)"
            )
            rows = [line.split("\t") for line in text.splitlines()[1:]]
            database.executemany(
                "INSERT INTO mapping VALUES (?, ?, ?)", [(n, *row) for n, row in enumerate(rows)]
            )
        database.close()
    elif form.endswith(".gz"):
        table.write_bytes(gzip.compress(text.encode()))
    else:
        table.write_text(text.replace("\t", "," if form.endswith(".csv") else "\t"))
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", place, MountOptions(titles=str(table)))
        assert short(graph, graph.find_by_name("Kismet (film)")) == ["k2"]  # not :k, which no title is of
        assert short(graph, graph.find_by_name("bill")) == ["d"] and short(
            graph, graph.find_similar_names("Bill", 1)[0]
        ) == ["d"]
        assert short(graph, graph.find_by_name("die Göttliche")) == ["m"]
        assert sorted(short(graph, graph.find_by_name("Kismet"))) == ["k", "k2"]  # no title: by label
        assert len(graph.find_by_name("Gone")) == 0  # what it names is not in the store
        assert graph.lookup.titles.find_ids("Earth") == ["http://www.wikidata.org/entity/Q2"]
        indexes = list((tmp_path / "kb" / "derived" / "mounts").glob("*.titles"))
        assert len(indexes) == (0 if form == "index.db" else 1)
        base.graphs.remove("g")
        assert not list((tmp_path / "kb" / "derived" / "mounts").iterdir()) and table.exists()


def test_the_index_of_titles_is_built_once_and_again_when_the_file_changes(
    place: str, tmp_path: Path
) -> None:
    table = tmp_path / "titles.tsv"
    table.write_text(f"Bill\t{EX}d\n")
    folder = tmp_path / "kb" / "derived" / "mounts"
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.mount("g", place, MountOptions(titles=str(table)))
        graph = base.graphs.get("g")
        assert short(graph, graph.find_by_name("Bill")) == ["d"]
        (first,) = folder.glob("*.titles")
        before = first.stat().st_mtime_ns
    with clew.open(tmp_path / "kb") as base:
        graph = base.graphs.get("g")
        assert short(graph, graph.find_by_name("Bill")) == ["d"]
        assert first.stat().st_mtime_ns == before
    table.write_text(f"Bill\t{EX}m\n")
    os.utime(table, ns=(1, 1))
    with clew.open(tmp_path / "kb") as base:
        graph = base.graphs.get("g")
        assert short(graph, graph.find_by_name("Bill")) == ["m"]
    table.unlink()
    with clew.open(tmp_path / "kb") as base:
        with pytest.raises(UnreadableFile, match="No such file"):
            base.graphs.get("g")
        base.graphs.remove("g")
        assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.tsv", b"Bill\tQ1\nMarlene\tnone\n", "line 2: no id"),
        ("a.tsv", b"Bill\tQ1\nMarlene\n", "line 2: no id"),
        ("a.tsv", b"Bill\tunknown\nMarlene\tQ1\n", "line 1: no id"),
        ("a.tsv.gz", gzip.compress(b"Bill\tQ1\n" * 99, mtime=0)[:-12], "cannot be read as a table"),
        ("a.tsv", b"Bill\tQ1\n\xff\xfe\tQ2\n", "cannot be read as a table"),
        ("a.db", b"SQLite format 3\0 and nothing", "not an index of WikiMapper"),
    ],
    ids=["no id", "no column", "no header", "cut off", "not UTF-8", "no database"],
)
def test_invalid_tables_of_titles_are_refused(
    place: str, tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with clew.open(tmp_path / "kb", create=True) as base:
        with pytest.raises(UnreadableFile, match=problem):
            base.graphs.mount("g", place, MountOptions(titles=str(tmp_path / name))).find_by_name("Bill")
        assert not list(tmp_path.rglob("*.titles*"))


def test_folders_without_a_store_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "CURRENT").write_text("nonsense")
    (tmp_path / "a.ttl").write_text(TURTLE)
    with clew.open(tmp_path / "kb", create=True) as base:
        for place, problem in {
            "empty": "not the folder of an Oxigraph store",
            "none": "is no folder",
            "broken": "cannot be opened",
            "a.ttl": "is a file",
        }.items():
            with pytest.raises(UsageError, match=problem):
                base.graphs.mount("g", str(tmp_path / place))
        assert base.graphs.infos() == [] and not list((tmp_path / "empty").iterdir())


def test_without_pyoxigraph_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with clew.open(tmp_path / "kb", create=True) as base:
        with pytest.raises(MissingExtra, match="which reads RDF stores"):
            base.graphs.mount("g", str(tmp_path))
        assert base.graphs.infos() == []


def test_an_unfinished_index_of_another_process_is_not_deleted(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "kb" / "derived" / "mounts"
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.mount("g", place)
        for name in ("new.7.unfinished", "old.7.unfinished"):
            (folder / name).write_bytes(b"half")
        os.utime(folder / "old.7.unfinished", (1, 1))
        base.graphs.remove("g")
        assert [path.name for path in folder.iterdir()] == ["new.7.unfinished"]


@pytest.mark.slow
def test_several_processes_read_one_store(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    folder = store_turtle(tmp_path / "store", TURTLE)
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir() if path.name != "LOG")
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", str(folder))
        assert short(graph, graph.find_by_name("Kismet")) == ["k", "k2"]
        program = (
            "import clew, sys; print(len(clew.open(sys.argv[1]).graphs.get('g').find_by_name('kismet')))"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "kb")]
        asked = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        assert [item.communicate()[0].strip() for item in asked] == ["2", "2"]
        assert short(graph, graph.find_by_name("William Dieterle")) == ["d"]
    assert before == sorted((path.name, path.read_bytes()) for path in folder.iterdir() if path.name != "LOG")


def test_relations_at_asks_only_for_relations_that_a_node_has(place: str, tmp_path: Path) -> None:
    from clew.knowledge_base.graphs import entity_triples

    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", place)
        assert graph.relations_at(graph.rows([f"g:{EX}k"])) == ["director"]
        (triple,) = entity_triples(graph, base.graphs.entities("g", "William Dieterle")[0])
        assert triple.inverse and {end.name for end in triple.ends} == {"Kismet"}
