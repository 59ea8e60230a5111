"""Twenty kinds of malformed replies at every step of a chain: none is an error, and none is taken for a value."""

import pytest

from chain_bases import THREE_HOPS, Agent, run, sources
from clew.methods.readers import NOT_FOUND
from malformed import MALFORMED

#: The paper's reader takes the first line of a reply as the answer; these have none that says anything.
WITHOUT_ANSWER = {
    "broken JSON",
    "control characters",
    "nothing but marks",
    "empty",
    "white space",
    "only a thought",
    "a thought without an end",
    "a loop",
    "a loop of lines",
    "a refusal",
}


@pytest.mark.slow
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("form", ["fewshot", "structured"])
def test_without_a_readable_chain_the_passages_are_read_and_the_reader_abstains(world, form, reply):
    answer, _ = run(world, Agent(reply, memory=reply), recipe=f"chain(k=3, samples=2, form={form})")
    assert [step.name for step in answer.trail] == ["chain", "retrieve", "read"]
    written = answer.trail[0].detail
    assert (written["chain"], written["samples"], written["usable"]) == ("", 2, 0) and written["errors"]
    assert answer.trail[0].usage.calls == 3  # two samples, and once more with what is wrong
    assert len(answer.trail[1].hits) == 3 and answer.context == answer.trail[1].hits
    assert answer.abstained and answer.text == NOT_FOUND and answer.evidence == answer.context
    assert not (answer.values or answer.quotes or answer.from_memory)


@pytest.mark.slow
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
def test_the_cited_reader_and_the_memory_give_no_value_for_a_malformed_reply(world, reply):
    answer, _ = run(
        world,
        lambda request: THREE_HOPS if "rewrite" in request.system else reply,
        recipe="chain(k=3, reader=cited)",
    )
    assert sources(answer)[0] == ("#1", "kg")  # the graph fills the first hop, and nothing fills the second
    last = answer.trail[-1].detail
    assert last["not found"] == "#2, #3" and list(last["filling"]["values"]) == ["#1"]
    assert "remember" in [step.name for step in answer.trail]
    assert answer.abstained and "nothing states" in answer.text
    assert answer.evidence and {hit.node.kind for hit in answer.evidence} == {"triple"}
    assert not (answer.values or answer.from_memory)


@pytest.mark.slow
@pytest.mark.parametrize("name", MALFORMED)
def test_the_papers_reader_takes_a_line_of_text_and_nothing_else(world, name):
    answer, _ = run(
        world,
        lambda request: THREE_HOPS if "rewrite" in request.system else MALFORMED[name],
        recipe="chain(k=3, reader=hops)",
    )
    assert sources(answer)[0] == ("#1", "kg")
    assert answer.abstained == (name in WITHOUT_ANSWER) and not answer.from_memory
    assert not any(char in answer.text for char in "\x00\x1b\n")
    if not answer.abstained:
        assert len(answer.values) == 1 and answer.text == answer.values[0]
        # The reader's words are in no passage: nothing but the triple of the first hop is quoted.
        assert [quote.text for quote in answer.quotes] == [
            hit.node.text for hit in answer.evidence if hit.node.kind == "triple"
        ]
