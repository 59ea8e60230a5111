"""Self-Ask with a scripted model behind the real client: three rounds, and replies in every form."""

import json

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Location, Question
from clew.knowledge_base import registry
from clew.methods.baselines.selfask import Reply, parse_reply
from clew.models import create_language_model
from clew.models.wrappers import Budget
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from scripted import ScriptedServer

TEXTS = {
    "Simpsons theme": "The Simpsons theme was arranged anew by Alf Clausen in season two.",
    "Alf Clausen": "Alf Clausen is a composer who was taught by Wilmot Harker in Boston.",
    "Wilmot Harker": "Wilmot Harker was born in the village of Dunmere.",
    "Noise": "A season of music was played by the band all summer.",
}
QUESTION = "Where does the teacher of the arranger of the Simpsons theme come from?"
ROUNDS = [
    ("Who arranged the Simpsons theme?", "Alf Clausen", "arranged anew by Alf Clausen"),
    ("Who taught Alf Clausen?", "Wilmot Harker", "taught by Wilmot Harker"),
    ("Where was Wilmot Harker born?", "Dunmere", "born in the village of Dunmere"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("selfask") / "base", create=True) as store:
        for number, (title, text) in enumerate(TEXTS.items()):
            builder = DocumentBuilder()
            builder.add_paragraph(text)
            parsed = builder.finish(data=text.encode(), title=title, media_type="text/plain", parser="t/1")
            store.put_document(parsed, Location(f"/docs/{title}.txt", "/docs", 1, number, number))
        store.catch_up()
        yield store


def agent(request):
    """Ask what the rounds ask, one after the other; read what is in the sources."""
    if "numbered sources" in request.system:
        for asked, answer, words in ROUNDS:
            if asked in request.user and words in request.user:
                source = next(n for n, text in enumerate(request.user.split("\n\n"), 1) if words in text)
                return {"quotes": [{"source": source, "text": words}], "answer": answer, "abstain": False}
        if QUESTION in request.user and ROUNDS[2][2] in request.user:
            return {"quotes": [{"source": 1, "text": ROUNDS[2][2]}], "answer": "Dunmere", "abstain": False}
        return {"quotes": [], "answer": "", "abstain": True}
    here = request.prompt.rpartition(QUESTION)[2]
    for asked, answer, _ in ROUNDS:
        if f"{asked}\nIntermediate answer: {answer}" not in here:
            return f" Yes.\nFollow up: {asked}\nIntermediate"
    return "So the final answer is: Dunmere."


def run(base, script, recipe="selfask(retriever=bm25, k=2)", **more):
    with ScriptedServer(script) as server:
        method = registry.build_method(recipe, base, llm=create_language_model(server.llm, **more))
        return method.answer(Question(QUESTION), TrailRecorder()), server.requests


@pytest.mark.slow
def test_three_follow_up_questions_each_answered_from_the_documents(base):
    answer, requests = run(base, agent)
    steps = [step.name for step in answer.trail]
    assert steps == ["follow up", "retrieve", "read"] * 3 + ["follow up", "read"]
    asked = [step.detail.get("question") for step in answer.trail if step.name == "follow up"]
    assert asked == [*(round for round, _, _ in ROUNDS), None]
    assert answer.trail[-2].detail["final"] == "Dunmere"
    assert [step.detail["query"] for step in answer.trail if step.name == "retrieve"] == asked[:3]
    # What follow-up answers rest on is read first in the end, in the order of the rounds.
    first = [hit.node.document_name for hit in answer.context][:3]
    assert first == ["Simpsons theme.txt", "Alf Clausen.txt", "Wilmot Harker.txt"]
    assert len({hit.node.id for hit in answer.context}) == len(answer.context)
    assert answer.text == "Dunmere" and [hit.node.document_name for hit in answer.evidence] == [
        "Wilmot Harker.txt"
    ]
    assert answer.usage.calls == len(requests) == 8
    assert answer.usage.tokens_in == sum(step.usage.tokens_in for step in answer.trail) == 8 * 11
    assert "selfask(" in answer.recipe and "reader=cited" in answer.recipe


def test_the_end_is_the_final_answer_the_rounds_a_repetition_or_the_money(base):
    def asking(request):
        return (
            agent(request)
            if "numbered sources" in request.system
            else f"Follow up: Who was number {len(seen)}?"
        )

    seen = []
    answer, _ = run(
        base, lambda request: seen.append(request) or asking(request), "selfask(retriever=bm25, rounds=4)"
    )
    assert [step.name for step in answer.trail].count("follow up") == 4
    answer, _ = run(
        base, lambda request: agent(request) if "sources" in request.system else "Follow up: who  WAS it?"
    )
    assert [step.name for step in answer.trail].count("follow up") == 2
    answer, requests = run(base, agent, budget=Budget(calls=3))
    assert len(requests) == 3 and answer.abstained and answer.stop_reason
    assert [step.name for step in answer.trail][-2:] == ["stopped", "stopped"]


def test_a_question_that_needs_no_follow_up_is_still_read_from_evidence(base):
    answer, requests = run(
        base, lambda r: agent(r) if "sources" in r.system else "No.\nSo the final answer is: Mars."
    )
    assert [step.name for step in answer.trail] == ["follow up", "retrieve", "read"]
    assert answer.text != "Mars" and len(requests) == 2


def test_a_follow_up_without_an_answer_is_told_so(base):
    prompts = []

    def script(request):
        prompts.append(request)
        if "sources" in request.system:
            return {"quotes": [], "answer": "", "abstain": True}
        return "Follow up: Who painted it?"

    answer, _ = run(base, script)
    assert any("Intermediate answer: Not found in these documents." in prompt.prompt for prompt in prompts)
    assert answer.abstained


def test_what_makes_no_sense_is_shown_and_the_question_itself_is_searched(base):
    answer, _ = run(base, lambda r: agent(r) if "sources" in r.system else "Lorem ipsum.")
    assert answer.trail[0].detail["unreadable"] == "Lorem ipsum."
    assert [step.name for step in answer.trail] == ["follow up", "retrieve", "read"]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (" Yes.\nFollow up: Who is it?", Reply("Who is it?")),
        (
            "Follow-up: Who is it?\nIntermediate answer: Ada.\nSo the final answer is: Ada",
            Reply("Who is it?"),
        ),
        ("**Follow up question 1:** Who is it?", Reply("Who is it?")),
        ('follow up: "Who is it?"', Reply("Who is it?")),
        ("Yes. 1. Follow Up:  Who is it?", Reply("Who is it?")),
        ("So the final answer is: Ada", Reply(final="Ada")),
        ("**So the final answer is:** Ada", Reply(final="Ada")),
        ("Final answer: Ada", Reply(final="Ada")),
        ("The answer is: Ada", Reply(final="Ada")),
        ("- Who is it?", Reply("Who is it?")),
        ("<think>Follow up: No!</think>Follow up: Who is it?", Reply("Who is it?")),
        ("Intermediate answer: Ada", Reply()),
        ("No.", Reply()),
        ("", Reply()),
    ],
)
def test_replies_in_every_form(reply, text):
    assert parse_reply(reply) == text


def test_a_retriever_is_put_into_any_recipe_that_has_one():
    assert registry.replace_retriever("selfask", "bm25(k1=2)") == "selfask(retriever=bm25(k1=2))"
    assert registry.replace_retriever("default", "bm25") == "read(retriever=bm25)"
    with pytest.raises(UsageError, match="no retriever to replace"):
        registry.replace_retriever("kgp-paper", "bm25")
    with pytest.raises(UsageError, match="no recipe"):
        registry.replace_retriever("selfhelp", "bm25")


@pytest.mark.slow
@pytest.mark.parametrize("retriever", ["chunk", "drill"])
def test_ask_takes_method_and_retriever(tmp_path, monkeypatch, retriever):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    for title, text in TEXTS.items():
        (tmp_path / f"{title}.txt").write_text(text)
    with clew.open(tmp_path / "kb", create=True) as result:
        result.add([tmp_path])
    with ScriptedServer(agent) as server:
        words = ["ask", QUESTION, "--method", "selfask", "--retriever", retriever, "--llm", server.llm,
                 "--kb", str(tmp_path / "kb"), "--json"]  # fmt: skip
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    recipe = json.loads(done.stdout)["recipe"]
    assert recipe.startswith("selfask(") and f"retriever={retriever}" in recipe


def test_the_models_own_final_answer_is_taken_as_in_the_paper(base):
    answer, _ = run(base, agent, recipe="selfask(final=model)")
    assert (answer.text, answer.reader, answer.abstained) == ("Dunmere", "model", False)
    assert [step.name for step in answer.trail][-1] == "follow up"
    short, _ = run(base, agent, recipe="selfask(final=model, rounds=1)")
    assert [step.name for step in short.trail].count("follow up") == 2  # the second asks for the answer
