"""STaRK end to end: a base in the official layout, its questions and split, retrieval, a scripted reranker, measures
worked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import UsageError
from clew.evaluate.datasets import load_dataset, parse_dataset
from clew.evaluate.metrics import parse_metric
from clew.evaluate.run_folder import evaluate_recipes
from clew.evaluate.setup import EvaluationSettings, load_questions
from clew.models import create_language_model
from scripted import ScriptedServer
from stark_base import write_questions, write_stark

METRICS = ("Hit@1", "Hit@5", "recall@20", "MRR")


@pytest.fixture
def prime(tmp_path: Path) -> Path:
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.graphs.add(write_stark(tmp_path / "prime"))
    return tmp_path / "kb"


def measure_run(folder) -> dict[str, list[float]]:
    (run,) = folder.load_runs()
    assert not run.errors
    return {name: [parse_metric(name).measure(value) for value in run.results.values()] for name in METRICS}  # type: ignore[misc]


def test_a_split_is_the_questions_that_its_file_names(tmp_path: Path) -> None:
    questions = write_questions(tmp_path / "qa")
    assert [example.id for example in load_dataset("stark", questions).examples()] == ["0", "3", "7"]
    test = parse_dataset(f"stark={questions}#test")
    assert [example.id for example in test.examples()] == ["0", "7"]
    assert test.digest() != load_dataset("stark", questions).digest()
    with pytest.raises(UsageError, match=r"part of stark_qa\.csv named 'tset'"):
        load_dataset("stark", f"{questions}#tset")
    (tmp_path / "qa" / "split" / "val.index").write_text("1\n")
    with pytest.raises(UsageError, match="no question has the id '1'"):
        list(load_dataset("stark", f"{questions}#val").examples())
    with pytest.raises(UsageError, match="no file"):
        load_dataset("stark", f"{tmp_path}/other.csv#test")


def test_the_measures_of_words_over_nodes(prime: Path, tmp_path: Path) -> None:
    questions = write_questions(tmp_path / "qa")
    data = load_questions(f"stark={questions}", str(prime), None, 0)
    folder = evaluate_recipes(
        tmp_path / "runs", data, ["read(retriever=bm25-nodes, k=20)"], EvaluationSettings()
    )
    (run,) = folder.load_runs()
    records = [json.loads(line) for line in next(folder.path.glob("read*.jsonl")).read_text().splitlines()]
    ranked = [[hit["id"].partition(":")[2] for hit in record["hits"]] for record in records]
    gold = [{"4"}, {"5"}, {"2", "3"}]
    by_hand = {
        "Hit@1": [float(bool(set(hits[:1]) & right)) for hits, right in zip(ranked, gold, strict=True)],
        "Hit@5": [float(bool(set(hits[:5]) & right)) for hits, right in zip(ranked, gold, strict=True)],
        "recall@20": [
            len(set(hits[:20]) & right) / len(right) for hits, right in zip(ranked, gold, strict=True)
        ],
        "MRR": [
            next((1 / place for place, id in enumerate(hits, 1) if id in right), 0.0)
            for hits, right in zip(ranked, gold, strict=True)
        ],
    }
    assert measure_run(folder) == by_hand
    # "Which drug for asthma is inhaled?": salbutamol alone has drug, asthma and inhaled.
    assert ranked[0][0] == "4" and by_hand["Hit@1"][0] == 1
    assert len(run.results) == 3


@pytest.mark.slow
def test_reranked_by_a_scripted_model(prime: Path, tmp_path: Path) -> None:
    """Scores by name: 0: cetirizine 0.9, salbutamol 0.7; 7: HRH1 0.6, ADRB2 0.2, everything else 0.4."""

    def reply(request) -> str:
        name = request.user.split("name: ")[1].splitlines()[0]
        drugs = "Which drug for asthma" in request.user
        known = {"cetirizine": "0.9", "salbutamol": "0.7"} if drugs else {"HRH1": "0.6", "ADRB2": "0.2"}
        return known.get(name, "0.1" if drugs else "0.4")

    questions = write_questions(tmp_path / "qa")
    data = load_questions(f"stark={questions}#test", str(prime), None, 0)
    with ScriptedServer(reply) as server:
        bench = EvaluationSettings(create_language_model(server.llm))
        recipe = "read(retriever=reranked(retriever=bm25-nodes), reader=extractive, k=20)"
        folder = evaluate_recipes(tmp_path / "runs", data, [recipe], bench)
    records = [json.loads(line) for line in next(folder.path.glob("read*.jsonl")).read_text().splitlines()]
    assert [record["hits"][0]["id"] for record in records] == ["prime:5", "prime:3"]
    # The first question finds its drug second; the other its genes first and last of those that share a word.
    assert measure_run(folder) == {
        "Hit@1": [0.0, 1.0],
        "Hit@5": [1.0, 1.0],
        "recall@20": [1.0, 1.0],
        "MRR": [0.5, 1.0],
    }
    assert records[0]["retrieval"]["calls"] == len(records[0]["hits"])


@pytest.mark.slow
def test_from_the_command_line(tmp_path: Path) -> None:
    runner = CliRunner()
    kb, place = str(tmp_path / "kb"), write_stark(tmp_path / "prime")
    added = runner.invoke(app, ["graph", "add", str(place), "--answers", "drug", "--kb", kb])
    assert added.exit_code == 0 and "added prime: 6 nodes, 8 edges" in added.stdout
    assert "answers: drug\n" in runner.invoke(app, ["graph", "schema", "prime", "--kb", kb]).stdout
    runner.invoke(app, ["encoder", "set", "clew:hops", "--kb", kb])
    result = runner.invoke(app, ["graph", "encode", "prime", "--kb", kb])
    assert result.exit_code == 0 and "prime: 2 vectors made by clew:hops" in result.stdout
    assert "2 vectors to make, about" in result.stderr
    again = runner.invoke(app, ["graph", "encode", "prime", "--all", "--json", "--kb", kb])
    assert json.loads(again.stdout) == {"graph": "prime", "encoder": "clew:hops", "encoded": 4}
    names = runner.invoke(app, ["graph", "encode", "prime", "--names", "--kb", kb])
    assert names.exit_code == 0 and "6 vectors made" in names.stdout
    for retriever in ("vss", "multi-vss", "bm25-nodes"):
        results = runner.invoke(
            app, ["search", "an inhaled drug", "-k", "2", "--retriever", retriever, "--json", "--kb", kb]
        )
        hits = json.loads(results.stdout)["hits"]
        assert hits[0]["id"] == "prime:4" and {hit["id"] for hit in hits} <= {"prime:4", "prime:5"}
