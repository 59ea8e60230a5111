"""The KGP paper's analyses on a tiny data set: numbers against brute force, figures, going on after a kill."""

import json
import re
import shlex
import sys

import numpy as np
import pytest

from annotation_server import AnnotationServer, wat
from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import RETRIEVED_KINDS, Question, Scope
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.run_folder import Experiment
from clew.evaluate.setup import EvaluationSettings, load_questions, open_stores
from clew.graph.annotation import Annotation, AnnotationCache
from clew.knowledge_base import registry
from clew.knowledge_base.registry import REGISTRY
from clew.papers.kgp import (
    KNOBS,
    find_buildable_graphs,
    measure_branching,
    measure_density,
    measure_graphs,
    seed_count,
    table_1_recipes,
    write_kgp_page,
)
from clew.papers.page import command_line
from command_line import run
from scripted import ScriptedServer
from tiny_encoder import make_encoder

PEOPLE = ["Hesper Marrable", "Wilmot Harker", "Ilse Tamsin"]
PLACES = ["Dunmere", "Merrowgate", "Saltreach"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three two-hop questions in the form of HotpotQA: a bridge, its builder, the builder's birthplace."""
    records = []
    for number, (person, place) in enumerate(zip(PEOPLE, PLACES, strict=True)):
        bridge = f"{place} Bridge"
        context = [
            [bridge, ["It spans the river.", f"It was built by {person}."]],
            [person, [f"{person} was an engineer.", f"The birthplace was {place[::-1].title()}."]],
            [f"Noise {number}", ["A town has a mayor.", "Bridges are born of need."]],
        ]
        question = f"In which town was the builder of {bridge} born?"
        gold = [[bridge, 1], [person, 1]]
        records.append({"_id": f"q{number}", "question": question, "answer": place[::-1].title(),
                        "type": "bridge", "supporting_facts": gold, "context": context})  # fmt: skip
    path = tmp_path_factory.mktemp("data") / "bridges.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return f"hotpotqa={path}"


@pytest.fixture
def few_knobs(monkeypatch):
    """Two values of each knob, the usual one among them: what the page puts together, not how much of it."""
    for name, (knob, values) in KNOBS.items():
        usual = REGISTRY.component("graph", name).options[knob]
        monkeypatch.setitem(KNOBS, name, (knob, (values[0], usual)))


def work(data, out, **bench):
    return Experiment(
        load_questions(data, "question", None, 0),
        EvaluationSettings(passages="sentence", sentences=12, **bench),
        out,
    )


@pytest.mark.slow
def test_the_walk_over_each_graph_is_what_it_finds_question_by_question(data, tmp_path):
    result = work(data, tmp_path)
    series = measure_density(result, ["keywords", "mentions"], "kgp-paper")
    assert {name: [point["knob"] for point in points] for name, points in series.items()} == {
        name: list(KNOBS[name][1]) for name in ("keywords", "mentions")
    }
    with open_stores(result.questions, result.settings) as base_of:
        for name, knob, point in (("keywords", "n=1", series["keywords"][0]),
                                  ("mentions", "common=5", series["mentions"][2])):  # fmt: skip
            whole, share, degrees, densities = [], [], [], []
            for example in result.questions.examples:
                base = base_of(example)
                snapshot = base.snapshot()
                walker = registry.build_retriever(f"kgp-paper(graph={name}({knob}))", base)
                paths = walker.walk(Question(example.question), TrailRecorder())
                rows = np.array(sorted({row for path in paths for row in path.rows}))
                gold = GoldEvidence(example)
                held = {piece for node in snapshot.nodes(rows) for piece in gold.matching_pieces(node)}
                whole.append(len(held) == 2)
                share.append(len(held) / 2)
                graph = registry.build_graph(f"{name}({knob})", base)
                passages = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)).tolist()
                near = {row: set(graph.neighbours(row).tolist()) & set(passages) for row in passages}
                degrees.append(np.mean([len(others) for others in near.values()]))
                pairs = {frozenset((item, other)) for item in near for other in near[item]}
                densities.append(len(pairs) / (len(passages) * (len(passages) - 1) / 2))
            assert point["SF-EM"] == pytest.approx(np.mean(whole))
            assert point["SF-coverage"] == pytest.approx(np.mean(share))
            assert point["neighbours"] == pytest.approx(np.mean(degrees))
            assert point["density"] == pytest.approx(np.mean(densities))
            assert point["questions"] == 3 and point["errors"] == 0 and point["walk-seconds"] > 0
            assert "F1" not in point


def test_branches_share_the_budget(data, tmp_path):
    assert [seed_count(30, branch) for branch in range(1, 11)] == [30, 15, 10, 8, 6, 5, 4, 4, 3, 3]
    assert seed_count(3, 10) == 1
    result = work(data, tmp_path)
    points = measure_branching(result, "kgp-paper", budget=6, branches=(1, 2, 6))
    assert [point["seeds"] for point in points] == [6, 3, 1]
    records = {
        point["branch"]: [
            json.loads(line)
            for line in result.folder.result_file(point["recipe"]).path.read_text().splitlines()
        ]
        for point in points
    }
    for held in records.values():
        # Six paths of two passages.
        assert all(0 < len(record["hits"]) <= 12 for record in held)
    # Even where there are as many seeds as paths, each is continued by one passage: six paths of two.
    assert max(len(hit["path"]) for record in records[1] for hit in record["hits"]) == 2


@pytest.mark.slow
def test_statistics_are_those_of_the_usual_graphs(data, tmp_path):
    run("eval", "graphs", "--data", data, "--sentences", 12, "--out", tmp_path)
    folder = tmp_path / "hotpotqa-question-graphs"
    held = json.loads((folder / "statistics.json").read_text())
    keywords, mentions = held["graphs"]
    assert keywords["graph"] == "keywords(n=10)" and mentions["graph"] == "mentions(common=5)"
    assert held["questions"] == 3 and held["seed"] == 0 and held["sentences"] == 12
    # Own three paragraphs of two sentences each, and as many of the others until there are twelve sentences.
    assert (keywords["passages"], keywords["documents"]) == (12, 6)
    assert keywords["words"] == pytest.approx(4.8, abs=0.8)
    quality = json.loads((folder / "quality.json").read_text())["graphs"]["mentions"]
    (same,) = [point for point in quality if point["knob"] == 5]
    assert all(same[key] == mentions[key] for key in ("edges", "density", "neighbours"))
    assert "| mentions(common=5) | 3 | 6" in (folder / "statistics.md").read_text()


@pytest.mark.slow
def test_entities_are_a_graph_where_passages_are_annotated(data, tmp_path):
    result = work(data, tmp_path)
    results, missing = find_buildable_graphs(result)
    assert results == ["keywords", "mentions"] and "clew annotate" in missing["entities"]
    with pytest.raises(UsageError, match="no passage was annotated"):
        measure_graphs(result, ["entities"])
    stored = AnnotationCache.default()
    with open_stores(result.questions, result.settings) as base_of:
        for example in result.questions.examples:
            snapshot = base_of(example).snapshot()
            rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
            for node in snapshot.nodes(rows):
                sure = 0.9 if "engineer" in node.text else 0.5
                stored.put("wat/en", node.text, [Annotation(1, "Bridge", "it", 0, 2, 0.5, sure)])
    assert find_buildable_graphs(result)[0] == ["keywords", "mentions", "entities"]
    points = {point["knob"]: point for point in measure_graphs(result, ["entities"])["entities"]}
    assert points[0.0]["density"] == 1 and points[0.95]["edges"] == 0
    assert 0 < points[0.9]["edges"] < points[0.0]["edges"] == 66


def test_the_printed_command_says_that_there_was_no_encoder(data, tmp_path):
    printed = command_line("graphs", [work(data, tmp_path)])
    assert "--encoder none" in printed and "--llm" not in printed


def everything(folder):
    """The files of a folder whose content is measured, not drawn."""
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.suffix in {".jsonl", ".md", ".html"}
    }


@pytest.mark.slow
def test_the_page_says_what_was_run_and_is_not_run_twice(data, few_knobs, tmp_path):
    out = tmp_path / "my page"
    command = [
        "eval",
        "paper",
        "kgp",
        "--data",
        data,
        "--sentences",
        12,
        "--limit",
        2,
        "--seed",
        3,
        "--out",
        out,
    ]
    shown = run(*command)
    assert shown.stdout.split("\n")[:2] == [str(out / "page.md"), str(out / "page.html")]
    page = (out / "page.md").read_text()
    for recipe in table_1_recipes(EvaluationSettings()):
        assert f"| hotpotqa (question) | {recipe} | 2 | 0 |" in page
    assert "they need --llm" in page and "they need --encoder" in page and "`entities`: no passage" in page
    assert "clew eval paper kgp --data" in page and "--limit 2 --seed 3" in page and "2 (2 drawn)" in page
    links = re.findall(r"\(<([^>]+)>\)", page)
    assert len(links) == 9 and all((out / link).stat().st_size > 1000 for link in links)
    html = (out / "page.html").read_text()
    assert html.count("<img") == 3 and html.count("<table>") == page.count("\n|---") and "my page" in html

    before = everything(out)
    run(*command)
    assert everything(out) == before
    # What a kill would leave: lines cut short, and later ones not there.
    for path in (out / "hotpotqa-question-graphs" / "measured.jsonl",
                 *sorted((out / "hotpotqa-question").glob("kgp-paper-graph-men*.jsonl"))):  # fmt: skip
        path.write_bytes(before[path][: len(before[path]) * 2 // 3])
    (out / "page.md").unlink()
    run(*command)
    timeless = [
        re.sub(r"\d\.\d+(e-\d+)? \| 2 \| 0 \|", "", text) for text in (page, (out / "page.md").read_text())
    ]
    assert timeless[0] == timeless[1]


@pytest.mark.slow
def test_every_command_of_the_page_can_be_run(data, few_knobs, tmp_path):
    write_kgp_page([work(data, tmp_path)])
    commands = re.findall(r"^clew (eval .*)$", (tmp_path / "page.md").read_text(), re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["paper", "run", *["graphs"] * 2, "run"]
    before = everything(tmp_path)
    for command in commands[1:]:
        run(*shlex.split(command))
    assert everything(tmp_path) == before


@pytest.mark.slow
def test_models_add_their_methods_and_measures(data, few_knobs, tmp_path):
    folder = make_encoder(tmp_path / "encoder").path

    def script(request):
        return "1" if "expert professor" in request.prompt else "Eremnud"

    encoder = f"onnx:{folder}"
    with ScriptedServer(script) as server:
        words = ["--llm", server.llm, "--encoder", encoder, "--sentences", 12, "--limit", 1]
        run("eval", "paper", "kgp", "--data", data, "--out", tmp_path / "out", *words)
        page = (tmp_path / "out" / "page.md").read_text()
        count = len(server.requests)
        run("eval", "paper", "kgp", "--data", data, "--out", tmp_path / "out", *words)
        assert len(server.requests) == count
    for recipe in ("none", "ircot(reader=paper)", "kgp-paper(guide=generated)",
                   "kgp-paper(graph=knn, guide=encoder)", "read(k=30, reader=paper, retriever=knn)",
                   "mdr(reader=paper) (untrained)"):  # fmt: skip
        assert f"| {recipe} | 1 | 0 |" in page
    assert "| Acc | EM | F1 | SF-EM |" in page and "| knn | 10 |" in page and "Left out" not in page
    assert f"| language model | {server.llm}" in page


@pytest.mark.slow
def test_document_sets_are_annotated_and_a_second_encoder_makes_a_graph_of_its_own(
    data, few_knobs, tmp_path, monkeypatch
):
    monkeypatch.setenv("CLEW_TAGME_TOKEN", "token")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    articles = tmp_path / "articles.jsonl"
    articles.write_text(
        "\n".join(
            json.dumps({"title": title, "text": text})
            for title, text in [
                (
                    "Dunmere Bridge",
                    "It spans the river. It was built by Hesper Marrable.\n\nTolls ended in 1911.",
                ),
                ("Ohio", "A state.\n\nQuill is a town in Ohio."),
                ("Weir", "A low dam. It was built by nobody."),
            ]
        )
    )
    first, second = (make_encoder(tmp_path / name).path for name in ("first", "second"))
    corpus = ["--documents", 4, "--articles", articles, "--limit", 1]
    server = AnnotationServer(wat)
    try:
        shown = run("eval", "annotate", "--data", data, *corpus, "--url", server.url)
        assert "passages annotated by wat" in shown.stdout and server.asked
        count = len(server.asked)
        run("eval", "annotate", "--data", data, *corpus, "--url", server.url)
        assert len(server.asked) == count
    finally:
        server.close()
    words = ["--encoder", f"onnx:{first}", "--beside", f"onnx:{second}", *corpus]
    run("eval", "paper", "kgp", "--data", data, "--out", tmp_path / "out", *words)
    page = (tmp_path / "out" / "page.md").read_text()
    facts = json.loads((tmp_path / "out" / "hotpotqa-question" / "run.json").read_text())
    assert facts["documents"] == 4 and facts["sentences"] is None and len(facts["articles"]) == 64
    assert "knn(vectors='onnx:" in page and "Skipped: the graph `entities`" not in page
    assert "paper: Table 3" in page and "a language model (--llm)" in page
    for guide in ("question", "encoder"):
        assert f"kgp-paper(graph=entities, guide={guide})" in page
    assert f"--documents 4 --articles {articles}" in page


@pytest.mark.slow
def test_a_run_is_recorded_and_replayed(data, tmp_path):
    with ScriptedServer(lambda request: "Eremnud") as server:
        words = ["--encoder", "none", "--limit", 1, "--no-cache", "-r", "read(retriever=bm25, reader=paper)"]
        tape = tmp_path / "tape.jsonl"
        run(
            "eval",
            "run",
            "--data",
            data,
            *words,
            "--llm",
            server.llm,
            "--record",
            tape,
            "--out",
            tmp_path / "one",
        )
    run("eval", "run", "--data", data, *words, "--llm", f"replay:{tape}", "--out", tmp_path / "two")
    answers = [
        json.loads(next((tmp_path / name / "hotpotqa-pooled").glob("read*.jsonl")).read_text())["answer"]
        for name in ("one", "two")
    ]
    assert answers[0] == answers[1] == "Eremnud"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["graphs", "-g", "knn"], "encoder"),
        (["graphs", "--passages", "word"], "paragraph, sentence"),
        (["run", "--passages", "paragraph", "-r", "kgp-paper"], "needs sentences"),
        (["graphs", "-g", "entities"], "clew annotate"),
        (["graphs", "--corpus", "/no/such/base"], "no knowledge base"),
        (["paper", "kpg"], "kgp"),
        (["graphs", "-g", "structure"], "no knob"),
        (["graphs", "-g", "knn(vectors=none)", "--encoder", "clew:hops"], "no vectors of 'none'"),
        (["graphs", "--documents", "3", "--corpus", "pooled"], "--corpus question"),
        (["graphs", "--articles", __file__], "--documents 12"),
    ],
)
def test_a_bad_request_is_refused(data, tmp_path, words, text):
    name, *rest = words
    given = ["--data", data, "--sentences", 12, "--out", tmp_path]
    result = run("eval", name, *rest, *given, status=2)
    assert text in result.output


def test_another_setting_and_other_files_are_not_mixed_in(data, tmp_path):
    result = work(data, tmp_path)
    measure_graphs(result, ["mentions"])
    other = Experiment(result.questions, EvaluationSettings(passages="sentence", sentences=11), tmp_path)
    with pytest.raises(UsageError, match="sentences is 12, not 11"):
        measure_graphs(other, ["mentions"])
    target = tmp_path / "hotpotqa-question-graphs" / "measured.jsonl"
    target.write_text('{"id": "q0", "hits": []}\n')
    with pytest.raises(UsageError, match="no measures of graphs"):
        measure_graphs(result, ["mentions"])


def test_what_figures_need_is_said_before_anything_is_measured(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = run("eval", "graphs", "--data", data, "--out", tmp_path / "out", status=2)
    assert "[plots]'" in shown.output and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_walk_that_always_fails_gives_no_figure(data, few_knobs, tmp_path):
    with ScriptedServer([]) as server:
        words = ["--llm", server.llm, "--encoder", "none", "--limit", 1, "--sentences", 12]
        shown = run("eval", "paper", "kgp", "--data", data, "--out", tmp_path, *words, status=2)
    assert "answered no question: ModelError" in shown.output
    assert not (tmp_path / "hotpotqa-question" / "density.png").exists()


@pytest.mark.slow
def test_questions_without_evidence_measure_no_graph(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"question": "Who?", "answers": ["Nobody"]}) + "\n")
    base = tmp_path / "base"
    (tmp_path / "note.md").write_text("# Note\n\nNobody was there.\n")
    run("add", tmp_path / "note.md", "--kb", base)
    data = f"jsonl={path}"
    shown = run("eval", "graphs", "--data", data, "--corpus", base, "--passages", "paragraph", "-g", "mentions",
                "--out", tmp_path / "out", status=2)  # fmt: skip
    assert "names its evidence" in shown.output
