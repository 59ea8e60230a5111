"""Every component of the registry passes the checks of clew.testing.

Each entry has its check in ``CHECKS``, with what it needs: documents, sentences, graphs, a web search, weights,
annotations, gold evidence. A new entry without a check fails ``test_every_entry_has_a_check``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import clew
import film_world
from annotation_server import AnnotationServer
from clew.core.errors import UsageError
from clew.core.text import index_terms
from clew.core.types import ENTITY
from clew.graph.annotation import AnnotationCache, AnnotationService, annotate_passages
from clew.knowledge_base import KnowledgeBase, registry
from clew.knowledge_base.registry import BUILT_IN
from clew.models import create_language_model
from clew.testing import (
    SAMPLE_DOCUMENTS,
    SAMPLE_QUESTION,
    check_graph,
    check_method,
    check_reader,
    check_retriever,
    sample_base,
)
from retrieve_encoders import WordEncoder
from scripted import ScriptedServer
from web_server import WebServer

ENCODER = WordEncoder("lighthouse", "skerry", "norling", "harbour", "osterby")
#: A question about the film world, and the same in triples.
FILM_QUESTION = "Which dreamlike films did Ilse Varnholt direct?"
FILM_TRIPLES = "#1 : film; #1 >> directed_by >> Ilse Varnholt; final answer: #1"
FILM_ENCODER = WordEncoder("dreamlike", "film", "varnholt", "green", "thriller")


@dataclass
class Worlds:
    """The knowledge bases that components are checked over, each created when it is first asked for."""

    folder: Path
    stack: ExitStack
    bases: dict[str, KnowledgeBase] = field(default_factory=dict)

    def documents(self) -> KnowledgeBase:
        """The sample base with an encoder."""
        return self._open("documents", self._documents)

    def sentences(self) -> KnowledgeBase:
        """A base whose passages are sentences."""
        return self._open("sentences", self._sentences)

    def films(self) -> KnowledgeBase:
        """The sample base with the graph of films."""
        return self._open("films", self._films)

    def _open(self, name: str, create: Callable[[Path], KnowledgeBase]) -> KnowledgeBase:
        if name not in self.bases:
            self.bases[name] = create(self.folder / name)
        return self.bases[name]

    def _documents(self, folder: Path) -> KnowledgeBase:
        base = self.stack.enter_context(sample_base(folder))
        base.store.encode(ENCODER)
        return base

    def _sentences(self, folder: Path) -> KnowledgeBase:
        folder.mkdir()
        notes = folder / "notes.txt"
        notes.write_text("Ada Norling built the lighthouse on Skerry. It has one lamp.")
        base = self.stack.enter_context(clew.open(folder / "base", create=True, passages="sentence"))
        base.add([notes], workers=1)
        return base

    def _films(self, folder: Path) -> KnowledgeBase:
        base = self.stack.enter_context(sample_base(folder))
        film_world.films(base.store)
        return base


@pytest.fixture(scope="module")
def worlds(tmp_path_factory, without_encoder) -> Iterator[Worlds]:
    with ExitStack() as stack:
        yield Worlds(tmp_path_factory.mktemp("conformance"), stack)


@contextmanager
def scripted_model(reply: str):
    """Yield the real client of a server that gives every prompt one reply."""
    with ScriptedServer(lambda request: reply) as server:
        yield create_language_model(server.llm)


# Retrievers


def over_documents(name: str, worlds: Worlds, recipe: str = "") -> None:
    with scripted_model("1") as model:
        check_retriever(recipe or name, worlds.documents(), model=model, encoder=ENCODER)


def over_sentences(name: str, worlds: Worlds) -> None:
    hits = check_retriever(name, worlds.sentences(), question=SAMPLE_QUESTION)
    assert hits[0].node.text.startswith("Ada Norling")


def over_nodes(name: str, worlds: Worlds) -> None:
    """A retriever of nodes conforms, and finds nodes of the graph alone."""
    with scripted_model("0.5") as model:
        hits = check_retriever(
            name, worlds.films(), question=FILM_QUESTION, model=model, encoder=FILM_ENCODER
        )
    assert hits and {(hit.node.kind, hit.node.document) for hit in hits} == {(ENTITY, "films")}


def over_the_web(name: str, worlds: Worlds) -> None:
    """A search of the web conforms but for two checks: its hits are no nodes of the base, and it refuses a scope of
    documents, since no web search can be restricted to them."""
    with WebServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_SERPAPI_URL", server.url)
        hits = check_retriever(name, worlds.documents(), question="Where was Wilmot Harker born?", web=True)
        assert "Dunmere" in hits[0].node.text and server.asked
        with pytest.raises(AssertionError, match=r"web:.* is not the base's node"):
            check_retriever(name, worlds.documents())


class WordReranker:
    """In place of weights: the share of a question's words that a text has."""

    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, question, texts):
        words = set(index_terms(question))
        return np.array([len(words & set(index_terms(text))) / len(words) for text in texts])


def with_reranker(name: str, worlds: Worlds) -> None:
    """A baseline with a reranker conforms; its weights are replaced, for torch is no part of a plain installation.

    ``test_rerankers_with_weights_conform`` has weights.
    """
    loaded: list[str] = []

    def create_reranker(model: str) -> WordReranker:
        loaded.append(model)
        return WordReranker(model)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.models.rerankers.create_reranker", create_reranker)
        hits = check_retriever(f"{name}(model='some/folder')", worlds.documents())
    assert loaded == [f"{name}:some/folder"]
    assert "Ada Norling" in hits[0].node.text


# Readers, methods, graphs


def reads_documents(name: str, worlds: Worlds) -> None:
    with scripted_model("Ada Norling") as model:
        check_reader(name, worlds.documents(), model=model)


def answers_documents(name: str, worlds: Worlds) -> None:
    with scripted_model("Ada Norling") as model:
        check_method(name, worlds.documents(), model=model, encoder=ENCODER)


def answers_sentences(name: str, worlds: Worlds) -> None:
    check_method(name, worlds.sentences(), question=SAMPLE_QUESTION)


def answers_gold(name: str, worlds: Worlds) -> None:
    """No recipe builds ``golden``: what an evaluation builds from the gold evidence conforms."""
    base = worlds.documents()
    with pytest.raises(UsageError, match="needs gold evidence"):
        registry.build_method(name, base.store)
    gold = [hit for hit in base.search(SAMPLE_QUESTION) if "Ada Norling in 1911" in hit.node.text]
    assert len(gold) == 1
    answer = check_method(registry.build_golden(name, registry.open_resources(base.store), gold), base)
    assert "Norling" in answer.text and answer.evidence == tuple(gold)


def answers_triples(name: str, worlds: Worlds) -> None:
    """Without a model the triples are given; with one, it writes them."""
    expected = {film_world.SALT, film_world.LOW, film_world.GLASS}
    given = check_method(name, worlds.films(), question=FILM_QUESTION, chain=FILM_TRIPLES)
    assert set(given.values) == expected
    with scripted_model(FILM_TRIPLES) as model:
        written = check_method(f"{name}(form=none)", worlds.films(), question=FILM_QUESTION, model=model)
    assert set(written.values) == expected


def answers_plainly(name: str, worlds: Worlds) -> None:
    """The question is in plain words; with a condition that the graph does not have the answer is not stated."""
    answer = check_method(name, worlds.films(), question="Which films did Ilse Varnholt direct?")
    assert set(answer.values) == {film_world.SALT, film_world.LOW, film_world.GLASS}
    unsure = check_method(name, worlds.films(), question="Which films did Ilse Varnholt direct in Norway?")
    assert unsure.weigh().way != "answer"


def answers_step_by_step(name: str, worlds: Worlds) -> None:
    """Each step has its source; a question inside which no other can stand is refused."""
    question = "Where was the director of Low Water born?"
    answer = check_method(name, worlds.films(), question=question)
    assert {step.detail["source"] for step in answer.trail if step.name == "fill"} <= {"graph", "document"}
    with pytest.raises(UsageError, match="none was read in this"):
        check_method(name, worlds.films(), question="Who directed it?")


def joins_documents(name: str, worlds: Worlds, recipe: str = "") -> None:
    assert check_graph(recipe or name, worlds.documents(), encoder=ENCODER) > 0


def joins_annotated(name: str, worlds: Worlds) -> None:
    """Passages are annotated by the real client, from a server that knows two people and places."""
    base = worlds.documents()
    server = AnnotationServer(wat_reply)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLEW_CACHE", str(worlds.folder / "cache"))
            with pytest.raises(UsageError, match="no passage was annotated"):
                check_graph(name, base)
            service = AnnotationService("secret", url=server.url, interval=0)
            annotate_passages(base.store.snapshot(), service, AnnotationCache.default())
            assert server.asked and check_graph(name, base) > 0
    finally:
        server.close()


def wat_reply(text: str) -> dict:
    """Return what WAT answers: where a text has the words of two entities."""
    mentions = [
        {
            "spot": match[0],
            "start": match.start(),
            "end": match.end(),
            "rho": 0.6,
            "id": id,
            "title": match[0],
        }
        for id, word in enumerate(("Norling", "Osterby"), 1)
        for match in re.finditer(word, text)
    ]
    return {"annotations": mentions}


#: By kind and name, the check of each entry. Those that take more than the sample documents stand out by their check.
CHECKS: dict[str, dict[str, Callable[[str, Worlds], None]]] = {
    "recipe": {
        "router": answers_documents,
        "graph": answers_plainly,
        "tables": answers_documents,
        "mixed": answers_step_by_step,
        "kgp": answers_documents,
        "kgp-paper": answers_sentences,
        "read": answers_documents,
        "dpr": answers_documents,
        "mdr": answers_documents,
        "none": answers_documents,
        "golden": answers_gold,
        "ircot": answers_documents,
        "selfask": answers_documents,
        "chain": answers_documents,
        "focus": answers_triples,
        "fewshot": answers_documents,
        "cot": answers_documents,
        "iterretgen": answers_documents,
        "react": answers_documents,
        "dsp": answers_documents,
    },
    "retriever": {
        "search": over_documents,
        "bm25": over_documents,
        "tfidf": over_documents,
        "dense": over_documents,
        "twohop": over_documents,
        "knn": over_documents,
        "hybrid": over_documents,
        "serpapi": over_the_web,
        "kgp": over_documents,
        "kgp-paper": over_sentences,
        "monot5": with_reranker,
        "cross-encoder": with_reranker,
        "paragraph": over_documents,
        "chunk": over_documents,
        "map-reduce": over_documents,
        "map-reduce-optimised": over_documents,
        "drill": over_documents,
        "drill-paper": partial(over_documents, recipe="drill-paper(summariser=extractive)"),
        "vss": over_nodes,
        "multi-vss": over_nodes,
        "bm25-nodes": over_nodes,
        "fields": over_nodes,
        "reranked": over_nodes,
    },
    "graph": {
        "keywords": joins_documents,
        "mentions": joins_documents,
        "knn": joins_documents,
        "structure": joins_documents,
        "entities": joins_annotated,
        "union": partial(joins_documents, recipe="union(a=mentions, b=structure)"),
    },
    "reader": dict.fromkeys(("extractive", "cited", "paper", "hops", "span"), reads_documents),
}


def test_every_entry_has_a_check():
    assert {kind: list(checks) for kind, checks in CHECKS.items()} == {
        kind: list(entries) for kind, entries in BUILT_IN.items()
    }


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, checks in CHECKS.items() for name in checks]
)
def test_every_entry_conforms(worlds, kind, name):
    CHECKS[kind][name](name, worlds)


@pytest.mark.parametrize("name", ["kgp", "read", "dpr", "mdr"])
def test_methods_without_a_language_model_conform(worlds, name):
    assert "Norling" in check_method(name, worlds.documents(), encoder=ENCODER).text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_rerankers_with_weights_conform(worlds, tmp_path):
    """The code that loads real weights, with tiny random ones. Needs the extra local."""
    pytest.importorskip("torch", reason="needs the extra local")
    pytest.importorskip("sentence_transformers", reason="needs the extra local")
    import tiny_models

    words = sorted({*" ".join([SAMPLE_QUESTION, *SAMPLE_DOCUMENTS.values()]).split()})
    known = tiny_models.tokenizer([*words, "Query:", "Document:", "Relevant:", "true", "false"])
    tiny_models.save_model(tmp_path / "t5", tiny_models.t5(known, spread=1.0), known)
    assert check_retriever(f"monot5(model='{tmp_path / 't5'}')", worlds.documents())
    folder = tiny_models.cross_encoder(tmp_path / "bert", words)
    assert check_retriever(f"cross-encoder(model='{folder}')", worlds.documents())
