"""Twenty kinds of malformed replies at every step of a chain: none is a failure, and none is taken for an answer."""

import pytest

from chain_bases import THREE_HOPS, Agent, run, sources
from malformed import MALFORMED


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("form", ["fewshot", "structured"])
def test_a_malformed_chain_is_no_failure(world, form, reply):
    answer, _ = run(world, Agent(reply, memory=reply), recipe=f"chain(k=3, samples=2, form={form})")
    assert answer.text and answer.trail[0].name == "chain" and answer.trail[0].detail["chain"] == ""


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("reader", ["cited", "hops"])
def test_malformed_questions_answers_and_memories_are_no_failure(world, reader, reply):
    def agent(request):
        return THREE_HOPS if "rewrite" in request.system else reply

    answer, _ = run(world, agent, recipe=f"chain(k=3, reader={reader})")
    assert answer.text and not any(char in answer.text for char in "\x00\x1b")
    assert sources(answer)[0] == ("#1", "kg")
    for quote in answer.quotes:
        node = next(hit.node for hit in answer.evidence if hit.node.id == quote.node)
        assert node.text[slice(*quote.span)] == quote.text
