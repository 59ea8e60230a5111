"""Standard few-shot prompting with a scripted model behind the real client."""

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from clew.core.errors import UsageError
from clew.core.prompts.templates import load_exemplars
from clew.knowledge_base import registry
from clew.models.wrappers import Budget
from hop_base import QUESTION, TEXTS, adds_up, ask, names
from scripted import ScriptedServer


def count_questions(request, first="Question: "):
    """Return how many questions a prompt has."""
    return sum(line.startswith(first) for line in request.user.splitlines())


def test_the_model_answers_after_25_exemplars_and_no_evidence(hops):
    answer, requests = ask(hops, ["Dunmere."], "fewshot")
    (request,) = requests
    assert count_questions(request) == 26 and request.user.endswith(f"Question: {QUESTION}\nAnswer:")
    first = load_exemplars("chains").shots[0]
    assert request.user.startswith(f"Question: {first['question']}\nAnswer: {first['answer']}\n\n")
    assert not any(text in request.prompt for text in TEXTS.values())
    assert (answer.text, answer.evidence, answer.context, answer.abstained) == ("Dunmere", (), (), False)
    assert names(answer) == ["read"] and adds_up(answer, requests)
    assert answer.trail[0].detail["prompt"] == "fewshot.v1" and answer.reader == "model"
    assert answer.recipe == "fewshot(exemplars=auto, shots=auto, task=question)"


def test_shots_and_exemplars_are_chosen(hops):
    _, (request,) = ask(hops, ["x"], "fewshot(shots=4)")
    assert count_questions(request) == 5
    answer, (request,) = ask(hops, ["x"], "fewshot(exemplars=compositional)")
    assert (
        count_questions(request) == 5 and load_exemplars("compositional").shots[0]["question"] in request.user
    )
    assert answer.trail[0].detail["prompt"] == "fewshot.v1+compositional"
    _, (request,) = ask(hops, ["x"], "fewshot(shots=0)")
    assert count_questions(request) == 1


@pytest.mark.parametrize(
    "recipe, problem",
    [
        ("fewshot(shots=26)", "26 exemplars are requested"),
        ("fewshot(task=riddle)", "no task of 'fewshot' named 'riddle'"),
        ("fewshot(exemplars=chain)", "chains"),
        ("fewshot(exemplars=claims)", "exemplar 1 has no"),
        ("fewshot(task=claim, exemplars=chains)", "exemplar 1 has no"),
    ],
)
def test_options_that_make_no_sense(hops, recipe, problem):
    with pytest.raises(UsageError, match=problem):
        ask(hops, [], recipe)
    with pytest.raises(UsageError, match="needs a language model"):
        registry.build_method("fewshot", hops)


def test_a_claim_gets_a_label(hops):
    script = ["Label: refuted, because it was not he"]
    answer, (request,) = ask(hops, script, "fewshot(task=claim)", "Wilmot Harker was born in Boston.")
    assert count_questions(request, "Claim: ") == 26 and request.user.endswith(
        "Claim: Wilmot Harker was born in Boston.\nLabel:"
    )
    assert (answer.text, answer.abstained) == ("REFUTES", False)
    answer, _ = ask(hops, ["I like films."], "fewshot(task=claim)", "Films are nice.")
    assert answer.abstained and answer.trail[0].detail["unreadable"] == "I like films."


def test_without_money_nothing_is_answered_and_it_is_said(hops):
    answer, requests = ask(hops, ["x"], "fewshot", budget=Budget(calls=0))
    assert requests == [] and answer.abstained and "budget" in answer.stop_reason and "stopped" in answer.text
    assert names(answer) == ["stopped"]


def test_the_command_line_says_that_nothing_was_checked(hops, monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    with ScriptedServer(["Dunmere"]) as server:
        words = ["ask", QUESTION, "--method", "fewshot", "--llm", server.llm, "--kb", str(hops.path)]
        shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "Dunmere" in shown.output and "the model's own words, checked against nothing" in shown.output
