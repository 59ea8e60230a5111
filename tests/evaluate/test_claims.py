"""Claims in FEVER's form, from the file to the table, by methods whose answer is a label."""

import json

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from scripted import ScriptedServer

CLAIMS = {
    "Harker was born in Dunmere.": ("SUPPORTS", "He was, so it is true. So the answer is: SUPPORTS."),
    "Clausen never wrote music.": ("REFUTES", "He composed. So the answer is: REFUTES."),
    "Harker liked tea.": ("NOT ENOUGH INFO", "Nothing tells. So the answer is: not enough information."),
    "Dunmere lies on a river.": ("SUPPORTS", "It does not, I think. So the answer is: REFUTES."),
    "Dunmere has a castle.": ("REFUTES", "Who knows what it has, and who could ever tell us that?"),
}


@pytest.fixture
def claims(tmp_path):
    records = [
        {"id": number, "label": label, "claim": claim, "evidence": []}
        for number, (claim, (label, _)) in enumerate(CLAIMS.items())
    ]
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return f"fever={path}"


def judge(request):
    claim = request.user.rpartition("Claim: ")[2].partition("\n")[0]
    return CLAIMS[claim][1]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["cot(task=claim)", "fewshot(task=claim)", "cot(task=claim, samples=3)"])
def test_labels_are_counted_right_from_the_file_to_the_table(claims, recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    out = str(tmp_path / "runs")
    words = ["--data", claims, "--corpus", "none", "--encoder", "none", "-r", recipe, "--out", out]
    with ScriptedServer(judge) as server:
        ran = CliRunner().invoke(app, ["eval", "run", *words, "--llm", server.llm])
        assert ran.exit_code == 0, ran.output
        assert len(server.requests) == len(CLAIMS) * (3 if "samples" in recipe else 1)
        assert all(
            request.user.count("Claim: ") == (26 if "few" in recipe else 4) for request in server.requests
        )
    shown = CliRunner().invoke(
        app, ["eval", "report", out, "-m", "accuracy", "-m", "EM", "-m", "calls", "--format", "json"]
    )
    assert shown.exit_code == 0, shown.output
    (run,) = json.loads(shown.stdout)["runs"]
    # Three labels are right, in whatever words; one is wrong, and one reply gives none.
    assert {name: value["mean"] for name, value in run["metrics"].items()} == {
        "accuracy": pytest.approx(3 / 5),
        "EM": pytest.approx(3 / 5),
        "calls": 3 if "samples" in recipe else 1,
    }


def test_questions_without_paragraphs_need_a_base_or_none(claims, tmp_path):
    result = CliRunner().invoke(app, ["eval", "run", "--data", claims, "--out", str(tmp_path / "runs")])
    assert result.exit_code == 2 and "--corpus none" in " ".join(result.output.split())


def test_claims_without_a_corpus_find_no_evidence(claims, tmp_path):
    words = [
        "--data",
        claims,
        "--corpus",
        "none",
        "-r",
        "read(retriever=bm25)",
        "--out",
        str(tmp_path / "runs"),
    ]
    ran = CliRunner().invoke(app, ["eval", "run", *words])
    assert ran.exit_code == 0, ran.output
    (path,) = (tmp_path / "runs").rglob("read*.jsonl")
    record = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(record) == len(CLAIMS) and all(item["abstained"] and not item["hits"] for item in record)
