"""The baselines of Section 4 as retrievers of the catalogue: every passage in scope is looked at, all is counted."""

import re

import pytest

from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import Location, Question, Scope
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from scripted import ScriptedServer

FERRIES = [
    "The Kittiwake is a chain ferry.",
    "She was built by Strake.",
    "Strake lies on the Oskell.",
    "Fog is common.",
]
LIGHTERS = ["The Bittern is a lighter.", "She was built by Tolland Yard.", "Coal is carried."]
QUESTION = "Who built the Bittern?"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("baselines") / "base", create=True) as store:
        # The name that sorts first is added last: the order of a base's history does not show.
        for number, (title, texts) in enumerate((("b lighters", LIGHTERS), ("a ferries", FERRIES))):
            builder = DocumentBuilder()
            for text in texts:
                builder.add_paragraph(text)
            parsed = builder.finish(data=title.encode(), title=title, media_type="text/plain", parser="t/1")
            store.put_document(parsed, Location(f"/docs/{title}.txt", "/docs", 1, number, number))
        store.catch_up()
        yield store


def key(base, name):
    return next(document.key for document in base.documents() if document.name == name)


def offered_paragraphs(request):
    return {int(n): text for n, text in re.findall(r"^(\d+): (.*)$", request.user, re.MULTILINE)}


def choose_builders(request):
    """Take what says who built something; of a single paragraph, say whether it does."""
    if "yes or no" in request.user:
        return "yes" if "built by" in request.user else "no"
    return ", ".join(str(n) for n, text in offered_paragraphs(request).items() if "built by" in text)


def run(base, recipe, script=choose_builders, scope=None, k=10, **more):
    record = TrailRecorder()
    with ScriptedServer(script) as server:
        result = registry.build_retriever(recipe, base, llm=create_language_model(server.llm, **more))
        hits = explore_retriever(result, Question(QUESTION, scope or Scope()), k, record)
    return [hit.node.text for hit in hits], record, server.requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "calls"),
    [("paragraph", 7), ("chunk", 1), ("map-reduce", 8), ("map-reduce-optimised", 2), ("chunk(size=20)", 4),
     ("map-reduce-optimised(size=20)", 5)],
)  # fmt: skip
def test_all_passages_are_looked_at_and_every_call_is_counted(base, recipe, calls):
    # Lines of 9, 7, 8, 5, 8, 9 and 5 tokens: two to a chunk of 20, and the last alone.
    result, record, requests = run(base, recipe)
    assert result == [FERRIES[1], LIGHTERS[1]]
    assert len(requests) == calls == record.usage().calls
    assert record.usage().tokens_in == 11 * calls
    shown = [text for request in requests for text in offered_paragraphs(request).values()]
    shown += [request.user.split("\n")[1] for request in requests if "yes or no" in request.user]
    assert set(FERRIES + LIGHTERS) <= set(shown)


def test_paragraphs_stand_in_the_order_of_documents_and_of_reading(base):
    _, _, requests = run(base, "chunk")
    assert list(offered_paragraphs(requests[0]).values()) == FERRIES + LIGHTERS


def test_a_question_is_asked_of_its_scope(base):
    result, _, requests = run(base, "chunk", scope=Scope(documents=frozenset([key(base, "b lighters.txt")])))
    assert result == [LIGHTERS[1]] and list(offered_paragraphs(requests[0]).values()) == LIGHTERS
    result, _, _ = run(base, "chunk", k=1)
    assert result == [FERRIES[1]]


def test_the_second_stage_of_map_reduce_sees_what_the_first_chose(base):
    _, record, requests = run(base, "map-reduce-optimised")
    assert list(offered_paragraphs(requests[1]).values()) == [FERRIES[1], LIGHTERS[1]]
    assert [step.detail["chosen"] for step in record.steps] == [2, 2]
    result, record, requests = run(base, "map-reduce", script=lambda request: "no")
    assert result == [] and len(requests) == 7


def test_a_spent_budget_leaves_what_was_chosen_before(base):
    result, record, requests = run(base, "map-reduce-optimised", budget=Budget(calls=1))
    assert result == [FERRIES[1], LIGHTERS[1]] and len(requests) == 1
    assert [step.name for step in record.steps] == ["paragraphs", "stopped"]
    result, record, requests = run(base, "paragraph", budget=Budget(calls=1))
    assert result == [] and not requests and [step.name for step in record.steps] == ["stopped"]


def test_what_asks_a_model_needs_one(base):
    for recipe in ("paragraph", "chunk", "map-reduce", "map-reduce-optimised"):
        with pytest.raises(UsageError, match=f"'{recipe}' needs a language model"):
            registry.build_retriever(recipe, base)
    assert (
        registry.build_retriever("monot5(model='some/folder')", base).selector.reranker.name
        == "monot5:some/folder"
    )
    assert registry.build_retriever("cross-encoder", base).selector.reranker.name.startswith(
        "cross-encoder:cross-"
    )
