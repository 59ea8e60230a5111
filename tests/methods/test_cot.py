"""Chain of thought with a scripted model behind the real client: samples, votes, passages, claims."""

import pytest

from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from hop_base import QUESTION, TEXTS, adds_up, ask, names, titles
from scripted import ScriptedServer


def count_lines(request, first="Question: "):
    return sum(line.startswith(first) for line in request.user.splitlines())


def test_one_thought_is_drawn_without_a_temperature(hops):
    answer, requests = ask(hops, ["Harker taught him. So the answer is: Dunmere."], "cot")
    (request,) = requests
    assert count_lines(request) == 9 and "So the answer is: Greta Varnholt." in request.user
    assert request.body.get("temperature", 0) == 0
    assert (answer.text, answer.context, answer.abstained) == ("Dunmere", (), False)
    assert names(answer) == ["read"] and adds_up(answer, requests)
    assert answer.trail[0].detail["thoughts"] == ["Harker taught him. So the answer is: Dunmere."]


def test_three_rounds_of_samples_are_drawn_apart_and_the_majority_is_the_answer(hops):
    text = iter(
        [
            "He is from Boston. So the answer is: Boston.",
            "So the answer is: the Dunmere.",
            "The village is Dunmere. So the answer is: dunmere",
        ]
    )
    answer, requests = ask(hops, lambda request: next(text), "cot(samples=3)")
    assert len(requests) == 3 and {request.body["temperature"] for request in requests} == {0.7}
    assert len({request.prompt for request in requests}) == 1
    # As the first of the majority wrote it, whichever call arrived first.
    assert answer.text in {"the Dunmere", "dunmere"}
    detail = answer.trail[0].detail
    assert sorted(detail["votes"].values()) == [1, 2] and detail["votes"]["Boston"] == 1
    assert detail["temperature"] == 0.7 and len(detail["thoughts"]) == 3
    assert names(answer) == ["read"] and adds_up(answer, requests)


def test_samples_are_remembered_one_by_one(hops, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    with ScriptedServer(lambda request: f"So the answer is: {len(server.requests)}.") as server:
        for recipe in ("cot(samples=3)", "cot(samples=3)", "cot(samples=4)"):
            method = registry.build_method(recipe, hops, llm=create_language_model(server.llm, cache=True))
            answer = method.answer(Question(QUESTION), TrailRecorder())
        assert len(server.requests) == 4
    assert sorted(answer.trail[0].detail["votes"]) == ["1", "2", "3", "4"]


def test_with_a_retriever_the_passages_stand_before_the_question_and_are_the_evidence(hops):
    answer, requests = ask(hops, ["So the answer is: Alf Clausen."], "cot(retriever=bm25, k=2)")
    assert names(answer) == ["retrieve", "read"] and adds_up(answer, requests)
    before = requests[0].user.rpartition("Question: ")[0]
    assert "Title: Simpsons theme\n" + TEXTS["Simpsons theme"] in before
    assert len(answer.evidence) == 2 and "Simpsons theme" in titles(answer.evidence)
    assert answer.evidence == answer.context and answer.quotes == () and answer.reader == "model"


def test_a_claim_is_judged_after_three_exemplars(hops):
    answer, (request,) = ask(
        hops, ["He was. So the answer is: SUPPORTS."], "cot(task=claim)", "Harker was born in Dunmere."
    )
    assert count_lines(request, "Claim: ") == 4 and answer.text == "SUPPORTS"
    labels = [
        label for label in ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO") if f"is: {label}." in request.user
    ]
    assert len(labels) == 3


def test_thoughts_without_an_answer_have_no_vote_and_none_at_all_abstains(hops):
    replies = iter(
        ["I wonder where that might be, and who could possibly know.", "So the answer is: Dunmere.", ""]
    )
    answer, _ = ask(hops, lambda request: next(replies), "cot(samples=3)")
    assert answer.text == "Dunmere" and answer.trail[0].detail["unreadable"] == 2
    answer, _ = ask(hops, ["So the answer is: Unknown."], "cot(retriever=bm25)")
    assert answer.abstained and answer.trail[-1].detail["final"] == "Unknown" and answer.evidence
    answer, _ = ask(hops, ["", ""], "cot(samples=2)")
    assert answer.abstained and answer.text == "No answer that clew is sure of."


def test_the_budget_stops_it_and_options_are_checked(hops):
    answer, requests = ask(hops, [], "cot(retriever=bm25)", budget=Budget(calls=0))
    assert requests == [] and answer.stop_reason and answer.abstained and answer.evidence
    assert names(answer) == ["retrieve", "stopped"]
    with pytest.raises(UsageError, match="temperature 0"):
        ask(hops, [], "cot(samples=2, temperature=0)")
    with pytest.raises(UsageError, match="no retriever named 'bm52'"):
        ask(hops, [], "cot(retriever=bm52)")
