"""``clew graph query`` over an imported graph and over mounted ones: tables, JSON, N-Triples, errors with places."""

import json

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import UsageError
from command_line import run
from sparql_servers import ScriptedEndpoint, serving, store_turtle

pytest.importorskip("pyoxigraph")

FILMS = """The Lighter Bittern\tdirected by\tAda Pell
The Lighter Bittern\tgenre\tdrama
Rain on Slate\tdirected by\tAda Pell
Rain on Slate\tgenre\tcomedy
Ada Pell\tborn in\tMerrowgate
"""
PEOPLE = """{"id": "p1", "name": "Ilse \\"I\\" Varnholt", "types": ["person"], "born": "1901-05-04", "height": 1.75}
{"id": "p2", "name": "Emil Szarka", "types": ["person"], "born": "1899-12-31", "note": "two\\nlines"}
{"head": "p1", "relation": "knows", "tail": "p2"}
"""
TURTLE = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:k a :Film ; rdfs:label "Kismet"@en ; :year 1944 ; :director :d . :d rdfs:label "William Dieterle"@en .
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("query")
    (folder / "films.tsv").write_text(FILMS)
    (folder / "people.jsonl").write_text(PEOPLE)
    run("graph", "add", folder / "films.tsv", "--kb", folder / "base")
    run("graph", "add", folder / "people.jsonl", "--kb", folder / "base")
    return folder / "base"


@pytest.fixture
def ask(base):
    return lambda query, *options, graph="films", status=0: run(
        "graph", "query", graph, query, "--kb", base, *options, status=status
    )


def rows_of(result):
    """Return the cells of a printed table, without its head."""
    return sorted(line.split("  ")[0] for line in result.stdout.splitlines()[2:])


def test_nodes_are_shown_by_name_and_id(ask):
    films = ask('SELECT ?film { ?film r:directed%20by ?x . ?x clew:name "Ada Pell" }')
    assert films.stdout.splitlines()[0] == "film"
    assert rows_of(films) == ["Rain on Slate", "The Lighter Bittern"]
    people = ask("SELECT ?x ?relation { ?x ?relation ?y . ?y clew:type ?type }", graph="people")
    assert people.stdout.splitlines()[2:] == ['Ilse "I" Varnholt (people:p1)  knows']


def test_values_are_shown_as_they_are_written_and_on_one_line(ask):
    query = (
        'SELECT ?height ?born ?note { ?x clew:id "p%s" . OPTIONAL { ?x n:height ?height } ?x n:born ?born '
    )
    query += "OPTIONAL { ?x p:note ?note } }"
    first = ask(query % 1, graph="people").stdout.splitlines()
    assert first[0].split() == ["height", "born", "note"] and first[2].split() == [
        "1.75",
        "1901.33698630137",
    ]
    assert ask(query % 2, graph="people").stdout.splitlines()[2].endswith("1899.9972602739726  two lines")
    days = ask('SELECT ?day { ?x d:born ?day FILTER(?day > "1900-01-01"^^xsd:date) }', graph="people")
    assert rows_of(days) == ["1901-05-04"]


def test_yes_and_no(ask):
    assert ask("ASK { ?x r:born%20in ?y }").stdout == "yes\n"
    assert ask('ASK { ?x clew:name "SERVICE" } # a text and a comment: INSERT SERVICE').stdout == "no\n"


def test_triples_can_be_read_again(ask):
    import pyoxigraph

    printed = ask("CONSTRUCT { ?y r:directed ?x } { ?x r:directed%20by ?y }")
    triples = list(pyoxigraph.parse(printed.stdout.encode(), pyoxigraph.RdfFormat.N_TRIPLES))
    assert {triple.predicate.value for triple in triples} == {"urn:clew:relation:directed"}
    assert len(triples) == 2 and printed.stderr == ""
    template = '?x p:note ?note ; n:height ?height ; r:says "hallo"@de ; r:is []'
    query = f"CONSTRUCT {{ {template} }} {{ ?x p:note ?note BIND(1.5e0 AS ?height) }}"
    printed = ask(query, graph="people").stdout
    objects = {t.object for t in pyoxigraph.parse(printed.encode(), pyoxigraph.RdfFormat.N_TRIPLES)}
    assert {pyoxigraph.Literal("two\nlines"), pyoxigraph.Literal("hallo", language="de")} < objects
    assert "<urn:clew:property:note>" in ask('DESCRIBE ?x { ?x clew:id "p2" }', graph="people").stdout


def test_json_has_sparql_results_and_names(ask):
    result = json.loads(ask("SELECT ?x ?n { ?x r:knows ?y . ?y n:born ?n }", "--json", graph="people").stdout)
    assert result["head"] == {"vars": ["x", "n"]}
    (binding,) = result["results"]["bindings"]
    assert binding["n"]["datatype"] == "http://www.w3.org/2001/XMLSchema#double"
    assert result["nodes"] == {binding["x"]["value"]: {"name": 'Ilse "I" Varnholt', "id": "people:p1"}}
    assert (result["more"], result["warnings"]) == (False, [])
    assert json.loads(ask("ASK {}", "--json").stdout)["boolean"] is True
    (triple,) = json.loads(ask("CONSTRUCT WHERE { ?x r:born%20in ?y }", "--json").stdout)["triples"]
    assert triple["predicate"] == {"type": "uri", "value": "urn:clew:relation:born%20in"}


def test_the_limit_is_said(ask):
    result = ask("SELECT ?s { ?s ?p ?o }", "--limit", 2)
    assert len(rows_of(result)) == 2 and "more; see --limit" in result.stderr
    assert len(ask("CONSTRUCT WHERE { ?s ?p ?o }", "--limit", 3).stdout.splitlines()) == 3
    exact = ask("SELECT ?s { ?s r:genre ?o }", "--limit", 2)
    assert len(rows_of(exact)) == 2 and exact.stderr == ""


def test_a_query_from_a_file_and_from_standard_input(ask, base, tmp_path):
    (tmp_path / "query.rq").write_text("ASK { ?x r:genre ?y }")
    assert ask(f"@{tmp_path / 'query.rq'}").stdout == "yes\n"
    words = ["graph", "query", "films", "-", "--kb", str(base)]
    assert CliRunner().invoke(app, words, input="ASK { ?x r:genre ?x }").stdout == "no\n"
    assert "cannot be read" in ask(f"@{tmp_path / 'none.rq'}", status=2).output


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("INSERT DATA { <a:b> <a:b> <a:b> }", ["INSERT is an update", "clew graph add"]),
        ("# SELECT\nPREFIX x: <urn:x> delete where { ?s ?p ?o }", ["DELETE is an update"]),
        ("", ["the query is empty"]),
        ("hello", ["does not begin with 'hello'"]),
        (
            "SELECT *\n{ ?x foo:a ?y }",
            ["line 2, column 6: the prefix foo: is", "\n    { ?x foo:a ?y }\n         ^"],
        ),
        ("SELECT * { ?x r:a b ?y }", ["line 1, column 20", "unexpected '?y'"]),
        ("SELECT * { ?x r:a", ["line 1, column 18", "something is missing here"]),
        ("SELECT (COUNT(*) AS ?n) ?x { ?x ?p ?y }", ["variable that is unbound"]),
        ("SELECT * { SERVICE <http://localhost/> { ?a ?b ?c } }", ["another machine"]),
        ("SELECT * { \\u0053ervice <http://localhost/> { ?a ?b ?c } }", ["another machine"]),
    ],
)
def test_a_bad_query_is_refused_with_its_place(ask, query, words):
    output = ask(query, status=2).output
    assert [word for word in words if word not in output] == []


def test_unknown_names_are_said(ask):
    result = ask("SELECT * { ?x r:directedby ?y ; p:yaer ?z ; clew:nmae ?n }")
    assert "no relation 'directedby'; did you mean r:directed%20by?" in result.stderr
    assert "no property 'yaer'; see clew graph schema films" in result.stderr
    assert "no clew:nmae" in result.stderr and "no results" in result.stdout
    assert "did you mean p:born?" in ask("ASK { ?x n:borm 3 }", graph="people").stderr
    declared = ask("PREFIX r: <urn:mine:> SELECT * { ?x r:directedby ?y . ?y <urn:clew:type> 'r:none' }")
    assert declared.stderr == ""


def test_a_long_query_is_given_up(base):
    numbers = " ".join(map(str, range(150)))
    values = " ".join(f"VALUES ?v{n} {{ {numbers} }}" for n in range(3))
    query = f"SELECT (COUNT(*) AS ?n) {{ {values} FILTER(?v0 + ?v1 + ?v2 < 0) }}"
    with clew.open(base) as opened, pytest.raises(UsageError, match=r"more than 0\.05 seconds"):
        opened.graphs.query("films", query, timeout=0.05)


@pytest.mark.slow
def test_python_has_the_same_results(base):
    with clew.open(base) as opened:
        result = opened.graphs.query("films", "SELECT ?town { ?x r:born%20in ?town }")
        (solution,) = result.solutions
        assert result.nodes[solution["town"]["value"]].id == "films:Merrowgate"
        assert opened.graphs.query("films", "ASK { ?x r:genre ?y }").answer is True
        assert opened.graphs.query("films", "SELECT ?x { BIND(node:99 AS ?x) }").nodes == {}
        with pytest.raises(UsageError, match="no graph named"):
            opened.graphs.query("none", "ASK {}")


@pytest.mark.slow
def test_a_mounted_store_is_asked_in_its_own_terms(tmp_path):
    run("graph", "mount", "shop", store_turtle(tmp_path / "rdf", TURTLE), "--kb", tmp_path / "base")
    query = "PREFIX : <http://example.org/> SELECT ?x ?year { ?x :director ?d ; :year ?year }"
    printed = run("graph", "query", "shop", query, "--kb", tmp_path / "base").stdout
    assert printed.splitlines()[2] == "Kismet (shop:http://example.org/k)  1944"
    described = run("graph", "query", "shop", "DESCRIBE <http://example.org/d>", "--kb", tmp_path / "base")
    assert '"William Dieterle"@en' in described.stdout
    refused = run(
        "graph", "query", "shop", "SELECT * { ?x r:director ?y }", "--kb", tmp_path / "base", status=2
    )
    assert "the prefix r: is not declared" in refused.output
    assert (
        "another machine"
        in run(
            "graph", "query", "shop", "ASK { SERVICE <http://x/> {} }", "--kb", tmp_path / "base", status=2
        ).output
    )


@pytest.mark.slow
def test_a_mounted_endpoint_is_asked(tmp_path):
    for url in serving(tmp_path, TURTLE):
        run("graph", "mount", "shop", url, "--kb", tmp_path / "base")
        query = "SELECT ?d { ?x <http://example.org/director> ?d }"
        printed = run("graph", "query", "shop", query, "--kb", tmp_path / "base").stdout
        assert printed.splitlines()[2] == "William Dieterle (shop:http://example.org/d)"
        answer = run(
            "graph", "query", "shop", "ASK { ?x <http://example.org/none> ?d }", "--kb", tmp_path / "base"
        )
        assert answer.stdout == "no\n"
        limited = run(
            "graph", "query", "shop", "SELECT * { ?s ?p ?o }", "--limit", 1, "--kb", tmp_path / "base"
        )
        assert "more; see --limit" in limited.stderr
        refused = run("graph", "query", "shop", "SELECT * {", "--kb", tmp_path / "base", status=2)
        assert "refused the query (HTTP 400" in refused.output
        constructed = run(
            "graph", "query", "shop", "CONSTRUCT WHERE { ?s ?p ?o }", "--kb", tmp_path / "base", status=2
        )
        assert "CONSTRUCT is not sent" in constructed.output


def test_an_endpoint_that_answers_with_no_results_is_refused(tmp_path):
    with ScriptedEndpoint(lambda query: []) as endpoint:
        run("graph", "mount", "shop", endpoint.url, "--kb", tmp_path / "base")
        refused = run("graph", "query", "shop", "SELECT * { ?s ?p ?o }", "--kb", tmp_path / "base", status=2)
    assert "something other than SPARQL results" in refused.output
