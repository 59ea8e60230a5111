"""Every method that asks a model, over servers with a context of 2,048 and 4,096 tokens (tests/context_servers.py).

The base has more text than such a context, and the recipes are the defaults. A method fits, and its answer says how
much was left out, or it says what does not fit. No answer rests on a prompt that a server has cut.
"""

import functools
import json
import re

import pytest

from clew.core.errors import ContextExceeded
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.store.store import Store
from context_servers import SmallContext
from retrieve_documents import add
from small_bases import fill_archive

QUESTION = "In which town was the director of Low Water born?"
METHODS = {
    "chain": "chain",
    "focus": "focus",
    "drill": "read(retriever=drill, k=30)",
    "kgp": "kgp(guide=generated)",
    "selfask": "selfask",
    "react": "react(k=5)",
    "ircot": "ircot",
    "iterretgen": "iterretgen(k=30)",
    "dsp": "dsp(k=20)",
    "cited": "read(retriever=search, k=30, reader=cited)",
}
_SEARCHES = ("director of Low Water", "Emil Szarka", "town of Emil Szarka", "Saltreach harbour")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("archive") / "base", create=True) as store:
        fill_archive(store)
        yield store


def reply(body, text):
    """Return what a model that follows instructions would write."""
    schema = body.get("format") or body.get("response_format", {}).get("json_schema", {}).get("schema")
    asked = len(re.findall(r"Action \d+: Search|Follow up:|Search query:", text[text.rfind(QUESTION) :]))
    query = _SEARCHES[asked % len(_SEARCHES)]
    if schema and "quotes" in schema["properties"]:
        source = re.search(r"\[(\d+)\][^\n]*\n(\w+(?: \w+){4})", text)
        quotes = [{"source": int(source[1]), "text": source[2]}] if source else []
        return json.dumps({"quotes": quotes, "answer": "Saltreach", "abstain": not quotes})
    if schema:
        return json.dumps({"queries": [], "triples": [], "answer": ""})
    if text.endswith("Reasoning Chain:"):
        return "Low Water >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    if re.search(r"Thought \d+:$", text):
        return f"I look further.\nAction: Search[{query}]"
    if text.endswith("Summary:"):
        return f"Emil Szarka directed it.\nSearch query: {query}"
    if "follow up questions needed" in text:
        return f"Follow up: What is known of {query}?" if asked < 3 else "So the final answer is: Saltreach."
    if "Reasoning:" in text[-600:]:
        return f"Sentence {text.count('harbour')} says that {query} matters."
    if "one or more of" in text or re.search(r"\bnumbers?\b", text[:1500]):
        return "1, 2, 3"
    return "So the answer is: Saltreach."


@pytest.mark.parametrize("context", [2048, pytest.param(4096, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind",
    [
        "llama.cpp",
        pytest.param("vllm", marks=pytest.mark.slow),
        pytest.param("ollama", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_fits_a_small_context(archive, name, kind, context):
    server = SmallContext(kind, context, reply)
    with server.serve() as llm:
        method = registry.build_method(METHODS[name], archive, llm=create_language_model(llm))
        answer = method.answer(Question(QUESTION), TrailRecorder())
    whole = [(tokens, longest) for tokens, longest in server.read if tokens < context]
    # Ollama alone reads a prompt that it has cut; it is then sent a shorter one.
    assert len(whole) == len(server.read) - server.cut > 0 and server.cut <= (kind == "ollama")
    assert all(tokens + longest <= context for tokens, longest in whole)
    assert QUESTION in server.prompts[0]
    assert answer.text and answer.evidence
    if context == 2048 and longest_prompt(archive, name) > context:
        assert answer.usage.left_out > 0


@functools.cache
def longest_prompt(archive, name):
    """Return the tokens of a method's longest prompt where the context has room for all."""
    server = SmallContext("llama.cpp", 1_000_000, reply)
    with server.serve() as llm:
        method = registry.build_method(METHODS[name], archive, llm=create_language_model(llm))
        method.answer(Question(QUESTION), TrailRecorder())
    return max(tokens for tokens, _ in server.read)


def test_the_prompts_of_this_base_are_longer_than_a_small_context(archive):
    lengths = {name: longest_prompt(archive, name) for name in METHODS}
    assert {name for name, tokens in lengths.items() if tokens <= 2048} <= {"ircot", "selfask"}, lengths


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "ollama"])
def test_a_passage_that_alone_is_too_long_is_an_error_that_says_so(tmp_path, kind):
    with Store.open(tmp_path / "base", create=True) as store:
        add(store, "low.txt", "Low Water", "Low Water was directed by Emil Szarka at sea. " * 400)
        add(store, "emil.txt", "Emil Szarka", "Emil Szarka was born in Saltreach, which Low Water shows.")
        store.catch_up()
        server = SmallContext(kind, 2048, reply)
        with server.serve() as llm, pytest.raises(ContextExceeded) as error:
            method = registry.build_method(METHODS["cited"], store, llm=create_language_model(llm))
            method.answer(Question(QUESTION), TrailRecorder())
    assert re.search(
        r"a 'read' prompt of about [\d,]+ tokens does not fit: .* 2,048 tokens", error.value.problem
    )
    assert error.value.hint.startswith("Give it a longer context (")
