"""The D3 paper's page over a tiny QASPER: four types of questions, a scripted model, metrics worked by hand."""

import json
import re

import pytest

from clew.core.errors import UsageError
from clew.evaluate.metrics import parse_metric
from clew.evaluate.run_folder import RunFolder
from clew.evaluate.setup import EvaluationSettings, load_questions
from clew.papers.d3 import Variants, group_by_length, plan_recipes
from command_line import run
from scripted import ScriptedServer

#: The section, and what of its paragraphs the model takes for relevant and for the answer, by question.
QUESTIONS = {
    "Which corpus do they train on?": ("Data", ["The Harbour corpus"], "the Harbour corpus"),
    "How do they label rivers?": (
        "Methods ::: Labels",
        ["Two pilots label", "Disputes are settled"],
        "by two pilots",
    ),
    "Is the tagger better than the baseline?": ("Results", ["The tagger beats"], "Yes"),
    "What is the carbon footprint?": ("Results", [], ""),
}
PAPER = {
    "title": "Tagging rivers",
    "abstract": "We tag rivers in old logs.",
    "full_text": [
        {"section_name": "Introduction", "paragraphs": ["Logs are old.", "Rivers are long."]},
        {"section_name": "Data", "paragraphs": ["The Harbour corpus has 40 logs and we train on it.", "It is free."]},
        {"section_name": "Methods ::: Labels", "paragraphs": ["Two pilots label each log.",
                                                              "Disputes are settled by a third pilot."]},
        {"section_name": "Results", "paragraphs": ["The tagger beats the baseline by two points.", "It is quick."]},
    ],
    "figures_and_tables": [{"caption": "Figure 1: A river."}],
}  # fmt: skip
EMPTY = {
    "unanswerable": False,
    "extractive_spans": [],
    "yes_no": None,
    "free_form_answer": "",
    "evidence": [],
}
ANSWERS = [
    {
        "extractive_spans": ["Harbour corpus"],
        "evidence": ["The Harbour corpus has 40 logs and we train on it."],
    },
    {"free_form_answer": "Two pilots label each log", "evidence": ["Two pilots label each log."]},
    {"yes_no": True, "evidence": ["The tagger beats the baseline by two points.", "It is quick."]},
    {"unanswerable": True},
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """One paper with its questions, and a second one whose words would mislead a search beyond the own paper."""
    asked = [
        {"question": question, "question_id": f"q{n}", "answers": [{"answer": EMPTY | answer}]}
        for n, (question, answer) in enumerate(zip(QUESTIONS, ANSWERS, strict=True))
    ]
    other = PAPER | {
        "title": "Tagging bridges",
        "full_text": [
            {"section_name": "Data", "paragraphs": ["They train on the corpus of bridges, the corpus."]}
        ],
        "qas": [
            {
                "question": "Which bridges?",
                "question_id": "b0",
                "answers": [{"answer": EMPTY | {"yes_no": True}}],
            }
        ],
    }
    path = tmp_path_factory.mktemp("data") / "qasper.json"
    path.write_text(json.dumps({"1900.1": PAPER | {"qas": asked}, "1900.2": other}))
    return f"qasper={path}"


def reply(request):
    """Name the section, then the paragraphs, then the answer: what a perfect reader of the paper would."""
    question = next((item for item in QUESTIONS if item in request.prompt), None)
    if question is None:
        return (
            {"quotes": [], "answer": "", "abstain": True} if "numbered sources" in request.system else "none"
        )
    section, words, answer = QUESTIONS[question]
    if "numbered sources" in request.system:
        if not words:
            return {"quotes": [], "answer": "", "abstain": True}
        held = next(
            (n for n in range(9, 0, -1) if re.search(rf"^\[{n}\] .*\n{words[0]}", request.user, re.M)), 0
        )
        return {"quotes": [{"source": held, "text": words[0]}], "answer": answer, "abstain": False}
    if "Document section structure" in request.user:
        return f"{section.split(' ::: ')[-1]}, No Such Section"
    if "Numbers of the sections" in request.user:
        return ", ".join(re.findall(rf"^\[(\d+)\] {section.split(' ::: ')[-1]}", request.user, re.M))
    if "yes or no" in request.user:
        return "yes" if any(word in request.user for word in words) else "no"
    return ", ".join(re.findall(rf"^(\d+): (?:{'|'.join(words) or 'nothing'})", request.user, re.M))


@pytest.fixture(scope="module")
def page(data, tmp_path_factory):
    """The folder of a whole page, and the requests that it took."""
    out = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(reply) as server:
        patch.setenv("CLEW_CACHE", str(out / "cache"))
        words = ["eval", "paper", "d3", "--data", data, "--llm", server.llm, "--out", out]
        run(*words, "--choose-with", f"{server.url}#other", "--summariser", "model", "--workers", 2)
        asked_ = len(server.requests)
        before = (out / "page.md").read_text()
        run(*words, "--choose-with", f"{server.url}#other", "--summariser", "model", "--workers", 2)
        # What was run is not run again; making summaries is, out of the cache.
        assert len(server.requests) == asked_ and (out / "page.md").read_text() == before
    return out


def run_drill(page):
    folder = RunFolder(page / "qasper-own")
    (run_,) = folder.load_runs(["read(k=30, reader=cited, retriever=drill-paper(summariser=extractive))"])
    return run_


@pytest.mark.slow
def test_metrics_are_those_worked_by_hand(page):
    run_ = run_drill(page)
    assert len(run_.results) == 5 and not run_.errors

    def values(name):
        return {id: round(value, 6) for id, value in run_.values(parse_metric(name)).items()}

    # "Harbour corpus" has both words of "harbour corpus"; the article does not count.
    # "pilots two by": of the answer's 3 tokens (by, two, pilots) 2 are among the 5 of "two pilots label each log".
    # Yes is yes. Abstaining is right where nothing answers, and wrong for the yes of the other paper.
    assert values("F1") == {"q0": 1.0, "q1": 0.5, "q2": 1.0, "q3": 1.0, "b0": 0.0}
    by_type = {kind: values(f"F1(type={kind})") for kind in ("span", "abstractive", "yes/no", "unanswerable")}
    assert by_type == {
        "span": {"q0": 1.0},
        "abstractive": {"q1": 0.5},
        "yes/no": {"q2": 1.0, "b0": 0.0},
        "unanswerable": {"q3": 1.0},
    }
    # q1 gets one paragraph too many, q2 one of two; giving none is right where there is none.
    assert values("retrieved-P") == {"q0": 1.0, "q1": 0.5, "q2": 1.0, "q3": 1.0, "b0": 1.0}
    assert values("retrieved-R") == {"q0": 1.0, "q1": 1.0, "q2": 0.5, "q3": 1.0, "b0": 1.0}
    assert values("retrieved-F1") == pytest.approx(
        {"q0": 1.0, "q1": 2 / 3, "q2": 2 / 3, "q3": 1.0, "b0": 1.0}, abs=1e-5
    )
    # Two calls find evidence, one where no section is named; a call reads it, none where there is nothing to read.
    assert values("retrieval-calls") == {"q0": 2, "q1": 2, "q2": 2, "q3": 2, "b0": 1}
    assert values("answering-calls") == {"q0": 1, "q1": 1, "q2": 1, "q3": 0, "b0": 0}
    assert values("retrieval-tokens") == {id: 18 * calls for id, calls in values("retrieval-calls").items()}
    assert values("tokens") == {id: 18 * calls for id, calls in values("calls").items()}


@pytest.mark.slow
def test_questions_are_asked_of_their_own_paper(page):
    folder = RunFolder(page / "qasper-own")
    for recipe in folder.facts["recipes"]:
        for record in folder.result_file(recipe).records():
            own = "Tagging bridges.txt" if record["id"] == "b0" else "Tagging rivers.txt"
            assert {hit["document"] for hit in record["hits"]} <= {own}, recipe


@pytest.mark.slow
def test_the_page_has_every_table(page):
    text = (page / "page.md").read_text()
    titles = re.findall(r"^### (.*)$", text, re.M)
    assert titles == ["Methods", "Self-Ask", "Choosing paragraphs", "Summarisers", "Headings", "Question categories",
                      "Document length", "Chunk size", "Models that choose"]  # fmt: skip
    planned = plan_recipes(EvaluationSettings(llm=object()), Variants(summarisers=["model"]))
    # Chunks are shown by their size.
    for recipe in (item for item in planned.recipes if item not in list(planned.chunks.values())[:-1]):
        assert f"| {recipe} | 5 | 0 |" in text
    assert "names=uuid" in text and "hierbase" in text and "summariser=model" in text
    assert "| select=" in text and "--summariser model" in text
    assert (page / "qasper-own" / "lengths.png").stat().st_size > 1000
    assert (page / "qasper-own" / "chunks.svg").stat().st_size > 1000
    facts = json.loads((page / "qasper-own" / "chunks.json").read_text())
    assert facts["llm"] and [point["size"] for point in facts["points"]][-1] == 3500


@pytest.mark.slow
def test_map_reduce_asks_about_every_paragraph_and_then_once_more(page):
    folder = RunFolder(page / "qasper-own")
    (run_,) = folder.load_runs(["read(k=30, reader=cited, retriever=map-reduce)"])
    calls = run_.values(parse_metric("retrieval-calls"))
    # The abstract, eight paragraphs, a caption; then what was found, if anything was.
    assert (calls["q0"], calls["q3"]) == (11, 10)


@pytest.mark.slow
def test_without_a_model_there_are_rankers(data, tmp_path):
    run("eval", "paper", "d3", "--data", data, "--out", tmp_path)
    text = (tmp_path / "page.md").read_text()
    assert "Skipped: what asks a model: needs --llm." in text and "need --reranker" in text
    assert "| read(k=5, reader=extractive, retriever=drill) | 5 | 0 |" in text


def test_length_classes_share_the_questions(data):
    examples = load_questions(data, "own", None, 0).examples
    classes = group_by_length(examples, 2)
    assert sorted(id for ids in classes.values() for id in ids) == sorted(example.id for example in examples)
    # Four questions are of one paper, and its length is one class.
    assert sorted(map(len, classes.values())) == [1, 4] or list(map(len, classes.values())) == [5]


def test_rerankers_bring_their_strategies():
    named = Variants(rerankers=["monot5:./mono", "cross-encoder:./cross"])
    planned = plan_recipes(EvaluationSettings(llm=object()), named)
    assert planned.methods[0] == "read(k=5, reader=cited, retriever=monot5(model='./mono'))"
    assert planned.methods[1] == "read(k=5, reader=cited, retriever=cross-encoder(model='./cross'))"
    assert [strategy.partition("paragraphs=")[2].partition(",")[0] for strategy in planned.strategies[1:]] == [
        "hierbase", "monot5", "monot5+base", "base+monot5",
    ]  # fmt: skip
    assert all("monot5='./mono'" in strategy for strategy in planned.strategies[2:])
    assert "selfask(reader=cited, retriever=monot5(model='./mono'))" in planned.selfask
    with pytest.raises(UsageError, match="monot5"):
        plan_recipes(EvaluationSettings(), Variants(rerankers=["mono:x"]))


@pytest.mark.slow
def test_hotpotqa_doc_is_asked_of_its_two_documents(tmp_path):
    long = [f"Sentence {n} of the history of ferries and their keepers." for n in range(30)]
    record = {
        "_id": "h0",
        "question": "Who built the lighter that Dunmere bought?",
        "answer": "Tolland Yard",
        "context": [
            ["Dunmere", ["Dunmere bought the Bittern.", *long]],
            ["Bittern", ["Tolland Yard built her.", *long]],
        ],
        "supporting_facts": [["Dunmere", 0], ["Bittern", 0]],
    }
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps(record) + "\n")
    run("eval", "paper", "d3", "--data", f"hotpotqa-doc={path}", "--out", tmp_path / "out")
    text = (tmp_path / "out" / "page.md").read_text()
    assert "Tables 1 and 2" in text and "retriever=drill) | 1 | 0 |" in text
