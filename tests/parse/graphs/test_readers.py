"""Every form of graph file, read into dictionaries."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest

from clew.core.errors import UnreadableFile, UsageError
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.formats import GraphReadOptions
from clew.parse.graphs.reader import read_graph
from graph_twin import Twin

KISMET = ("Kismet", "directed by", "William Dieterle")
PUSHOVER = ("Pushover", "starred actors", 'Fred "Mac" Murray')


SUBJECTS = """Subject\tPredicate\tObject
Kismet\tdirected by\tWilliam Dieterle
Pushover\tstarred actors\tFred "Mac" Murray"""
OBJECTS = """object,subject,relation
William Dieterle,Kismet,directed by
"Fred ""Mac"" Murray",Pushover,starred actors
"""
TRIPLES = r"""["Kismet", "directed by", "William Dieterle"]
{"head": "Pushover", "relation": "starred actors", "tail": "Fred \"Mac\" Murray"}
"""
LINKS = r"""{"subject": "Kismet", "predicate": "directed by", "object": "William Dieterle"}

{"source": "Pushover", "type": "starred actors", "target": "Fred \"Mac\" Murray"}"""
TORN = """["a","b","c"]
{"title":"t","text":"x","triples":[["a","b","c"],["a","b"]]}
"""


def read_twin(path: Path, content: str | bytes, **options) -> Twin:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    twin = Twin()
    faults = RowErrors()
    read_graph(path, twin, GraphReadOptions(**options), faults)
    faults.raise_errors()
    return twin


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "Kismet\tdirected by\tWilliam Dieterle\nPushover\tstarred actors\tFred \"Mac\" Murray\n"),
        ("a.tsv", SUBJECTS),
        ("a.csv", 'Kismet,directed by,William Dieterle\r\n\r\nPushover,starred actors,"Fred ""Mac"" Murray"\r\n'),
        ("a.csv", OBJECTS),
        ("a.csv", 'Kismet;directed by;William Dieterle\nPushover;starred actors;"Fred ""Mac"" Murray"\n'),
        ("a.txt", 'Kismet|directed by|William Dieterle\nPushover|starred actors|"Fred ""Mac"" Murray"\n'),
        ("a.tsv", "\ufeffKismet\tdirected by\tWilliam Dieterle\n Pushover \tstarred actors\tFred \"Mac\" Murray \n"),
        ("a.jsonl", TRIPLES),
        ("a.jsonl", LINKS),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", [None, gzip.compress, bz2.compress, lzma.compress])
def test_triples_in_all_their_forms(tmp_path: Path, name: str, content: str, pack) -> None:
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2", lzma.compress: ".xz"}.get(pack, "")
    data = content.encode()
    twin = read_twin(tmp_path / f"{name}{ending}", pack(data) if pack else data)
    assert set(twin.edges) == {KISMET, PUSHOVER}


def test_columns_can_be_named_and_the_others_are_properties(tmp_path: Path) -> None:
    twin = read_twin(
        tmp_path / "a.csv", "1944,Dieterle,Kismet,directed\n", columns=("year", "tail", "head", "relation")
    )
    assert twin.edges == {("Kismet", "directed", "Dieterle"): [{"year": 1944}]}
    twin = read_twin(tmp_path / "a.csv", "head,relation,tail\na,b,c\n", header=False)
    assert set(twin.edges) == {("head", "relation", "tail"), ("a", "b", "c")}


def test_neo4j_tables(tmp_path: Path) -> None:
    """The example of Neo4j's manual (Operations Manual, Import), with a second space of ids."""
    nodes = read_twin(
        tmp_path / "movies.csv",
        "movieId:ID,title,year:int,:LABEL,tags:string[],seen:boolean,note:IGNORE\n"
        'tt0133093,"The Matrix",1999,Movie,a;b,true,x\n'
        'tt0234215,"The Matrix Reloaded",2003,Movie;Sequel,,false,y\n',
    )
    assert nodes.nodes["tt0133093"] == {
        "types": ["Movie"],
        "name": "The Matrix",
        "properties": {"year": 1999, "tags": ["a", "b"], "seen": True},
    }
    assert nodes.nodes["tt0234215"]["types"] == ["Movie", "Sequel"]
    assert nodes.nodes["tt0234215"]["properties"] == {"year": 2003, "seen": False}
    edges = read_twin(
        tmp_path / "roles.csv",
        ':START_ID(Person),role:string,:END_ID,:TYPE\nkeanu,"Neo, the One",tt0133093,ACTED_IN\n',
    )
    assert edges.edges == {("Person/keanu", "ACTED_IN", "tt0133093"): [{"role": "Neo, the One"}]}


def test_node_tables_by_the_names_of_their_columns(tmp_path: Path) -> None:
    twin = read_twin(
        tmp_path / "nodes.tsv",
        "node_id\tnode_type\tname\taliases\tdescription\tyear\tcode\n"
        "7\tdisease\tGaucher disease\tGBA deficiency; glucocerebrosidase deficiency\tA storage disease.\t1882\t007\n",
    )
    assert twin.nodes["7"] == {
        "types": ["disease"],
        "name": "Gaucher disease",
        "aliases": ["GBA deficiency", "glucocerebrosidase deficiency"],
        "text": "A storage disease.",
        "properties": {"year": 1882, "code": "007"},
    }


def test_json_lines_of_nodes_and_edges(tmp_path: Path) -> None:
    twin = read_twin(
        tmp_path / "a.jsonl",
        "\n".join(
            map(
                json.dumps,
                [
                    {
                        "id": 7,
                        "type": "film",
                        "name": "Kismet",
                        "aliases": ["Oriental Dream"],
                        "text": "A film.",
                        "properties": {"year": 1944, "tags": ["a", 1]},
                        "rating": 6.1,
                    },
                    {"id": "8", "labels": ["person", "director"], "title": "William Dieterle"},
                    {"head": 7, "relation": "director", "tail": "8", "year": 1944, "properties": {"a": 1}},
                    ["7", "genre", "Musical", {"said": "IMDb"}],
                ],
            )
        ),
    )
    assert twin.nodes["7"] == {
        "types": ["film"],
        "name": "Kismet",
        "aliases": ["Oriental Dream"],
        "text": "A film.",
        "properties": {"year": 1944, "tags": ["a", 1], "rating": 6.1},
    }
    assert twin.nodes["8"]["types"] == ["person", "director"]
    assert twin.nodes["8"]["name"] == "William Dieterle"
    assert twin.edges == {
        ("7", "director", "8"): [{"year": 1944, "a": 1}],
        ("7", "genre", "Musical"): [{"said": "IMDb"}],
    }


def test_the_export_of_neo4j_as_json_lines(tmp_path: Path) -> None:
    """The example of the manual of APOC (``apoc.export.json.all``)."""
    twin = read_twin(
        tmp_path / "all.jsonl",
        '{"type":"node","id":"0","labels":["User"],"properties":{"born":"2015-07-04","name":"Adam","age":42}}\n'
        '{"type":"node","id":"1","labels":["User"],"properties":{"name":"Jim","place":{"x":1.5,"crs":"wgs"}}}\n'
        '{"id":"0","type":"relationship","label":"KNOWS","properties":{"since":1993},'
        '"start":{"id":"0","labels":["User"]},"end":{"id":"1","labels":["User"]}}\n',
    )
    assert twin.nodes["0"]["name"] == "Adam" and twin.nodes["0"]["types"] == ["User"]
    assert twin.nodes["0"]["properties"] == {"born": "2015-07-04", "age": 42}
    assert twin.nodes["1"]["properties"] == {"place": '{"crs": "wgs", "x": 1.5}'}
    assert twin.edges == {("0", "KNOWS", "1"): [{"since": 1993}]}


def test_extractions_keep_the_passage_that_each_triple_comes_from(tmp_path: Path) -> None:
    line = {
        "title": "Kismet",
        "text": "Kismet is a film by William Dieterle.",
        "entities": ["Kismet", "Golden Age"],
        "triples": [["Kismet", "directed by", "William Dieterle"]],
    }
    twin = read_twin(tmp_path / "a.jsonl", f"{json.dumps(line)}\n{json.dumps(line)}\n")
    ((edge, (provenance,)),) = twin.edges.items()
    assert edge == KISMET
    assert provenance["title"] == "Kismet"
    passage = twin.nodes[provenance["passage"]]
    assert passage["text"] == line["text"] and passage["properties"] == {"title": "Kismet"}
    assert passage["types"] == ["passage"] and "name" not in passage
    assert "Golden Age" in twin.nodes and len(twin.nodes) == 4


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra 'graphs' is not installed")
    from datetime import date

    from pyarrow import parquet

    path = tmp_path / "nodes.parquet"
    table = {
        "id": [1, 2],
        "type": ["film", None],
        "name": ["Kismet", "x"],
        "released": [date(1944, 8, 22), None],
        "score": [6.1, float("nan")],
        "tags": [["a", "b"], []],
    }
    parquet.write_table(pa.table(table), path)
    twin = read_twin(path, path.read_bytes())
    assert twin.nodes["1"] == {
        "types": ["film"],
        "name": "Kismet",
        "properties": {"released": "1944-08-22", "score": 6.1, "tags": ["a", "b"]},
    }
    assert twin.nodes["2"]["properties"] == {}
    path = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"source": [1.0, 2.0], "target": ["2", "1"], "type": ["to", "fro"]}), path)
    assert set(read_twin(path, path.read_bytes()).edges) == {("1", "to", "2"), ("2", "fro", "1")}


TURTLE = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Q1 a :Film ; rdfs:label "Kismet"@en , "Kismet (film)"@en-GB , "Kismet, der Film"@de , "キスメット"@ja ;
    skos:altLabel "Oriental Dream"@en , "Ein Traum"@de ; rdfs:comment "A film."@en , "Ein Film."@de ;
    :year 1944 ; :score 6.1 ; :seen true ; :born "1944-08-22"^^xsd:date ; :weight "heavy"^^xsd:integer ;
    :directedBy :William_Dieterle , [ rdfs:label "someone"@en ] .
:Q2 rdfs:label "カサブランカ"@ja .
:directedBy rdfs:label "directed by"@en .
"""


@pytest.mark.parametrize(
    ("languages", "name", "alias"),
    [(("en",), "Kismet", "Oriental Dream"), (("de", "en"), "Kismet, der Film", "Ein Traum")],
)
def test_rdf_as_a_graph_of_a_base(tmp_path: Path, languages, name: str, alias: str) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    import clew

    (tmp_path / "a.ttl").write_text(TURTLE)
    with clew.open(tmp_path / "kb", create=True) as base:
        report = base.graphs.add(tmp_path / "a.ttl", name="g", options=GraphReadOptions(languages=languages))
        (film,) = base.graphs.entities("g", name)
        assert film.id == "g:http://example.org/Q1" and film.type == "Film" and film.name == name
        assert alias in film.aliases and "キスメット" not in film.aliases
        assert film.properties == {
            "year": 1944,
            "score": 6.1,
            "seen": True,
            "born": "1944-08-22",
            "weight": "heavy",
        }
        assert ("Ein Film." in film.text) == ("de" in languages)
        assert sum(report.left_out.values()) == (2 if languages == ("en",) else 0)
        graph = base.graphs.get("g")
        relation = graph.relations()["directed by"]
        assert relation.id == "http://example.org/directedBy"
        ends = graph.entities(graph.neighbours(graph.rows([film.id]), "directed by")[1])
        assert sorted(entity.name for entity in ends) == ["William Dieterle", "someone"]
        (other,) = base.graphs.entities("g", "カサブランカ")  # no label in a language that was asked for
        assert other.aliases == ()


def test_the_same_statements_in_three_forms_make_the_same_graph(tmp_path: Path) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    import clew

    turtle = TURTLE.replace('[ rdfs:label "someone"@en ]', ":someone").encode()
    quads = list(pyoxigraph.parse(turtle, pyoxigraph.RdfFormat.TURTLE))
    (tmp_path / "a.ttl").write_bytes(turtle)
    lines = pyoxigraph.serialize([quad.triple for quad in quads[::-1]], format=pyoxigraph.RdfFormat.N_TRIPLES)
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "a.rdf").write_bytes(
        pyoxigraph.serialize([quad.triple for quad in quads], format=pyoxigraph.RdfFormat.RDF_XML)
    )
    digests = set()
    with clew.open(tmp_path / "kb", create=True) as base:
        for name in ("a.ttl", "a.nt.gz", "a.rdf"):
            digests.add(base.graphs.add(tmp_path / name, name=name).graph.digest)
    assert len(digests) == 1


BAD = [
    ("a.tsv", "a\tb\tc\na\tb\n", 2, "2 cells instead of 3"),
    ("a.tsv", "a\tb\tc\n\na\tb\tc\td\n", 3, "4 cells instead of 3"),
    ("a.tsv", "a\tb\tc\na\t\tc\n", 2, "the relation is empty"),
    ("a.tsv", "a\tb\tc\n \tb\tc\n", 2, "the head is empty"),
    ("a.tsv", b"a\tb\tc\na\tb\t\xff\xfe\n", 2, "byte 5 is not UTF-8"),
    ("a.csv", 'a,b,c\na,b,"c\nd"\n', 2, "more than one line"),
    ("a.csv", "id,name\n1,x\n1,y\n", 3, "the node '1' was given before"),
    ("a.csv", "id,name\n1,x\n,y\n", 3, "the id is empty"),
    ("a.csv", "id,year:int\n1,1944\n2,soon\n", 3, "year is 'soon', not a number"),
    ("a.csv", "id,seen:boolean\n1,true\n2,perhaps\n", 3, "not true or false"),
    ("a.csv", ":START_ID,:END_ID,:TYPE,w:float\na,b,c,1.5\na,b,c,x\n", 3, "w is 'x', not a number"),
    ("a.jsonl", '["a","b","c"]\n["a","b"]\n', 2, "a triple has 2 parts"),
    ("a.jsonl", '["a","b","c"]\n{"a": 1}\n', 2, "neither an edge (head, relation, tail) nor a node (id)"),
    ("a.jsonl", '["a","b","c"]\n{"a": 1,\n', 2, "is not JSON"),
    ("a.jsonl", '["a","b","c"]\n"a b c"\n', 2, "neither an object nor a triple"),
    ("a.jsonl", '["a","b","c"]\n["a","b",null]\n', 2, "the tail is empty"),
    ("a.jsonl", '["a","b","c"]\n["a","b",["c"]]\n', 2, "the tail is no text or whole number"),
    ("a.jsonl", '["a","b","c"]\n["a","b","\\ud800"]\n', 2, "half a character"),
    ("a.jsonl", '["a","b","c"]\n{"id":"a","name":"\\ud800"}\n', 2, "half a character"),
    ("a.jsonl", '["a","b","c"]\n{"id":"a","properties":[1]}\n', 2, "properties are an object"),
    ("a.jsonl", '["a","b","c"]\n{"id":"a","type":[1]}\n', 2, "types and aliases"),
    ("a.jsonl", '["a","b","c"]\n["a","b","c",1]\n', 2, "fourth part"),
    ("a.jsonl", TORN, 2, 'not head, relation, tail: ["a", "b"]'),
    ("a.jsonl", '["a","b","c"]\n' + "[" * 100_000 + "\n", 2, "nested too deeply"),
    ("a.nt", "<a:a> <a:b> <a:c> .\n<a:a> <a:b> .\n<a:a> <a:b> <a:d> .\n", 2, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "line", "why"), BAD)
def test_a_bad_row_is_named_with_its_line_or_skipped_and_counted(
    tmp_path: Path, name: str, content: str | bytes, line: int, why: str
) -> None:
    if name.endswith(".nt"):
        pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    import clew

    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with clew.open(tmp_path / "kb", create=True) as base:
        empty = base.info().digest
        with pytest.raises(UnreadableFile) as caught:
            base.graphs.add(tmp_path / name)
        assert f"{name}: line {line}: " in caught.value.problem and why in caught.value.problem
        assert "--skip-bad" in caught.value.hint
        assert base.graphs.infos() == [] and base.info().digest == empty
        report = base.graphs.add(tmp_path / name, skip_bad=True)
        assert report.bad == 1 and f"line {line}" in report.bad_rows[0] and report.graph.nodes >= 1


def test_twenty_bad_rows_are_enough_to_stop(tmp_path: Path) -> None:
    rows = "a\tb\tc\n" + "a\n" * 1000
    with pytest.raises(UnreadableFile) as caught:
        read_twin(tmp_path / "a.tsv", rows)
    assert "line 21:" in caught.value.problem and "line 22:" not in caught.value.problem


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("a.csv", "a,b\nc,d\n", {}, "does not say which columns"),
        ("a.csv", "head,relation,tail\na,b,c\n", {"kind": "nodes"}, "which columns are nodes"),
        ("a.csv", "id,name\na,b\n", {"kind": "edges"}, "which columns are edges"),
        ("a.csv", "a,b,c\n", {"columns": ("head", "tail", "x")}, "does not say"),
        ("a.xyz", "a,b,c\n", {}, "its name does not tell the format"),
        ("a.tsv.gz", "a\tb\tc\n", {}, "compressed file is damaged"),
        ("a.csv", 'a,b,c\na,b,"' + "c" * (1 << 24) + "d\n", {}, "field larger"),
        ("a.ttl", "<a:a> <a:b> .\n", {}, "a.ttl"),
        ("a.rdf", "<rdf", {}, "a.rdf"),
        ("a.parquet", "no such thing", {}, "a.parquet"),
        *(
            (f"a.{suffix}", "", {}, "the file is empty")
            for suffix in ("csv", "tsv", "jsonl", "nt", "parquet")
        ),
        ("a.csv", "\n \r\n\n", {}, "the file is empty"),
        ("a.jsonl", "\n\n", {}, "the file is empty"),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: str, options: dict, problem: str
) -> None:
    if name.endswith((".ttl", ".rdf")):
        pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="the extra 'graphs' is not installed")
    with pytest.raises(UnreadableFile, match=problem):
        read_twin(tmp_path / name, content, **options)


def test_untyped_values_are_kept_as_they_are_written(tmp_path: Path) -> None:
    rows = ["a,0.10,007", "b,0.1,7", "c,1.50e3,-0", "d,-2.5,1e5", "e,.5,+1"]
    twin = read_twin(tmp_path / "a.csv", "\n".join(["id,share,code", *rows]))
    values = [node["properties"] for node in twin.nodes.values()]
    assert [f"{id},{row['share']},{row['code']}" for id, row in zip(twin.nodes, values, strict=True)] == rows
    typed = read_twin(tmp_path / "b.csv", "id,share:float\na,0.10\n")
    assert typed.nodes["a"]["properties"] == {"share": 0.1}


def test_a_missing_file_and_an_unknown_form(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        read_graph(tmp_path / "none.tsv", Twin(), GraphReadOptions(), RowErrors())
    with pytest.raises(UsageError, match="Did you mean 'turtle'"):
        read_graph(tmp_path / "none.ttl", Twin(), GraphReadOptions(format="turtel"), RowErrors())
