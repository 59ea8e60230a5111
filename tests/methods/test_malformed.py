"""Every prompting method meets every kind of malformed reply, at every prompt that it asks."""

import json

import pytest

from hop_base import ask
from malformed import MALFORMED

RECIPES = [
    "fewshot",
    "fewshot(task=claim)",
    "cot(samples=3, retriever=bm25)",
    "cot(task=claim)",
    "iterretgen(retriever=bm25, rounds=3)",
    "iterretgen(retriever=bm25, rounds=3, final=model)",
    "react(retriever=bm25)",
    "react(retriever=bm25, final=model)",
    "dsp(retriever=bm25)",
    "dsp(retriever=bm25, final=model)",
]


def test_there_are_twenty_kinds():
    assert len(MALFORMED) == len(set(MALFORMED.values())) == 20


@pytest.mark.slow
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("recipe", RECIPES)
def test_no_malformed_reply_reaches_the_user_as_an_exception(hops, recipe, reply):
    answer, requests = ask(hops, lambda request: reply, recipe)
    assert answer.text.strip() and answer.trail and 1 <= len(requests) <= 9
    assert answer.usage.calls == len(requests)
    # The answer can be written to a file, and a whole one can be shown.
    json.dumps(answer.to_dict()).encode()
    answer.text.encode()
    if "claim" in recipe:
        assert answer.abstained or answer.text in {"SUPPORTS", "REFUTES", "NOT ENOUGH INFO"}
    elif not reply.strip() or reply.startswith("<think>"):
        assert answer.abstained
    if "retriever" in recipe and not recipe.startswith("react(retriever=bm25, final=model"):
        # ReAct without a reader may answer without a search, as in the paper.
        assert answer.context
