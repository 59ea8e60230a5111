"""Exact answers of a mounted graph, on a real SPARQL server: the same as those of the same graph imported."""

import random

import pytest

import clew
from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.methods.focus.exact import find_exact_answers
from sparql_servers import serving
from typed_questions import QuestionGenerator

PREFIXES = "@prefix : <http://x.example/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
TYPES = ("package", "section", "person")
RELATIONS = ("depends_on", "in_section", "maintained_by")


def draw_turtle(seed, nodes=40, edges=110):
    """Return a graph in which names are those of several nodes, with literals where nodes are looked for."""
    draw = random.Random(seed)
    names = [f"name {number}" for number in range(nodes * 2 // 3)]
    lines = [f":{relation} rdfs:label {relation!r} ." for relation in RELATIONS]
    for node in range(nodes):
        lines.append(f':n{node} a :{draw.choice(TYPES)} ; rdfs:label "{draw.choice(names)}" .')
    for _ in range(edges):
        head, tail = draw.randrange(nodes), draw.randrange(nodes)
        lines.append(f":n{head} :{draw.choice(RELATIONS)} :n{tail} .")
    lines += [f':n{node} :depends_on "a text" .' for node in range(0, nodes, 7)]
    return PREFIXES + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A base with a graph as it was read from a file, and the same mounted."""
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    folder = tmp_path_factory.mktemp("mounted")
    text = draw_turtle(1)
    (folder / "g.ttl").write_text(text)
    (folder / "served").mkdir()
    with clew.open(folder / "kb", create=True) as opened:
        opened.graphs.add(folder / "g.ttl", name="here")
        for url in serving(folder / "served", text):
            opened.graphs.mount("there", url)
            yield opened


def exact_ids(graph, text):
    """Return the ids of the exact answers without the graph's name; None if there is no exact reading."""
    answers = find_exact_answers([graph], [], Question(text, chain=text), TrailRecorder())
    return {entity.id.partition(":")[2] for entity in graph.entities(answers[0].rows)} if answers else None


def compare(base, seeds, questions):
    here, there = base.graphs.get("here"), base.graphs.get("there")
    compared, with_answers, refused, differences = 0, 0, [], []
    for seed in seeds:
        generator = QuestionGenerator(here, seed)
        for _ in range(questions):
            text = generator.question()
            try:
                expected = exact_ids(here, text)
            except UsageError:
                with pytest.raises(UsageError):
                    exact_ids(there, text)
                continue
            ids = exact_ids(there, text)
            if ids is None:
                refused.append(text)
            elif ids != expected:
                differences.append(f"{text}\n  {len(ids)} instead of {len(expected or ())}")
            else:
                compared, with_answers = compared + 1, with_answers + bool(ids)
    return compared, with_answers, refused, differences


@pytest.mark.slow
def test_random_questions_have_the_answers_of_the_imported_graph(base):
    compared, with_answers, _, differences = compare(base, range(6), 5)
    assert not differences, "\n".join(differences)
    assert compared > 15 and with_answers > 10


@pytest.mark.slow
def test_many_random_questions_have_the_answers_of_the_imported_graph(base):
    compared, with_answers, refused, differences = compare(base, range(100, 160), 10)
    assert not differences, "\n".join(differences)
    assert compared > 400 and with_answers > 250 and len(refused) < 150


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not #1 >> depends_on >> name 9; final answer: #1", "#1, which may be any of its nodes"),
        ("at most 2 #1 >> depends_on >> #2; final answer: #1", "#1, which may be any of its nodes"),
        ('#1 : package; #1 >> depends_on >> #2; #2 != "name 9"; final answer: #1', "a comparison of values"),
        ("#1 : package; #1.size > 3", "property 'size'"),
        ("#1 >> depends_on >> name 999", "node 'name 999'"),
    ],
)
def test_what_a_mounted_graph_cannot_be_asked_exactly_is_refused(base, text, reason):
    (reading,) = base.explain(text, graphs=["there"])
    assert not reading.sparql and reason in "; ".join(reading.missing)
    answer = base.ask("", recipe="focus", chain=text, graphs=["there"])
    assert not answer.constraints.exact


def test_an_answer_of_a_mounted_graph_has_its_evidence_its_funnel_and_its_reasons(base):
    text = "#1 : package; at least 2 #1 << depends_on << #2; not #1 >> maintained_by >> #3; final answer: #1"
    here, there = (base.ask("", recipe="focus", chain=text, graphs=[name]) for name in ("here", "there"))
    assert set(here.values) == set(there.values) != set() and there.constraints.exact
    best = there.ranking[0]
    assert best.list_name == "exact" and all(check.satisfaction == 1 for check in best.checks)
    assert any(">> depends_on >>" in hit.node.text for check in best.checks for hit in check.hits)
    readings = base.explain(text)
    assert readings[0].funnel[-1].left == readings[1].funnel[-1].left == there.constraints.matching
    assert "GROUP BY" in readings[1].sparql and "<http://x.example/depends_on>" in readings[1].sparql
    queried = base.graphs.query("there", readings[1].sparql)
    assert len(queried.solutions) == there.constraints.matching
    for exclusion in base.why_not("name 3", text, graphs=["here"]):
        (other,) = [
            each
            for each in base.why_not("name 3", text, graphs=["there"])
            if each.id.partition(":")[2] == exclusion.id.partition(":")[2]
        ]
        assert other.constraints == exclusion.constraints and other.is_answer == exclusion.is_answer


@pytest.mark.slow
def test_an_empty_set_of_a_mounted_graph_is_an_answer(base):
    text = "#1 : section; #1 : package; #1 >> depends_on >> #1; not #1 >> depends_on >> #1; final answer: #1"
    answer = base.ask("", recipe="focus", chain=text, graphs=["there"])
    assert answer.constraints.exact and not answer.values and not answer.abstained
    assert answer.text.startswith("None: no node of 'there' meets all of this")
