"""Drilling down with a scripted model, and without one."""

import re
from dataclasses import replace

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import Answer, Question, Scope
from clew.knowledge_base import registry
from clew.models.wrappers import Budget
from drill_documents import NOTES, REPORT
from kb_documents import document, location
from scripted import ScriptedServer

ASKED = Question("Who was the director of the company that owned the lighters?")


def drill(base, server=None, recipe="drill", **more):
    model = registry.load_language_model(server.llm, **more) if server else None
    return registry.build_retriever(recipe, base, llm=model)


def kind_of(request):
    if "Numbers of the documents:" in request.user:
        return "documents"
    if "Numbers of the sections:" in request.user:
        return "sections"
    return "paragraphs" if "paragraph ids" in request.user else "paper"


def number_of(request, name):
    """The number under which an entry of that name is shown."""
    return re.search(rf"^\[(\d+)\] {re.escape(name)}", request.user, re.MULTILINE)[1]


def paragraph(request, words):
    return re.search(rf"^(\d+): .*{re.escape(words)}", request.user, re.MULTILINE)[1]


def test_three_levels_for_many_documents(base, snapshot_of):
    snapshot_of(REPORT, NOTES)

    def reply(request):
        match kind_of(request):
            case "documents":
                return number_of(request, "lighters.txt")
            case "sections":
                return "Owners"  # both of that name
            case _:
                return paragraph(request, "Its director was Maria Hale")

    trail = TrailRecorder()
    with ScriptedServer(reply) as server:
        hits = drill(base, server, "drill(hints=0)").explore(ASKED, 10, trail)
        kinds = [kind_of(request) for request in server.requests]
    assert kinds == ["documents", "sections", "paragraphs"]
    assert [hit.node.text.split(".")[0] for hit in hits] == ["The Tolland Coal Company owned them all"]
    assert "section History > Owners" in hits[0].via[0] and "named by the model" in hits[0].via[0]
    steps = {step.name: step for step in trail.steps}
    assert steps["documents"].detail["chosen"] == ["lighters.txt"]
    chosen = steps["sections"].detail["chosen"]
    assert [item["section"] for item in chosen] == ["History > Owners", "End > Owners"]
    assert all("named by the model" in item["why"] for item in chosen)
    assert trail.usage().calls == 3
    # Only the paragraphs of the chosen sections were shown.
    assert "Its director" in server.requests[2].user and "Osk Brothers" not in server.requests[2].user


@pytest.mark.slow
def test_two_calls_for_one_document(base, snapshot_of):
    snapshot_of(REPORT, NOTES)
    key = base.document("lighters.txt").key

    def reply(request):
        return number_of(request, "Crews") if kind_of(request) == "sections" else "1"

    with ScriptedServer(reply) as server:
        question = Question("How many men had each lighter?", Scope(documents=frozenset([key])))
        hits = drill(base, server, "drill(hints=0)").retrieve(question, 10)
        assert [kind_of(request) for request in server.requests] == ["sections", "paragraphs"]
    assert [hit.node.text for hit in hits] == ["Each had a crew of three: a skipper, a mate and a boy."]


def test_a_detail_that_no_summary_shows_is_hinted_at_and_kept(base, snapshot_of):
    snapshot_of(REPORT)
    question = Question("How many tonnes had the Gannet?")

    def reply(request):
        if kind_of(request) == "sections":
            assert "match: Ships of the line. Gannet" in request.user
            return "none"
        return paragraph(request, "Gannet")

    trail = TrailRecorder()
    with ScriptedServer(reply) as server:
        hits = drill(base, server, "drill(hints=2, words=0)").explore(question, 5, trail)
    assert [hit.node.kind for hit in hits] == ["row"]
    assert hits[0].via == ("hint: best of the search",)
    assert "345" in hits[0].node.text


def test_a_table_can_be_chosen_alone(base, snapshot_of):
    snapshot_of(REPORT)

    def reply(request):
        if kind_of(request) == "sections":
            return number_of(request, "Ships of the line (table, 3 rows)")
        assert "The table lists every ship" not in request.user
        return "1, 2, 3"

    with ScriptedServer(reply) as server:
        hits = drill(base, server, "drill(hints=0)").retrieve(Question("Which ships were there?"), 10)
    assert [hit.node.kind for hit in hits] == ["row"] * 3


def test_a_page_can_be_chosen_where_pages_are_entries(base, snapshot_of):
    snapshot_of(
        ("a.pdf", "A", ("page", 3), ("heading", 1, "One"), "First words.", ("page", 4), "Second words.")
    )

    def reply(request):
        if kind_of(request) == "sections":
            return number_of(request, "page 4")
        assert "First words" not in request.user
        return "1"

    with ScriptedServer(reply) as server:
        (hit,) = drill(base, server, "drill(hints=0, pages=yes)").retrieve(Question("What is on page 4?"), 10)
    assert hit.node.text == "Second words." and "page 4" in hit.via[0]


def test_the_papers_setting(base, snapshot_of):
    snapshot_of(REPORT)
    replies = ["History > Owners, The owners' club", "1"]
    trail = TrailRecorder()
    with ScriptedServer(replies) as server:
        hits = drill(base, server, "drill-paper(summariser=extractive, words=16)").explore(ASKED, 10, trail)
        outline = server.requests[0].user
    assert [hit.node.text.split(".")[0] for hit in hits] == ["The Tolland Coal Company owned them all"]
    assert (
        outline.count("* Section: ") == 6 and "match:" not in outline and "Ships of the line\n" not in outline
    )
    (sections,) = [step for step in trail.steps if step.name == "sections"]
    assert sections.detail["not known"] == ["The owners' club"]
    with ScriptedServer() as server, pytest.raises(UsageError, match="needs a language model"):
        drill(base, None, "drill-paper")


def test_the_papers_setting_shows_the_sections_of_two_documents_and_chooses_none_of_them(base, snapshot_of):
    snapshot_of(REPORT, NOTES)
    trail = TrailRecorder()
    with ScriptedServer(["History > Owners", "1"]) as server:
        hits = drill(base, server, "drill-paper(summariser=model, words=16)").explore(ASKED, 10, trail)
        outline = server.requests[0].user
        assert server.answered == 2 and kind_of(server.requests[0]) == "paper"
    assert "lighters.txt > History" in outline and "bridges.txt" in outline
    assert hits and not any(kind_of(request) == "documents" for request in server.requests)
    (note,) = replace(Answer(""), trail=tuple(trail.steps)).fallbacks
    assert "sections have none yet and were shown by extracted sentences (clew summarise writes them)" in note


def test_drill_returns_no_hits_when_the_model_chooses_nothing(base, snapshot_of):
    snapshot_of(REPORT)
    with ScriptedServer([""]) as server:
        assert drill(base, server, "drill(hints=0)").retrieve(ASKED, 10) == []


def test_a_spent_budget_leaves_what_the_search_found(base, snapshot_of):
    snapshot_of(REPORT, NOTES)
    trail = TrailRecorder()
    with ScriptedServer(lambda request: "1") as server:
        hits = drill(base, server, budget=Budget(calls=1)).explore(ASKED, 3, trail)
        assert len(server.requests) == 1
    assert "stopped" in [step.name for step in trail.steps]
    assert len(hits) == 3


def test_ask_reads_what_it_found_and_counts_what_it_cost(base, snapshot_of):
    snapshot_of(REPORT)

    def reply(request):
        match kind_of(request):
            case "sections":
                return number_of(request, "Owners")
            case "paragraphs":
                return "1"
            case _:
                quote = {"source": 1, "text": "Its director was Maria Hale"}
                return {"quotes": [quote], "answer": "Maria Hale", "abstain": False}

    with ScriptedServer(reply) as server:
        model = registry.load_language_model(server.llm)
        method = registry.build_method("read(retriever=drill(hints=0, words=8))", base, llm=model)
        answer = method.answer(ASKED, TrailRecorder())
    assert answer.text == "Maria Hale"
    assert answer.usage.calls == 3
    assert [step.name for step in answer.trail] == [
        "search",
        "summarise",
        "sections",
        "paragraphs",
        "retrieve",
        "read",
    ]


@pytest.mark.slow
def test_without_a_model_nothing_of_the_search_is_lost(base):
    for number in range(6):
        base.put_document(document(number), location(f"/d/{number}.txt"))
    base.catch_up()
    for words in ("Oskell ferry 1929", "Garrow mill", "water toll gauge"):
        question = Question(words)
        plain = registry.build_retriever("search", base).retrieve(question, 200)
        result = drill(base).retrieve(question, 200)
        assert {hit.node.id for hit in result} == {hit.node.id for hit in plain}
        assert np.all(np.diff([hit.score for hit in result]) <= 0)
        assert drill(base).retrieve(question, 3) == result[:3]


def test_without_a_model_the_trail_says_why(base, snapshot_of):
    snapshot_of(REPORT, NOTES)
    trail = TrailRecorder()
    hits = explore_retriever(drill(base), ASKED, 3, trail)
    assert hits[0].node.text.startswith("The Tolland Coal Company")
    (step,) = [step for step in trail.steps if step.name == "sections"]
    best = step.detail["chosen"][0]
    assert best["section"] == "History > Owners"
    assert any(reason.startswith("best passage") for reason in best["why"])
    assert any(reason.startswith("summary match") for reason in best["why"])


def test_the_scope_holds_at_every_level(base, snapshot_of):
    snapshot_of(REPORT, NOTES)
    key = base.document("bridges.txt").key
    question = Question(
        "lighter bridge owners", Scope(documents=frozenset([key]), kinds=frozenset(["passage"]))
    )
    assert {hit.node.document for hit in drill(base).retrieve(question, 50)} == {key}
    with ScriptedServer(lambda request: "1, 2, 3") as server:
        hits = drill(base, server).retrieve(question, 50)
        assert len(server.requests) == 2
    assert hits and {hit.node.document for hit in hits} == {key}


def test_options_that_make_no_sense_are_refused(base, snapshot_of):
    snapshot_of(NOTES)
    for recipe, value in {
        "drill(search=drill)": "cannot search with",
        "drill(paragraphs=basic)": "no paragraphs",
        "drill(summariser=bert)": "no summariser",
        "drill(names=numbers)": "no names",
        "drill(paragraphs=base)": "needs a language model",
    }.items():
        with pytest.raises(UsageError, match=value):
            drill(base, None, recipe)


@pytest.mark.slow
@pytest.mark.parametrize("reply", ["Hmm, let me think about what a lighter is.", "Chapter Ninety"])
def test_a_choice_that_cannot_be_read_leaves_what_no_model_would(base, snapshot_of, reply):
    snapshot_of(REPORT)
    question = Question("How many tonnes had the Gannet?")
    trail = TrailRecorder()
    with ScriptedServer(lambda request: reply) as server:
        hits = drill(base, server, "drill(words=0)").explore(question, 5, trail)
    assert any("Gannet" in hit.node.text for hit in hits)
    answer = Answer("", trail=tuple(trail.steps))
    assert [text.partition(" could")[0] for text in answer.fallbacks] == [
        "the model's choice of sections",
        "the model's choice of paragraphs",
    ]
    assert answer.to_dict()["fallbacks"] == list(answer.fallbacks)
