"""Conformance checks: what clew expects of a retriever, reader, method, graph, parser, encoder or language model.

Plain functions for use in any test runner. Each raises AssertionError, and says what is wrong:

    from clew.testing import check_retriever, sample_base

    def test_my_retriever(tmp_path):
        with sample_base(tmp_path / "base") as base:
            check_retriever("mine(k1=2)", base)

A component is given by its recipe, or as an object. :class:`ScriptedModel` stands in for a language model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.errors import NotFound, UsageError
from clew.core.protocols import Completion
from clew.core.trail import TrailRecorder
from clew.core.types import ENTITY, Question, Scope, Usage

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, Graph, LanguageModel, Method, Prompt, Reader, Retriever
    from clew.core.types import Answer, Hit, Node
    from clew.knowledge_base import KnowledgeBase
    from clew.parse.documents.formats import DocumentFormat

#: The documents of :func:`sample_base`: by file name, the text.
SAMPLE_DOCUMENTS = {
    "lighthouse.md": "# Skerry lighthouse\n\nThe lighthouse on Skerry was built by Ada Norling in 1911.\n\n"
    "Its lamp was replaced in 1967.\n",
    "norling.md": "# Ada Norling\n\nAda Norling was an engineer. She was born in Vessby.\n\n"
    "Norling also built the harbour of Osterby.\n",
    "harbour.txt": "The harbour of Osterby opened in 1923. Forty boats lie in it today.",
}
#: A question that :data:`SAMPLE_DOCUMENTS` answer.
SAMPLE_QUESTION = "Who built the lighthouse on Skerry?"


@contextmanager
def sample_base(folder: Path) -> Iterator[KnowledgeBase]:
    """Create a knowledge base of three small documents in ``folder``, without an encoder."""
    import clew

    documents = folder / "documents"
    documents.mkdir(parents=True)
    for name, text in SAMPLE_DOCUMENTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    with clew.open(folder / "base", create=True) as base:
        base.encoding.set(None)
        base.add([documents], workers=1)
        yield base


@dataclass(slots=True)
class ScriptedModel:
    """A language model that answers each prompt by a function; ``prompts`` are those that it was asked."""

    reply: Callable[[Prompt], str] = lambda prompt: "unknown"
    name: str = "scripted"
    prompts: list[Prompt] = field(default_factory=list)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order."""
        self.prompts += prompts
        return [Completion(self.reply(prompt), Usage(calls=1), self.name) for prompt in prompts]


def check_retriever(
    retriever: str | Retriever,
    base: KnowledgeBase,
    *,
    question: str = SAMPLE_QUESTION,
    model: LanguageModel | None = None,
    encoder: Encoder | None = None,
    web: bool = False,
) -> list[Hit]:
    """Check a retriever over a base and return its hits for ``question``.

    It returns at most ``k`` hits; no node comes twice; scores are finite and never rise; a hit's path ends with its
    node; nodes are those of the base's documents and graphs; asking again, or for fewer, gives the same hits; a scope
    without documents holds no passage, and one without documents and graphs holds nothing.

    ``web``: the retriever searches outside the base. Its nodes then have ids that begin with ``web:``, and it may
    refuse a question that is restricted to documents with a UsageError.
    """
    if isinstance(retriever, str):
        from clew.knowledge_base.registry import build_retriever

        retriever = build_retriever(retriever, base.store, llm=model, encoder=encoder)
    asked = Question(question)
    hits = list(retriever.retrieve(asked, 10))
    assert len(hits) <= 10, f"10 hits were asked for, {len(hits)} came"
    ids = [hit.node.id for hit in hits]
    assert len(set(ids)) == len(ids), f"a node comes twice: {ids}"
    scores = [hit.score for hit in hits]
    assert all(math.isfinite(score) for score in scores), f"a score is not finite: {scores}"
    assert scores == sorted(scores, reverse=True), f"a later hit scores higher: {scores}"
    for hit in hits:
        assert hit.path and hit.path[-1] == hit.node.id, (
            f"the path {hit.path} does not end with {hit.node.id}"
        )
        _check_node(hit.node, base, web)
    again = [hit.node.id for hit in retriever.retrieve(asked, 10)]
    assert again == ids, f"asked again, it finds {again}, not {ids}"
    fewer = list(retriever.retrieve(asked, 1))
    assert len(fewer) <= 1, f"1 hit was asked for, {len(fewer)} came"
    _check_scope(retriever, question, web)
    return hits


def _check_node(node: Node, base: KnowledgeBase, web: bool) -> None:
    """Check that a node is one of the base's documents or graphs; or for a search of the web, that it says so."""
    if web:
        assert node.id.startswith("web:"), f"the id of a node of the web begins with 'web:': {node.id}"
        return
    try:
        if node.kind == ENTITY:
            graph = base.store.snapshot().graph(node.document)
            (entity,) = graph.entities(graph.rows([node.id]))
            same = (entity.id, entity.name) == (node.id, node.name)
        else:
            same = base.node(node.id) == node
    except NotFound:
        same = False
    assert same, f"{node.id} is not the base's node"


def _check_scope(retriever: Retriever, question: str, web: bool) -> None:
    none: frozenset[str] = frozenset()
    try:
        hits = list(retriever.retrieve(Question(question, Scope(documents=none)), 10))
        hits = [hit for hit in hits if hit.node.kind != ENTITY]
        hits += retriever.retrieve(Question(question, Scope(documents=none, graphs=none)), 10)
    except UsageError:
        if not web:
            raise
        return
    assert not hits, f"it finds {hits[0].node.id} outside the scope of the question"


def check_reader(
    reader: str | Reader,
    base: KnowledgeBase,
    *,
    question: str = SAMPLE_QUESTION,
    model: LanguageModel | None = None,
) -> Answer:
    """Check a reader over the best hits of a base and return its answer to ``question``.

    It answers or abstains; evidence and quotes are of the hits that it was given; quotes are verbatim; it tells the
    trail at least one step; without any hits it abstains.
    """
    if isinstance(reader, str):
        from clew.knowledge_base.registry import build_reader

        reader = build_reader(reader, base.store, llm=model)
    hits = base.search(question, k=5)
    assert hits, f"the base holds nothing for '{question}'"
    trail = TrailRecorder()
    answer = reader.read(Question(question), hits, trail)
    assert trail.steps, "reading leaves no step in the trail"
    assert isinstance(answer.text, str)
    assert answer.abstained or answer.text.strip(), "an answer that is not abstained has no text"
    _check_evidence(answer, hits)
    empty = reader.read(Question(question), [], TrailRecorder())
    assert empty.abstained, f"without any hits it answers '{empty.text}'"
    assert not empty.evidence, "without any hits it has evidence"
    return answer


def check_method(
    method: str | Method,
    base: KnowledgeBase,
    *,
    question: str = SAMPLE_QUESTION,
    model: LanguageModel | None = None,
    encoder: Encoder | None = None,
    chain: str = "",
) -> Answer:
    """Check a method over a base and return its answer to ``question``.

    It answers or abstains; every step goes to the caller's trail as it happens, and all are in the answer; quotes are
    verbatim; it names the recipe that made it; a caller who stops it gets an answer all the same.

    ``chain`` is the question in triples, for a method that without a model answers such questions only. A method that
    no recipe can build is given as an object.
    """
    if isinstance(method, str):
        from clew.knowledge_base.registry import build_method

        method = build_method(method, base.store, llm=model, encoder=encoder)
    trail = TrailRecorder()
    asked = Question(question, chain=chain)
    answer = method.answer(asked, trail)
    assert answer.abstained or answer.text.strip(), "an answer that is not abstained has no text"
    assert answer.recipe, "the answer does not name its recipe"
    assert answer.trail, "the answer has no trail"
    streamed, recorded = [step.name for step in trail.steps], [step.name for step in answer.trail]
    assert streamed == recorded, f"the caller received the steps {streamed}, the answer has {recorded}"
    _check_evidence(answer, answer.evidence)
    stopped = method.answer(asked, TrailRecorder(is_cancelled=lambda: True))
    assert isinstance(stopped.text, str)
    return answer


def _check_evidence(answer: Answer, hits: Sequence[Hit]) -> None:
    known = {hit.node.id: hit.node for hit in hits}
    for hit in answer.evidence:
        assert hit.node.id in known, f"evidence that it was not given: {hit.node.id}"
    for quote in answer.quotes:
        assert quote.node in known, f"a quote of what is no evidence: {quote.node}"
        assert quote.text in known[quote.node].text, f"a quote that is not verbatim: '{quote.text}'"
        if quote.answer is not None:
            (start, end), (first, last) = quote.span, quote.answer
            assert start <= first < last <= end, f"an answer {quote.answer} outside its quote {quote.span}"


def check_graph(graph: str | Graph, base: KnowledgeBase, *, encoder: Encoder | None = None) -> int:
    """Check a graph of passages over a base and return how many neighbours its nodes have together.

    Neighbours are rows of the base, ascending, without the row itself; where the graph is mutual, each has the row
    among its own; each edge has a strength from 0 to 1 and says what joins its ends; asking again gives
    the same neighbours.
    """
    import numpy as np

    from clew.core.types import KINDS

    snapshot = base.store.snapshot()
    if isinstance(graph, str):
        from clew.knowledge_base.registry import build_graph

        graph = build_graph(graph, base.store, encoder=encoder)
    rows = np.flatnonzero(snapshot.mask(Scope(), KINDS))
    neighbours = {row: graph.neighbours(row) for row in rows.tolist()}
    for row, near in neighbours.items():
        assert row not in near, f"row {row} is its own neighbour"
        assert (near[:-1] < near[1:]).all(), f"the neighbours of row {row} are not ascending: {near}"
        assert np.isin(near, rows).all(), f"a neighbour of row {row} is no node of the base: {near}"
        assert (graph.neighbours(row) == near).all(), f"asked again, row {row} has other neighbours"
        strengths = graph.strengths(row, near)
        assert strengths.shape == near.shape, f"{len(near)} neighbours have {len(strengths)} strengths"
        assert ((strengths >= 0) & (strengths <= 1)).all(), f"a strength is not from 0 to 1: {strengths}"
        for other in near.tolist():
            assert isinstance(graph.explain_edge(row, other), str)
            assert not graph.mutual or row in neighbours[other], f"row {other} is joined to {row} one way"
    assert graph.name, "the graph has no name"
    return sum(map(len, neighbours.values()))


def check_format(form: DocumentFormat, data: bytes, name: str) -> None:
    """Check a document format by a file of it: the file is recognised, and parsed into a sound document.

    The same bytes give the same document; it has a title; its first node is the document itself; parents stand before
    their children; another unit of passages makes another document.
    """
    from clew.core.types import DOCUMENT

    assert form.suffixes, "a format has at least one suffix"
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in form.suffixes), (
        f"suffixes are in lower case and have their dot: {form.suffixes}"
    )
    parsed = form.parse(data, unit="paragraph", name=name)
    assert parsed == form.parse(data, unit="paragraph", name=name), "the same bytes give another document"
    assert parsed.media_type == form.media_type, f"{parsed.media_type} is not {form.media_type}"
    assert parsed.title.strip(), "the document has no title"
    assert parsed.nodes and parsed.nodes[0].kind == DOCUMENT, "the first node is not the document"
    for position, node in enumerate(parsed.nodes):
        assert node.parent is None or 0 <= node.parent < position, f"node {position} stands before its parent"
    assert form.parse(data, unit="sentence", name=name).key != parsed.key, "the unit is not part of the key"


def check_encoder(encoder: Encoder) -> None:
    """Check an encoder: unit vectors of its dimension in float32, each depending on its text alone."""
    import numpy as np

    texts = ["a lighthouse", "a harbour with forty boats", "", "a lighthouse"]
    vectors = encoder.encode(texts)
    assert vectors.shape == (4, encoder.dimension), f"{vectors.shape} is not (4, {encoder.dimension})"
    assert vectors.dtype == np.float32, f"{vectors.dtype} is not float32"
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.allclose(lengths, 1, atol=1e-3), f"vectors are not of length 1: {lengths}"
    assert (vectors[0] == vectors[3]).all(), "the same text has two vectors"
    alone = encoder.encode(texts[1:2])
    assert np.allclose(alone[0], vectors[1], atol=1e-5), "a vector depends on the other texts of its batch"
    assert encoder.encode(texts[:1], query=True).shape == (1, encoder.dimension)
    assert encoder.encode([]).shape == (0, encoder.dimension), "no texts give no vectors"
    assert encoder.name


def check_language_model(model: LanguageModel) -> None:
    """Check a language model: one completion per prompt, in order, each with its usage; no prompt, no completion."""
    from clew.core.protocols import Prompt

    prompts = [Prompt("Reply with one word.", max_tokens=8), Prompt("Reply with another.", max_tokens=8)]
    completions = model.complete(prompts)
    assert len(completions) == 2, f"2 prompts were given, {len(completions)} completions came"
    for completion in completions:
        assert isinstance(completion.text, str)
        assert completion.usage.calls >= 0
    assert model.complete([]) == []
    assert model.name
