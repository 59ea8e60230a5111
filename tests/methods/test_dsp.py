"""DSP with a scripted model behind the real client: three hops, and replies in every form."""

import pytest

from clew.methods.baselines.dsp import parse_reply
from clew.models.wrappers import Budget
from hop_base import BORN, QUESTION, TEXTS, adds_up, ask, names, reading, titles

HOPS = [
    (" Nothing is known yet.\nSearch query: Who arranged the Simpsons theme?", "none yet"),
    ("Alf Clausen arranged it.\nSearch query: Who taught Alf Clausen, composer?", TEXTS["Simpsons theme"]),
    ("Wilmot Harker taught Alf Clausen.\nSearch query: village of Wilmot Harker", TEXTS["Alf Clausen"]),
    ("Harker was born in Dunmere.\nSearch query: none", BORN),
]


def agent(request):
    """Sum up what the context says and ask on; predict, or read what is in the sources."""
    if "numbered sources" in request.system:
        return reading(request)
    if "step by step" in request.system:
        return "It all leads to Dunmere. So the answer is: Dunmere."
    here = request.user.rpartition(f"{QUESTION}\nContext: ")[2]
    return next(reply for reply, context in HOPS if context in here)


def test_three_hops_each_with_the_summaries_and_the_last_passages(hops):
    answer, requests = ask(hops, agent, "dsp(retriever=bm25, k=1, hops=5)")
    assert names(answer) == ["hop", "retrieve"] * 3 + ["hop", "read"]
    queries = [step.detail["query"] for step in answer.trail if step.name == "retrieve"]
    assert queries == [
        "Who arranged the Simpsons theme?",
        "Who taught Alf Clausen, composer?",
        "village of Wilmot Harker",
    ]
    message = requests[2].user.rpartition(f"{QUESTION}\nContext: ")[2]
    assert message == (
        "Nothing is known yet. Alf Clausen arranged it.\n"
        f"Title: Alf Clausen\n{TEXTS['Alf Clausen']}\nSummary:"
    )
    assert titles(answer.context) == ["Simpsons theme", "Alf Clausen", "Wilmot Harker"]
    assert (answer.text, [quote.text for quote in answer.quotes]) == ("Dunmere", [BORN])
    assert titles(answer.evidence) == ["Wilmot Harker"]
    assert len(requests) == 5 and adds_up(answer, requests)


def test_the_model_predicts_where_that_is_asked_for(hops):
    answer, requests = ask(hops, agent, "dsp(retriever=bm25, k=1, hops=3, final=model)")
    assert names(answer) == ["hop", "retrieve"] * 3 + ["read"]
    before = requests[-1].user.rpartition("Question: ")[0]
    assert all(TEXTS[title] in before for title in ("Simpsons theme", "Alf Clausen", "Wilmot Harker"))
    assert (answer.text, answer.reader) == ("Dunmere", "model") and len(answer.evidence) == 3
    assert len(requests) == 4 and adds_up(answer, requests)


def test_it_ends_with_its_hops_a_repetition_no_query_or_the_money(hops):
    def asking(request):
        return reading(request) if "sources" in request.system else f"Search query: season {len(seen)}"

    seen = []
    answer, _ = ask(hops, lambda r: seen.append(r) or asking(r), "dsp(retriever=bm25, hops=4)")
    assert names(answer) == ["hop", "retrieve"] * 4 + ["read"]
    answer, _ = ask(hops, lambda r: reading(r) if "sources" in r.system else "Query: The  season", "dsp")
    assert names(answer) == ["hop", "retrieve", "hop", "read"]
    answer, _ = ask(hops, lambda r: reading(r) if "sources" in r.system else "All is known.", "dsp")
    assert names(answer) == ["hop", "retrieve", "read"]
    assert answer.trail[1].detail["query"] == QUESTION
    answer, requests = ask(hops, agent, "dsp(retriever=bm25)", budget=Budget(calls=2))
    assert names(answer)[-2:] == ["stopped", "stopped"] and len(requests) == 2
    assert answer.abstained and answer.evidence


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (" He taught.\nSearch query: Who is it?", ("He taught.", "Who is it?")),
        ("Summary: He taught.\nSearch query: Who is it?", ("He taught.", "Who is it?")),
        ('**Summary:** He taught.\n**Search Query:** "Who is it?"', ("He taught.", "Who is it?")),
        ("He taught.\nQuery 2: Who is it?\nSummary: more", ("He taught.", "Who is it?")),
        ("He taught.\n- Who is it?", ("He taught.", "Who is it?")),
        ("It is known.\nSearch query: none", ("It is known.", "")),
        ("It is known.\nSearch query: N/A.", ("It is known.", "")),
        ("It is known.\nSearch query: No further query is needed.", ("It is known.", "")),
        ("Search query:", ("", "")),
        ("<think>Search query: x</think>It is known.", ("It is known.", "")),
        ("", ("", "")),
    ],
)
def test_replies_in_every_form(reply, text):
    assert parse_reply(reply) == text
