"""Strategies that choose paragraphs, with a scripted model behind the real client."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.core.types import PASSAGE, Node
from clew.methods.d3.context_window import ContextWindow, pack, truncate
from clew.methods.d3.paragraphs import (
    HierarchicalSelector,
    PromptSelector,
    RerankerSelector,
    SelectorChain,
    YesNoSelector,
)
from clew.models import create_language_model
from clew.models.costs import count_prompt_tokens, count_tokens
from scripted import ScriptedServer

QUESTION = "Who built the lighter?"


def node(number, text):
    return Node(f"d:{number}", PASSAGE, text, "d", "d.txt", number, None, "", 0, None, (), (0, 0))


TEXTS = [
    "Tolland Yard built the lighter in 1871.",
    "The weather was fair\nall week.",
    "Lighters carry coal.",
    "Tolland lies on the river.",
]
NODES = [node(n, text) for n, text in enumerate(TEXTS)]


def window(context=4096, most=None):
    return ContextWindow(count_tokens, count_prompt_tokens, context, most)


def base(server, **size):
    return PromptSelector(create_language_model(server.llm), load_prompt("drill-paragraphs"), window(**size))


def offered_paragraphs(request):
    """The lines of the prompt that are paragraphs, by number."""
    return {int(n): text for n, text in re.findall(r"^(\d+): (.*)$", request.user, re.MULTILINE)}


@given(st.lists(st.integers(1, 12), max_size=30), st.integers(1, 12))
def test_packing_is_greedy_and_loses_nothing(sizes, room):
    ranges = pack(sizes, room)
    assert [n for value in ranges for n in value] == list(range(len(sizes)))
    for item, after in zip(ranges, [*ranges[1:], None], strict=False):
        used = sum(sizes[n] for n in item)
        assert used <= room or len(item) == 1
        # The next one would not have fitted: as many as fit are in a call.
        assert after is None or used + sizes[after.start] > room


@given(st.text(max_size=60), st.integers(0, 12))
def test_cutting_keeps_the_longest_beginning(text, room):
    stored = truncate(text, room, count_tokens)
    assert text.startswith(stored) and count_tokens(stored) <= room
    assert stored == text or count_tokens(text[: len(stored) + 1]) > room


def test_base_asks_in_the_papers_words_and_takes_the_ids_that_are_named():
    with ScriptedServer(["1, 4, 9"]) as server:
        record = TrailRecorder()
        chosen = base(server).select(QUESTION, NODES, record)
    assert [(item.id, score) for item, score in chosen] == [("d:0", 1.0), ("d:3", 1.0)]
    (request,) = server.requests
    assert request.user.endswith(
        "Find paragraph ids that contains relevant information for answering the question. Respond with "
        "comma-separated id list. Provide an empty response if none of the paragraphs are relevant."
    )
    assert offered_paragraphs(request)[2] == "The weather was fair all week." and QUESTION in request.user
    (step,) = record.steps
    assert step.name == "paragraphs" and step.detail["unknown"] == [9] and step.usage.calls == 1
    assert step.detail["offered"] == 4 and [hit.node.id for hit in step.hits] == ["d:0", "d:3"]


def test_paragraphs_go_whole_into_as_few_calls_as_fit_as_one_batch():
    many = [node(n, f"word{n} " * 60) for n in range(20)]
    with ScriptedServer(lambda request: ", ".join(map(str, offered_paragraphs(request)))) as server:
        record = TrailRecorder()
        chosen = base(server, context=1000).select(QUESTION, many, record)
    assert [item.id for item, _ in chosen] == [item.id for item in many]
    shown = sorted((offered_paragraphs(request) for request in server.requests), key=min)
    assert [n for held in shown for n in held] == list(range(1, 21))
    assert all(text == many[n - 1].text.strip() for held in shown for n, text in held.items())
    prompts = [load_prompt("drill-paragraphs").render(question=QUESTION, paragraphs=held) for held in
               ("\n".join(f"{n}: {text}" for n, text in held.items()) for held in shown)]  # fmt: skip
    assert all(count_prompt_tokens(prompt) + prompt.max_tokens <= 1000 for prompt in prompts)
    least = count_tokens(many[0].text) + 2
    # No call has room for one more paragraph than it shows.
    assert all(count_prompt_tokens(item) + item.max_tokens + least > 1000 - 8 for item in prompts[:-1])
    assert record.steps[0].detail["calls"] == len(server.requests) == record.usage().calls > 2


def test_a_paragraph_longer_than_the_context_is_cut_and_that_is_said():
    long = node(0, "coal " * 2000)
    with ScriptedServer(lambda request: "1" if "coal" in request.user else "none") as server:
        record = TrailRecorder()
        chosen = base(server, context=600).select(QUESTION, [long, NODES[1]], record)
    assert [item.id for item, _ in chosen] == ["d:0"] and chosen[0][0].text == long.text
    assert record.steps[0].detail["cut"] == ["d:0"]
    (shown,) = [request.user for request in server.requests if "coal coal" in request.user]
    assert len(shown) < 2000


def test_a_context_without_room_is_refused_and_nothing_is_asked_about_nothing():
    with ScriptedServer([]) as server:
        with pytest.raises(UsageError, match="leaves no room"):
            base(server, context=300).select(QUESTION, NODES, TrailRecorder())
        assert base(server).select(QUESTION, [], TrailRecorder()) == []
    assert not server.requests


def test_what_cannot_be_read_is_shown():
    with ScriptedServer(["I am not sure what you mean."]) as server:
        record = TrailRecorder()
        assert base(server).select(QUESTION, NODES, record) == []
    assert record.steps[0].detail["unreadable"] == ["I am not sure what you mean."]


def test_hierbase_sees_summaries_first_then_the_texts_of_what_it_chose():
    with ScriptedServer(["1, 2", "2"]) as server:
        record = TrailRecorder()
        result = HierarchicalSelector(base(server), lambda nodes: [item.text[:10] for item in nodes])
        chosen = result.select(QUESTION, NODES, record)
    assert offered_paragraphs(server.requests[0]) == {n: text[:10].strip() for n, text in enumerate(TEXTS, 1)}
    assert (
        list(offered_paragraphs(server.requests[1])) == [1, 2]
        and "Tolland Yard built the lighter in 1871." in server.requests[1].user
    )
    assert [item.id for item, _ in chosen] == ["d:1"] and [step.usage.calls for step in record.steps] == [
        1,
        1,
    ]
    assert record.steps[0].detail["shown"] == "summaries"


def test_boolean_asks_about_each_paragraph_alone():
    def reply(request):
        return "Hard to say" if "coal" in request.user else "Yes." if "Tolland" in request.user else "No"

    with ScriptedServer(reply) as server:
        record = TrailRecorder()
        selector = YesNoSelector(create_language_model(server.llm), load_prompt("drill-boolean"), window())
        chosen = selector.select(QUESTION, NODES, record)
    assert [item.id for item, _ in chosen] == ["d:0", "d:3"] and len(server.requests) == 4
    assert record.steps[0].detail["unreadable"] == ["Hard to say"] and record.usage().calls == 4


class Counting:
    """Scores a text by how many of the question's words it has."""

    name = "words"

    def score(self, question, texts):
        asked = set(re.findall(r"\w+", question.lower()))
        return np.array([len(asked & set(re.findall(r"\w+", text.lower()))) for text in texts], dtype=float)


def test_reranked_keeps_the_best_with_ties_by_id_and_chains():
    record = TrailRecorder()
    best = RerankerSelector(Counting(), keep=3).select(QUESTION, list(reversed(NODES)), record)
    assert [(item.id, score) for item, score in best] == [("d:0", 3.0), ("d:1", 1.0), ("d:3", 1.0)]
    # A small local model is no call (Section 5).
    assert record.usage().calls == 0 and record.steps[0].detail["reranker"] == "words"
    with ScriptedServer(["2, 1", "none"]) as server:
        chain = SelectorChain(base(server), RerankerSelector(Counting(), keep=1))
        assert [item.id for item, _ in chain.select(QUESTION, NODES, TrailRecorder())] == ["d:0"]
        assert chain.select(QUESTION, NODES, TrailRecorder()) == []
