from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.core.types import PASSAGE, Hit, Node, Question
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.paper import PaperReader
from clew.models import create_language_model
from scripted import ScriptedServer

TEXTS = {"a:1": "Newark is a city.", "b:2": "Avent played in Newark.", "c:3": "Atlanta won."}


def hit(*path):
    node = Node(path[-1], PASSAGE, TEXTS[path[-1]], path[-1][0], "x.md", 1, None, "", 0, None, (), (0, 9))
    return Hit(node, 1.0, path)


def texts(ids):
    return [TEXTS[id] for id in ids]


def test_paths_are_contexts_of_joined_passages_as_in_listing_4():
    trail = TrailRecorder()
    hits = [hit("a:1", "b:2"), hit("c:3"), hit("b:2", "a:1")]
    with ScriptedServer([" lower Manhattan\n"]) as server:
        reader = PaperReader(create_language_model(server.llm), load_prompt("kgp-read"), texts)
        answer = reader.read(Question("8 mi west of where?"), hits, trail)
    assert server.requests[0].body["messages"] == [
        {
            "role": "user",
            "content": (
                "Given the following question and contexts, create a final answer to the question.\n\n=====\n\n"
                "QUESTION: 8 mi west of where?\n\n=====\n\nCONTEXT:\n\n"
                "1: Newark is a city.\nAvent played in Newark.\n2: Atlanta won.\n"
                "3: Avent played in Newark.\nNewark is a city.\n\n=====\n\n"
                "QUESTION: 8 mi west of where?\n\n=====\n\nANSWER: Please answer in less than 6 words."
            ),
        }
    ]
    assert (answer.text, answer.abstained, answer.reader) == ("lower Manhattan", False, "paper")
    assert answer.evidence == tuple(hits)
    (step,) = trail.steps
    assert step.usage.calls == 1
    assert step.detail["contexts"] == 3


def test_nothing_to_read_or_an_empty_reply_is_no_answer():
    trail = TrailRecorder()
    with ScriptedServer([" "]) as server:
        reader = PaperReader(create_language_model(server.llm), load_prompt("kgp-read"), texts)
        empty = reader.read(Question("q"), [hit("a:1")], trail)
        nothing = reader.read(Question("q"), [], trail)
    assert [item.text for item in (empty, nothing)] == [NOT_FOUND] * 2
    assert empty.abstained
    assert nothing.abstained
    assert len(server.requests) == 1
