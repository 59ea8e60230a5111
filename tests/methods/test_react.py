"""ReAct with a scripted model behind the real client: searches, look-ups, and replies in every form."""

import pytest

from clew.methods.baselines.react import Reply, parse_reply
from clew.models.wrappers import Budget
from hop_base import BORN, QUESTION, TEXTS, adds_up, ask, names, reading, titles

TURNS = [
    " I need the arranger of the theme.\nAction 1: Search[arranger of the Simpsons theme]\nObservation",
    "Alf Clausen arranged it.\nAction 2: Search[Alf Clausen taught by]",
    "Wilmot Harker taught him.\nAction 3: Search[village of Wilmot Harker]",
    "Where was he born?\nAction 4: Lookup[BORN in]",
    "He was born in Dunmere.\nAction 5: Finish[Dunmere]",
]


def agent(request):
    """Take the next turn; read what is in the sources."""
    if "numbered sources" in request.system:
        return reading(request)
    here = request.user.rpartition(QUESTION)[2]
    return TURNS[here.count("Observation")]


def test_searches_and_a_look_up_lead_to_the_answer(hops):
    answer, requests = ask(hops, agent, "react(retriever=bm25, k=1)")
    assert names(answer) == ["act", "retrieve"] * 3 + ["act", "look up", "act", "read"]
    acts = [step.detail for step in answer.trail if step.name == "act"]
    assert [act["action"] for act in acts] == ["search", "search", "search", "lookup", "finish"]
    assert acts[-1]["about"] == "Dunmere" and acts[1]["thought"] == "Alf Clausen arranged it."
    queries = [step.detail["query"] for step in answer.trail if step.name == "retrieve"]
    assert queries == [
        "arranger of the Simpsons theme",
        "Alf Clausen taught by",
        "village of Wilmot Harker",
    ]
    looked = next(step for step in answer.trail if step.name == "look up")
    assert looked.detail["observation"] == "(Result 1 of 1) He was born in the village of Dunmere."
    # What was observed is told in the form in which it was asked for.
    here = requests[4].user.rpartition(f"{QUESTION}\n")[2]
    assert here.startswith(
        "Thought 1: I need the arranger of the theme.\nAction 1: Search[arranger of the Simpsons theme]\n"
        f"Observation 1: Title: Simpsons theme\n{TEXTS['Simpsons theme']}\nThought 2: Alf Clausen arranged it.\n"
    )
    assert here.endswith("\nThought 5:")
    assert titles(answer.context) == ["Simpsons theme", "Alf Clausen", "Wilmot Harker"]
    assert (answer.text, [quote.text for quote in answer.quotes]) == ("Dunmere", [BORN])
    assert titles(answer.evidence) == ["Wilmot Harker"]
    assert len(requests) == 6 and adds_up(answer, requests)


def test_the_models_own_answer_is_taken_where_that_is_asked_for(hops):
    answer, requests = ask(hops, agent, "react(retriever=bm25, k=1, final=model)")
    assert names(answer)[-1] == "act" and len(requests) == 5
    assert (answer.text, answer.reader, answer.quotes) == ("Dunmere", "model", ())
    assert titles(answer.evidence) == ["Simpsons theme", "Alf Clausen", "Wilmot Harker"]
    answer, _ = ask(hops, ["Finish[Mars]"], "react(final=model)")
    assert answer.text == "Mars" and answer.context == ()


def test_it_ends_with_its_rounds_a_repeated_search_no_action_or_the_money(hops):
    def asking(request):
        return reading(request) if "sources" in request.system else f"Search[season {len(seen)}]"

    seen = []
    answer, _ = ask(hops, lambda r: seen.append(r) or asking(r), "react(retriever=bm25, rounds=4)")
    assert names(answer) == ["act", "retrieve"] * 4 + ["read"]
    answer, _ = ask(hops, lambda r: reading(r) if "sources" in r.system else "Search[The  season]", "react")
    assert names(answer) == ["act", "retrieve", "act", "read"]
    answer, _ = ask(hops, lambda r: reading(r) if "sources" in r.system else "I wonder.", "react")
    assert names(answer) == ["act", "retrieve", "read"]
    assert answer.trail[0].detail["unreadable"] == "I wonder."
    assert answer.trail[1].detail["query"] == QUESTION
    answer, requests = ask(hops, agent, "react(retriever=bm25)", budget=Budget(calls=2))
    assert names(answer)[-2:] == ["stopped", "stopped"] and len(requests) == 2
    assert answer.abstained and answer.evidence


def test_an_answer_without_a_search_is_still_read_from_evidence(hops):
    answer, _ = ask(hops, lambda r: reading(r) if "sources" in r.system else "Finish[Mars]", "react(k=5)")
    assert names(answer) == ["act", "retrieve", "read"] and answer.text != "Mars"
    assert answer.trail[0].detail["about"] == "Mars"


def test_a_look_up_goes_on_to_the_next_sentence_and_says_when_there_is_none(hops):
    turns = iter(
        ["Lookup[was]", "Search[Alf Clausen composer]", *["Lookup[was]"] * 2, "Lookup[moon]", "Finish[x]"]
    )
    answer, _ = ask(hops, lambda r: next(turns), "react(retriever=bm25, k=1, final=model)")
    observed = [step.detail["observation"] for step in answer.trail if step.name == "look up"]
    assert observed == [
        "No results.",
        f"(Result 1 of 1) {TEXTS['Alf Clausen']}",
        "No more results.",
        "No results.",
    ]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("I look.\nAction 1: Search[Ada Strake]", Reply("I look.", "search", "Ada Strake")),
        ("Thought 2: I look.\nAction: search[Ada [engineer]]", Reply("I look.", "search", "Ada [engineer]")),
        ("**Action:** Look up[born]\nObservation: born", Reply("", "lookup", "born")),
        ('Action 1: search("Ada Strake")', Reply("", "search", "Ada Strake")),
        ("Action: Search\nAction Input: Ada Strake", Reply("", "search", "Ada Strake")),
        ('{"action": "Search", "action_input": "Ada Strake"}', Reply("", "search", "Ada Strake")),
        ("Search: Ada Strake", Reply("", "search", "Ada Strake")),
        ("Finish[Saltreach].", Reply("", "finish", "Saltreach")),
        ("Finish[the year 1929", Reply("", "finish", "the year 1929")),
        ("Search[a]\nObservation 1: none\nSearch[b]", Reply("", "search", "a")),
        ("So the answer is: Saltreach.", Reply("So the answer is: Saltreach.", "finish", "Saltreach")),
        ("<think>Search[no]</think>Search[yes]", Reply("", "search", "yes")),
        ("I need to search for Ada.", Reply("I need to search for Ada.")),
        ("I search (the base).\nAction: Search[Ada]", Reply("I search (the base).", "search", "Ada")),
        ("I look.\nSearch[]", Reply("I look.")),
        ("", Reply()),
    ],
)
def test_replies_in_every_form(reply, text):
    assert parse_reply(reply) == text
