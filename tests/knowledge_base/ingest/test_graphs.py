"""``clew graph``: adding, adding again, killing, the shared film graph."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import UnreadableFile, UsageError
from clew.parse.graphs.formats import GraphReadOptions

DATA = Path(__file__).parents[4] / "shared" / "data"
FILMS, EXTRACTED = DATA / "metaqa" / "graph.tsv", DATA / "musique" / "train100_openie.jsonl"
COMMAND = [sys.executable, "-c", "from clew.app.cli.commands import app; app()"]


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_replaces(tmp_path: Path) -> None:
    path = tmp_path / "films.old.tsv"
    path.write_text("Kismet\tdirector\tDieterle\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        assert base.graphs.add(path).outcome == "added"
        (first,) = base.graphs.infos()
        assert first.name == "films" and first.sources[0].path == str(path)
        generation = base.info().generation
        assert base.graphs.add(path).outcome == "unchanged"
        assert base.info().generation == generation
        path.touch()
        assert base.graphs.add(path).outcome == "unchanged"
        assert base.graphs.infos()[0].sources[0].mtime_ns == path.stat().st_mtime_ns
        path.write_text("Kismet\tdirector\tWilliam Dieterle\n")
        assert base.graphs.add(path).outcome == "replaced"
        assert base.graphs.get("films").ids(base.graphs.get("films").find_by_name("william dieterle")) == [
            "films:William Dieterle"
        ]
        with pytest.raises(UnreadableFile):  # read in another way: now its columns make no sense
            base.graphs.add(path, options=GraphReadOptions(columns=("id", "name", "type", "x")))
        assert base.graphs.infos()[0].digest != first.digest


def test_a_graph_is_not_replaced_by_another_file_of_its_name(tmp_path: Path) -> None:
    table, export, moved = (tmp_path / name for name in ("films.csv", "films.tsv", "moved/films.csv"))
    table.write_text("Kismet,director,Dieterle\n")
    export.write_text("Dune\tdirector\tLynch\n")
    moved.parent.mkdir()
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(table)
        digest = base.graphs.infos()[0].digest
        with pytest.raises(UsageError) as refusal:
            base.graphs.add(export)
        assert refusal.value.problem == f"there is a graph 'films' already, of {table}"
        assert refusal.value.hint == "To keep both: --name films-2. To replace it: --name films"
        assert [info.digest for info in base.graphs.infos()] == [digest]
        base.graphs.add(export, name="films-2")
        table.write_text("Kismet,director,William Dieterle\n")
        assert base.graphs.add(table).outcome == "replaced"
        table.rename(moved)
        assert base.graphs.add(moved).outcome == "unchanged"  # known by its content
        assert {info.name: info.sources[0].path for info in base.graphs.infos()} == {
            "films": str(moved),
            "films-2": str(export),
        }
        assert base.graphs.add(export, name="films").outcome == "replaced"  # on purpose


def test_csv_files_given_as_nodes_and_edges_need_no_header_words(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name,type\n1,Ada,person\n2,Charles,person\n")
    (tmp_path / "knows.csv").write_text("1,knows,2\n2,knows,3\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        report = base.graphs.add(
            nodes=[tmp_path / "people.csv"], edges=[tmp_path / "knows.csv"], name="people"
        )
        assert (report.graph.nodes, report.graph.edges, report.undescribed) == (3, 2, 1)
        assert base.graphs.get("people").relations()["knows"].head_types == {"person": 2}
        with pytest.raises(UsageError, match="no file"):
            base.graphs.add(name="x")


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_commands(tmp_path: Path) -> None:
    kb = ("--kb", tmp_path / "kb")
    path = tmp_path / "films.jsonl"
    path.write_text(
        '{"id": "k", "type": "film", "name": "Kismet", "aliases": ["Oriental Dream"], '
        '"text": "A film.", "year": 1944}\n'
        '{"id": "d", "type": "person", "name": "William Dietérle"}\n'
        '["k", "directed by", "d", {"said": "IMDb"}]\n["k", "genre"]\n'
    )
    refused = CliRunner().invoke(app, ["graph", "add", str(path), *map(str, kb)])
    assert refused.exit_code == 1 and "films.jsonl: line 4: " in refused.output
    report = json.loads(run("graph", "add", path, "--skip-bad", "--json", *kb))
    assert (report["outcome"], report["nodes"], report["edges"], report["skipped"]) == ("added", 2, 1, 1)
    assert "unchanged films" in run("graph", "add", path, "--skip-bad", *kb)
    assert str(path) in run("graph", "list", *kb)
    schema = run("graph", "schema", "films", *kb)
    assert "type film: 1 node" in schema and "Kismet >> directed by >> William Dietérle" in schema
    assert "film to person" in schema
    shown = run("graph", "show", "films", "ORIENTAL  DREAM", *kb)
    assert "Kismet >> directed by >> William Dietérle" in shown and "year: 1944" in shown
    (entity,) = json.loads(run("graph", "show", "films", "william dieterle", "--json", *kb))["entities"]
    (triples,) = entity["triples"]
    assert triples["inverse"] and triples["ends"][0]["statements"] == [{"said": "IMDb"}]
    assert "films" in run("info", *kb)
    unknown = CliRunner().invoke(app, ["graph", "show", "films", "Nobody", *map(str, kb)])
    assert unknown.exit_code == 2 and "nothing in the graph 'films' is called 'Nobody'" in unknown.output
    assert "removed films" in run("graph", "remove", "films", *kb)
    assert "no graphs yet" in run("graph", "list", *kb)


@pytest.mark.parametrize("content", ["", "\n\n", "id,name\n", "head,relation,tail\n"])
def test_a_file_without_a_graph_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "g.csv").write_text(content)
    added = CliRunner().invoke(app, ["graph", "add", str(tmp_path / "g.csv"), "--kb", str(tmp_path / "kb")])
    assert added.exit_code == 1 and "g.csv" in added.output
    assert "is empty" in added.output or "there is no node and no edge" in added.output
    assert "no graphs yet" in run("graph", "list", "--kb", tmp_path / "kb")


def test_a_value_is_shown_as_it_is_written_and_compared_as_a_number(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("id,name,share\n1,Ada,0.10\n2,Bo,0.1\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "g.csv")
        graph = base.graphs.get("g")
        assert [entity.properties["share"] for entity in base.graphs.entities("g", "Ada")] == ["0.10"]
        assert graph.property_values("share").numbers.tolist() == [0.1, 0.1]


@pytest.mark.slow
def test_an_import_killed_at_any_instant_leaves_nothing_or_all(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "g.tsv"
    path.write_text(
        "".join(f"n{rng.randrange(9000)}\tr{n % 7}\tn{rng.randrange(9000)}\n" for n in range(60_000))
    )
    command = [*COMMAND, "graph", "add", str(path), "--kb"]
    with subprocess.Popen([*command, str(tmp_path / "whole")], stderr=subprocess.PIPE) as child:
        child.stderr.readline()
        began = time.perf_counter()
        child.communicate()
    lasts = time.perf_counter() - began
    with clew.open(tmp_path / "whole") as base:
        whole = base.info().digest
    with clew.open(tmp_path / "kb", create=True) as base:
        empty = base.info().digest
    ended = set()
    for instant in (0.0, *(rng.uniform(0, 1.1) for _ in range(7))):
        child = subprocess.Popen(
            [*command, str(tmp_path / "kb")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        child.stderr.readline()  # it has begun to read
        time.sleep(instant * lasts)
        child.kill()
        child.communicate()
        with clew.open(tmp_path / "kb") as base:
            digest = base.info().digest
            assert digest in {empty, whole}
            ended.add(digest)
            left = {entry.name for entry in (tmp_path / "kb").iterdir()} - {"derived"}
            assert all(name.startswith("base.sqlite") or name.endswith(".lock") for name in left)
            if digest == whole:
                assert base.graphs.get("g").size <= 9000
                # Killed right after the commit, it owes the emptying of the log; the next one pays.
                findings = base.doctor()
                assert not [
                    finding
                    for finding in findings
                    if finding.what != "write-ahead log" or not finding.repaired
                ]
                assert base.doctor() == []
                base.graphs.remove("g")
            assert base.info().digest == empty
    assert empty in ended


@pytest.mark.slow
@pytest.mark.skipif(not FILMS.is_file(), reason=f"the shared film graph is not at {FILMS}")
def test_the_film_graph(tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        empty = (list(base.store.dump()), base.info().digest)
        report = base.graphs.add(FILMS, name="films")
        lines = {tuple(line.split("\t")) for line in FILMS.read_text().splitlines()}
        assert report.graph.edges == len(lines) and report.bad == 0
        graph = base.graphs.get("films")
        assert graph.size == len({end for head, _, tail in lines for end in (head, tail)})
        assert sum(relation.edges for relation in graph.relations().values()) == len(lines)
        acted = {tail for head, relation, tail in lines if (head, relation) == ("$", "starred actors")}
        _, actors = graph.neighbours(graph.find_by_name("$"), "starred actors")
        assert set(graph.ids(actors)) == {f"films:{name}" for name in acted}
        base.graphs.remove("films")
        assert (list(base.store.dump()), base.info().digest) == empty


@pytest.mark.slow
@pytest.mark.skipif(not EXTRACTED.is_file(), reason=f"the shared extractions are not at {EXTRACTED}")
def test_the_shared_extractions(tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        with pytest.raises(UnreadableFile, match="line 22: not head, relation, tail"):
            base.graphs.add(EXTRACTED)
        report = base.graphs.add(EXTRACTED, skip_bad=True)
        documents = [json.loads(line) for line in EXTRACTED.read_text().splitlines()]
        passages = {(document["title"], document["text"]) for document in documents}
        graph = base.graphs.get(report.graph.name)
        assert graph.types() == {"passage": len(passages)}
        assert report.bad == sum(len(triple) != 3 for document in documents for triple in document["triples"])
