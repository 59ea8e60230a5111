"""ITER-RETGEN with a scripted model behind the real client: three iterations, and how they end."""

from clew.models.wrappers import Budget
from hop_base import BORN, QUESTION, TEXTS, adds_up, ask, names, reading, titles


def agent(request):
    """Reason as the passages at hand allow; read what is in the sources."""
    if "numbered sources" in request.system:
        return reading(request)
    before = request.user.rpartition("Question: ")[0].rpartition("So the answer is:")[2]
    if BORN in before:
        return "Wilmot Harker was born in Dunmere. So the answer is: Dunmere."
    if TEXTS["Alf Clausen"] in before:
        return (
            "Alf Clausen was taught by Wilmot Harker, who was born in a village. So the answer is: unknown."
        )
    return "Alf Clausen arranged it. So the answer is: unknown."


def steps_of(answer, name):
    return [step for step in answer.trail if step.name == name]


def test_each_of_three_iterations_searches_with_what_the_last_one_wrote(hops):
    answer, requests = ask(hops, agent, "iterretgen(retriever=bm25, k=2, rounds=3, final=model)")
    assert names(answer) == ["retrieve", "reason"] * 3
    assert [step.detail["query"] for step in steps_of(answer, "retrieve")] == [
        QUESTION,
        f"{QUESTION} Alf Clausen arranged it. So the answer is: unknown.",
        f"{QUESTION} Alf Clausen was taught by Wilmot Harker, who was born in a village. So the answer is: unknown.",
    ]
    results = [titles(step.hits) for step in steps_of(answer, "retrieve")]
    assert results == [
        ["Simpsons theme", "Noise"],
        ["Simpsons theme", "Alf Clausen"],
        ["Simpsons theme", "Wilmot Harker"],
    ]
    assert [step.detail["final"] for step in steps_of(answer, "reason")] == ["unknown", "unknown", "Dunmere"]
    # The evidence is that of the last iteration alone.
    assert titles(answer.context) == titles(answer.evidence) == ["Simpsons theme", "Wilmot Harker"]
    assert (answer.text, answer.reader, answer.abstained) == ("Dunmere", "model", False)
    assert len(requests) == 3 and adds_up(answer, requests)


def test_a_reader_stands_in_the_place_of_the_last_generation(hops):
    answer, requests = ask(hops, agent, "iterretgen(retriever=bm25, k=2, rounds=3)")
    assert names(answer) == ["retrieve", "reason"] * 2 + ["retrieve", "read"]
    assert (answer.text, [quote.text for quote in answer.quotes]) == ("Dunmere", [BORN])
    assert titles(answer.evidence) == ["Wilmot Harker"] and "reader=cited" in answer.recipe
    assert len(requests) == 3 and adds_up(answer, requests)


def test_it_ends_with_a_repetition_an_empty_thought_or_the_money(hops):
    answer, _ = ask(hops, lambda request: "So the answer is:  x.", "iterretgen(rounds=5, final=model)")
    assert names(answer) == ["retrieve", "reason"] * 2 and answer.text == "x"
    turns = iter("ABA")
    answer, _ = ask(hops, lambda request: f"It is {next(turns)}.", "iterretgen(rounds=9, final=model)")
    assert names(answer).count("reason") == 3
    turns = iter(["So the answer is: Ellery.", ""])
    answer, _ = ask(hops, lambda request: next(turns), "iterretgen(rounds=9, final=model)")
    assert answer.text == "Ellery" and names(answer).count("reason") == 2
    answer, _ = ask(hops, lambda r: reading(r) if "sources" in r.system else "", "iterretgen(rounds=5)")
    assert names(answer) == ["retrieve", "reason", "read"]
    answer, requests = ask(hops, agent, "iterretgen(rounds=4)", budget=Budget(calls=1))
    assert names(answer) == ["retrieve", "reason", "retrieve", "stopped", "stopped"] and len(requests) == 1
    assert answer.abstained and answer.stop_reason and answer.evidence
    answer, _ = ask(hops, agent, "iterretgen(rounds=4, final=model)", budget=Budget(calls=0))
    assert (
        answer.abstained and "budget" in answer.stop_reason and "stopped" in answer.text and answer.evidence
    )
