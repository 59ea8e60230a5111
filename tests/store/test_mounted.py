"""Mounted graphs: against the same graph imported, on a real SPARQL server on loopback; and against bad servers."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import NotFound, RemoteError, UsageError
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import Question
from clew.knowledge_base import registry
from clew.store.sparql.endpoint import Endpoint, format_literal, is_iri
from clew.store.sparql.mount_options import MountOptions
from raw_server import RawServer, drip, endless, redirect, reply
from sparql_servers import Served, serving, store_turtle

TURTLE = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:k a :Film ; rdfs:label "Kismet"@en , "Kismet (Film)"@de ; skos:altLabel "Oriental Dream"@en ;
  rdfs:comment "A film."@en ; :year 1944 ; :score 6.5 ; :tag "a" , "b" ; :director :d ; :star :d , :m .
:d a :Person ; rdfs:label "William \\"Bill\\" Dieterle"@en .
:m a :Person , :Singer ; rdfs:label "Marlene Dietrich" .
:n :director :m .
:director rdfs:label "directed by"@en . :Film rdfs:label "film"@en .
"""
FILM = "http://example.org/k"


WIKIBASE = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wikibase: <http://wikiba.se/ontology#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wd:P57 a wikibase:Property ; wikibase:directClaim wdt:P57 ; rdfs:label "director"@en , "Regisseur"@de .
wd:P31 a wikibase:Property ; wikibase:directClaim wdt:P31 ; rdfs:label "instance of"@en .
wd:Q11424 rdfs:label "film"@en .
wd:Q1 rdfs:label "Kismet"@en ; wdt:P31 wd:Q11424 ; wdt:P57 wd:Q2 .
wd:Q2 rdfs:label "William Dieterle"@en .
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from serving(tmp_path_factory.mktemp("oxigraph"), TURTLE)


@pytest.fixture
def wikibase(tmp_path: Path) -> Iterator[str]:
    yield from serving(tmp_path, WIKIBASE)


@pytest.fixture(params=["server", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An endpoint and a store's folder that hold the same."""
    if request.param == "server":
        return str(request.getfixturevalue("server"))
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    return str(store_turtle(tmp_path / "store", TURTLE))


def neighbours(graph, id: str, relation: str, inverse: bool = False) -> list[str]:
    offsets, rows = graph.neighbours(graph.rows([id]), relation, inverse)
    assert offsets.tolist() == [0, len(rows)] and np.all(rows[1:] > rows[:-1])
    return sorted(item.partition(":")[2] for item in graph.ids(rows))


@pytest.mark.slow
def test_a_mounted_graph_equals_the_imported_one(place: str, tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    (tmp_path / "a.ttl").write_text(TURTLE)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "a.ttl", name="here")
        base.graphs.mount("there", place)
        assert list(base.store.snapshot().graphs()) == ["here", "there"]
        here, there = base.graphs.get("here"), base.graphs.get("there")
        assert there.types() == here.types()
        assert here.properties() and there.properties() == {}  # an endpoint would count for hours
        assert {name: value.edges for name, value in there.relations().items()} == {
            name: value.edges for name, value in here.relations().items()
        }
        ids = [f"http://example.org/{value}" for value in "kdmn"]
        for item, other in zip(
            here.entities(here.rows([f"here:{id}" for id in ids])),
            there.entities(there.rows([f"there:{id}" for id in ids])),
            strict=True,
        ):
            assert (
                item.name,
                item.type,
                item.more_types,
                item.aliases,
                item.text,
                dict(item.properties),
            ) == (
                other.name,
                other.type,
                other.more_types,
                other.aliases,
                other.text,
                dict(other.properties),
            )
        for id in ids:
            (row,), (other_row,) = here.rows([f"here:{id}"]), there.rows([f"there:{id}"])
            assert there.relations_at(np.array([other_row])) == here.relations_at(np.array([row]))
            for relation in here.relations():
                for inverse in (False, True):
                    assert neighbours(there, f"there:{id}", relation, inverse) == neighbours(
                        here, f"here:{id}", relation, inverse
                    )
        for name in (
            "Kismet",
            "kismet",
            "ORIENTAL DREAM",
            'William "Bill" Dieterle',
            "Marlene Dietrich",
            "x",
        ):
            assert [id.partition(":")[2] for id in there.ids(there.find_by_name(name))] == [
                id.partition(":")[2] for id in here.ids(here.find_by_name(name))
            ]
        for type in ("film", "Person", "Singer", "none"):
            assert len(there.rows_of_type(type)) == len(here.rows_of_type(type))
        several = there.rows([f"there:{id}" for id in [*ids, *ids[:2]]])
        offsets, _ = there.neighbours(several, "star")
        assert np.diff(offsets).tolist() == [2, 0, 0, 0, 2, 0]
        assert there.edge_properties(0, "star", 1) == []


def test_a_wikibase_has_the_properties_that_it_lists(wikibase: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("wikidata", wikibase)
        assert set(graph.relations()) == {"director", "instance of"} and graph.types() == {}
        assert graph.relations()["director"].id == "http://www.wikidata.org/prop/direct/P57"
        (film,) = base.graphs.entities("wikidata", "kismet")
        assert film.type == "film"
        assert neighbours(graph, film.id, "director") == ["http://www.wikidata.org/entity/Q2"]
        assert graph.ids(graph.rows_of_type("film")) == [film.id]
        assert len(graph.rows_of_type("river")) == 0


def test_the_schema_is_stored_and_deleted_with_the_mount(server: str, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    with clew.open(kb, create=True) as base:
        before = (list(base.store.dump()), base.info().digest)
        base.graphs.mount("g", server)
        assert base.info().digest != before[1]
    with clew.open(kb) as base:
        graph = base.graphs.get("g")
        graph.endpoint.url = "http://127.0.0.1:1/closed"  # nothing is asked for what is known
        assert "directed by" in graph.relations() and graph.types()["film"] == 1
        with pytest.raises(UsageError, match="mounted graph"):
            base.graphs.add(
                Path(__file__), name="g", options=clew.knowledge_base.GraphReadOptions(format="tsv")
            )
        base.graphs.remove("g")
        assert (list(base.store.dump()), base.info().digest) == before
        assert not list((kb / "derived" / "mounts").iterdir())


def test_unknown_nodes_relations_and_endpoints_are_refused(place: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("g", place, MountOptions(most=1))
        for id in ("g:http://example.org/none", "h:http://example.org/k", "g:a b", "g:http://x/> } #"):
            with pytest.raises(NotFound):
                graph.rows([id])
        with pytest.raises(UsageError, match="Did you mean 'directed by'"):
            graph.neighbours(graph.rows([f"g:{FILM}"]), "direct by")
        with pytest.raises(RemoteError, match="more than 1 nodes"):
            graph.rows_of_type("Person")
        with pytest.raises(RemoteError, match="refused the query"):
            graph.endpoint.select("SELECT nonsense")


def test_the_mount_command(place: str, tmp_path: Path) -> None:
    kb = ["--kb", str(tmp_path / "kb")]
    run = CliRunner()
    result = run.invoke(app, ["graph", "mount", "films", place, *kb])
    assert result.exit_code == 0 and "mounted films: 3 types, 2 relations" in result.stdout
    shown = run.invoke(app, ["graph", "show", "films", "kismet", *kb])
    assert "Kismet >> directed by >> William" in shown.stdout and "year: 1944" in shown.stdout
    assert place in run.invoke(app, ["graph", "list", *kb]).stdout
    assert "relation directed by" in run.invoke(app, ["graph", "schema", "films", *kb]).stdout
    refused = run.invoke(app, ["graph", "mount", "x", "http://127.0.0.1:1/none", *kb])
    assert refused.exit_code == 2 and "cannot be reached" in refused.output
    assert run.invoke(app, ["graph", "remove", "films", *kb]).exit_code == 0


class Scripted(Served):
    """A server that answers each question with the next of its answers: status, headers, body."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        waiting = list(answers)
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked += 1
                status, headers, body = waiting.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler)


EMPTY = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": []}}).encode()


def test_a_busy_endpoint_is_asked_again_after_the_time_it_names() -> None:
    waits: list[float] = []
    with Scripted((429, {"Retry-After": "7"}, b""), (503, {}, b""), (200, {}, EMPTY)) as server:
        assert Endpoint(server.url, sleep=waits.append).select("SELECT") == []
        assert server.asked == 3
    assert [wait for wait in waits if wait] == [7.0, 1.0, 2.0]


def test_queries_keep_their_interval() -> None:
    waits: list[float] = []
    with Scripted((200, {}, EMPTY), (200, {}, EMPTY)) as server:
        endpoint = Endpoint(server.url, interval=100.0, sleep=waits.append)
        endpoint.select("SELECT")
        endpoint.select("SELECT")
    assert waits[0] == 0.0 and 90 < waits[1] <= 100


@pytest.mark.parametrize(
    ("answer", "problem", "asked"),
    [
        ((400, {}, b"Parse error"), "HTTP 400: Parse error", 1),
        ((404, {}, b""), "HTTP 404", 1),
        ((200, {}, b"<html>"), "other than JSON", 1),
        ((200, {}, b"{}"), "other than SPARQL results", 1),
        ((200, {"X-SPARQL-MaxRows": "10000"}, EMPTY), "cut its answer at 10000 rows", 1),
        ((429, {"Retry-After": "3600"}, b""), "asks to wait 3600 seconds", 1),
        ((503, {}, b""), "busy", 4),
    ],
)
def test_invalid_answers_raise_remote_error(
    answer: tuple[int, dict[str, str], bytes], problem: str, asked: int
) -> None:
    with Scripted(*[answer] * 4) as server:
        with pytest.raises(RemoteError, match=problem):
            Endpoint(server.url, sleep=lambda seconds: None).select("SELECT")
        assert server.asked == asked


def test_a_timeout_is_reported() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(RemoteError, match="did not answer within"):
            Endpoint(url, timeout=0.05, tries=2, sleep=lambda seconds: None).select("SELECT")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda r: endless(b"HTTP/1.1 200 OK\r\n\r\n"), "larger than 64"),
        (
            lambda r: endless(b"HTTP/1.1 200 OK\r\nContent-Length: 1288490188\r\n\r\n", b" " * 65_536),
            "larger than",
        ),
        (lambda r: [reply(gzip.compress(bytes(200_000_000)), Content_Encoding="gzip")], "larger than"),
        (lambda r: drip(b"HTTP/1.1 200 OK\r\n\r\n", b" "), "did not answer within 0.5"),
        (lambda r: drip(b"HTTP/1.1 200 OK\r\nX-Slow: "), "did not answer within 0.5"),
        (lambda r: [reply(b"[" * 100_000)], "other than JSON"),
    ],
)
def test_no_reply_of_an_endpoint_is_without_bounds(answer, problem: str) -> None:
    with RawServer(answer) as server:
        endpoint = Endpoint(server.url, timeout=0.5 if "within" in problem else 60.0, tries=1)
        with pytest.raises(RemoteError, match=problem):
            endpoint.select("SELECT")
        assert server.sent < 200 << 20


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", ["http://127.0.0.1:{}/meta-data", "http://[::1]:{}/", "//localhost:{}/"])
def test_an_endpoint_leads_nowhere_inside(status: int, place: str, tmp_path: Path) -> None:
    """What stood there was once printed as part of the refusal."""
    with RawServer(lambda r: [reply(b"the secret of another server", "400 No")]) as inner:
        leads = redirect(place.format(inner.port), status)
        with RawServer(lambda r: [leads]) as server:
            words = ["graph", "mount", "far", server.url, "--kb", str(tmp_path / "kb")]
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 2 and "secret" not in result.output
            assert "redirects to another place" in " ".join(result.output.split())
            assert len(server.asked) == 1
        assert inner.connections == 0


def test_literals_are_escaped() -> None:
    assert format_literal('a"b\\c\n', "en") == '"a\\"b\\\\c\\n"@en'
    assert is_iri(FILM) and not any(map(is_iri, ("a b", "http://a>b", "no scheme", "http://a b", "a:\n")))


def test_neighbours_along_any_relation_and_has_type(tmp_path: Path, place: str) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        graph = base.graphs.mount("m", place)
        graph = base.graphs.get("m")
        k, d, m = graph.rows([f"m:http://example.org/{item}" for item in "kdm"])
        offsets, others = graph.neighbours(np.array([k, d]), None)
        assert offsets.tolist() == [0, 2, 2] and others.tolist() == sorted([d, m])
        offsets, others = graph.neighbours(np.array([m]), None, True)
        assert set(graph.ids(others)) == {"m:http://example.org/k", "m:http://example.org/n"}
        assert graph.has_type(np.array([k, m]), "Singer").tolist() == [False, True]
        assert graph.adjacency(None) is None and graph.property_values("year") is None


def test_a_mounted_graph_refuses_to_index_texts(place: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.mount("there", place)
        record = TrailRecorder()
        retriever = registry.build_retriever("bm25-nodes", base.store)
        assert explore_retriever(retriever, Question("Kismet"), 3, record) == []
        assert record.steps[0].detail["passed over"] == "it is mounted"
        graph = base.graphs.get("there")
        assert list(graph.answer_types()) == []
        with pytest.raises(UsageError, match="mounted graph: no texts of its nodes are stored"):
            graph.node_postings("document")
