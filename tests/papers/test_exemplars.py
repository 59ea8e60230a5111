"""Exemplars that are made of a data set's training questions."""

import json

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt
from clew.evaluate.datasets import load_dataset
from clew.papers.gold_hops import make_exemplars
from clew.triples.language.chain import parse_chain

FILMS = [
    ("Low Water", "Emil Szarka", "Saltreach"),
    ("The Tin Parade", "Dorte Halvik", "Oskell Bay"),
    ("Glass Harvest", "Ruben Achterberg", "Port Ellery"),
]


@pytest.fixture
def training(tmp_path):
    """Three compositional questions and a comparison, in the form of 2WikiMultihopQA."""
    rows = [
        {
            "_id": f"q{number}",
            "type": "compositional",
            "question": f"Where was the director of {film} born?",
            "answer": town,
            "evidences": [[film, "director", director], [director, "place of birth", town]],
        }
        for number, (film, director, town) in enumerate(FILMS)
    ]
    rows.append(
        {
            "_id": "q9",
            "type": "comparison",
            "question": "Who is older, Ada Strake or Bo Harker?",
            "answer": "Ada Strake",
            "evidences": [["Ada Strake", "date of birth", "1834"], ["Bo Harker", "date of birth", "1851"]],
        }
    )
    for row in rows:
        row |= {"context": [["Low Water", ["A film."]]], "supporting_facts": [["Low Water", 0]]}
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_gold_triples_become_exemplars_that_the_prompts_take(training, tmp_path, monkeypatch):
    out = tmp_path / "prompts" / "exemplars" / "2wikimultihopqa.jsonl"
    words = [
        "eval",
        "paper",
        "exemplars",
        "--data",
        f"2wikimultihopqa={training}",
        "--out",
        str(out),
        "-n",
        "4",
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    shots = {shot["question"]: shot for shot in map(json.loads, out.read_text("utf-8").splitlines())}
    shot = shots["Where was the director of Low Water born?"]
    assert shot["chain"] == "Low Water >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    assert shot["filled"] == (
        "Low Water >> director >> Emil Szarka; Emil Szarka >> place of birth >> Saltreach; final answer: Saltreach"
    )
    assert shot["thought"].endswith("Emil Szarka: place of birth Saltreach. So the answer is: Saltreach.")
    older = shots["Who is older, Ada Strake or Bo Harker?"]
    assert older["chain"].endswith("final answer: #answer") and older["answer"] == "Ada Strake"
    assert all(parse_chain(each["chain"]) for each in shots.values())
    monkeypatch.setenv("CLEW_PROMPTS", str(tmp_path / "prompts"))
    for name in ("chain-parse", "chain-memory", "fewshot", "cot"):
        prompt = load_prompt(name, exemplars="2wikimultihopqa", shots=4)
        assert "+2wikimultihopqa+" in prompt.name and "Low Water" in prompt.user


def test_they_are_drawn_by_the_seed_and_too_few_are_an_error(training):
    examples = list(load_dataset("2wikimultihopqa", training).examples())
    assert make_exemplars(examples, 2, 5) == make_exemplars(examples, 2, 5)
    assert len({str(make_exemplars(examples, 2, seed)) for seed in range(8)}) > 1
    with pytest.raises(UsageError, match="5 exemplars are requested and 4 questions have gold triples"):
        make_exemplars(examples, 5, 0)
