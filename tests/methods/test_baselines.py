"""The baselines of the KGP paper, with a scripted language model behind the real client."""

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import RETRIEVED_KINDS, Location, Question, Scope
from clew.graph.passages import texts_with_headings
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from kb_documents import HashEncoder
from scripted import ScriptedServer

TEXTS = {
    "Simpsons theme": "The Simpsons theme was arranged anew by Alf Clausen in season two.",
    "Alf Clausen": "Alf Clausen is a composer who was taught by Wilmot Harker in Boston.",
    "Wilmot Harker": "Wilmot Harker was born in the village of Dunmere.",
    "Dunmere": "Dunmere lies on the river Oskell and has a ferry.",
    "Noise": "A season of theme music was played by the band all summer.",
}
QUESTION = Question("Where does the teacher of the arranger of the Simpsons theme come from?")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("baselines") / "base", create=True) as store:
        for number, (title, text) in enumerate(TEXTS.items()):
            builder = DocumentBuilder()
            builder.add_paragraph(text)
            parsed = builder.finish(data=text.encode(), title=title, media_type="text/plain", parser="t/1")
            store.put_document(parsed, Location(f"/docs/{title}.txt", "/docs", 1, number, number))
        store.encode(HashEncoder())
        yield store


def titles(hits):
    return [hit.node.document_name.removesuffix(".txt") for hit in hits]


def thinking(request):
    """Reason as the passages at hand allow, then answer."""
    if "create a final answer" in request.prompt:
        return "Dunmere" if TEXTS["Wilmot Harker"] in request.prompt else "unknown"
    here = request.prompt.rpartition("the Oskell Dam.\n")[2]
    if "Wilmot Harker was born" in here.partition("Question:")[0]:
        return "So the answer is: Dunmere."
    if "taught by Wilmot Harker" in here.partition("Question:")[0]:
        return "Alf Clausen was taught by Wilmot Harker. Then he rested."
    return "The Simpsons theme was arranged by Alf Clausen."


def test_ircot_retrieves_for_each_of_three_rounds_and_reads_all_of_it(base) -> None:
    with ScriptedServer(thinking) as server:
        method = registry.build_method(
            "ircot(retriever=bm25, each=2)", base, llm=create_language_model(server.llm)
        )
        answer = method.answer(QUESTION, TrailRecorder())
    assert [step.name for step in answer.trail] == ["retrieve", "reason"] * 3 + ["read"]
    queries = [step.detail["query"] for step in answer.trail if step.name == "retrieve"]
    assert queries == [
        QUESTION.text,
        "The Simpsons theme was arranged by Alf Clausen.",
        "Alf Clausen was taught by Wilmot Harker.",
    ]
    # What the first rounds brought stays to the end, and its titles are told.
    result = titles(answer.context)
    assert [title for title in result if title != "Noise"][:3] == [
        "Simpsons theme",
        "Alf Clausen",
        "Wilmot Harker",
    ]
    assert len(set(result)) == len(result)
    assert "Title: Alf Clausen" in server.requests[2].prompt
    assert "Reasoning: The Simpsons theme was arranged by Alf Clausen." in server.requests[1].prompt
    assert answer.text == "Dunmere" and "reader=paper" in answer.recipe
    assert answer.usage.calls == len(server.requests) == 4
    assert answer.usage.tokens_in == sum(step.usage.tokens_in for step in answer.trail) > 0


@pytest.mark.parametrize(("options", "rounds"), [("each=1, rounds=1", 1), ("each=1, rounds=3", 3)])
def test_ircot_ends_after_its_rounds_having_retrieved_for_every_thought(base, options, rounds) -> None:
    thoughts = [f"Thought {number} about the season." for number in range(1, 9)]
    with ScriptedServer(thoughts) as server:
        method = registry.build_method(f"ircot({options})", base, llm=create_language_model(server.llm))
        answer = method.answer(QUESTION, TrailRecorder())
    assert [step.name for step in answer.trail] == ["retrieve", "reason"] * rounds + ["retrieve", "read"]
    assert [step.detail["thought"] for step in answer.trail if step.name == "reason"] == thoughts[:rounds]
    retrievals = [step for step in answer.trail if step.name == "retrieve"]
    assert [step.query for step in retrievals] == [QUESTION.text, *thoughts[:rounds]]
    assert all(len(step.hits) == 1 for step in retrievals)
    # Each passage is read once, in the order in which it was found.
    results = dict.fromkeys(hit.node.id for step in retrievals for hit in step.hits)
    assert [hit.node.id for hit in answer.context] == list(results)
    assert answer.usage.calls == len(server.requests) == rounds + 1


def test_ircot_ends_when_its_budget_of_passages_is_full(base) -> None:
    with ScriptedServer(lambda request: f"Thought {len(server.requests)} about the season.") as server:
        method = registry.build_method("ircot(each=5, budget=1)", base, llm=create_language_model(server.llm))
        answer = method.answer(QUESTION, TrailRecorder())
    assert [step.name for step in answer.trail] == ["retrieve", "read"]
    assert len(answer.trail[0].hits) == 2 and answer.context == answer.trail[0].hits[:1]
    assert len(server.requests) == 1  # only the reader asked


def test_ircot_that_repeats_itself_or_spends_its_money_reads_what_it_has(base) -> None:
    with ScriptedServer(lambda request: "The same again.") as server:
        method = registry.build_method("ircot(each=1)", base, llm=create_language_model(server.llm))
        assert sum(step.name == "reason" for step in method.answer(QUESTION, TrailRecorder()).trail) == 2
        method = registry.build_method(
            "ircot(each=1)", base, llm=create_language_model(server.llm, budget=Budget(calls=1))
        )
        answer = method.answer(QUESTION, TrailRecorder())
    assert [step.name for step in answer.trail][-2:] == ["stopped", "stopped"]
    assert answer.abstained and answer.evidence


def test_ircot_answers_by_a_new_chain_of_thought_where_that_is_asked_for(base) -> None:
    def script(request):
        if "step by step" in request.prompt:
            return "It all leads to Dunmere. So the answer is: Dunmere."
        return thinking(request)

    with ScriptedServer(script) as server:
        model = create_language_model(server.llm)
        method = registry.build_method("ircot(retriever=bm25, each=2, final=model)", base, llm=model)
        answer = method.answer(QUESTION, TrailRecorder())
        assert [step.name for step in answer.trail] == ["retrieve", "reason"] * 3 + ["read"]
        assert all(TEXTS[title] in server.requests[-1].prompt for title in ("Alf Clausen", "Wilmot Harker"))
        assert (answer.text, answer.reader, answer.usage.calls) == ("Dunmere", "model", 4)
        poor = registry.build_method(
            "ircot(each=1, final=model)", base, llm=create_language_model(server.llm, budget=Budget(calls=1))
        )
        assert poor.answer(QUESTION, TrailRecorder()).abstained


def test_none_asks_with_the_question_alone(base) -> None:
    with ScriptedServer(lambda request: "Springfield") as server:
        answer = registry.build_method("none", base, llm=create_language_model(server.llm)).answer(
            QUESTION, TrailRecorder()
        )
    (request,) = server.requests
    assert not any(text in request.prompt for text in TEXTS.values()) and QUESTION.text in request.prompt
    assert (answer.text, answer.context, answer.usage.calls) == ("Springfield", (), 1)
    with pytest.raises(UsageError, match="needs a language model"):
        registry.build_method("none", base)


def test_golden_is_for_evaluations(base) -> None:
    with pytest.raises(UsageError, match="gold evidence"):
        registry.build_method("golden", base)


def test_two_hops_are_those_of_brute_force(base) -> None:
    encoder = HashEncoder()
    snapshot = base.snapshot()
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    nodes = snapshot.nodes(rows)
    vectors = snapshot.vectors(encoder.name).vectors(rows).astype(np.float64)
    asked = encoder.encode([QUESTION.text], query=True)[0]
    first = vectors @ asked
    pairs = []
    for a in np.argsort(-first)[:3]:
        second = (
            vectors
            @ encoder.encode([f"{QUESTION.text} {texts_with_headings(snapshot, rows[[a]])[0]}"], query=True)[
                0
            ]
        )
        second[a] = -np.inf
        pairs += [(first[a] * second[b], nodes[a].id, nodes[b].id) for b in np.argsort(-second)[:2]]
    expected: dict[str, tuple[tuple[str, ...], float]] = {}
    for score, a, b in sorted(pairs, reverse=True):
        expected.setdefault(a, ((a,), score))
        expected.setdefault(b, ((a, b), score))
    hits = registry.build_retriever("twohop(first=3, then=2)", base, encoder=encoder).retrieve(QUESTION, 30)
    assert [hit.path for hit in hits] == [path for path, _ in expected.values()]
    assert np.allclose([hit.score for hit in hits], [score for _, score in expected.values()], atol=1e-6)
    assert [hit.node.id for hit in hits] == list(expected)
    best: dict[str, tuple[str, ...]] = {}
    for _, a, b in sorted(pairs, reverse=True)[:2]:
        best.setdefault(a, (a,))
        best.setdefault(b, (a, b))
    of_pairs = registry.build_retriever("twohop(first=3, then=2, pairs=yes)", base, encoder=encoder)
    assert [hit.path for hit in of_pairs.retrieve(QUESTION, 2)] == list(best.values()) and len(best) > 2
