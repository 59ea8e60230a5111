"""Runs on real bases: continued after a kill, errors apart, tables of what was compared."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from clew.core.errors import UsageError
from clew.core.types import PASSAGE, Answer, Question
from clew.evaluate.corpora import GoldEvidence, add_negatives, build_document
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example, Paragraph, Result, Support
from clew.evaluate.report import Run, build_table, classify_failures, compare_runs, format_table, table_rows
from clew.evaluate.run_folder import RunFolder, evaluate_recipes
from clew.evaluate.runner import RunFile, answer_questions, read_results
from clew.evaluate.setup import EvaluationSettings, load_questions, sample_examples
from clew.models import create_language_model
from clew.store.store import Store
from scripted import ScriptedServer

PEOPLE = ["Hesper Marrable", "Wilmot Harker", "Ilse Tamsin", "Orla Finch", "Marius Vantry", "Ottilie Brandt"]
PLACES = ["Dunmere", "Merrowgate", "Saltreach", "Fenner Mouth", "Corran", "Tolland"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Six two-hop questions in the form of HotpotQA: a bridge, its builder, the builder's birthplace."""
    records = []
    for number, (person, place) in enumerate(zip(PEOPLE, PLACES, strict=True)):
        bridge = f"{place} Bridge {number}"
        records.append(
            {
                "_id": f"q{number}",
                "question": f"In which town was the builder of {bridge} born?",
                "answer": place[::-1].title(),
                "type": "bridge",
                "supporting_facts": [[bridge, 1], [person, 1]],
                "context": [
                    [bridge, ["It spans the river. ", f"It was built by {person}. "]],
                    [person, [f"{person} was an engineer. ", f"The birthplace was {place[::-1].title()}."]],
                    [f"Noise {number}", ["A town has a mayor.", "Bridges are born of need."]],
                ],
            }
        )
    path = tmp_path_factory.mktemp("data") / "bridges.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return f"hotpotqa={path}"


def lines(folder, recipe):
    return folder.result_file(recipe).path.read_text().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["pooled", "question"])
def test_a_run_answers_every_question_and_knows_its_gold(data, corpus, tmp_path):
    folder = evaluate_recipes(
        tmp_path, load_questions(data, corpus, None, 0), ["kgp", "read(retriever=bm25)"], EvaluationSettings()
    )
    (kgp, bm25) = folder.load_runs()
    assert set(kgp.results) == {f"q{n}" for n in range(6)} and not kgp.errors
    result = build_table([kgp, bm25], ["SF-EM", "recall@5"], baseline="read(retriever=bm25)")
    assert result.cells[0]["SF-EM"].estimate.mean == 1
    assert (
        result.cells[0]["recall@5"].difference is not None and result.cells[1]["recall@5"].difference is None
    )
    assert folder.facts["questions"] == 6 and folder.facts["clew"]
    assert bool(folder.facts["base_digest"]) == (corpus == "pooled")


def test_golden_reads_the_gold_evidence_and_nothing_else(data, tmp_path):
    for corpus in ("pooled", "question"):
        (golden,) = evaluate_recipes(
            tmp_path, load_questions(data, corpus, None, 0), ["golden"], EvaluationSettings()
        ).load_runs()
        for name, value in golden.results.items():
            assert sorted(piece for held in value.hit_pieces for piece in held) == [0, 1], name


@pytest.mark.slow
def test_a_run_that_was_cut_short_goes_on_and_gives_the_same_table(data, tmp_path):
    questions = load_questions(data, "pooled", None, 0)
    whole = evaluate_recipes(tmp_path / "whole", questions, ["kgp"], EvaluationSettings())
    cut = evaluate_recipes(tmp_path / "cut", questions, ["kgp"], EvaluationSettings())
    file = cut.result_file("kgp").path
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])  # in the middle of a line
    stored = content[: len(content) // 2].count(b"\n")
    assert len(list(cut.result_file("kgp").records())) == stored < 6
    again = evaluate_recipes(tmp_path / "cut", questions, ["kgp"], EvaluationSettings())
    assert file.read_bytes()[: content[: len(content) // 2].rfind(b"\n")] in content
    shown = [
        format_table(build_table(folder.load_runs(), ["F1", "recall@5", "MRR"]), "markdown")
        for folder in (whole, again)
    ]
    assert shown[0] == shown[1]
    before = file.read_bytes()
    evaluate_recipes(tmp_path / "cut", questions, ["kgp"], EvaluationSettings())
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_killed_command_continues_when_run_again(data, tmp_path):
    out = tmp_path / "runs"
    words = ["eval", "run", "--data", data, "-r", "kgp", "--out", str(out)]
    command = [sys.executable, "-c", "from clew.app.cli.commands import app; app()", *words]
    for item in (1, 2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in process.stderr:
            if line.startswith(b"kgp: "):
                process.kill()
        process.wait()
        process.stderr.close()
        assert len(lines(RunFolder(out / "hotpotqa-pooled"), "kgp")) >= item
    assert CliRunner().invoke(app, words).exit_code == 0
    (only,) = RunFolder(out / "hotpotqa-pooled").load_runs()
    assert len(only.results) == 6


class Moody:
    """A method that fails where it is told to."""

    def __init__(self, failing):
        self.failing, self.asked = set(failing), []

    def answer(self, question: Question, trail) -> Answer:
        self.asked.append(question.text)
        if question.text in self.failing:
            raise RuntimeError("the model went away")
        return Answer("Yes")


@pytest.mark.slow
def test_a_run_of_an_earlier_version_is_still_read(data, tmp_path):
    questions = load_questions(data, "pooled", None, 0)
    folder = evaluate_recipes(tmp_path, questions, ["kgp", "read"], EvaluationSettings())
    for recipe in ("kgp", "read"):
        now, _, _ = read_results(questions.examples, folder.result_file(recipe))
        assert all((value.walk_seconds is not None) == (recipe == "kgp") for value in now.values())
        path = folder.result_file(recipe).path
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            seconds = record.pop("walk_seconds")
            del record["retrieval"]
            record["walk"] = None if seconds is None else {"gold": [], "seconds": seconds}
        path.write_text("\n".join(map(json.dumps, records)) + "\n")
        before, _, _ = read_results(questions.examples, folder.result_file(recipe))
        assert {id: item.walk_seconds for id, item in before.items()} == {
            id: item.walk_seconds for id, item in now.items()
        }
        assert all(value.retrieval is None for value in before.values())


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_is_an_error_and_is_asked_again(tmp_path, workers):
    examples = [Example(str(n), f"Question {n}?", ("yes",)) for n in range(5)]
    target = RunFile(tmp_path / "run.jsonl")
    moody = Moody({"Question 2?"})
    assert answer_questions(examples, lambda item: moody, target, workers=workers) == 5
    result, errors, missing = read_results([*examples, Example("9", "?", ())], target)
    assert (len(result), missing) == (4, ["9"]) and "the model went away" in errors["2"]
    results = build_table([Run("d", "moody", result, errors)], ["EM"])
    assert results.cells[0]["EM"].estimate.count == 4 and results.cells[0]["EM"].estimate.mean == 1
    moody.failing.clear()
    assert answer_questions(examples, lambda item: moody, target, workers=workers) == 1
    assert not read_results(examples, target)[1] and sorted(moody.asked).count("Question 2?") == 2


@pytest.mark.slow
def test_another_run_is_not_mixed_in(data, tmp_path):
    evaluate_recipes(tmp_path, load_questions(data, "pooled", 3, 0), ["kgp"], EvaluationSettings())
    with pytest.raises(UsageError, match="questions is 3, not 4"):
        evaluate_recipes(tmp_path, load_questions(data, "pooled", 4, 0), ["kgp"], EvaluationSettings())
    evaluate_recipes(tmp_path, load_questions(data, "pooled", 3, 0), ["read"], EvaluationSettings())
    assert list(RunFolder(tmp_path / "hotpotqa-pooled").facts["recipes"]) == ["kgp", "read"]


def test_questions_and_negatives_are_drawn_by_the_seed(data):
    name, _, path = data.partition("=")
    everything = list(load_dataset(name, path).examples())
    some = [example.id for example in sample_examples(iter(everything), 3, 7)]
    assert some == [example.id for example in sample_examples(iter(everything), 3, 7)] == sorted(some)
    assert (
        len(
            {tuple(example.id for example in sample_examples(iter(everything), 3, seed)) for seed in range(9)}
        )
        > 3
    )
    others = [paragraph for item in everything for paragraph in item.corpus]
    once = add_negatives(everything[0], others, 12, 1)
    assert once == add_negatives(everything[0], others, 12, 1) != add_negatives(everything[0], others, 12, 2)
    assert once[:3] == list(everything[0].corpus) and sum(len(item.sentences) for item in once) == 12


@pytest.mark.parametrize("unit", ["paragraph", "sentence"])
def test_a_hit_holds_the_sentence_that_it_covers(tmp_path, unit):
    paragraph = Paragraph("Bittern", ("It is a lighter. ", " It was built in 1919.", "It floats."))
    example = Example(
        "1", "?", ("1919",), support=(Support("Bittern", 1), Support("Heron", 0)), corpus=(paragraph,)
    )
    with Store.open(tmp_path / "base", create=True, passages=unit) as base:
        from clew.evaluate.corpora import document_location

        document = build_document(paragraph, unit)
        base.put_document(document, document_location(document))
        nodes = [node for node in base.document_nodes(document.key) if node.kind == PASSAGE]
    held = [sorted(GoldEvidence(example).matching_pieces(node)) for node in nodes]
    assert held == ([[0]] if unit == "paragraph" else [[], [0], []])


def of(answer, gold="Dunmere", found=(), abstained=False, support=2):
    example = Example("1", "?", (gold,), support=tuple(Support(str(n)) for n in range(support)))
    return Result(example, answer, abstained, [frozenset(held) for held in found])


def test_failures_are_sorted():
    run = Run(
        "d",
        "r",
        {
            "right": of("Dunmere."),
            "alias": of("the town of Dunmere"),
            "not there": of("Corran", found=[set()]),
            "half there": of("Corran", found=[{0}]),
            "nothing to find": of("Corran", support=0),
            "misread": of("Corran", found=[{0}, {1}]),
            "abstained": of("", found=[{0, 1}], abstained=True),
        },
        {"broken": "RuntimeError: x"},
    )
    assert classify_failures(run) == {
        "broken": "error",
        "alias": "alias",
        "not there": "not retrieved",
        "half there": "chain wrong",
        "nothing to find": "misread",
        "misread": "misread",
        "abstained": "abstained",
    }


def test_a_method_named_after_training_says_when_its_encoder_lacks_it():
    trained, other = ({"objective": item} for item in ("mdr", "dpr"))
    texts = [
        Run("d", recipe, {}, {}, facts).method
        for recipe in ("mdr", "dpr(k=10)", "kgp")
        for facts in (trained, other)
    ]
    assert texts == ["mdr", "mdr (untrained)", "dpr(k=10) (untrained)", "dpr(k=10)", "kgp", "kgp"]


def test_runs_are_compared_question_by_question():
    item = Run("d", "a", {"1": of("Dunmere"), "2": of("x"), "3": of("Dunmere town")})
    other = Run("d", "b", {"1": of("x"), "2": of("x"), "3": of("Dunmere")})
    assert compare_runs(item, other, "F1") == [("1", 1.0, 0.0), ("3", pytest.approx(2 / 3), 1.0)]
    with pytest.raises(UsageError, match="different data"):
        compare_runs(item, Run("e", "b", {}), "F1")


@pytest.mark.slow
def test_tables_in_every_form(data, tmp_path):
    out = str(tmp_path / "runs")
    evaluate_recipes(
        tmp_path / "runs", load_questions(data, "pooled", None, 0), ["kgp", "read"], EvaluationSettings()
    )
    texts = {}
    for form in ("terminal", "markdown", "latex", "csv", "json"):
        result = CliRunner().invoke(app, ["eval", "report", out, "-m", "recall@5", "--format", form])
        assert result.exit_code == 0, result.output
        texts[form] = result.stdout
    means = [run["metrics"]["recall@5"]["mean"] for run in json.loads(texts["json"])["runs"]]
    for form, row in (
        ("markdown", "| hotpotqa (pooled) | kgp | 6 | 0 |"),
        ("csv", "hotpotqa (pooled),kgp,6,0"),
    ):
        assert row in texts[form] and f"{means[0]:.1g}" in texts[form]
    assert r"\begin{tabular}" in texts["latex"] and r"recall@5" in texts["latex"]
    base = json.loads(texts["json"])["runs"][0]["facts"]["base_digest"]
    for form in ("terminal", "markdown", "latex", "csv"):
        assert f"base {base[:12]}" in texts[form] and "6 questions; seed 0" in texts[form], form
        assert f"clew {version('clew')}" in " ".join(texts[form].split())
    shown = CliRunner().invoke(app, ["eval", "errors", out])
    assert shown.exit_code == 0 and "kgp: 6 questions" in shown.stdout
    shown = CliRunner().invoke(app, ["eval", "compare", out, "kgp", "read", "-m", "MRR"])
    assert shown.exit_code == 0
    assert CliRunner().invoke(app, ["eval", "report", out, "--baseline", "kpg"]).exit_code == 2
    assert CliRunner().invoke(app, ["eval", "report", str(tmp_path / "none")]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--data", "hotpotqa"], "Write NAME=PATH"),
        (["--data", "hotpot=x"], "hotpotqa"),
        (["--data", "@", "--passages", "word"], "paragraph, sentence"),
        (["--data", "@", "--corpus", "/no/such/base"], "no knowledge base"),
        (["--data", "@", "--recipe", "kpg"], "kgp"),
    ],
)
def test_a_bad_request_is_refused(data, tmp_path, words, text):
    words = [data if word == "@" else word for word in words]
    result = CliRunner().invoke(app, ["eval", "run", *words, "--out", str(tmp_path / "runs")])
    assert result.exit_code == 2 and text in result.output


def test_what_a_run_costs_is_said_first_and_a_model_grades_it(data, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    mumbles = {"q1"}

    def script(request):
        if "expert professor" not in request.prompt:
            return "Eremnud" if "Dunmere" in request.prompt else "I forgot"
        if "Answer: Etagworrem" in request.prompt and mumbles:
            return "perhaps"
        return "1" if "Prediction: Eremnud" in request.prompt.rpartition("Question:")[2] else "0"

    out = str(tmp_path / "runs")
    with ScriptedServer(script) as server:
        ran = CliRunner().invoke(
            app, ["eval", "run", "--data", data, "-r", "none", "--llm", server.llm, "--out", out]
        )
        assert ran.exit_code == 0, ran.output
        assert "none: about 6 calls" in ran.output and "read: about 6 calls" in ran.output
        assert sum("less than 6 words" in request.prompt for request in server.requests) == 6
        graded = CliRunner().invoke(app, ["eval", "grade", out, "--llm", server.llm])
        assert graded.exit_code == 0 and "6 calls" in graded.output, graded.output
        only, control = RunFolder(tmp_path / "runs" / "hotpotqa-pooled").load_runs()
        # One prompt over the first passages stands beside every recipe that a model answers.
        assert (only.recipe, control.recipe) == ("none", "read")
        # The question with "Dunmere" in it is right; the mumbled verdict is no grade at all.
        assert {name: value.grade for name, value in only.results.items()} == {
            "q0": 1, "q1": None, "q2": 0, "q3": 0, "q4": 0, "q5": 0
        }  # fmt: skip
        mumbles.clear()
        asked_before = len(server.requests)
        CliRunner().invoke(app, ["eval", "grade", out, "--llm", server.llm])
        assert len(server.requests) <= asked_before + 1
        again = CliRunner().invoke(
            app, ["eval", "run", "--data", data, "-r", "none", "--llm", server.llm, "--out", out]
        )
        assert again.exit_code == 0
    shown = CliRunner().invoke(
        app, ["eval", "report", out, "-m", "Acc", "-m", "EM", "-m", "calls", "--format", "json"]
    )
    metrics = json.loads(shown.stdout)["runs"][0]["metrics"]
    assert metrics["EM"]["mean"] == pytest.approx(1 / 6) and metrics["calls"]["mean"] == 1
    assert metrics["Acc"]["questions"] in {5, 6}


@pytest.mark.slow
def test_a_recorded_run_gives_the_same_table_without_a_model(data, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    tape = str(tmp_path / "tape.jsonl")
    questions = load_questions(data, "pooled", None, 0)
    names = ["EM", "F1", "recall@5", "tokens", "calls"]
    shown = []
    with ScriptedServer(lambda request: "Eremnud") as server:
        recorded = create_language_model(server.llm, record=tape)
        folder = evaluate_recipes(
            tmp_path / "one", questions, ["ircot(each=2)"], EvaluationSettings(recorded)
        )
        shown.append(table_rows(build_table(folder.load_runs(), names)))
    replayed = create_language_model(f"replay:{tape}")
    folder = evaluate_recipes(tmp_path / "two", questions, ["ircot(each=2)"], EvaluationSettings(replayed))
    shown.append(table_rows(build_table(folder.load_runs(), names)))
    assert shown[0] == shown[1] and shown[0][1][0][2:4] == ["6", "0"]
