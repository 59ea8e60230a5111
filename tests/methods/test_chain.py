"""Chains over graph, text and memory, with a scripted model behind the real client."""

import json

import pytest

import clew
from chain_bases import (
    DIRECTOR,
    FILM,
    MAYOR,
    QUESTION,
    SAID,
    THREE_HOPS,
    TOWN,
    WORLD,
    Agent,
    run,
    sources,
    steps,
)
from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import TRIPLE, Question, Scope
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from clew.triples.language.chain import ChainError
from scripted import ScriptedServer


@pytest.mark.slow
def test_three_hops_each_from_where_it_is_known(world):
    answer, requests = run(world, Agent(THREE_HOPS))
    assert (
        answer.text == MAYOR and answer.values == (MAYOR,) and not answer.abstained and not answer.from_memory
    )
    assert sources(answer) == [("#1", "kg"), ("#2", "text"), ("#3", "text")]
    assert [hit.node.document_name for hit in answer.evidence] == ["films", f"{DIRECTOR}.txt", f"{TOWN}.txt"]
    triple = answer.evidence[0].node
    assert (triple.kind, triple.text) == (TRIPLE, f"{FILM} >> directed_by >> {DIRECTOR}")
    assert [quote.text for quote in answer.quotes] == [
        triple.text,
        SAID["place of birth", DIRECTOR][1],
        SAID["mayor", TOWN][1],
    ]
    # One call to write the chain; for each hop that the graph lacks one for the question and one to read.
    assert answer.usage.calls == len(requests) == 1 + 2 + 2
    assert answer.usage.tokens_in == sum(step.usage.tokens_in for step in answer.trail) == 5 * 11
    asked = [question for step in steps(answer, "questions") for question in step.detail["questions"]]
    assert asked == [f"What is the place of birth of {DIRECTOR}?", f"What is the mayor of {TOWN}?"]
    assert answer.trail[0].detail["chain"] == THREE_HOPS
    assert steps(answer, "filled")[0].detail["chain"] == (
        f"{FILM} >> director >> {DIRECTOR}; {DIRECTOR} >> place of birth >> {TOWN}; {TOWN} >> mayor >> {MAYOR}; "
        "final answer: #3"
    )
    assert "sources='kg,text,model'" in answer.recipe and "reader=cited" in answer.recipe


FORWARD = [
    (f"Where was the director of {film} born?",
     f"{film} >> director >> #1; #1 >> place of birth >> #2; final answer: #2", town, ["kg", "text"])
    for film, _, town, _, _, _ in WORLD
]  # fmt: skip
BACKWARD = [
    (f"Which studio made the winner of the Golden Reed of {year}?",
     f"Golden Reed of {year} >> winner >> #1; #1 >> studio >> #2; final answer: #2", studio, ["text", "kg"])
    for _, _, _, _, studio, year in WORLD
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("order", ["kg,text,model", "text,kg,model", "text,kg"])
@pytest.mark.parametrize("question, chain, expected, filled_by", FORWARD + BACKWARD)
def test_one_hop_only_the_graph_knows_and_one_only_the_documents(
    world, question, chain, expected, filled_by, order
):
    answer, _ = run(world, Agent(chain), question, f"chain(k=3, sources='{order}')")
    assert answer.text == expected
    assert [source for _, source in sources(answer)] == filled_by
    kinds = [hit.node.kind == TRIPLE for hit in answer.evidence]
    assert kinds == [source == "kg" for source in filled_by]


@pytest.mark.slow
@pytest.mark.parametrize("question, chain, expected, filled_by", FORWARD + BACKWARD)
def test_without_a_language_model_a_chain_by_hand_is_filled_just_so(
    world, question, chain, expected, filled_by
):
    answer = registry.build_method("chain(k=3, reader=span)", world).answer(
        Question(question, chain=chain), TrailRecorder()
    )
    assert answer.text == expected
    assert [source for _, source in sources(answer)] == filled_by


@pytest.mark.slow
@pytest.mark.parametrize("retriever", ["bm25", "kgp(guide=residual)", "kgp(hops=1, guide=tfidf)"])
def test_any_retriever_finds_the_passages(world, retriever):
    answer, _ = run(world, Agent(THREE_HOPS), recipe=f"chain(k=3, retriever={retriever})")
    assert answer.text == MAYOR
    assert f"retriever={retriever.partition('(')[0]}" in answer.recipe


@pytest.mark.slow
def test_what_a_source_may_not_be_asked_stays_open(world):
    answer, _ = run(world, Agent(THREE_HOPS), recipe="chain(k=3, sources=kg)")
    assert answer.abstained and sources(answer) == [("#1", "kg")]
    assert steps(answer, "filled")[0].detail["not found"] == "#2, #3"
    assert [hit.node.text for hit in answer.evidence] == [f"{FILM} >> directed_by >> {DIRECTOR}"]
    nowhere = Scope(graphs=frozenset())
    answer, _ = run(world, Agent(THREE_HOPS), recipe="chain(k=3, sources=kg)", scope=nowhere)
    assert answer.abstained and sources(answer) == []


@pytest.mark.slow
def test_memory_fills_what_is_left_and_says_so(world):
    chain = f"{FILM} >> director >> #1; #1 >> favourite dish >> #2; final answer: #2"
    filled = f"{FILM} >> director >> Nobody; {DIRECTOR} >> favourite dish >> pickled herring; final answer: herring"
    answer, requests = run(world, Agent(chain, memory=filled), "What does the director like to eat?")
    assert answer.text == "pickled herring"
    assert answer.from_memory == ("#2: pickled herring",)
    # The model was shown what the graph had filled in, and could not change it.
    assert f"{FILM} >> director >> {DIRECTOR}; {DIRECTOR} >> favourite dish >> #2" in requests[-1].user
    assert [hit.node.kind for hit in answer.evidence] == [TRIPLE]


def test_a_comparison_is_settled_by_the_model_where_no_rule_can(world):
    chain = f"{FILM} >> studio >> #1; Low Water >> studio >> #2; final answer: #answer"
    filled = f"{FILM} >> studio >> Arlen Pictures; Low Water >> studio >> Bittern Films; final answer: Bittern Films"
    answer, requests = run(world, Agent(chain, memory=filled), "Which studio has the watery name?")
    assert answer.text == "Bittern Films" and answer.from_memory == ("the answer: Bittern Films",)
    assert len(requests) == 2 and len(answer.evidence) == 2


def test_yes_or_no_is_settled_without_the_model(world):
    chain = f"{FILM} >> studio >> #1; Low Water >> studio >> #2; final answer: #answer"
    answer, requests = run(world, Agent(chain), f"Were {FILM} and Low Water made by the same studio?")
    assert answer.text == "no" and len(requests) == 1 and not answer.from_memory
    assert steps(answer, "filled")[0].detail["settled by"] == "same"


def test_a_model_may_choose_which_of_several_things_is_meant(world, tmp_path):
    path = tmp_path / "streets.jsonl"
    lines = [
        {"id": "s1", "types": ["street"], "name": "Mill Lane"}, {"head": "s1", "relation": "length", "tail": "3 km"},
        {"id": "s2", "types": ["street"], "name": "Mill Lane"}, {"head": "s2", "relation": "length", "tail": "9 km"},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    opened = clew.KnowledgeBase(world)
    opened.graphs.add(path)
    chain = "Mill Lane >> length >> #1; final answer: #1"
    try:
        for choice, length in ((2, "9 km"), (1, "3 km")):

            def agent(request, choice=choice):
                return {"choice": choice} if "Entries:" in request.prompt else chain

            answer, requests = run(world, agent, "How long is the lane?", "chain(sources=kg, entities=model)")
            assert answer.text == length and answer.usage.calls == len(requests) == 2
            assert [step.name for step in answer.trail] == ["chain", "link", "fill", "filled"]
        assert "chosen by the model" in steps(answer, "fill")[0].detail["entities"][0]["how"]
    finally:
        opened.graphs.remove("streets")


@pytest.mark.slow
def test_sources_that_disagree_are_shown_with_the_evidence_of_both(world, tmp_path):
    path = tmp_path / "gossip.tsv"
    path.write_text(f"{DIRECTOR}\tplace of birth\tOskell Bay\n")
    opened = clew.KnowledgeBase(world)
    opened.graphs.add(path)
    chain = f"{FILM} >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    try:
        answer, _ = run(world, Agent(chain), "Where was the director born?", "chain(k=3, choose=hop)")
    finally:
        opened.graphs.remove("gossip")
    (conflict,) = steps(answer, "conflict")
    assert conflict.detail["unknown"] == "#2"
    assert conflict.detail["taken"] == {"source": "gossip", "values": ["Oskell Bay"]}
    assert conflict.detail["also"] == {"source": "text", "values": [TOWN]}
    assert {"gossip", f"{DIRECTOR}.txt"} <= {hit.node.document_name for hit in conflict.hits}
    assert answer.text == "Oskell Bay"


@pytest.mark.slow
def test_samples_are_filtered_and_the_chain_that_most_agree_on_is_filled(world):
    good = f"{FILM} >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    samples = [
        f"{FILM} >> studio >> #1; #1 >> place of birth >> #2; final answer: #2",
        good,
        f"{FILM} >> director >> #1; #1 >> place >> of birth >> #2; final answer: #2",
        f"Reasoning Chain: {good}.",
        f"{FILM} >> director >> #1; #1 >> place of birth >> #3; final answer: #3",
    ]
    answer, requests = run(world, Agent(*samples), "Where was the director born?", "chain(k=3, samples=5)")
    written = steps(answer, "chain")[0].detail
    assert written["samples"] == 5 and written["usable"] == 3
    # The samples are asked for at once and may arrive in any order.
    assert sorted(written["errors"].split(", ")) == [
        "DiscontinuousMaskError 1",
        "IncorrectTripleFormatError 1",
    ]
    assert written["chain"] == good and written["others"] == [samples[0]]
    assert answer.text == TOWN
    assert {request.body["temperature"] for request in requests[:5]} == {0.7}


@pytest.mark.slow
def test_the_next_chain_is_tried_where_one_cannot_be_filled_or_its_answer_does_not_fit(world):
    studio = f"{FILM} >> studio >> #1; #1 >> founder >> #2; final answer: #2"
    born = f"{FILM} >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    answer, _ = run(
        world, Agent(studio, studio, born), "Where was he born?", "chain(k=3, samples=3, sources='kg,text')"
    )
    assert [step.detail.get("not found") for step in steps(answer, "filled")] == ["#2", None]
    # Whole, with an answer that fits: what makes the second better.
    worths = [step.detail["filling"]["worth"] for step in steps(answer, "filled")]
    assert worths == [[False, False, False, 1], [True, True, True, 2]]
    assert answer.text == TOWN
    answer, _ = run(
        world,
        Agent(studio, studio, born),
        "Where was he born?",
        "chain(k=3, samples=3, sources='kg,text', tries=1)",
    )
    assert answer.abstained
    # The memory is asked only where no chain can be filled from what has evidence.
    agent = Agent(studio, studio, born, memory="no one asks")
    answer, requests = run(world, agent, "Where was he born?", "chain(k=3, samples=3)")
    assert answer.text == TOWN and not any(
        "fill in what is missing" in request.system for request in requests
    )


def test_one_triple_is_enough_where_the_question_has_no_more(world):
    answer, _ = run(world, Agent(f"{FILM} >> director >> #1; final answer: #1"), f"Who directed {FILM}?")
    assert answer.text == DIRECTOR
    assert steps(answer, "chain")[0].detail["errors"] == "MaskUnderflowError 1"


def test_a_reply_that_is_no_chain_is_returned_once_and_then_the_question_is_simply_read(world):
    agent = Agent("I would look it up.", THREE_HOPS)
    answer, requests = run(world, agent)
    assert answer.text == MAYOR
    assert (
        "Your last reply could not be used: the chain does not end with its final answer" in requests[1].user
    )
    question = f"What is the mayor of {TOWN}?"
    answer, requests = run(world, Agent("I would look it up."), question)
    assert [step.name for step in answer.trail] == ["chain", "retrieve", "read"] and answer.text == MAYOR
    assert steps(answer, "chain")[0].detail["chain"] == ""


def test_a_structured_reply_is_a_chain_like_any_other(world):
    triples = [
        {"head": FILM, "relation": "director", "tail": "#1"},
        {"head": "#1", "relation": "place of birth", "tail": "#2"},
    ]
    reply = json.dumps({"triples": triples, "answer": "#2"})
    answer, requests = run(world, Agent(reply), "Where was he born?", "chain(k=3, form=structured)")
    assert answer.text == TOWN and requests[0].format == "json_schema"


def test_the_reader_of_the_paper_asks_about_independent_hops_in_one_call(world):
    town, other = WORLD[0][2], WORLD[1][2]
    chain = f"{town} >> mayor >> #1; {other} >> mayor >> #2; final answer: #answer"

    def agent(request):
        if "from the context alone" in request.system:
            asked = request.user.rpartition("Question: ")[2].removesuffix("\nAnswer:")
            known = SAID[tuple(asked.removeprefix("What is the ").removesuffix("?").split(" of ", 1))]
            return known[2] if known[1] in request.user.rpartition("Context: ")[2] else "unknown"
        return Agent(chain)(request)

    answer, requests = run(
        world, agent, f"Do {town} and {other} have the same mayor?", "chain(k=3, reader=hops)"
    )
    assert answer.text == "no" and len(requests) == 1 + 2 + 2
    assert [step.name for step in answer.trail].count("questions") == 1
    assert {quote.text for quote in answer.quotes} == {WORLD[0][3], WORLD[1][3]}


def test_a_budget_ends_it_with_what_is_filled(world):
    answer, requests = run(world, Agent(THREE_HOPS), budget=Budget(calls=2))
    assert len(requests) == 2 and answer.abstained and answer.stop_reason
    assert [hit.node.kind for hit in answer.evidence] == [TRIPLE]


def test_a_caller_may_stop_it(world):
    record = TrailRecorder(is_cancelled=lambda: True)
    with ScriptedServer(Agent(THREE_HOPS)) as server:
        method = registry.build_method("chain(k=3)", world, llm=create_language_model(server.llm))
        answer = method.answer(Question(QUESTION), record)
    assert answer.abstained and [step.name for step in answer.trail] == ["chain", "filled"]


@pytest.mark.parametrize(
    "chain, problem",
    [
        ("A >> b >> #1", "does not end with its final answer"),
        ("#1 >> b >> #2; final answer: #2", "nothing in the chain leads to one of its unknowns"),
        ("A >> b >> c; final answer: #1", "no unknown in 'A >> b >> c'"),
    ],
)
def test_a_chain_by_hand_that_is_none_says_what_is_wrong(world, chain, problem):
    with pytest.raises(ChainError, match=problem):
        registry.build_method("chain", world).answer(Question("?", chain=chain), TrailRecorder())


def test_without_a_model_somebody_has_to_write_the_chain(world):
    with pytest.raises(UsageError, match="needs a language model to write the question as triples"):
        registry.build_method("chain", world).answer(Question(QUESTION), TrailRecorder())


@pytest.mark.parametrize(
    "sources, problem",
    [
        ("kg,web", "no source of 'chain' named 'web'"),
        ("kg,kg", "each named once"),
        ("model,kg", "last source"),
        ("", "each named"),
    ],
)
def test_sources_that_make_no_sense(world, sources, problem):
    with pytest.raises(UsageError, match=problem):
        registry.build_method(f"chain(sources='{sources}')", world)


def test_a_claim_is_judged_by_the_model_from_the_filled_chain(world):
    chain = f"{FILM} >> director >> #1; #1 >> place of birth >> #2; final answer: #answer"
    memory = (
        f"{FILM} >> director >> {DIRECTOR}; {DIRECTOR} >> place of birth >> {TOWN}; final answer: refuted"
    )

    def agent(request):
        if "judge a claim" in request.system:
            return memory
        return chain if "as a chain of triples" in request.system else Agent(chain)(request)

    claim = f"The director of {FILM} was born in Vessby."
    answer, requests = run(world, agent, claim, "chain(k=3, task=claim)")
    assert answer.text == "REFUTES" and len(answer.evidence) == 2
    assert f"{DIRECTOR} >> place of birth >> {TOWN}" in requests[-1].user.rpartition("Claim:")[2]
    assert answer.from_memory == ("the answer: REFUTES",)
    item = f"{FILM} >> director >> #1; final answer: #answer"
    answer, _ = run(
        world, lambda r: "final answer: true" if "judge" in r.system else item, claim, "chain(task=claim)"
    )
    assert answer.text == "SUPPORTS" and "errors" not in answer.trail[0].detail
